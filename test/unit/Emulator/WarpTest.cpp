//===- WarpTest.cpp - Shuffles, votes and warp synchronisation ------------===//
#include "EmulatorTest.h"

using namespace ftuner::emulator;

namespace {
/// out[tid] = collective of in[tid]; `collective` defines %y : i32 from %x.
std::string makeWarpKernel(const std::string &collective) {
  return R"(
    llvm.func @warp(%in: !llvm.ptr, %out: !llvm.ptr) attributes {gpu.kernel} {
      %all = llvm.mlir.constant(-1 : i32) : i32
      %c31 = llvm.mlir.constant(31 : i32) : i32
      %zero = llvm.mlir.constant(0 : i32) : i32
      %four = llvm.mlir.constant(4 : i32) : i32
      %tid = nvvm.read.ptx.sreg.tid.x : i32
      %lane = nvvm.read.ptx.sreg.laneid : i32
      %src = llvm.getelementptr %in[%tid] : (!llvm.ptr, i32) -> !llvm.ptr, i32
      %x = llvm.load %src : !llvm.ptr -> i32
      )" +
         collective + R"(
      %dst = llvm.getelementptr %out[%tid] : (!llvm.ptr, i32) -> !llvm.ptr, i32
      llvm.store %y, %dst : i32, !llvm.ptr
      llvm.return
    }
  )";
}

class WarpTest : public EmulatorTest {
protected:
  WarpTest() : in(64), out(64) {
    for (uint32_t &value : in)
      value = random();
  }

  std::string run(const std::string &collective, unsigned threads = 64) {
    std::string text;
    for (auto order : kAllOrders) {
      EmulatorOptions options;
      options.order = order;
      auto emulator = create(makeWarpKernel(collective), options);
      if (!emulator)
        return "cannot create: " + error;
      out.assign(out.size(), 0);
      text =
          launch(*emulator, "warp", {1}, {threads}, 0, in.data(), out.data());
      if (!text.empty())
        break;
    }
    return text;
  }

  std::vector<uint32_t> in, out;
};

TEST_F(WarpTest, Shuffles) {
  ASSERT_EQ(run("%y = nvvm.shfl.sync bfly %all, %x, %four, %c31 : i32 -> i32"),
            "");
  for (unsigned i = 0; i < 64; ++i)
    EXPECT_EQ(out[i], in[i ^ 4]);
  ASSERT_EQ(run("%y = nvvm.shfl.sync down %all, %x, %four, %c31 : i32 -> i32"),
            "");
  for (unsigned i = 0; i < 64; ++i)
    EXPECT_EQ(out[i], in[i % 32 + 4 < 32 ? i + 4 : i]);
  ASSERT_EQ(run("%y = nvvm.shfl.sync up %all, %x, %four, %zero : i32 -> i32"),
            "");
  for (unsigned i = 0; i < 64; ++i)
    EXPECT_EQ(out[i], in[i % 32 >= 4 ? i - 4 : i]);
  ASSERT_EQ(run("%y = nvvm.shfl.sync idx %all, %x, %four, %c31 : i32 -> i32"),
            "");
  for (unsigned i = 0; i < 64; ++i)
    EXPECT_EQ(out[i], in[i / 32 * 32 + 4]);
}

TEST_F(WarpTest, ShuffleWithinSegments) {
  // Width 8: mask (32 - 8) << 8 | clamp.
  ASSERT_EQ(run("%c = llvm.mlir.constant(6175 : i32) : i32\n"
                "%y = nvvm.shfl.sync down %all, %x, %four, %c : i32 -> i32"),
            "");
  for (unsigned i = 0; i < 64; ++i)
    EXPECT_EQ(out[i], in[i % 8 + 4 < 8 ? i + 4 : i]);
}

TEST_F(WarpTest, ShuffleOfFloatsTellsValidity) {
  ASSERT_EQ(run(R"(
      %f = llvm.bitcast %x : i32 to f32
      %r = nvvm.shfl.sync down %all, %f, %four, %c31 {return_value_and_is_valid} : f32 -> !llvm.struct<(f32, i1)>
      %v = llvm.extractvalue %r[0] : !llvm.struct<(f32, i1)>
      %p = llvm.extractvalue %r[1] : !llvm.struct<(f32, i1)>
      %i = llvm.bitcast %v : f32 to i32
      %y = llvm.select %p, %i, %zero : i1, i32)"),
            "");
  for (unsigned i = 0; i < 64; ++i)
    EXPECT_EQ(out[i], i % 32 + 4 < 32 ? in[i + 4] : 0);
}

TEST_F(WarpTest, Votes) {
  const std::string predicate =
      "%p = llvm.icmp \"slt\" %x, %zero : i32\n"; // top bit set
  auto bit = [&](unsigned i) { return in[i] >> 31; };
  ASSERT_EQ(run(predicate + "%y = nvvm.vote.sync ballot %all, %p -> i32"), "");
  for (unsigned warp = 0; warp < 2; ++warp) {
    uint32_t expected = 0;
    for (unsigned lane = 0; lane < 32; ++lane)
      expected |= bit(warp * 32 + lane) << lane;
    EXPECT_EQ(out[warp * 32 + 5], expected);
  }
  ASSERT_EQ(run("%p = llvm.icmp \"eq\" %lane, %four : i32\n"
                "%a = nvvm.vote.sync any %all, %p -> i1\n"
                "%b = nvvm.vote.sync all %all, %p -> i1\n"
                "%m = llvm.select %b, %four, %zero : i1, i32\n"
                "%y = llvm.select %a, %c31, %m : i1, i32"),
            "");
  EXPECT_EQ(out[0], 31u);
  EXPECT_EQ(out[40], 31u);
}

TEST_F(WarpTest, HalfWarpMask) {
  const char *half = R"(
      %low = llvm.mlir.constant(65535 : i32) : i32
      %c16 = llvm.mlir.constant(16 : i32) : i32
      %is = llvm.icmp "slt" %lane, %c16 : i32
      llvm.cond_br %is, ^half, ^join(%zero : i32)
    ^half:
      %s = nvvm.shfl.sync bfly %low, %x, %four, %c31 : i32 -> i32
      llvm.br ^join(%s : i32)
    ^join(%y: i32):
  )";
  ASSERT_EQ(run(half), "");
  for (unsigned i = 0; i < 64; ++i)
    EXPECT_EQ(out[i], i % 32 < 16 ? in[i ^ 4] : 0);
}

TEST_F(WarpTest, MissingLanesAreReported) {
  std::string text = run(R"(
      %c16 = llvm.mlir.constant(16 : i32) : i32
      %is = llvm.icmp "slt" %lane, %c16 : i32
      llvm.cond_br %is, ^half, ^join(%zero : i32)
    ^half:
      %s = nvvm.shfl.sync bfly %all, %x, %four, %c31 : i32 -> i32
      llvm.br ^join(%s : i32)
    ^join(%y: i32):
  )");
  EXPECT_CONTAINS(text, "divergence: a warp collective waits for 16 lanes");
  EXPECT_CONTAINS(text, "has exited");
}

TEST_F(WarpTest, ShuffleFromAnAbsentLane) {
  EXPECT_CONTAINS(
      run("%y = nvvm.shfl.sync idx %all, %x, %c31, %c31 : i32 -> i32", 40),
      "a shuffle reads from lane 31, which does not take part");
}

TEST_F(WarpTest, LaneOutsideItsMask) {
  EXPECT_CONTAINS(
      run("%y = nvvm.shfl.sync bfly %c31, %x, %zero, %c31 : i32 -> i32"),
      "the lane is not in the mask of its own warp collective");
}
} // namespace
