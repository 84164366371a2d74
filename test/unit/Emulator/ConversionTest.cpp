//===- ConversionTest.cpp - Kernels, symbols, refusals, launch limits -----===//
#include "EmulatorTest.h"
#include <cmath>

using namespace ftuner::emulator;

namespace {
class ConversionTest : public EmulatorTest {
protected:
  /// A kernel of one float that stores what `expression` defines as %y of %x.
  static std::string makeUnary(const std::string &expression,
                               const std::string &symbols = "") {
    return symbols + R"(
    llvm.func @unary(%x: f32, %out: !llvm.ptr) attributes {gpu.kernel} {
      )" + expression +
           R"(
      llvm.store %y, %out : f32, !llvm.ptr
      llvm.return
    })";
  }

  float evaluate(const std::string &expression, float x,
                 const std::string &symbols = "") {
    auto emulator = create(makeUnary(expression, symbols));
    float result = NAN;
    EXPECT_TRUE(emulator) << error;
    if (emulator) {
      EXPECT_EQ(launch(*emulator, "unary", {1}, {1}, 0, x, &result), "");
    }
    return result;
  }

  std::string refuse(const std::string &expression,
                     const std::string &symbols = "") {
    error.clear();
    EXPECT_FALSE(create(makeUnary(expression, symbols)));
    return error;
  }
};

TEST_F(ConversionTest, FusesMultiplyAdd) {
  // 1 + 2^-12 squared loses its last bit unless the product is kept exact.
  float x = 1.0f + std::ldexp(1.0f, -12);
  const char *expression =
      "%c = llvm.mlir.constant(-1.000000e+00 : f32) : f32\n"
      "%y = llvm.intr.fmuladd(%x, %x, %c) : (f32, f32, f32) -> f32";
  EXPECT_EQ(evaluate(expression, x), std::fma(x, x, -1.0f));
  EXPECT_NE(std::fma(x, x, -1.0f), x * x - 1.0f);
}

TEST_F(ConversionTest, Approximations) {
  EXPECT_FLOAT_EQ(evaluate("%y = nvvm.rcp.approx.ftz.f %x : f32", 3.0f),
                  1.0f / 3.0f);
  EXPECT_FLOAT_EQ(evaluate("%y = llvm.call_intrinsic "
                           "\"llvm.nvvm.ex2.approx.f\"(%x) : (f32) -> f32",
                           1.7f),
                  std::exp2(1.7f));
  EXPECT_FLOAT_EQ(evaluate("%y = llvm.call_intrinsic "
                           "\"llvm.nvvm.rsqrt.approx.f\"(%x) : (f32) -> f32",
                           1.7f),
                  1.0f / std::sqrt(1.7f));
}

TEST_F(ConversionTest, CallsDeviceFunctions) {
  const char *twice = R"(
    llvm.func @twice(%x: f32) -> f32 {
      %y = llvm.fadd %x, %x : f32
      llvm.return %y : f32
    })";
  EXPECT_EQ(evaluate("%y = llvm.call @twice(%x) : (f32) -> f32", 1.25f, twice),
            2.5f);
}

TEST_F(ConversionTest, RefusesWhatHasNoRule) {
  EXPECT_CONTAINS(refuse("%t = nvvm.read.ptx.sreg.clock : i32\n"
                         "%y = llvm.sitofp %t : i32 to f32"),
                  "no emulation rule for nvvm.read.ptx.sreg.clock");
  EXPECT_CONTAINS(error, "cannot emulate kernel 'unary'");
  EXPECT_CONTAINS(error, "-:"); // The location.
  EXPECT_CONTAINS(refuse("%y = llvm.call @__nv_expf(%x) : (f32) -> f32",
                         "llvm.func @__nv_expf(f32) -> f32"),
                  "no emulation rule for the external function '__nv_expf'");
  EXPECT_CONTAINS(
      refuse("%y = llvm.inline_asm \"ex2.approx.ftz.f32 $0, $1;\", \"=f,f\" "
             "%x : (f32) -> f32"),
      "no emulation rule for llvm.inline_asm");
  EXPECT_CONTAINS(refuse("%i = llvm.ptrtoint %out : !llvm.ptr to i32\n"
                         "%y = llvm.sitofp %i : i32 to f32"),
                  "no emulation rule for a pointer as 'i32'");
  EXPECT_CONTAINS(
      refuse("%p = llvm.mlir.addressof @state : !llvm.ptr<1>\n"
             "%y = llvm.load %p : !llvm.ptr<1> -> f32",
             "llvm.mlir.global internal @state(0.0 : f32) {addr_space = 1 : "
             "i32} : f32"),
      "no emulation rule for the writable global 'state'");
}

TEST_F(ConversionTest, RefusesUnloweredKernels) {
  EXPECT_FALSE(create("gpu.func @early() kernel { gpu.return }"));
  EXPECT_CONTAINS(error, "expected kernels at the level of the NVVM dialect, "
                         "but got gpu.func 'early'");
}

TEST_F(ConversionTest, ModulesKeepTheirOwnSymbols) {
  auto body = [](const char *name, const char *value) {
    return std::string("gpu.module @m_") + name + R"( {
      llvm.mlir.global internal constant @c(dense<)" +
           value + R"(> : tensor<1xf32>) : !llvm.array<1 x f32>
      llvm.func @)" +
           name + R"((%out: !llvm.ptr) attributes {nvvm.kernel} {
        %p = llvm.mlir.addressof @c : !llvm.ptr
        %x = llvm.load %p : !llvm.ptr -> f32
        llvm.store %x, %out : f32, !llvm.ptr
        llvm.return
      }
    })";
  };
  const std::string one = body("one", "1.5"), two = body("two", "2.5");
  auto emulator = createFromModule("module {" + one + two + "}");
  ASSERT_TRUE(emulator) << error;
  float a = 0, b = 0;
  EXPECT_EQ(launch(*emulator, "one", {1}, {1}, 0, &a), "");
  EXPECT_EQ(launch(*emulator, "two", {1}, {1}, 0, &b), "");
  EXPECT_EQ(a, 1.5f);
  EXPECT_EQ(b, 2.5f);
  std::string again = two;
  again.replace(again.find("@m_two"), 6, "@m_again");
  EXPECT_FALSE(createFromModule("module {" + two + again + "}"));
  EXPECT_CONTAINS(error, "two kernels 'two'");
}

TEST_F(ConversionTest, LaunchLimits) {
  auto emulator = create(R"(
    llvm.func @any() attributes {gpu.kernel} { llvm.return }
    llvm.func @known() attributes {gpu.kernel, gpu.known_block_size = array<i32: 64, 2, 1>} { llvm.return }
    llvm.func @most() attributes {gpu.kernel, nvvm.maxntid = array<i32: 128>} { llvm.return }
  )");
  ASSERT_TRUE(emulator) << error;
  EXPECT_TRUE(emulator->hasKernel("any"));
  EXPECT_FALSE(emulator->hasKernel("none"));
  EXPECT_EQ(launch(*emulator, "none", {1}, {1}, 0), "unknown kernel 'none'");
  EXPECT_EQ(launch(*emulator, "any", {7, 3, 2}, {16, 8, 4}, 1000), "");
  EXPECT_EQ(launch(*emulator, "any", {0}, {32}, 0), "");
  EXPECT_CONTAINS(launch(*emulator, "any", {1}, {0}, 0),
                  "expected a block of 1 to 1024 threads, but got (0,1,1)");
  EXPECT_CONTAINS(launch(*emulator, "any", {1}, {1025}, 0),
                  "expected a block of 1 to 1024 threads");
  EXPECT_CONTAINS(launch(*emulator, "any", {1, 65536}, {1}, 0),
                  "expected a grid of at most");
  EXPECT_CONTAINS(launch(*emulator, "any", {1}, {1}, 300000),
                  "bytes of shared memory, but got 300000");
  EXPECT_EQ(launch(*emulator, "known", {1}, {64, 2}, 0), "");
  EXPECT_CONTAINS(launch(*emulator, "known", {1}, {128}, 0),
                  "expected a block of (64,2,1) threads, but got (128,1,1)");
  EXPECT_EQ(launch(*emulator, "most", {1}, {128}, 0), "");
  EXPECT_CONTAINS(launch(*emulator, "most", {1}, {129}, 0),
                  "expected a block of at most 128 threads, but got 129");
}

TEST_F(ConversionTest, SpecialRegistersOfEveryAxis) {
  // out[linear thread id over the grid] = a polynomial of all registers.
  const char *kernel = R"(
    llvm.func @ids(%out: !llvm.ptr) attributes {gpu.kernel} {
      %tx = nvvm.read.ptx.sreg.tid.x : i32
      %ty = nvvm.read.ptx.sreg.tid.y : i32
      %tz = nvvm.read.ptx.sreg.tid.z : i32
      %nx = nvvm.read.ptx.sreg.ntid.x : i32
      %ny = nvvm.read.ptx.sreg.ntid.y : i32
      %nz = nvvm.read.ptx.sreg.ntid.z : i32
      %bx = nvvm.read.ptx.sreg.ctaid.x : i32
      %by = nvvm.read.ptx.sreg.ctaid.y : i32
      %bz = nvvm.read.ptx.sreg.ctaid.z : i32
      %gx = nvvm.read.ptx.sreg.nctaid.x : i32
      %gy = nvvm.read.ptx.sreg.nctaid.y : i32
      %a = llvm.mul %bz, %gy : i32
      %b = llvm.add %a, %by : i32
      %c = llvm.mul %b, %gx : i32
      %d = llvm.add %c, %bx : i32
      %e = llvm.mul %d, %nz : i32
      %f = llvm.add %e, %tz : i32
      %g = llvm.mul %f, %ny : i32
      %h = llvm.add %g, %ty : i32
      %i = llvm.mul %h, %nx : i32
      %j = llvm.add %i, %tx : i32
      %p = llvm.getelementptr %out[%j] : (!llvm.ptr, i32) -> !llvm.ptr, i32
      %old = llvm.load %p : !llvm.ptr -> i32
      %new = llvm.add %old, %j : i32
      llvm.store %new, %p : i32, !llvm.ptr
      llvm.return
    })";
  for (const EmulatorOptions &options : allCheckedOptions()) {
    auto emulator = create(kernel, options);
    ASSERT_TRUE(emulator) << error;
    std::vector<int32_t> out(3 * 4 * 5 * 2 * 6 * 7, 1000);
    emulator->addBuffer(out.data(), out.size() * 4, "out", true);
    ASSERT_EQ(launch(*emulator, "ids", {3, 4, 5}, {2, 6, 7}, 0, out.data()),
              "");
    for (size_t i = 0; i < out.size(); ++i)
      ASSERT_EQ(out[i], int32_t(1000 + i));
  }
}
} // namespace
