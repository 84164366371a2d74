//===- CounterTest.cpp - Counters of kernels with known counts ------------===//
#include "EmulatorTest.h"

using namespace ftuner::emulator;

namespace {
std::string number(uint64_t value) { return std::to_string(value); }

/// Thread t loads `type` from byte (t % modulus) * step of global memory, which
/// it stores to byte t * stride of shared memory, and loads again after a
/// barrier. Global memory is moved by `shift` bytes.
std::string makeKernel(const std::string &type, int bytes, int step, int stride,
                       int shift = 0, int modulus = 1024) {
  return R"(
    llvm.mlir.global external @__dynamic_shmem__0() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
    llvm.func @kernel(%in: !llvm.ptr<1>) attributes {gpu.kernel} {
      %base = llvm.mlir.addressof @__dynamic_shmem__0 : !llvm.ptr<3>
      %step = llvm.mlir.constant()" +
         number(step) + R"( : i32) : i32
      %modulus = llvm.mlir.constant()" +
         number(modulus) + R"( : i32) : i32
      %stride = llvm.mlir.constant()" +
         number(stride) + R"( : i32) : i32
      %tid = nvvm.read.ptx.sreg.tid.x : i32
      %index = llvm.urem %tid, %modulus : i32
      %from = llvm.mul %index, %step : i32
      %start = llvm.getelementptr %in[)" +
         number(shift) + R"(] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
      %src = llvm.getelementptr %start[%from] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8
      %x = llvm.load %src {alignment = )" +
         number(bytes) + R"( : i64} : !llvm.ptr<1> -> )" + type + R"(
      %to = llvm.mul %tid, %stride : i32
      %dst = llvm.getelementptr %base[%to] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
      llvm.store %x, %dst {alignment = )" +
         number(bytes) + R"( : i64} : )" + type + R"(, !llvm.ptr<3>
      nvvm.barrier0
      %y = llvm.load volatile %dst {alignment = )" +
         number(bytes) + R"( : i64} : !llvm.ptr<3> -> )" + type + R"(
      llvm.return
    }
  )";
}

class CounterTest : public EmulatorTest {
protected:
  static EmulatorOptions counting() {
    EmulatorOptions options;
    options.counters = true;
    return options;
  }

  /// Of one launch of `kernel` on the buffer.
  KernelCounters count(const std::string &body, unsigned threads = 32,
                       unsigned blocks = 1,
                       EmulatorOptions options = counting()) {
    auto emulator = create(body, options);
    if (!emulator) {
      ADD_FAILURE() << error;
      return {};
    }
    emulator->addBuffer(memory, sizeof(memory), "in", /*writable=*/true);
    EXPECT_EQ(launch(*emulator, "kernel", {blocks}, {threads}, kSharedBytes,
                     static_cast<char *>(memory)),
              "");
    std::vector<KernelCounters> counters = emulator->takeCounters();
    EXPECT_TRUE(emulator->takeCounters().empty());
    if (counters.size() != 1) {
      ADD_FAILURE() << "counters of " << counters.size() << " kernels";
      return {};
    }
    EXPECT_EQ(counters[0].kernel, "kernel");
    return counters[0];
  }

  static constexpr uint32_t kSharedBytes = 64 * 1024;
  alignas(128) char memory[64 * 1024] = {};
};

#define EXPECT_REQUESTS(counters, kind, requestsOfIt, bytesOfIt,               \
                        transfersOfIt, idealOfIt)                              \
  do {                                                                         \
    const RequestCounters &sum = (counters)[RequestKind::kind];                \
    EXPECT_EQ(sum.requests, uint64_t(requestsOfIt));                           \
    EXPECT_EQ(sum.bytes, uint64_t(bytesOfIt));                                 \
    EXPECT_EQ(sum.transfers, uint64_t(transfersOfIt));                         \
    EXPECT_EQ(sum.idealTransfers, uint64_t(idealOfIt));                        \
  } while (false)

TEST_F(CounterTest, WordsInARow) {
  KernelCounters counters = count(makeKernel("f32", 4, 4, 4));
  EXPECT_REQUESTS(counters, GlobalLoad, 1, 128, 4, 4);
  EXPECT_REQUESTS(counters, SharedStore, 1, 128, 1, 1);
  EXPECT_REQUESTS(counters, SharedLoad, 1, 128, 1, 1);
  EXPECT_REQUESTS(counters, GlobalStore, 0, 0, 0, 0);
  EXPECT_EQ(counters.launches, 1u);
  EXPECT_EQ(counters.blocks, 1u);
  EXPECT_EQ(counters.warps, 1u);
  EXPECT_EQ(counters.barriers, 1u);
  EXPECT_EQ(counters.bankConflicts(), 0u);
}

TEST_F(CounterTest, BankConflicts) {
  // Words 2^i apart: 2^i lanes meet in a bank.
  for (unsigned ways : {1, 2, 4, 8, 16, 32}) {
    KernelCounters counters = count(makeKernel("f32", 4, 4, 4 * ways));
    EXPECT_REQUESTS(counters, SharedLoad, 1, 128, ways, 1);
    EXPECT_REQUESTS(counters, SharedStore, 1, 128, ways, 1);
    EXPECT_EQ(counters.bankConflicts(), 2 * (ways - 1));
  }
  // An odd number of words apart there are none.
  EXPECT_EQ(count(makeKernel("f32", 4, 4, 4 * 33)).bankConflicts(), 0u);
}

TEST_F(CounterTest, WideAccesses) {
  // 16 bytes of a lane go in quarter warps: 4 wavefronts without conflicts.
  KernelCounters counters = count(makeKernel("vector<4xf32>", 16, 16, 16));
  EXPECT_REQUESTS(counters, GlobalLoad, 1, 512, 16, 16);
  EXPECT_REQUESTS(counters, SharedLoad, 1, 512, 4, 4);
  // Rows of 64 bytes: lanes 0, 2, 4, 6 of a quarter meet.
  counters = count(makeKernel("vector<4xf32>", 16, 16, 64));
  EXPECT_REQUESTS(counters, SharedStore, 1, 512, 16, 4);
  // Rows of 128 bytes: all eight do.
  counters = count(makeKernel("vector<4xf32>", 16, 16, 128));
  EXPECT_REQUESTS(counters, SharedStore, 1, 512, 32, 4);
  // The same promised to be aligned to 4 bytes is four requests.
  std::string split = makeKernel("vector<4xf32>", 4, 16, 16);
  counters = count(split);
  EXPECT_REQUESTS(counters, GlobalLoad, 4, 512, 64, 16);
  EXPECT_REQUESTS(counters, SharedLoad, 4, 512, 16, 4);
}

TEST_F(CounterTest, Sectors) {
  // All lanes read one word.
  KernelCounters counters = count(makeKernel("f32", 4, 4, 4, 0, 1));
  EXPECT_REQUESTS(counters, GlobalLoad, 1, 128, 1, 1);
  // A warp reads 32 words from the middle of a sector.
  counters = count(makeKernel("f32", 4, 4, 4, /*shift=*/16));
  EXPECT_REQUESTS(counters, GlobalLoad, 1, 128, 5, 4);
  // Each lane reads a word of a row of its own.
  counters = count(makeKernel("f32", 4, 256, 4));
  EXPECT_REQUESTS(counters, GlobalLoad, 1, 128, 32, 4);
  // Two bytes of a lane.
  counters = count(makeKernel("f16", 2, 2, 2));
  EXPECT_REQUESTS(counters, GlobalLoad, 1, 64, 2, 2);
  EXPECT_REQUESTS(counters, SharedLoad, 1, 64, 1, 1);
}

TEST_F(CounterTest, WarpsAndBlocksAddUp) {
  // 80 threads: two warps and a half.
  KernelCounters counters = count(makeKernel("f32", 4, 4, 4), 80, 3);
  EXPECT_REQUESTS(counters, GlobalLoad, 9, 960, 30, 30);
  EXPECT_REQUESTS(counters, SharedLoad, 9, 960, 9, 9);
  EXPECT_EQ(counters.blocks, 3u);
  EXPECT_EQ(counters.warps, 9u);
  EXPECT_EQ(counters.barriers, 3u);
}

TEST_F(CounterTest, ChecksAndOrdersDoNotMatter) {
  for (EmulatorOptions options : allCheckedOptions()) {
    options.counters = true;
    KernelCounters counters =
        count(makeKernel("vector<4xf32>", 16, 16, 64), 64, 1, options);
    EXPECT_REQUESTS(counters, GlobalLoad, 2, 1024, 32, 32);
    EXPECT_REQUESTS(counters, SharedStore, 2, 1024, 32, 8);
  }
}

TEST_F(CounterTest, CopiesOfMatrices) {
  // Lane l names row l of `stride` bytes: 8 rows at once.
  auto makeMatrixKernel = [](int stride, bool swizzled) {
    return R"(
      llvm.mlir.global external @__dynamic_shmem__0() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
      llvm.func @kernel(%in: !llvm.ptr<1>) attributes {gpu.kernel} {
        %base = llvm.mlir.addressof @__dynamic_shmem__0 : !llvm.ptr<3>
        %stride = llvm.mlir.constant()" +
           number(stride) + R"( : i32) : i32
        %mask = llvm.mlir.constant()" +
           number(swizzled ? 7 : 0) + R"( : i32) : i32
        %four = llvm.mlir.constant(4 : i32) : i32
        %lane = nvvm.read.ptx.sreg.tid.x : i32
        %key = llvm.and %lane, %mask : i32
        %chunk = llvm.shl %key, %four : i32
        %start = llvm.mul %lane, %stride : i32
        %offset = llvm.add %start, %chunk : i32
        %row = llvm.getelementptr %base[%offset] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
        %r = nvvm.ldmatrix %row {num = 4 : i32, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
        %r0 = llvm.extractvalue %r[0] : !llvm.struct<(i32, i32, i32, i32)>
        nvvm.stmatrix %row, %r0, %r0 {layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : !llvm.ptr<3>, i32, i32
        llvm.return
      }
    )";
  };
  struct {
    int stride;
    bool swizzled;
    unsigned ways;
  } patterns[] = {{16, false, 1},  {32, false, 2},  {64, false, 4},
                  {128, false, 8}, {144, false, 1}, {128, true, 1}};
  for (auto [stride, swizzled, ways] : patterns) {
    KernelCounters counters = count(makeMatrixKernel(stride, swizzled));
    EXPECT_REQUESTS(counters, MatrixLoad, 1, 512, 4 * ways, 4);
    EXPECT_REQUESTS(counters, MatrixStore, 1, 256, 2 * ways, 2);
    EXPECT_EQ(counters.bankConflicts(), 6 * (ways - 1));
    EXPECT_EQ(counters[InstructionKind::LoadStore], 2u);
  }
}

TEST_F(CounterTest, AsynchronousCopies) {
  // Lane l copies 16 bytes, the lanes from 24 on only zeros.
  KernelCounters counters = count(R"(
    llvm.mlir.global external @__dynamic_shmem__0() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
    llvm.func @kernel(%in: !llvm.ptr<1>) attributes {gpu.kernel} {
      %base = llvm.mlir.addressof @__dynamic_shmem__0 : !llvm.ptr<3>
      %zero = llvm.mlir.constant(0 : i32) : i32
      %size = llvm.mlir.constant(16 : i32) : i32
      %limit = llvm.mlir.constant(24 : i32) : i32
      %lane = nvvm.read.ptx.sreg.tid.x : i32
      %offset = llvm.mul %lane, %size : i32
      %src = llvm.getelementptr %in[%offset] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8
      %dst = llvm.getelementptr %base[%offset] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
      %isIn = llvm.icmp "ult" %lane, %limit : i32
      %bytes = llvm.select %isIn, %size, %zero : i1, i32
      nvvm.cp.async.shared.global %dst, %src, 16, cache = cg, %bytes : !llvm.ptr<3>, !llvm.ptr<1>, i32
      nvvm.cp.async.commit.group
      nvvm.cp.async.wait.group 0
      llvm.return
    }
  )");
  EXPECT_REQUESTS(counters, CopySource, 1, 384, 12, 12);
  EXPECT_REQUESTS(counters, CopyTarget, 1, 512, 4, 4);
  EXPECT_EQ(counters[InstructionKind::LoadStore], 1u);
}

TEST_F(CounterTest, LanesThatSkipARequest) {
  // Even lanes store at each turn of a loop, odd ones at none; a barrier closes
  // what is open. Lane l stores 32 words of its own.
  KernelCounters counters = count(R"(
    llvm.func @kernel(%in: !llvm.ptr<1>) attributes {gpu.kernel} {
      %zero = llvm.mlir.constant(0 : i32) : i32
      %one = llvm.mlir.constant(1 : i32) : i32
      %turns = llvm.mlir.constant(5 : i32) : i32
      %words = llvm.mlir.constant(32 : i32) : i32
      %lane = nvvm.read.ptx.sreg.tid.x : i32
      %odd = llvm.and %lane, %one : i32
      %isEven = llvm.icmp "eq" %odd, %zero : i32
      llvm.br ^loop(%zero : i32)
    ^loop(%i: i32):
      %row = llvm.mul %lane, %words : i32
      %at = llvm.add %row, %i : i32
      %dst = llvm.getelementptr %in[%at] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      llvm.cond_br %isEven, ^store, ^join
    ^store:
      llvm.store %i, %dst : i32, !llvm.ptr<1>
      llvm.br ^join
    ^join:
      nvvm.barrier0
      %next = llvm.add %i, %one : i32
      %again = llvm.icmp "ult" %next, %turns : i32
      llvm.cond_br %again, ^loop(%next : i32), ^end
    ^end:
      llvm.return
    }
  )");
  EXPECT_REQUESTS(counters, GlobalStore, 5, 5 * 64, 5 * 16, 5 * 2);
  EXPECT_EQ(counters.barriers, 5u);
  EXPECT_EQ(counters[InstructionKind::LoadStore], 5u);
}

TEST_F(CounterTest, Instructions) {
  // The loop turns 7 times for lane 3 and fewer times for the others; a warp
  // executes it 7 times.
  KernelCounters counters = count(R"(
    llvm.func @kernel(%in: !llvm.ptr<1>) attributes {gpu.kernel} {
      %zero = llvm.mlir.constant(0 : i32) : i32
      %one = llvm.mlir.constant(1 : i32) : i32
      %three = llvm.mlir.constant(3 : i32) : i32
      %seven = llvm.mlir.constant(7 : i32) : i32
      %x = llvm.mlir.constant(1.5 : f32) : f32
      %v = llvm.mlir.constant(dense<1.5> : vector<4xf32>) : vector<4xf32>
      %h = llvm.mlir.constant(dense<1.5> : vector<4xf16>) : vector<4xf16>
      %w = llvm.mlir.constant(0 : i32) : i32
      %lane = nvvm.read.ptx.sreg.tid.x : i32
      %is3 = llvm.icmp "eq" %lane, %three : i32
      %turns = llvm.select %is3, %seven, %three : i1, i32
      llvm.br ^loop(%zero, %x, %v, %h : i32, f32, vector<4xf32>, vector<4xf16>)
    ^loop(%i: i32, %a: f32, %b: vector<4xf32>, %c: vector<4xf16>):
      %a1 = llvm.intr.fma(%a, %x, %x) : (f32, f32, f32) -> f32
      %b1 = llvm.fmul %b, %v : vector<4xf32>
      %c1 = llvm.fadd %c, %h : vector<4xf16>
      %a2 = llvm.intr.exp2(%a1) : (f32) -> f32
      %next = llvm.add %i, %one : i32
      %again = llvm.icmp "ult" %next, %turns : i32
      llvm.cond_br %again, ^loop(%next, %a2, %b1, %c1 : i32, f32, vector<4xf32>, vector<4xf16>), ^end
    ^end:
      %d = nvvm.mma.sync A[%w, %w] B[%w] C[%w, %w, %w, %w] {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, multiplicandAPtxType = #nvvm.mma_type<s8>, multiplicandBPtxType = #nvvm.mma_type<u8>, intOverflowBehavior = #nvvm.mma_int_overflow<wrapped>, shape = #nvvm.shape<m = 16, n = 8, k = 16>} : (i32, i32, i32) -> !llvm.struct<(i32, i32, i32, i32)>
      %e = nvvm.mma.sync A[%w, %w] B[%w] C[%x, %x, %x, %x] {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, multiplicandAPtxType = #nvvm.mma_type<tf32>, multiplicandBPtxType = #nvvm.mma_type<tf32>, shape = #nvvm.shape<m = 16, n = 8, k = 4>} : (i32, i32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
      %f = nvvm.mma.sync A[%w, %w] B[%w] C[%x, %x, %x, %x] {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, multiplicandAPtxType = #nvvm.mma_type<bf16>, multiplicandBPtxType = #nvvm.mma_type<bf16>, shape = #nvvm.shape<m = 16, n = 8, k = 8>} : (i32, i32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
      llvm.return
    }
  )",
                                  64, 2);
  // One warp of each block has lane 3; the other turns 3 times.
  uint64_t turns = 2 * (7 + 3);
  EXPECT_EQ(counters[InstructionKind::Fma], turns * (1 + 4 + 2));
  EXPECT_EQ(counters[InstructionKind::Special], turns);
  EXPECT_EQ(counters[InstructionKind::TensorI8], 4u);
  EXPECT_EQ(counters[InstructionKind::TensorTF32], 4u);
  EXPECT_EQ(counters[InstructionKind::TensorBF16], 4u);
  EXPECT_EQ(counters[InstructionKind::TensorF16], 0u);
  EXPECT_EQ(counters[InstructionKind::LoadStore], 0u);
  // The special register, comparison, selection, jump and return of a warp; an
  // addition, a comparison and a jump of a turn.
  EXPECT_EQ(counters[InstructionKind::Other], 4 * 5 + 3 * turns);
}

TEST_F(CounterTest, NoneWithoutTheOption) {
  auto emulator = create(makeKernel("f32", 4, 4, 4));
  ASSERT_TRUE(emulator) << error;
  EXPECT_EQ(launch(*emulator, "kernel", {1}, {32}, kSharedBytes,
                   static_cast<char *>(memory)),
            "");
  EXPECT_TRUE(emulator->takeCounters().empty());
}
} // namespace
