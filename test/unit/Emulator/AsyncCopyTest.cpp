//===- AsyncCopyTest.cpp - cp.async, commit and wait ----------------------===//
#include "EmulatorTest.h"

using namespace ftuner::emulator;

namespace {
constexpr unsigned kThreads = 32;

/// Each thread copies 16 bytes of `in` to shared memory; after `synchronize` it
/// stores the 16 bytes of its neighbour. `size` is the number of bytes read,
/// `shift` moves the target.
std::string makeCopy(const std::string &synchronize, int size = 16,
                     int shift = 0) {
  return R"(
    llvm.mlir.global external @__dynamic_shmem__0() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
    llvm.func @copy(%in: !llvm.ptr<1>, %out: !llvm.ptr) attributes {gpu.kernel} {
      %base = llvm.mlir.addressof @__dynamic_shmem__0 : !llvm.ptr<3>
      %one = llvm.mlir.constant(1 : i32) : i32
      %four = llvm.mlir.constant(4 : i32) : i32
      %size = llvm.mlir.constant()" +
         std::to_string(size) + R"( : i32) : i32
      %tid = nvvm.read.ptx.sreg.tid.x : i32
      %i = llvm.mul %tid, %four : i32
      %src = llvm.getelementptr %in[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
      %slot = llvm.getelementptr %base[%i] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
      %dst = llvm.getelementptr %slot[)" +
         std::to_string(shift) + R"(] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
      nvvm.cp.async.shared.global %dst, %src, 16, cache = cg, %size : !llvm.ptr<3>, !llvm.ptr<1>, i32
      )" +
         synchronize + R"(
      %other = llvm.xor %tid, %one : i32
      %j = llvm.mul %other, %four : i32
      %theirs = llvm.getelementptr %base[%j] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
      %v = llvm.load %theirs {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
      %to = llvm.getelementptr %out[%i] : (!llvm.ptr, i32) -> !llvm.ptr, f32
      llvm.store %v, %to {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr
      llvm.return
    }
  )";
}

const std::string kCommit = "nvvm.cp.async.commit.group\n";
const std::string kWait = "nvvm.cp.async.wait.group 0\n";
const std::string kBarrier = "nvvm.barrier0\n";

class AsyncCopyTest : public EmulatorTest {
protected:
  struct alignas(16) Vector {
    float lanes[4];
    bool operator==(const Vector &other) const {
      return std::equal(lanes, lanes + 4, other.lanes);
    }
  };

  void SetUp() override {
    in.resize(kThreads);
    out.resize(kThreads);
    for (Vector &vector : in) {
      std::vector<float> values = randomFloats(4);
      std::copy(values.begin(), values.end(), vector.lanes);
    }
  }

  std::string run(Emulator &emulator, uint32_t sharedBytes = kThreads * 16) {
    emulator.addBuffer(in.data(), in.size() * 16, "in", /*writable=*/false);
    emulator.addBuffer(out.data(), out.size() * 16, "out", /*writable=*/true);
    return launch(emulator, "copy", {1}, {kThreads}, sharedBytes, in.data(),
                  out.data());
  }

  std::vector<Vector> in, out;
};

TEST_F(AsyncCopyTest, CopiesAfterWaitAndBarrier) {
  for (const EmulatorOptions &options : allCheckedOptions()) {
    auto emulator = create(makeCopy(kCommit + kWait + kBarrier), options);
    ASSERT_TRUE(emulator) << error;
    out.assign(kThreads, Vector{});
    EXPECT_EQ(run(*emulator), "");
    for (unsigned i = 0; i < kThreads; ++i)
      EXPECT_EQ(out[i], in[i ^ 1]);
  }
}

TEST_F(AsyncCopyTest, FillsWithZeros) {
  for (int size : {0, 4, 8, 12}) {
    auto emulator = create(makeCopy(kCommit + kWait + kBarrier, size));
    ASSERT_TRUE(emulator) << error;
    EXPECT_EQ(run(*emulator), "");
    for (unsigned i = 0; i < kThreads; ++i)
      for (int lane = 0; lane < 4; ++lane)
        EXPECT_EQ(out[i].lanes[lane],
                  lane * 4 < size ? in[i ^ 1].lanes[lane] : 0.0f);
  }
}

TEST_F(AsyncCopyTest, MissingWaitYieldsNaNWhenLazy) {
  for (const std::string &late :
       {kCommit + kBarrier, kBarrier + kCommit,
        kCommit + "nvvm.cp.async.wait.group 1\n" + kBarrier,
        kWait + kCommit + kBarrier}) {
    auto lazy = create(makeCopy(late));
    ASSERT_TRUE(lazy) << error;
    EXPECT_CONTAINS(run(*lazy), "asynchronous copies still pending");
    EXPECT_TRUE(std::isnan(out[0].lanes[0]));
    EmulatorOptions options;
    options.lazyAsyncCopies = false;
    auto eager = create(makeCopy(late), options);
    ASSERT_TRUE(eager) << error;
    EXPECT_CONTAINS(run(*eager), "asynchronous copies still pending");
    EXPECT_EQ(out[0], in[1]);
  }
}

TEST_F(AsyncCopyTest, MissingWaitIsAnAccessInFlight) {
  for (bool lazy : {false, true}) {
    EmulatorOptions options;
    options.checkRaces = true;
    options.lazyAsyncCopies = lazy;
    auto emulator = create(makeCopy(kCommit + kBarrier), options);
    ASSERT_TRUE(emulator) << error;
    EXPECT_CONTAINS(run(*emulator), "while an asynchronous copy of thread");
  }
}

TEST_F(AsyncCopyTest, MissingBarrierAfterWaitIsARace) {
  for (auto order : kAllOrders) {
    EmulatorOptions options;
    options.checkRaces = true;
    options.order = order;
    // The barrier comes before the wait, so it orders nothing.
    auto emulator = create(makeCopy(kCommit + kBarrier + kWait), options);
    ASSERT_TRUE(emulator) << error;
    std::string text = run(*emulator);
    EXPECT_TRUE(contains(text, "race: ") ||
                contains(text, "while an asynchronous copy"))
        << text;
  }
}

TEST_F(AsyncCopyTest, MisalignedTarget) {
  auto emulator = create(makeCopy(kCommit + kWait + kBarrier, 16, 4));
  ASSERT_TRUE(emulator) << error;
  EXPECT_CONTAINS(run(*emulator, kThreads * 16 + 16),
                  "misaligned asynchronous copy: expected an alignment of 16");
}

TEST_F(AsyncCopyTest, TargetOutsideSharedMemory) {
  auto emulator = create(makeCopy(kCommit + kWait + kBarrier));
  ASSERT_TRUE(emulator) << error;
  EXPECT_CONTAINS(run(*emulator, kThreads * 16 - 16),
                  "out-of-bounds asynchronous copy of 16 bytes to offset 496 "
                  "of dynamic shared memory (496 bytes)");
}

TEST_F(AsyncCopyTest, SourceOutsideTheBuffer) {
  EmulatorOptions options;
  options.checkBounds = true;
  auto emulator = create(makeCopy(kCommit + kWait + kBarrier), options);
  ASSERT_TRUE(emulator) << error;
  in.resize(kThreads + 1); // Keeps the memory behind valid.
  emulator->addBuffer(in.data(), kThreads * 16 - 4, "in", false);
  emulator->addBuffer(out.data(), out.size() * 16, "out", true);
  std::string text = launch(*emulator, "copy", {1}, {kThreads}, kThreads * 16,
                            in.data(), out.data());
  EXPECT_CONTAINS(text, "out-of-bounds read of 16 bytes at offset 496 of "
                        "buffer 'in' (508 bytes)");
  // Bytes filled with zeros are not read.
  auto shorter = create(makeCopy(kCommit + kWait + kBarrier, 12), options);
  ASSERT_TRUE(shorter) << error;
  shorter->addBuffer(in.data(), kThreads * 16 - 4, "in", false);
  shorter->addBuffer(out.data(), out.size() * 16, "out", true);
  EXPECT_EQ(launch(*shorter, "copy", {1}, {kThreads}, kThreads * 16, in.data(),
                   out.data()),
            "");
}

TEST_F(AsyncCopyTest, ReadsMoreThanItWrites) {
  auto emulator = create(makeCopy(kCommit + kWait + kBarrier, 20));
  ASSERT_TRUE(emulator) << error;
  EXPECT_CONTAINS(run(*emulator), "an asynchronous copy of 16 bytes reads 20");
}
} // namespace
