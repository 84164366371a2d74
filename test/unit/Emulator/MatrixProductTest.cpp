//===- MatrixProductTest.cpp - mma.sync -----------------------------------===//
#include "EmulatorTest.h"
#include "llvm/ADT/APFloat.h"
#include <limits>

using namespace ftuner::emulator;

namespace {
enum class Element { F16, BF16, TF32, S8, U8 };
enum class Accumulator { F32, F16, Wrapped, Saturated };

struct Variant {
  Element a, b;
  Accumulator c;
  unsigned m, k;
};

unsigned bitsOf(Element element) {
  switch (element) {
  case Element::F16:
  case Element::BF16:
    return 16;
  case Element::TF32:
    return 32;
  default:
    return 8;
  }
}

std::string nameOf(Element element) {
  switch (element) {
  case Element::F16:
    return "f16";
  case Element::BF16:
    return "bf16";
  case Element::TF32:
    return "tf32";
  case Element::S8:
    return "s8";
  case Element::U8:
    return "u8";
  }
  return "";
}

/// The value that the low bits of `bits` stand for.
double valueOf(Element element, uint32_t bits) {
  auto convert = [&](const llvm::fltSemantics &semantics, unsigned width) {
    return llvm::APFloat(semantics, llvm::APInt(width, bits)).convertToDouble();
  };
  switch (element) {
  case Element::F16:
    return convert(llvm::APFloat::IEEEhalf(), 16);
  case Element::BF16:
    return convert(llvm::APFloat::BFloat(), 16);
  case Element::TF32:
    return convert(llvm::APFloat::IEEEsingle(), 32);
  case Element::S8:
    return static_cast<int8_t>(bits);
  case Element::U8:
    return bits;
  }
  return 0;
}

uint32_t bitsOfF16(double value) {
  llvm::APFloat number(value);
  bool losesInfo;
  number.convert(llvm::APFloat::IEEEhalf(), llvm::APFloat::rmNearestTiesToEven,
                 &losesInfo);
  return static_cast<uint32_t>(number.bitcastToAPInt().getZExtValue());
}

/// Each lane of a warp loads the registers of A, B and C, and stores those
/// of D in the place of C's.
std::string makeKernel(const Variant &variant, unsigned a, unsigned b,
                       unsigned c) {
  bool isHalf = variant.a == Element::F16;
  bool isInteger = bitsOf(variant.a) == 8;
  std::string operand = isHalf ? "vector<2xf16>" : "i32";
  std::string accumulator = variant.c == Accumulator::F32   ? "f32"
                            : variant.c == Accumulator::F16 ? "vector<2xf16>"
                                                            : "i32";
  auto number = [](unsigned value) { return std::to_string(value); };
  unsigned all = a + b + c;
  std::string text = R"(
    llvm.func @product(%data: !llvm.ptr<1>) attributes {gpu.kernel} {
      %count = llvm.mlir.constant()" +
                     number(all) + R"( : i32) : i32
      %lane = nvvm.read.ptx.sreg.tid.x : i32
      %first = llvm.mul %lane, %count : i32
      %own = llvm.getelementptr %data[%first] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
)";
  std::string lists[3];
  for (unsigned i = 0; i < all; ++i) {
    unsigned list = i < a ? 0 : i < a + b ? 1 : 2;
    std::string index = number(i);
    text += "%p" + index + " = llvm.getelementptr %own[" + index +
            "] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32\n%v" + index +
            " = llvm.load %p" + index + " : !llvm.ptr<1> -> " +
            (list == 2 ? accumulator : operand) + "\n";
    lists[list] += (lists[list].empty() ? "%v" : ", %v") + index;
  }
  std::string record = "!llvm.struct<(";
  for (unsigned i = 0; i < c; ++i)
    record += (i ? ", " : "") + accumulator;
  record += ")>";
  text += "%d = nvvm.mma.sync A[" + lists[0] + "] B[" + lists[1] + "] C[" +
          lists[2] + "] {layoutA = #nvvm.mma_layout<row>, " +
          "layoutB = #nvvm.mma_layout<col>, ";
  if (!isHalf)
    text += "multiplicandAPtxType = #nvvm.mma_type<" + nameOf(variant.a) +
            ">, multiplicandBPtxType = #nvvm.mma_type<" + nameOf(variant.b) +
            ">, ";
  if (isInteger)
    text += std::string("intOverflowBehavior = #nvvm.mma_int_overflow<") +
            (variant.c == Accumulator::Wrapped ? "wrapped" : "satfinite") +
            ">, ";
  text += "shape = #nvvm.shape<m = " + number(variant.m) +
          ", n = 8, k = " + number(variant.k) + ">} : (" + operand + ", " +
          operand + ", " + accumulator + ") -> " + record + "\n";
  for (unsigned i = 0; i < c; ++i)
    text += "%d" + number(i) + " = llvm.extractvalue %d[" + number(i) +
            "] : " + record + "\nllvm.store %d" + number(i) + ", %p" +
            number(a + b + i) + " : " + accumulator + ", !llvm.ptr<1>\n";
  return text + "llvm.return\n}\n";
}

class MatrixProductTest : public EmulatorTest {
protected:
  uint32_t randomElement(Element element) {
    std::normal_distribution<float> normal;
    float value = normal(random);
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    switch (element) {
    case Element::F16:
      return random() % 8 ? bitsOfF16(value) : random() % 0x7c00;
    case Element::BF16:
      return bits >> 16;
    case Element::TF32:
      return bits;
    default:
      return random() % 256;
    }
  }

  /// A product of random matrices against one element by element.
  void check(const Variant &variant);
};

void MatrixProductTest::check(const Variant &variant) {
  constexpr unsigned n = 8;
  unsigned m = variant.m, k = variant.k, width = bitsOf(variant.a);
  unsigned perRegister = 32 / width;
  bool isHalf = variant.c == Accumulator::F16;
  bool isInteger = width == 8;
  unsigned elementsOfA = m * k / 32, elementsOfB = n * k / 32;
  unsigned a = elementsOfA / perRegister, b = elementsOfB / perRegister;
  unsigned c = m * n / 32 / (isHalf ? 2 : 1);

  std::vector<uint32_t> matrixA(m * k), matrixB(k * n), matrixC(m * n);
  for (uint32_t &element : matrixA)
    element = randomElement(variant.a);
  for (uint32_t &element : matrixB)
    element = randomElement(variant.b);
  for (uint32_t &element : matrixC) {
    element = randomElement(isHalf ? Element::F16 : Element::TF32);
    if (isInteger) // Some close to the ends of the range.
      element = random() % 2 ? random() : (random() % 2 << 31) - random() % 99;
  }
  // The fragments, element by element as the PTX ISA lists them.
  auto placeOfA = [&](unsigned lane, unsigned i) {
    unsigned inRow = i % perRegister, number = i / perRegister;
    bool isLower = m == 16 && number % 2 == 1;
    unsigned half = m == 16 ? number / 2 : number;
    unsigned row = lane / 4 + (isLower ? 8 : 0);
    return row * k + half * (4 * perRegister) + lane % 4 * perRegister + inRow;
  };
  auto placeOfB = [&](unsigned lane, unsigned i) {
    unsigned row = i / perRegister * (4 * perRegister) +
                   lane % 4 * perRegister + i % perRegister;
    return row * n + lane / 4;
  };
  auto placeOfC = [&](unsigned lane, unsigned i) {
    return (lane / 4 + (i < 2 ? 0 : 8)) * n + lane % 4 * 2 + i % 2;
  };
  std::vector<uint32_t> data(32 * (a + b + c), 0);
  for (unsigned lane = 0; lane < 32; ++lane) {
    uint32_t *own = &data[lane * (a + b + c)];
    auto put = [&](unsigned first, unsigned i, unsigned bits, uint32_t value) {
      unsigned per = 32 / bits;
      own[first + i / per] |= value << i % per * bits;
    };
    for (unsigned i = 0; i < elementsOfA; ++i)
      put(0, i, width, matrixA[placeOfA(lane, i)]);
    for (unsigned i = 0; i < elementsOfB; ++i)
      put(a, i, width, matrixB[placeOfB(lane, i)]);
    for (unsigned i = 0; i < m * n / 32; ++i)
      put(a + b, i, isHalf ? 16 : 32, matrixC[placeOfC(lane, i)]);
  }

  std::vector<uint32_t> expected(m * n);
  for (unsigned row = 0; row < m; ++row)
    for (unsigned column = 0; column < n; ++column) {
      uint32_t start = matrixC[row * n + column];
      uint32_t &result = expected[row * n + column];
      auto product = [&](unsigned i) {
        uint32_t x = matrixA[row * k + i], y = matrixB[i * n + column];
        if (variant.a == Element::TF32) {
          x &= 0xffffe000;
          y &= 0xffffe000;
        }
        return valueOf(variant.a, x) * valueOf(variant.b, y);
      };
      if (isInteger) {
        auto sum = static_cast<int64_t>(static_cast<int32_t>(start));
        for (unsigned i = 0; i < k; ++i)
          sum += static_cast<int64_t>(product(i));
        if (variant.c == Accumulator::Saturated)
          sum = std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX);
        result = static_cast<uint32_t>(sum);
        continue;
      }
      // Sums of two f32 are exact enough in f64 to be rounded once more.
      float sum = static_cast<float>(
          valueOf(isHalf ? Element::F16 : Element::TF32, start));
      for (unsigned i = 0; i < k; ++i)
        sum = std::fma(static_cast<float>(product(i)), 1.0f, sum);
      if (isHalf)
        result = bitsOfF16(sum);
      else
        std::memcpy(&result, &sum, 4);
    }

  for (auto order : kAllOrders) {
    EmulatorOptions options;
    options.order = order;
    options.seed = seed;
    auto emulator = create(makeKernel(variant, a, b, c), options);
    ASSERT_TRUE(emulator) << error;
    std::vector<uint32_t> copy = data;
    ASSERT_EQ(launch(*emulator, "product", {1}, {32}, 0, copy.data()), "");
    for (unsigned lane = 0; lane < 32; ++lane)
      for (unsigned i = 0; i < m * n / 32; ++i) {
        unsigned per = isHalf ? 2 : 1;
        uint32_t got = copy[lane * (a + b + c) + a + b + i / per];
        if (isHalf)
          got = got >> 16 * (i % 2) & 0xffff;
        ASSERT_EQ(got, expected[placeOfC(lane, i)])
            << "lane " << lane << ", element " << i << " of D";
      }
  }
}

TEST_F(MatrixProductTest, Halves) {
  for (auto accumulator : {Accumulator::F32, Accumulator::F16})
    for (unsigned k : {8, 16})
      check({Element::F16, Element::F16, accumulator, 16, k});
}

TEST_F(MatrixProductTest, BFloats) {
  for (unsigned k : {8, 16})
    check({Element::BF16, Element::BF16, Accumulator::F32, 16, k});
}

TEST_F(MatrixProductTest, TensorFloats) {
  for (unsigned k : {4, 8})
    check({Element::TF32, Element::TF32, Accumulator::F32, 16, k});
}

TEST_F(MatrixProductTest, Bytes) {
  for (auto a : {Element::S8, Element::U8})
    for (auto b : {Element::S8, Element::U8})
      for (auto accumulator : {Accumulator::Wrapped, Accumulator::Saturated}) {
        for (unsigned k : {16, 32})
          check({a, b, accumulator, 16, k});
        check({a, b, accumulator, 8, 16});
      }
}

/// An f16 product of m16n8k8; `before` runs ahead of it, `block` is its block.
std::string makeProductAfter(const std::string &before) {
  Variant variant{Element::F16, Element::F16, Accumulator::F32, 16, 8};
  std::string text = makeKernel(variant, 2, 1, 4);
  text.insert(text.find("%d = nvvm.mma.sync"), before);
  return text;
}

TEST_F(MatrixProductTest, LanesThatStayAwayAreReported) {
  std::vector<uint32_t> data(32 * 7);
  auto emulator = create(makeProductAfter(R"(
      %c20 = llvm.mlir.constant(20 : i32) : i32
      %isLow = llvm.icmp "slt" %lane, %c20 : i32
      llvm.cond_br %isLow, ^low, ^end
    ^end:
      llvm.return
    ^low:
  )"));
  ASSERT_TRUE(emulator) << error;
  std::string text = launch(*emulator, "product", {1}, {32}, 0, data.data());
  EXPECT_CONTAINS(text,
                  "divergence: a warp collective waits for 12 lanes that do "
                  "not come: thread (20,0,0) has exited");
  EXPECT_CONTAINS(text, "at -:"); // FILE:LINE:COLUMN of the parsed text
}

TEST_F(MatrixProductTest, NeedsAWholeWarp) {
  std::vector<uint32_t> data(48 * 7);
  auto emulator = create(makeProductAfter(""));
  ASSERT_TRUE(emulator) << error;
  EXPECT_CONTAINS(launch(*emulator, "product", {1}, {48}, 0, data.data()),
                  "a matrix operation needs all 32 lanes of a warp, but got "
                  "16");
}

TEST_F(MatrixProductTest, RoundsToTF32) {
  std::vector<float> in = randomFloats(512);
  for (float &value : in) { // Any exponent, and ties.
    uint32_t bits = random();
    if (random() % 4 == 0)
      bits = (bits & ~0x1fffu) | 0x1000;
    std::memcpy(&value, &bits, 4);
  }
  in[0] = INFINITY;
  in[1] = -0.0f;
  in[2] = NAN;
  in[3] = std::numeric_limits<float>::max();
  in[4] = std::numeric_limits<float>::denorm_min();
  const std::pair<const char *, llvm::APFloat::roundingMode> roundings[] = {
      {"rna", llvm::APFloat::rmNearestTiesToAway},
      {"rn", llvm::APFloat::rmNearestTiesToEven},
      {"rz", llvm::APFloat::rmTowardZero}};
  for (auto [name, mode] : roundings) {
    auto emulator = create(std::string(R"(
      llvm.func @convert(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>) attributes {gpu.kernel} {
        %tid = nvvm.read.ptx.sreg.tid.x : i32
        %src = llvm.getelementptr %in[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
        %dst = llvm.getelementptr %out[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
        %x = llvm.load %src : !llvm.ptr<1> -> f32
        %y = nvvm.convert.float.to.tf32 %x {rnd = #nvvm.fp_rnd_mode<)") +
                           name + R"(>}
        llvm.store %y, %dst : i32, !llvm.ptr<1>
        llvm.return
      }
    )");
    ASSERT_TRUE(emulator) << error;
    std::vector<uint32_t> out(in.size());
    ASSERT_EQ(
        launch(*emulator, "convert", {1}, {512}, 0, in.data(), out.data()), "");
    for (size_t i = 0; i < in.size(); ++i) {
      if (std::isnan(in[i])) {
        EXPECT_EQ(out[i], 0x7fffffffu);
        continue;
      }
      llvm::APFloat expected(in[i]);
      bool losesInfo;
      expected.convert(llvm::APFloat::FloatTF32(), mode, &losesInfo);
      expected.convert(llvm::APFloat::IEEEsingle(), mode, &losesInfo);
      EXPECT_EQ(out[i], expected.bitcastToAPInt().getZExtValue())
          << name << " of " << in[i];
    }
  }
}

TEST_F(MatrixProductTest, OtherVariantsAreRejected) {
  EXPECT_FALSE(create(R"(
    llvm.func @product(%a: f64) attributes {gpu.kernel} {
      %d = nvvm.mma.sync A[%a] B[%a] C[%a, %a] {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, shape = #nvvm.shape<m = 8, n = 8, k = 4>} : (f64, f64, f64) -> !llvm.struct<(f64, f64)>
      llvm.return
    }
  )"));
  EXPECT_CONTAINS(error, "no emulation rule for nvvm.mma.sync of shape 8x8x4");
}
} // namespace
