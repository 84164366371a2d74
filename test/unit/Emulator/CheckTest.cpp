//===- CheckTest.cpp - Bounds, alignment and races of global memory -------===//
#include "EmulatorTest.h"

using namespace ftuner::emulator;

namespace {
/// out[(i * step + shift) / divisor] = in[i], i over all threads; `type` is
/// stored and loaded.
std::string makeScatter(const std::string &type, int step, int shift,
                        int divisor = 1, const std::string &memory = "f32") {
  return R"(
    llvm.func @scatter(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>) attributes {gpu.kernel} {
      %step = llvm.mlir.constant()" +
         std::to_string(step) + R"( : i32) : i32
      %shift = llvm.mlir.constant()" +
         std::to_string(shift) + R"( : i32) : i32
      %divisor = llvm.mlir.constant()" +
         std::to_string(divisor) + R"( : i32) : i32
      %tid = nvvm.read.ptx.sreg.tid.x : i32
      %bid = nvvm.read.ptx.sreg.ctaid.x : i32
      %dim = nvvm.read.ptx.sreg.ntid.x : i32
      %offset = llvm.mul %bid, %dim : i32
      %i = llvm.add %offset, %tid : i32
      %scaled = llvm.mul %i, %step : i32
      %shifted = llvm.add %scaled, %shift : i32
      %j = llvm.sdiv %shifted, %divisor : i32
      %src = llvm.getelementptr %in[%scaled] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, )" +
         memory + R"(
      %x = llvm.load %src : !llvm.ptr<1> -> )" +
         type + R"(
      %dst = llvm.getelementptr %out[%j] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, )" +
         memory + R"(
      llvm.store %x, %dst : )" +
         type + R"(, !llvm.ptr<1>
      llvm.return
    }
  )";
}

class CheckTest : public EmulatorTest {
protected:
  static constexpr unsigned kCount = 96; // floats in each buffer

  CheckTest() : in(kCount + 4), out(kCount + 4) {}

  std::string run(Emulator &emulator, Dim3 grid, Dim3 block) {
    emulator.addBuffer(in.data(), kCount * 4, "in", /*writable=*/false);
    emulator.addBuffer(out.data(), kCount * 4, "out", /*writable=*/true);
    return launch(emulator, "scatter", grid, block, 0, in.data(), out.data());
  }

  std::string check(const std::string &body, Dim3 grid, Dim3 block, bool bounds,
                    bool races) {
    std::string text;
    for (auto order : kAllOrders) {
      EmulatorOptions options;
      options.checkBounds = bounds;
      options.checkRaces = races;
      options.order = order;
      auto emulator = create(body, options);
      if (!emulator)
        return "cannot create: " + error;
      text = run(*emulator, grid, block);
      if (text.empty())
        return text; // Every order must find it.
    }
    return text;
  }

  std::vector<float> in, out;
};

TEST_F(CheckTest, CleanScatter) {
  in = randomFloats(in.size());
  for (const EmulatorOptions &options : allCheckedOptions()) {
    auto emulator = create(makeScatter("f32", 1, 0), options);
    ASSERT_TRUE(emulator) << error;
    out.assign(out.size(), 0);
    EXPECT_EQ(run(*emulator, {3}, {32}), "");
    EXPECT_TRUE(std::equal(out.begin(), out.begin() + kCount, in.begin()));
  }
}

TEST_F(CheckTest, OutOfBoundsLoad) {
  std::string text =
      check(makeScatter("f32", 1, -1), {4}, {32}, /*bounds=*/true, false);
  EXPECT_CONTAINS(text, "out-of-bounds read of 4 bytes at offset ");
  EXPECT_CONTAINS(text, "block (3,0,0)");
  EXPECT_CONTAINS(text, "33 errors"); // 32 reads and the write of out[-1].
}

TEST_F(CheckTest, OutOfBoundsStore) {
  std::string text =
      check(makeScatter("f32", 1, 2), {3}, {32}, /*bounds=*/true, false);
  EXPECT_CONTAINS(text, "2 errors");
  EXPECT_CONTAINS(text, "out-of-bounds write of 4 bytes");
  text = check(makeScatter("f32", 1, -1), {3}, {32}, /*bounds=*/true, false);
  EXPECT_CONTAINS(text, "1 errors");
  EXPECT_CONTAINS(text, "at offset -4 of buffer 'out'");
}

TEST_F(CheckTest, OutOfBoundsByPartOfAVector) {
  std::string text = check(makeScatter("vector<4xf32>", 1, 0), {1}, {94},
                           /*bounds=*/true, false);
  EXPECT_CONTAINS(text, "out-of-bounds read of 16 bytes");
}

TEST_F(CheckTest, WriteOfAReadOnlyBuffer) {
  EmulatorOptions options;
  options.checkBounds = true;
  auto emulator = create(makeScatter("f32", 1, 0), options);
  ASSERT_TRUE(emulator) << error;
  emulator->addBuffer(in.data(), kCount * 4, "in", false);
  emulator->addBuffer(out.data(), kCount * 4, "out", false);
  EXPECT_CONTAINS(
      launch(*emulator, "scatter", {1}, {1}, 0, in.data(), out.data()),
      "write of 4 bytes at offset 0 of buffer 'out' (384 bytes), "
      "which is read-only");
}

TEST_F(CheckTest, UnknownMemory) {
  EmulatorOptions options;
  options.checkBounds = true;
  auto emulator = create(makeScatter("f32", 1, 0), options);
  ASSERT_TRUE(emulator) << error;
  emulator->addBuffer(in.data(), kCount * 4, "in", false);
  emulator->addBuffer(out.data(), kCount * 4, "out", true);
  emulator->removeBuffer(in.data());
  EXPECT_CONTAINS(
      launch(*emulator, "scatter", {1}, {1}, 0, in.data(), out.data()),
      "out-of-bounds read of 4 bytes");
}

TEST_F(CheckTest, MisalignedVector) {
  std::string misaligned = makeScatter("vector<4xf32>", 1, 0);
  std::string text = check(misaligned, {1}, {2}, /*bounds=*/true, false);
  EXPECT_CONTAINS(text, "misaligned access of 16 bytes");
  EXPECT_CONTAINS(text, "expected an alignment of 16 bytes");
  // A load that promises less is split by the GPU.
  size_t at;
  while ((at = misaligned.find("%src : !llvm.ptr<1>")) != std::string::npos)
    misaligned.replace(at, 19, "%src {alignment = 4 : i64} : !llvm.ptr<1>");
  while ((at = misaligned.find("%dst : vector")) != std::string::npos)
    misaligned.replace(at, 13, "%dst {alignment = 4 : i64} : vector");
  EXPECT_EQ(check(misaligned, {1}, {2}, /*bounds=*/true, false), "");
}

TEST_F(CheckTest, TwoBlocksWriteOneWord) {
  // One thread per block; pairs of blocks share an element.
  std::string text =
      check(makeScatter("f32", 1, 0, 2), {8}, {1}, false, /*races=*/true);
  EXPECT_CONTAINS(text, "race: write at offset");
  EXPECT_CONTAINS(text, "of another block");
}

TEST_F(CheckTest, TwoThreadsWriteOneWord) {
  std::string text =
      check(makeScatter("f32", 1, 0, 2), {1}, {8}, false, /*races=*/true);
  EXPECT_CONTAINS(text, "4 errors");
  EXPECT_CONTAINS(text, "without a barrier in between");
}

TEST_F(CheckTest, NarrowNeighboursDoNotRace) {
  EXPECT_EQ(check(makeScatter("i8", 1, 0, 1, "i8"), {4}, {32}, true,
                  /*races=*/true),
            "");
  EXPECT_EQ(check(makeScatter("f16", 1, 0, 1, "f16"), {4}, {32}, true,
                  /*races=*/true),
            "");
  std::string text =
      check(makeScatter("i8", 1, 0, 2, "i8"), {4}, {32}, true, /*races=*/true);
  EXPECT_CONTAINS(text, "race: write at offset");
}

TEST_F(CheckTest, AtomicsDoNotRace) {
  const char *kernel = R"(
    llvm.func @scatter(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>) attributes {gpu.kernel} {
      %one = llvm.mlir.constant(1 : i32) : i32
      %old = llvm.atomicrmw add %out, %one monotonic : !llvm.ptr<1>, i32
      llvm.return
    }
  )";
  ASSERT_EQ(check(kernel, {4}, {32}, true, true), "");
  int32_t count;
  std::memcpy(&count, out.data(), 4);
  EXPECT_EQ(count, 4 * 32); // `check` stopped after the first clean order.
}

TEST_F(CheckTest, ReadAndWriteOfDifferentBlocks) {
  // Every thread reads out[0]; the thread of block 2 also writes it.
  const char *kernel = R"(
    llvm.func @scatter(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>) attributes {gpu.kernel} {
      %two = llvm.mlir.constant(2 : i32) : i32
      %x = llvm.load %out : !llvm.ptr<1> -> f32
      %bid = nvvm.read.ptx.sreg.ctaid.x : i32
      %is = llvm.icmp "eq" %bid, %two : i32
      llvm.cond_br %is, ^write, ^end
    ^write:
      llvm.store %x, %out : f32, !llvm.ptr<1>
      llvm.br ^end
    ^end:
      llvm.return
    }
  )";
  EXPECT_CONTAINS(check(kernel, {4}, {1}, false, /*races=*/true),
                  "of another block");
}

TEST_F(CheckTest, ReportsTheSourceLocation) {
  std::string text =
      check(makeScatter("f32", 1, -1), {3}, {32}, /*bounds=*/true, false);
  EXPECT_CONTAINS(text, "at -:"); // FILE:LINE:COLUMN of the parsed text
}

TEST_F(CheckTest, ConstantsAreReadOnlyMemory) {
  const char *kernel = R"(
    llvm.mlir.global internal constant @table(dense<[1.5, -2.0, 4.25]> : tensor<3xf32>) {addr_space = 4 : i32} : !llvm.array<3 x f32>
    llvm.func @scatter(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>) attributes {gpu.kernel} {
      %table = llvm.mlir.addressof @table : !llvm.ptr<4>
      %tid = nvvm.read.ptx.sreg.tid.x : i32
      %src = llvm.getelementptr %table[%tid] : (!llvm.ptr<4>, i32) -> !llvm.ptr<4>, f32
      %x = llvm.load %src : !llvm.ptr<4> -> f32
      %dst = llvm.getelementptr %out[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
      llvm.store %x, %dst : f32, !llvm.ptr<1>
      llvm.return
    }
  )";
  ASSERT_EQ(check(kernel, {1}, {3}, true, true), "");
  EXPECT_EQ(out[0], 1.5f);
  EXPECT_EQ(out[1], -2.0f);
  EXPECT_EQ(out[2], 4.25f);
  EXPECT_CONTAINS(check(kernel, {1}, {4}, true, false),
                  "out-of-bounds read of 4 bytes at offset 12 of buffer "
                  "'table' (12 bytes)");
}

TEST_F(CheckTest, LocalArraysAreTheThreadsOwn) {
  const char *kernel = R"(
    llvm.func @scatter(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>) attributes {gpu.kernel} {
      %count = llvm.mlir.constant(8 : i32) : i32
      %mask = llvm.mlir.constant(7 : i32) : i32
      %local = llvm.alloca %count x f32 : (i32) -> !llvm.ptr
      %tid = nvvm.read.ptx.sreg.tid.x : i32
      %slot = llvm.and %tid, %mask : i32
      %src = llvm.getelementptr %in[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
      %x = llvm.load %src : !llvm.ptr<1> -> f32
      %p = llvm.getelementptr %local[%slot] : (!llvm.ptr, i32) -> !llvm.ptr, f32
      llvm.store volatile %x, %p : f32, !llvm.ptr
      nvvm.barrier0
      %y = llvm.load volatile %p : !llvm.ptr -> f32
      %dst = llvm.getelementptr %out[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
      llvm.store %y, %dst : f32, !llvm.ptr<1>
      llvm.return
    }
  )";
  in = randomFloats(in.size());
  ASSERT_EQ(check(kernel, {1}, {96}, true, true), "");
  EXPECT_TRUE(std::equal(out.begin(), out.begin() + kCount, in.begin()));
}
} // namespace
