//===- CompareTest.cpp - Agreement of a result with its reference ---------===//
#include "FTuner/Executor/Tensor.h"

#include "gtest/gtest.h"
#include <cmath>
#include <limits>

using namespace ftuner;

static Tensor floats(std::initializer_list<double> values) {
  llvm::Expected<Tensor> tensor =
      Tensor::create(DataType::F32, {static_cast<int64_t>(values.size())});
  int64_t index = 0;
  for (double value : values)
    tensor->setDouble(index++, value);
  return std::move(*tensor);
}

static Tensor integers(std::initializer_list<int64_t> values) {
  llvm::Expected<Tensor> tensor =
      Tensor::create(DataType::I64, {static_cast<int64_t>(values.size())});
  int64_t index = 0;
  for (int64_t value : values)
    tensor->setInteger(index++, value);
  return std::move(*tensor);
}

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(CompareTest, IsTheFrobeniusNorm) {
  Comparison comparison = compare(floats({3, 4.5, 0}), floats({3, 4, 0}));
  EXPECT_DOUBLE_EQ(comparison.relativeError, 0.1);
  EXPECT_EQ(comparison.numMismatches, 0);
  EXPECT_EQ(comparison.worst, "element [1]: 4.5 instead of 4");
  EXPECT_TRUE(comparison.isWithin(0.11));
  EXPECT_FALSE(comparison.isWithin(0.09));
}

TEST(CompareTest, WrongWhereTheReferenceIsZero) {
  Comparison comparison = compare(floats({1e-30}), floats({0}));
  EXPECT_TRUE(std::isinf(comparison.relativeError));
  EXPECT_FALSE(comparison.isWithin(1e300));
  EXPECT_TRUE(compare(floats({0, -0.0}), floats({-0.0, 0})).isWithin(0));
}

TEST(CompareTest, SpecialValuesMustBeTheSame) {
  EXPECT_TRUE(
      compare(floats({kInf, -kInf, kNaN, 1}), floats({kInf, -kInf, kNaN, 1}))
          .isWithin(0));
  for (auto [value, expected] : {std::pair{kNaN, 1.0},
                                 {1.0, kNaN},
                                 {kInf, 1.0},
                                 {1.0, kInf},
                                 {kInf, -kInf},
                                 {kNaN, kInf}}) {
    Comparison comparison = compare(floats({5, value}), floats({5, expected}));
    EXPECT_EQ(comparison.numMismatches, 1) << value << ' ' << expected;
    EXPECT_FALSE(comparison.isWithin(1e300));
  }
}

TEST(CompareTest, IntegersMustBeEqual) {
  // The two are equal as f64.
  int64_t large = (int64_t(1) << 60) + 1;
  Comparison comparison =
      compare(integers({1, large}), integers({1, large - 1}));
  EXPECT_EQ(comparison.numMismatches, 1);
  EXPECT_FALSE(comparison.isWithin(1));
  EXPECT_EQ(comparison.worst,
            "element [1]: 1152921504606846977 instead of 1152921504606846976");
  EXPECT_TRUE(compare(integers({-3, 4}), integers({-3, 4})).isWithin(0));
}

TEST(CompareTest, NamesTheElement) {
  llvm::Expected<Tensor> a = Tensor::create(DataType::F32, {2, 3, 4});
  llvm::Expected<Tensor> b = Tensor::create(DataType::F32, {2, 3, 4});
  for (int64_t i = 0; i < 24; ++i) {
    a->setDouble(i, i);
    b->setDouble(i, i == 21 ? 100 : i);
  }
  EXPECT_EQ(compare(*a, *b).worst, "element [1, 2, 1]: 21 instead of 100");
}
