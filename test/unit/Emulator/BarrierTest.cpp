//===- BarrierTest.cpp - Shared memory, barriers, races, divergence -------===//
#include "EmulatorTest.h"

using namespace ftuner::emulator;

namespace {
constexpr unsigned kThreads = 64;

/// Reverses each run of 64 floats through shared memory.
std::string makeReverse(const std::string &synchronize) {
  return R"(
    llvm.mlir.global external @__dynamic_shmem__0() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
    llvm.func @reverse(%in: !llvm.ptr, %out: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel} {
      %base = llvm.mlir.addressof @__dynamic_shmem__0 : !llvm.ptr<3>
      %c63 = llvm.mlir.constant(63 : i32) : i32
      %tid = nvvm.read.ptx.sreg.tid.x range <i32, 0, 64> : i32
      %bid = nvvm.read.ptx.sreg.ctaid.x : i32
      %dim = nvvm.read.ptx.sreg.ntid.x : i32
      %offset = llvm.mul %bid, %dim : i32
      %i = llvm.add %offset, %tid : i32
      %src = llvm.getelementptr %in[%i] : (!llvm.ptr, i32) -> !llvm.ptr, f32
      %x = llvm.load %src : !llvm.ptr -> f32
      %mine = llvm.getelementptr %base[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
      llvm.store %x, %mine : f32, !llvm.ptr<3>
      )" +
         synchronize + R"(
      %other = llvm.sub %c63, %tid : i32
      %theirs = llvm.getelementptr %base[%other] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
      %y = llvm.load %theirs : !llvm.ptr<3> -> f32
      %dst = llvm.getelementptr %out[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
      llvm.store %y, %dst : f32, !llvm.ptr<1>
      llvm.return
    }
  )";
}

class BarrierTest : public EmulatorTest {
protected:
  void SetUp() override {
    in = randomFloats(kBlocks * kThreads);
    out.assign(in.size(), -1.0f);
  }

  std::string run(Emulator &emulator, uint32_t sharedBytes = kThreads * 4) {
    emulator.addBuffer(in.data(), in.size() * 4, "in", /*writable=*/false);
    emulator.addBuffer(out.data(), out.size() * 4, "out", /*writable=*/true);
    return launch(emulator, "reverse", {kBlocks}, {kThreads}, sharedBytes,
                  in.data(), out.data());
  }

  bool isReversed() const {
    for (size_t i = 0; i < in.size(); ++i)
      if (out[i] != in[i / kThreads * kThreads + (kThreads - 1 - i % kThreads)])
        return false;
    return true;
  }

  static constexpr unsigned kBlocks = 5;
  std::vector<float> in, out;
};

TEST_F(BarrierTest, ExchangesThroughSharedMemory) {
  for (const char *barrier : {"nvvm.barrier0", "nvvm.barrier",
                              "%b = llvm.mlir.constant(3 : i32) : i32\n"
                              "nvvm.barrier id = %b"})
    for (const EmulatorOptions &options : allCheckedOptions()) {
      out.assign(in.size(), -1.0f);
      auto emulator = create(makeReverse(barrier), options);
      ASSERT_TRUE(emulator) << error;
      EXPECT_EQ(run(*emulator), "");
      EXPECT_TRUE(isReversed());
    }
}

TEST_F(BarrierTest, MissingBarrierIsARace) {
  for (auto order : kAllOrders) {
    EmulatorOptions options;
    options.checkRaces = true;
    options.order = order;
    auto emulator = create(makeReverse(""), options);
    ASSERT_TRUE(emulator) << error;
    std::string text = run(*emulator);
    EXPECT_CONTAINS(text, "race: ");
    EXPECT_CONTAINS(text, "dynamic shared memory (256 bytes)");
    EXPECT_CONTAINS(text, "without a barrier in between");
  }
}

TEST_F(BarrierTest, MissingBarrierYieldsNaN) {
  auto emulator = create(makeReverse(""));
  ASSERT_TRUE(emulator) << error;
  EXPECT_EQ(run(*emulator), "");
  EXPECT_TRUE(std::isnan(out[0])); // Thread 63 has not written yet.
}

TEST_F(BarrierTest, TooSmallSharedMemory) {
  EmulatorOptions options;
  options.checkBounds = true;
  auto checked = create(makeReverse("nvvm.barrier0"), options);
  ASSERT_TRUE(checked) << error;
  std::string text = run(*checked, kThreads * 4 - 4);
  EXPECT_CONTAINS(text, "out-of-bounds write of 4 bytes at offset 252 of "
                        "dynamic shared memory (252 bytes)");
  EXPECT_CONTAINS(text, "thread (63,0,0)");
  // Without checks too a write beyond the end is noticed.
  auto plain = create(makeReverse("nvvm.barrier0"));
  ASSERT_TRUE(plain) << error;
  EXPECT_CONTAINS(run(*plain, kThreads * 4 - 4),
                  "the block wrote outside its shared memory");
}

TEST_F(BarrierTest, BarrierAfterSomeThreadsExited) {
  const char *divergent = R"(
      %limit = llvm.mlir.constant(10 : i32) : i32
      %early = llvm.icmp "slt" %tid, %limit : i32
      llvm.cond_br %early, ^leave, ^stay
    ^leave:
      llvm.return
    ^stay:
      nvvm.barrier0
  )";
  for (auto order : kAllOrders) {
    EmulatorOptions options;
    options.order = order;
    auto emulator = create(makeReverse(divergent), options);
    ASSERT_TRUE(emulator) << error;
    EXPECT_CONTAINS(run(*emulator),
                    "divergence: 54 threads wait at a barrier that 10 threads "
                    "of the block do not reach");
  }
}

TEST_F(BarrierTest, DifferentBarriersWithinAWarp) {
  auto branch = [](const std::string &limit) {
    return "%limit = llvm.mlir.constant(" + limit + R"( : i32) : i32
      %early = llvm.icmp "slt" %tid, %limit : i32
      llvm.cond_br %early, ^left, ^right
    ^left:
      nvvm.barrier0
      llvm.br ^both
    ^right:
      nvvm.barrier0
      llvm.br ^both
    ^both:
    )";
  };
  auto inWarp = create(makeReverse(branch("10")));
  ASSERT_TRUE(inWarp) << error;
  EXPECT_CONTAINS(run(*inWarp), "divergence: thread (0,0,0) waits at barrier");
  // Whole warps may take different paths to the same barrier.
  auto betweenWarps = create(makeReverse(branch("32")));
  ASSERT_TRUE(betweenWarps) << error;
  EXPECT_EQ(run(*betweenWarps), "");
  EXPECT_TRUE(isReversed());
}

TEST_F(BarrierTest, BarrierAgainstWarpCollective) {
  const char *divergent = R"(
      %limit = llvm.mlir.constant(10 : i32) : i32
      %all = llvm.mlir.constant(-1 : i32) : i32
      %early = llvm.icmp "slt" %tid, %limit : i32
      llvm.cond_br %early, ^left, ^right
    ^left:
      nvvm.bar.warp.sync %all : i32
      llvm.br ^both
    ^right:
      nvvm.barrier0
      llvm.br ^both
    ^both:
  )";
  auto emulator = create(makeReverse(divergent));
  ASSERT_TRUE(emulator) << error;
  std::string text = run(*emulator);
  EXPECT_CONTAINS(text, "divergence: a warp collective waits for 22 lanes");
  EXPECT_CONTAINS(text, "is at a barrier");
}

TEST_F(BarrierTest, WarpSynchronisationOrdersOnlyItsWarp) {
  const char *warpSync = R"(
      %all = llvm.mlir.constant(-1 : i32) : i32
      nvvm.bar.warp.sync %all : i32
  )";
  EmulatorOptions options;
  options.checkRaces = true;
  // Lanes of the other warp exchange with this one: not enough.
  auto emulator = create(makeReverse(warpSync), options);
  ASSERT_TRUE(emulator) << error;
  EXPECT_CONTAINS(run(*emulator), "race: ");
  // The same within one warp is fine.
  std::string within = makeReverse(warpSync);
  size_t at = within.find("llvm.sub %c63, %tid");
  within.replace(at, std::string("llvm.sub %c63, %tid").size(),
                 "llvm.xor %one, %tid");
  at = within.find("%c63 =");
  within.insert(at, "%one = llvm.mlir.constant(1 : i32) : i32\n");
  auto clean = create(within, options);
  ASSERT_TRUE(clean) << error;
  EXPECT_EQ(run(*clean), "");
  EXPECT_EQ(out[0], in[1]);
}

TEST_F(BarrierTest, StaticSharedMemoryBelongsToTheBlock) {
  std::string text = makeReverse("nvvm.barrier0");
  text.replace(text.find("external @__dynamic_shmem__0"),
               std::string("external @__dynamic_shmem__0").size(),
               "internal @tile");
  text.replace(text.find("array<0 x i8>"), std::string("array<0 x i8>").size(),
               "array<64 x f32>");
  text.replace(text.find("addressof @__dynamic_shmem__0"),
               std::string("addressof @__dynamic_shmem__0").size(),
               "addressof @tile");
  for (const EmulatorOptions &options : allCheckedOptions()) {
    auto emulator = create(text, options);
    ASSERT_TRUE(emulator) << error;
    EXPECT_EQ(run(*emulator, 0), "");
    EXPECT_TRUE(isReversed());
  }
}
} // namespace
