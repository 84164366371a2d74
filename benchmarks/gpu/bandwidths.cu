// Measures what device descriptions and cost models ask of a card: bandwidths by footprint,
// latencies, rates of instructions, and the cost of a launch. Prints one JSON object.
//
//   nvcc -O3 -std=c++17 -arch=native -o bandwidths bandwidths.cu && ./bandwidths > bandwidths.json
//
// Bandwidths are in bytes a second as events see them, or in bytes a clock and SM as the SM's own
// counter does. Data are not zeros. No setting of the card is changed.
//
// "ftuner devices NAME --measured bandwidths.json" makes fields of a device description of
// read_gbps (of the largest footprint), shared_gbps and fp32_tflops.

#include "timer.cuh"

#include <cstdint>
#include <tuple>
#include <vector>

__global__ void fill(uint4 *data, size_t count) {
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count;
       i += size_t(gridDim.x) * blockDim.x) {
    uint32_t value = uint32_t(i * 2654435761u);
    data[i] = make_uint4(value, value ^ 0x9e3779b9u, value * 3u, ~value);
  }
}

// Every block reads all of its share `passes` times; the sum keeps the loads.
__global__ void readAll(const uint4 *data, size_t count, int passes, uint32_t *sink) {
  uint32_t sum = 0;
  size_t step = size_t(gridDim.x) * blockDim.x;
  for (int pass = 0; pass < passes; ++pass) {
    size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    for (; i + 3 * step < count; i += 4 * step) {
      uint4 a = __ldcg(data + i), b = __ldcg(data + i + step), c = __ldcg(data + i + 2 * step),
            d = __ldcg(data + i + 3 * step);
      sum += a.x ^ b.y ^ c.z ^ d.w;
    }
    for (; i < count; i += step)
      sum += __ldcg(data + i).x;
  }
  if (sum == 0x12345678u)
    *sink = sum;
}

__global__ void copyAll(const uint4 *from, uint4 *to, size_t count, int passes) {
  size_t step = size_t(gridDim.x) * blockDim.x;
  for (int pass = 0; pass < passes; ++pass) {
    size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    for (; i + 3 * step < count; i += 4 * step) {
      uint4 a = __ldcg(from + i), b = __ldcg(from + i + step), c = __ldcg(from + i + 2 * step),
            d = __ldcg(from + i + 3 * step);
      to[i] = a;
      to[i + step] = b;
      to[i + 2 * step] = c;
      to[i + 3 * step] = d;
    }
    for (; i < count; i += step)
      to[i] = __ldcg(from + i);
  }
}

constexpr int kSharedWords = 4096;

// Bytes a clock of one SM from shared memory, with no bank conflict.
__global__ void readShared(long long *clocks, uint32_t *sink) {
  __shared__ uint4 data[kSharedWords / 4];
  for (int i = threadIdx.x; i < kSharedWords / 4; i += blockDim.x)
    data[i] = make_uint4(i, i * 3, i * 5, i * 7);
  __syncthreads();
  uint32_t sum = 0;
  long long start = clock64();
#pragma unroll 16
  for (int step = 0; step < 1024; ++step) {
    uint4 value = data[(threadIdx.x + step * 32) & (kSharedWords / 4 - 1)];
    sum += value.x ^ value.y ^ value.z ^ value.w;
  }
  __syncthreads();
  if (threadIdx.x == 0)
    clocks[blockIdx.x] = clock64() - start;
  if (sum == 0x12345678u)
    *sink = sum;
}

// The same for the whole card, as long as events need to see it: every thread reads 16 bytes in
// each of 1024 steps of a turn.
__global__ void readSharedLong(int turns, uint32_t *sink) {
  __shared__ uint4 data[kSharedWords / 4];
  for (int i = threadIdx.x; i < kSharedWords / 4; i += blockDim.x)
    data[i] = make_uint4(i, i * 3, i * 5, i * 7);
  __syncthreads();
  uint32_t sum = 0;
  for (int turn = 0; turn < turns; ++turn) {
#pragma unroll 16
    for (int step = 0; step < 1024; ++step) {
      uint4 value = data[(threadIdx.x + turn + step * 32) & (kSharedWords / 4 - 1)];
      sum += value.x ^ value.y ^ value.z ^ value.w;
    }
  }
  if (sum == 0x12345678u)
    *sink = sum;
}

// FMAs of the whole card: every thread does 8 · 1024 of them in a turn, in eight independent
// chains. Also the clocks of one block.
__global__ void multiplyLong(int turns, float factor, long long *clocks, float *sink) {
  float sums[8];
  for (int i = 0; i < 8; ++i)
    sums[i] = threadIdx.x + i;
  long long start = clock64();
  for (int turn = 0; turn < turns; ++turn) {
#pragma unroll 32
    for (int step = 0; step < 1024; ++step) {
#pragma unroll
      for (int i = 0; i < 8; ++i)
        sums[i] = __fmaf_rn(sums[i], factor, factor);
    }
  }
  if (blockIdx.x == 0 && threadIdx.x == 0)
    *clocks = clock64() - start;
  float sum = 0;
  for (int i = 0; i < 8; ++i)
    sum += sums[i];
  if (sum == 0.12345f)
    *sink = sum;
}

// Clocks of a dependent load.
__global__ void chase(const uint32_t *next, int hops, long long *clocks, uint32_t *sink) {
  uint32_t at = 0;
  for (int i = 0; i < hops; ++i)
    at = __ldcg(next + at);
  long long start = clock64();
  for (int i = 0; i < hops; ++i)
    at = __ldcg(next + at);
  *clocks = clock64() - start;
  *sink = at;
}

__global__ void chaseShared(int hops, long long *clocks, uint32_t *sink) {
  __shared__ uint32_t next[1024];
  for (int i = 0; i < 1024; ++i)
    next[i] = (i + 97) & 1023;
  uint32_t at = 0;
  long long start = clock64();
  for (int i = 0; i < hops; ++i)
    at = next[at];
  *clocks = clock64() - start;
  *sink = at;
}

enum class Pipe { Fma, Exp, Shuffle };

// Operations of a thread in clocks, with four independent chains.
template <Pipe pipe> __global__ void operate(long long *clocks, float *sink) {
  float a = threadIdx.x, b = a + 1, c = a + 2, d = a + 3;
  auto one = [](float x) {
    if constexpr (pipe == Pipe::Fma)
      return __fmaf_rn(x, 0.999f, 0.5f);
    else if constexpr (pipe == Pipe::Exp) {
      float y;
      asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
      return y;
    } else
      return __shfl_xor_sync(0xffffffffu, x, 1);
  };
  __syncthreads();
  long long start = clock64();
#pragma unroll 8
  for (int i = 0; i < 512; ++i) {
    a = one(a);
    b = one(b);
    c = one(c);
    d = one(d);
  }
  __syncthreads();
  if (threadIdx.x == 0)
    clocks[blockIdx.x] = clock64() - start;
  if (a + b + c + d == 0.12345f)
    *sink = a;
}

__global__ void barriers(long long *clocks) {
  __syncthreads();
  long long start = clock64();
#pragma unroll 8
  for (int i = 0; i < 256; ++i)
    __syncthreads();
  if (threadIdx.x == 0)
    clocks[blockIdx.x] = clock64() - start;
}

__global__ void nothing() {}

int main() {
  cudaDeviceProp properties;
  CHECK(cudaGetDeviceProperties(&properties, 0));
  int sms = properties.multiProcessorCount;
  std::printf("{\n \"name\": \"%s\", \"sm_count\": %d, \"l2_bytes\": %d,\n", properties.name, sms,
              properties.l2CacheSize);
  Timer time;
  size_t most = size_t(4) << 30;
  uint4 *data, *other;
  uint32_t *sink;
  long long *clocks;
  CHECK(cudaMalloc(&data, most));
  CHECK(cudaMalloc(&other, most));
  CHECK(cudaMalloc(&sink, 64));
  CHECK(cudaMalloc(&clocks, 4096 * sizeof(long long)));
  fill<<<sms * 8, 256>>>(data, most / 16);
  fill<<<sms * 8, 256>>>(other, most / 16);
  CHECK(cudaDeviceSynchronize());

  std::printf(" \"bandwidth\": [\n");
  for (size_t bytes : {size_t(1) << 20, size_t(4) << 20, size_t(8) << 20, size_t(16) << 20,
                       size_t(24) << 20, size_t(32) << 20, size_t(48) << 20, size_t(64) << 20,
                       size_t(128) << 20, size_t(512) << 20, size_t(1) << 30, most}) {
    int passes = int(std::max<size_t>(1, (size_t(2) << 30) / bytes));
    double best[2] = {0, 0};
    for (int blocks : {2, 4, 8}) {
      double seconds = time([&] { readAll<<<sms * blocks, 256>>>(data, bytes / 16, passes, sink); });
      best[0] = std::max(best[0], double(bytes) * passes / seconds);
      // The footprint of a copy is what it reads and what it writes.
      seconds = time([&] { copyAll<<<sms * blocks, 256>>>(data, other, bytes / 32, passes); });
      best[1] = std::max(best[1], double(bytes) * passes / seconds);
    }
    std::printf("  {\"footprint_bytes\": %zu, \"read_gbps\": %.1f, \"copy_gbps\": %.1f}%s\n", bytes,
                best[0] * 1e-9, best[1] * 1e-9, bytes == most ? "" : ",");
  }
  std::printf(" ],\n");

  auto slowest = [&](int blocks) {
    std::vector<long long> values(blocks);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(values.data(), clocks, blocks * sizeof(long long), cudaMemcpyDeviceToHost));
    std::sort(values.begin(), values.end());
    return double(values[blocks / 2]);
  };
  readShared<<<sms, 1024>>>(clocks, sink);
  readShared<<<sms, 1024>>>(clocks, sink);
  std::printf(" \"shared_bytes_per_clock\": %.2f,\n", 1024.0 * 1024 * 16 / slowest(sms));

  // One wave of blocks with 32 warps, for several milliseconds.
  constexpr int kTurns = 200;
  double threads = 1024.0 * sms;
  double seconds = time([&] { readSharedLong<<<sms, 1024>>>(kTurns, sink); });
  std::printf(" \"shared_gbps\": %.1f,\n", threads * 1024 * 16 * kTurns / seconds * 1e-9);
  seconds = time([&] {
    multiplyLong<<<sms, 1024>>>(kTurns, 0.999f, clocks, reinterpret_cast<float *>(sink));
  });
  std::printf(" \"fp32_tflops\": %.3f,\n", threads * 8 * 1024 * 2 * kTurns / seconds * 1e-12);
  std::printf(" \"clock_mhz\": %.0f,\n", slowest(1) / seconds * 1e-6);

  std::printf(" \"latency_clocks\": {");
  for (auto [name, bytes, hops] : {std::tuple<const char *, size_t, int>{"l2", size_t(2) << 20, 4096},
                                   {"l2_far", size_t(24) << 20, 16384},
                                   {"dram", size_t(2) << 30, 65536}}) {
    // A cycle over lines of 128 bytes in an order that no prefetcher knows.
    size_t lines = bytes / 128;
    std::vector<uint32_t> order(lines), next(bytes / 4, 0);
    for (size_t i = 0; i < lines; ++i)
      order[i] = uint32_t(i);
    uint64_t state = 12345;
    for (size_t i = lines - 1; i > 0; --i) {
      state = state * 6364136223846793005ull + 1442695040888963407ull;
      std::swap(order[i], order[(state >> 33) % (i + 1)]);
    }
    for (size_t i = 0; i < lines; ++i)
      next[size_t(order[i]) * 32] = order[(i + 1) % lines] * 32;
    CHECK(cudaMemcpy(other, next.data(), bytes, cudaMemcpyHostToDevice));
    int count = int(std::min<size_t>(hops, lines));
    if (bytes <= size_t(24) << 20)
      for (int turn = 0; turn < 2; ++turn)
        readAll<<<sms, 256>>>(other, bytes / 16, 1, sink);
    chase<<<1, 1>>>(reinterpret_cast<uint32_t *>(other), count, clocks, sink);
    std::printf("\"%s\": %.1f, ", name, slowest(1) / count);
  }
  chaseShared<<<1, 1>>>(4096, clocks, sink);
  std::printf("\"shared\": %.1f},\n", slowest(1) / 4096);

  operate<Pipe::Fma><<<sms, 1024>>>(clocks, reinterpret_cast<float *>(sink));
  std::printf(" \"operations_per_clock\": {\"fma\": %.1f, ", 2048.0 * 1024 / slowest(sms));
  operate<Pipe::Exp><<<sms, 1024>>>(clocks, reinterpret_cast<float *>(sink));
  std::printf("\"exp2\": %.1f, ", 2048.0 * 1024 / slowest(sms));
  operate<Pipe::Shuffle><<<sms, 1024>>>(clocks, reinterpret_cast<float *>(sink));
  std::printf("\"shuffle\": %.1f},\n \"barrier_clocks\": {", 2048.0 * 1024 / slowest(sms));
  for (int threads : {32, 128, 256, 512, 1024}) {
    barriers<<<sms, threads>>>(clocks);
    std::printf("\"%d\": %.1f%s", threads, slowest(sms) / 256, threads == 1024 ? "},\n" : ", ");
  }

  CHECK(cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             int(properties.sharedMemPerBlockOptin)));
  std::printf(" \"launch_microseconds\": [\n");
  for (int blocks : {1, sms, 4 * sms, 16 * sms, 64 * sms})
    for (int threads : {128, 256, 1024})
      for (int shared : {0, int(properties.sharedMemPerBlockOptin)}) {
        cudaStream_t stream;
        cudaGraph_t graph;
        cudaGraphExec_t executable;
        CHECK(cudaStreamCreate(&stream));
        CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        for (int i = 0; i < 200; ++i)
          nothing<<<blocks, threads, shared, stream>>>();
        CHECK(cudaStreamEndCapture(stream, &graph));
        CHECK(cudaGraphInstantiate(&executable, graph, 0));
        CHECK(cudaDeviceSynchronize());
        double seconds = time([&] { CHECK(cudaGraphLaunch(executable, 0)); });
        bool last = blocks == 64 * sms && threads == 1024 && shared;
        std::printf("  {\"blocks\": %d, \"threads\": %d, \"shared_bytes\": %d, \"graph\": %.3f}%s\n",
                    blocks, threads, shared, seconds / 200 * 1e6, last ? "" : ",");
        CHECK(cudaGraphExecDestroy(executable));
        CHECK(cudaGraphDestroy(graph));
        CHECK(cudaStreamDestroy(stream));
      }
  std::printf(" ]\n}\n");
  return 0;
}
