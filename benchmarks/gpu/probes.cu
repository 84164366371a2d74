// Measures what mechanisms of Hopper cost that FTuner's kernels use, or could use. Each argument
// is a section; the program prints one JSON object for it.
//
//   nvcc -O3 -std=c++17 -gencode=arch=compute_90a,code=sm_90a -o probes probes.cu && ./probes boxes
//
//   boxes      boxes of the tensor memory accelerator (TMA) whose last rows lie outside the tensor
//   launches   a kernel behind another one: in a stream and in a graph, with and without
//              programmatic dependent launch; and kernels that add up slices of k
//   multicast  tiles that blocks share: read by each, or multicast in a cluster
//
// Data are in L2 where the object does not say otherwise. Clocks are those of SMs, medians over
// blocks. No setting of the card is changed. A barrier that nobody completes ends the program.

#include "timer.cuh"

#include <cstdint>
#include <cstring>
#include <cuda.h>
#include <cuda_fp16.h>
#include <functional>
#include <vector>

namespace {

// Wrappers of instructions that C++ has no words for.

__device__ uint32_t sharedAddress(const void *pointer) {
  return uint32_t(__cvta_generic_to_shared(pointer));
}

__device__ void initBarrier(uint32_t barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

// Makes initialised barriers visible to the cluster and to the copies.
__device__ void fenceBarriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ void expectBytes(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

// Arrives at the barrier of the same offset in a block of the cluster.
__device__ void arriveAt(uint32_t barrier, uint32_t rank) {
  uint32_t remote;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(barrier), "r"(rank));
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(remote)
               : "memory");
}

__device__ void waitFor(uint32_t barrier, uint32_t parity) {
  for (int turn = 0;; ++turn) {
    uint32_t done;
    asm volatile("{\n\t.reg .pred p;\n\t"
                 "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n\t"
                 "selp.u32 %0, 1, 0, p;\n\t}"
                 : "=r"(done)
                 : "r"(barrier), "r"(parity)
                 : "memory");
    if (done)
      return;
    if (turn > 1 << 20)
      __trap();
  }
}

__device__ void copyBox(uint32_t target, const CUtensorMap &map, int column, int row,
                        uint32_t barrier) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
               " [%0], [%1, {%2, %3}], [%4];" ::"r"(target),
               "l"(&map), "r"(column), "r"(row), "r"(barrier)
               : "memory");
}

// Copies to the same offsets of all blocks of the cluster whose bits are in `blocks`.
__device__ void multicastBox(uint32_t target, const CUtensorMap &map, int column, int row,
                             uint32_t barrier, uint16_t blocks) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
               ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(target),
               "l"(&map), "r"(column), "r"(row), "r"(barrier), "h"(blocks)
               : "memory");
}

__device__ void syncCluster() {
  __syncwarp();
  asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" ::: "memory");
}

// Lets the next kernel of the stream begin, and waits until the one before has ended.
__device__ void letNextBegin() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
__device__ void waitForBefore() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

// Boxes are of 128 bytes a row: 64 columns in f16, swizzled as wgmma reads them.
constexpr int kBoxColumns = 64;
constexpr int kRowBytes = 128;
constexpr int kMaxStages = 8;
// Tiles of swizzled rows begin at multiples of this.
constexpr uint32_t kTileAlignment = 1024;

extern __shared__ uint8_t dynamicShared[];

__device__ uint32_t alignedShared() {
  return (sharedAddress(dynamicShared) + kTileAlignment - 1) / kTileAlignment * kTileAlignment;
}

// One thread copies box after box from row 0 on, `stages` of them at a time.
__global__ void copyBoxes(const __grid_constant__ CUtensorMap map, int boxRows, int stages,
                          int boxes, int columns, long long *clocks) {
  __shared__ uint64_t barriers[kMaxStages];
  if (threadIdx.x == 0) {
    uint32_t full = sharedAddress(barriers), tiles = alignedShared();
    uint32_t bytes = boxRows * kRowBytes;
    for (int stage = 0; stage < stages; ++stage)
      initBarrier(full + 8 * stage, 1);
    fenceBarriers();
    auto issue = [&](int box) {
      int stage = box % stages;
      expectBytes(full + 8 * stage, bytes);
      copyBox(tiles + stage * bytes, map, box * kBoxColumns % columns, 0, full + 8 * stage);
    };
    long long start = clock64();
    for (int box = 0; box < stages; ++box)
      issue(box);
    for (int box = 0; box < boxes; ++box) {
      waitFor(full + 8 * (box % stages), box / stages & 1);
      if (box + stages < boxes)
        issue(box + stages);
    }
    clocks[blockIdx.x] = clock64() - start;
  }
}

// Tiles of a launch and how its blocks share those of B: `sharing` neighbours have the same one.
struct Sharing {
  int aRows, bRows;
  int stages, steps;
  int sharing;
  int cluster;
  bool multicast;
};

// A producer and a consumer, which computes nothing, run through tiles of A and B like a product.
__global__ void copyTiles(const __grid_constant__ CUtensorMap a,
                          const __grid_constant__ CUtensorMap b, Sharing of, long long *clocks) {
  __shared__ uint64_t barriers[2 * kMaxStages];
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  uint32_t full = sharedAddress(barriers), empty = full + 8 * kMaxStages, tiles = alignedShared();
  uint32_t aBytes = of.aRows * kRowBytes, bytes = aBytes + of.bRows * kRowBytes;
  int readers = of.multicast ? of.cluster : 1;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < of.stages; ++stage) {
      initBarrier(full + 8 * stage, 1);
      initBarrier(empty + 8 * stage, readers);
    }
    fenceBarriers();
  }
  __syncthreads();
  syncCluster();
  long long start = clock64();
  if (threadIdx.x == 0) {
    int aRow = int(blockIdx.x) % of.sharing * of.aRows;
    int bRow = int(blockIdx.x) / of.sharing * of.bRows;
    for (int step = 0; step < of.steps; ++step) {
      int stage = step % of.stages;
      uint32_t barrier = full + 8 * stage, tile = tiles + stage * bytes;
      waitFor(empty + 8 * stage, (step / of.stages & 1) ^ 1);
      expectBytes(barrier, bytes);
      copyBox(tile, a, step * kBoxColumns, aRow, barrier);
      if (of.multicast) {
        int part = of.bRows / of.cluster * int(rank);
        multicastBox(tile + aBytes + part * kRowBytes, b, step * kBoxColumns, bRow + part, barrier,
                     uint16_t((1 << of.cluster) - 1));
      } else {
        copyBox(tile + aBytes, b, step * kBoxColumns, bRow, barrier);
      }
    }
  } else if (threadIdx.x == 32) {
    for (int step = 0; step < of.steps; ++step) {
      int stage = step % of.stages;
      waitFor(full + 8 * stage, step / of.stages & 1);
      // All blocks that write to this stage have to know that it is free.
      for (int reader = 0; reader < readers; ++reader)
        arriveAt(empty + 8 * stage, of.multicast ? reader : rank);
    }
    clocks[blockIdx.x] = clock64() - start;
  }
  // No block ends while others write to its shared memory.
  syncCluster();
}

// Moments at which a kernel lets the next one begin.
enum class Trigger { None, First, Last };

// Every block is busy for so many clocks.
template <Trigger trigger> __global__ void spin(long long clocks) {
  if constexpr (trigger == Trigger::First)
    letNextBegin();
  if constexpr (trigger != Trigger::None)
    waitForBefore();
  long long start = clock64();
  while (clock64() - start < clocks) {
  }
  if constexpr (trigger == Trigger::Last)
    letNextBegin();
}

// Writes the sums of a product with slices, in f32, a slice after the other.
template <Trigger trigger> __global__ void writeSlices(float *slices, size_t count) {
  if constexpr (trigger == Trigger::First)
    letNextBegin();
  if constexpr (trigger != Trigger::None)
    waitForBefore();
  size_t step = size_t(gridDim.x) * blockDim.x;
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += step)
    slices[i] = float(i & 1023);
  if constexpr (trigger == Trigger::Last)
    letNextBegin();
}

// Adds the slices up, `width` elements for each thread.
template <Trigger trigger, int width>
__global__ void sumSlices(const float *slices, __half *result, int count, int number) {
  if constexpr (trigger == Trigger::First)
    letNextBegin();
  if constexpr (trigger != Trigger::None)
    waitForBefore();
  int at = int(blockIdx.x * blockDim.x + threadIdx.x) * width;
  if (at < count) {
    float sums[width] = {};
    for (int slice = 0; slice < number; ++slice) {
      const float *from = slices + size_t(slice) * count + at;
      if constexpr (width == 4) {
        float4 values = *reinterpret_cast<const float4 *>(from);
        sums[0] += values.x;
        sums[1] += values.y;
        sums[2] += values.z;
        sums[3] += values.w;
      } else {
        sums[0] += *from;
      }
    }
    for (int i = 0; i < width; ++i)
      result[at + i] = __float2half(sums[i]);
  }
  if constexpr (trigger == Trigger::Last)
    letNextBegin();
}

// The host.

struct Card {
  int sms = 0;
  size_t shared = 0;
  cudaStream_t stream = nullptr;
  long long *clocks = nullptr;
  Timer time;

  Card() {
    cudaDeviceProp properties;
    CHECK(cudaGetDeviceProperties(&properties, 0));
    if (properties.major != 9) {
      std::fprintf(stderr, "error: expected compute capability 9.0, but got %d.%d\n",
                   properties.major, properties.minor);
      std::exit(1);
    }
    sms = properties.multiProcessorCount;
    shared = properties.sharedMemPerBlockOptin;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaMalloc(&clocks, 4096 * sizeof(long long)));
  }

  double medianClocks(int blocks) {
    std::vector<long long> values(blocks);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(values.data(), clocks, blocks * sizeof(long long), cudaMemcpyDeviceToHost));
    std::sort(values.begin(), values.end());
    return double(values[blocks / 2]);
  }

  // Microseconds of a replay of a graph of what `record` launches into the stream.
  double graphMicroseconds(const std::function<void()> &record) {
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    record();
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    double seconds = time([&] { CHECK(cudaGraphLaunch(executable, stream)); }, stream);
    CHECK(cudaGraphExecDestroy(executable));
    CHECK(cudaGraphDestroy(graph));
    return seconds * 1e6;
  }

  // Microseconds of what `record` launches, which waits in the stream until all of it is there.
  double streamMicroseconds(const std::function<void()> &record) {
    double best = 1e30;
    for (int turn = 0; turn < 5; ++turn) {
      spin<Trigger::None><<<1, 1, 0, stream>>>(4000000);
      CHECK(cudaEventRecord(time.start, stream));
      record();
      CHECK(cudaEventRecord(time.end, stream));
      CHECK(cudaEventSynchronize(time.end));
      float milliseconds;
      CHECK(cudaEventElapsedTime(&milliseconds, time.start, time.end));
      best = std::min(best, milliseconds * 1e3);
    }
    CHECK(cudaGetLastError());
    return best;
  }

  template <typename... Parameters, typename... Arguments>
  void launch(void (*kernel)(Parameters...), int blocks, int threads, size_t bytes, int cluster,
              bool overlaps, Arguments... arguments) {
    cudaLaunchAttribute attributes[2];
    std::memset(attributes, 0, sizeof attributes);
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(blocks);
    config.blockDim = dim3(threads);
    config.dynamicSmemBytes = bytes;
    config.stream = stream;
    config.attrs = attributes;
    if (cluster > 1) {
      attributes[config.numAttrs].id = cudaLaunchAttributeClusterDimension;
      attributes[config.numAttrs].val.clusterDim.x = cluster;
      attributes[config.numAttrs].val.clusterDim.y = 1;
      attributes[config.numAttrs++].val.clusterDim.z = 1;
    }
    if (overlaps) {
      attributes[config.numAttrs].id = cudaLaunchAttributeProgrammaticStreamSerialization;
      attributes[config.numAttrs++].val.programmaticStreamSerializationAllowed = 1;
    }
    CHECK(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...));
  }
};

// The driver's function, which no library has to be linked for.
decltype(&cuTensorMapEncodeTiled) encoder() {
  void *function = nullptr;
  cudaDriverEntryPointQueryResult found;
  CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                         cudaEnableDefault, &found));
  if (!function || found != cudaDriverEntryPointSuccess) {
    std::fprintf(stderr, "error: the driver has no cuTensorMapEncodeTiled\n");
    std::exit(1);
  }
  return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
}

CUtensorMap tensorMap(void *data, uint64_t rows, uint64_t columns, uint32_t boxRows) {
  static const auto encode = encoder();
  CUtensorMap map;
  cuuint64_t sizes[2] = {columns, rows}, strides[1] = {columns * 2};
  cuuint32_t box[2] = {kBoxColumns, boxRows}, steps[2] = {1, 1};
  CUresult code = encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, data, sizes, strides, box, steps,
                         CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                         CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (code != CUDA_SUCCESS) {
    std::fprintf(stderr, "error: cuTensorMapEncodeTiled: code %d\n", int(code));
    std::exit(1);
  }
  return map;
}

// Rows of a JSON list, with commas between them.
struct Rows {
  bool first = true;
  Rows(const char *name) { std::printf(" \"%s\": [\n", name); }
  ~Rows() { std::printf("\n ]"); }
  template <typename... Values> void operator()(const char *format, Values... values) {
    std::printf(first ? "  " : ",\n  ");
    std::printf(format, values...);
    first = false;
  }
};

void measureBoxes(Card &card) {
  constexpr int kColumns = 4096, kMostRows = 256, kBoxes = 1024;
  void *data;
  CHECK(cudaMalloc(&data, size_t(kMostRows) * kColumns * 2));
  CHECK(cudaMemset(data, 0x35, size_t(kMostRows) * kColumns * 2));
  CHECK(cudaFuncSetAttribute(copyBoxes, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             int(card.shared - 1024)));
  Rows rows("boxes");
  for (int height : {8, 16, 32, 64, 128, 192, 256}) {
    std::vector<int> valid = {height, height * 7 / 8, height * 3 / 4, height / 2, height / 4,
                              height / 8, 1};
    valid.erase(std::unique(valid.begin(), valid.end()), valid.end());
    for (int inside : valid)
      for (int blocks : {1, card.sms / 4, card.sms / 2, card.sms})
        for (int stages : {1, 4}) {
          CUtensorMap map = tensorMap(data, inside, kColumns, height);
          size_t bytes = size_t(stages) * height * kRowBytes + kTileAlignment;
          for (int turn = 0; turn < 3; ++turn)
            copyBoxes<<<blocks, 32, bytes, card.stream>>>(map, height, stages, kBoxes, kColumns,
                                                          card.clocks);
          CHECK(cudaGetLastError());
          rows("{\"box_rows\": %d, \"valid_rows\": %d, \"blocks\": %d, \"in_flight\": %d, "
               "\"clocks_per_box\": %.1f}",
               height, inside, blocks, stages, card.medianClocks(blocks) / kBoxes);
        }
  }
  CHECK(cudaFree(data));
}

template <Trigger trigger> void chain(Card &card, int kernels, int blocks, long long clocks) {
  for (int kernel = 0; kernel < kernels; ++kernel)
    card.launch(spin<trigger>, blocks, 128, 0, 1, trigger != Trigger::None, clocks);
}

template <Trigger trigger, int width>
void sums(Card &card, int kernels, bool both, float *slices, __half *result, int elements,
          int number) {
  for (int kernel = 0; kernel < kernels; ++kernel) {
    card.launch(writeSlices<trigger>, card.sms * 2, 256, 0, 1, trigger != Trigger::None, slices,
                size_t(elements) * number);
    if (both)
      card.launch(sumSlices<trigger, width>, (elements / width + 255) / 256, 256, 0, 1,
                  trigger != Trigger::None, slices, result, elements, number);
  }
}

const char *nameOf(Trigger trigger) {
  return trigger == Trigger::None ? "none" : trigger == Trigger::First ? "first" : "last";
}

template <Trigger trigger> void measureChains(Card &card, Rows &rows) {
  constexpr int kKernels = 100;
  for (int blocks : {1, card.sms, 4 * card.sms})
    for (long long clocks : {0, 4000, 20000}) {
      auto record = [&] { chain<trigger>(card, kKernels, blocks, clocks); };
      double graph = card.graphMicroseconds(record) / kKernels;
      double stream = card.streamMicroseconds(record) / kKernels;
      rows("{\"dependent\": \"%s\", \"blocks\": %d, \"spin_clocks\": %lld, \"graph_us\": %.3f, "
           "\"stream_us\": %.3f}",
           nameOf(trigger), blocks, clocks, graph, stream);
    }
}

template <Trigger trigger, int width>
void measureSums(Card &card, Rows &rows, float *slices, __half *result) {
  constexpr int kKernels = 20;
  for (int columns : {768, 4096})
    for (int height : {16, 128, 512, 2048})
      for (int number : {2, 4, 8}) {
        auto microseconds = [&](bool both) {
          return card.graphMicroseconds([&] {
            sums<trigger, width>(card, kKernels, both, slices, result, height * columns, number);
          }) / kKernels;
        };
        double first = microseconds(false), both = microseconds(true);
        rows("{\"dependent\": \"%s\", \"vector\": %d, \"rows\": %d, \"columns\": %d, \"slices\": "
             "%d, \"first_us\": %.3f, \"both_us\": %.3f}",
             nameOf(trigger), width, height, columns, number, first, both);
      }
}

void measureLaunches(Card &card) {
  {
    Rows rows("chains");
    measureChains<Trigger::None>(card, rows);
    measureChains<Trigger::First>(card, rows);
    measureChains<Trigger::Last>(card, rows);
  }
  std::printf(",\n");
  float *slices;
  __half *result;
  CHECK(cudaMalloc(&slices, size_t(2048) * 4096 * 8 * sizeof(float)));
  CHECK(cudaMalloc(&result, size_t(2048) * 4096 * sizeof(__half)));
  {
    Rows rows("sums");
    measureSums<Trigger::None, 1>(card, rows, slices, result);
    measureSums<Trigger::None, 4>(card, rows, slices, result);
    measureSums<Trigger::First, 4>(card, rows, slices, result);
  }
  CHECK(cudaFree(slices));
  CHECK(cudaFree(result));
}

void measureMulticast(Card &card) {
  constexpr int kSharing = 4, kStages = 4, kKernels = 20, kMostSteps = 172;
  constexpr int kColumns = kMostSteps * kBoxColumns;
  int groups = card.sms / kSharing, blocks = groups * kSharing;
  void *a, *b;
  size_t aBytes = size_t(kSharing) * 128 * kColumns * 2;
  size_t bBytes = size_t(groups) * 256 * kColumns * 2;
  CHECK(cudaMalloc(&a, aBytes));
  CHECK(cudaMalloc(&b, bBytes));
  CHECK(cudaMemset(a, 0x35, aBytes));
  CHECK(cudaMemset(b, 0x35, bBytes));
  CHECK(cudaFuncSetAttribute(copyTiles, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             int(card.shared - 1024)));
  Rows rows("multicast");
  for (auto [aRows, bRows] :
       {std::pair<int, int>{64, 64}, {64, 128}, {128, 128}, {64, 256}, {128, 256}})
    for (int steps : {1, 12, 64, kMostSteps})
      for (auto [cluster, multicast] :
           {std::pair<int, bool>{1, false}, {2, false}, {2, true}, {4, true}}) {
        Sharing of{aRows, bRows, kStages, steps, kSharing, cluster, multicast};
        CUtensorMap mapA = tensorMap(a, kSharing * aRows, kColumns, aRows);
        CUtensorMap mapB =
            tensorMap(b, groups * bRows, kColumns, multicast ? bRows / cluster : bRows);
        size_t bytes = size_t(kStages) * (aRows + bRows) * kRowBytes + kTileAlignment;
        double microseconds = card.graphMicroseconds([&] {
          for (int kernel = 0; kernel < kKernels; ++kernel)
            card.launch(copyTiles, blocks, 64, bytes, of.cluster, false, mapA, mapB, of,
                        card.clocks);
        }) / kKernels;
        rows("{\"a_rows\": %d, \"b_rows\": %d, \"steps\": %d, \"blocks\": %d, \"cluster\": %d, "
             "\"multicast\": %s, \"operand_bytes\": %zu, \"us\": %.3f, \"clocks\": %.0f}",
             aRows, bRows, steps, blocks, cluster, multicast ? "true" : "false",
             size_t(kSharing * aRows + groups * bRows) * steps * kRowBytes, microseconds,
             card.medianClocks(blocks));
      }
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
}

} // namespace

int main(int count, char **arguments) {
  const struct {
    const char *name;
    void (*measure)(Card &);
  } sections[] = {
      {"boxes", measureBoxes}, {"launches", measureLaunches}, {"multicast", measureMulticast}};
  if (count == 2)
    for (auto [name, measure] : sections)
      if (!std::strcmp(name, arguments[1])) {
        Card card;
        std::printf("{\n \"sm_count\": %d,\n", card.sms);
        measure(card);
        std::printf("\n}\n");
        return 0;
      }
  std::fprintf(stderr, "usage: probes boxes|launches|multicast\n");
  return 2;
}
