//===- TensorTest.cpp - Tensors in host memory ----------------------------===//
#include "FTuner/Executor/Tensor.h"

#include "gtest/gtest.h"
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

using namespace ftuner;

static Tensor make(DataType type, llvm::ArrayRef<int64_t> shape,
                   int64_t offset = 0) {
  llvm::Expected<Tensor> tensor = Tensor::create(type, shape, offset);
  EXPECT_TRUE(static_cast<bool>(tensor));
  return std::move(*tensor);
}

static bool isError(llvm::Expected<Tensor> tensor) {
  if (tensor)
    return false;
  llvm::consumeError(tensor.takeError());
  return true;
}

TEST(TensorTest, StartsAsNaN) {
  for (DataType type : {DataType::F16, DataType::BF16,
                           DataType::F32, DataType::F64})
    EXPECT_TRUE(std::isnan(make(type, {2, 3}).getDouble(5))) << int(type);
}

TEST(TensorTest, KeepsAlignmentAndOffset) {
  for (int64_t offset : {0, 4, 8, 20}) {
    Tensor tensor = make(DataType::F32, {3, 5}, offset);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.data()) % 256, offset);
    EXPECT_EQ(tensor.getNumBytes(), 60);
    EXPECT_EQ(tensor.getTypeString(), "3x5xf32");
  }
}

TEST(TensorTest, NoticesWritesOutside) {
  for (int64_t position : {-1, -1000, 60, 700}) {
    Tensor tensor = make(DataType::F32, {3, 5});
    std::memset(tensor.data(), 1, 60);
    EXPECT_TRUE(tensor.isIntact());
    tensor.data()[position] = 7;
    EXPECT_FALSE(tensor.isIntact()) << position;
  }
}

TEST(TensorTest, RejectsSizes) {
  EXPECT_TRUE(isError(Tensor::create(DataType::F32, {-1})));
  constexpr int64_t large = std::numeric_limits<int64_t>::max() / 2;
  EXPECT_TRUE(isError(Tensor::create(DataType::F32, {large, large})));
  EXPECT_EQ(make(DataType::F32, {large, 0, large}).getNumElements(), 0);
  EXPECT_EQ(make(DataType::F32, {}).getNumElements(), 1);
}

TEST(TensorTest, RoundsOnceToNearestEven) {
  Tensor half = make(DataType::F16, {1});
  // Halfway between 2048 and 2050, plus what f32 cannot hold beside 2049: via
  // f32 it would be rounded down.
  half.setDouble(0, 2049.0 + 0x1p-30);
  EXPECT_EQ(half.getDouble(0), 2050.0);
  half.setDouble(0, 2049.0);
  EXPECT_EQ(half.getDouble(0), 2048.0);
  half.setDouble(0, 1e6);
  EXPECT_TRUE(std::isinf(half.getDouble(0)));
  half.setDouble(0, 0x1p-24);
  EXPECT_EQ(half.getDouble(0), 0x1p-24);
  Tensor brain = make(DataType::BF16, {1});
  brain.setDouble(0, 257.0);
  EXPECT_EQ(brain.getDouble(0), 256.0);
  brain.setDouble(0, -259.0);
  EXPECT_EQ(brain.getDouble(0), -260.0);
}

TEST(TensorTest, KeepsIntegers) {
  for (DataType type : {DataType::I8, DataType::I16, DataType::I32,
                           DataType::I64}) {
    Tensor tensor = make(type, {2});
    tensor.setInteger(1, -77);
    EXPECT_EQ(tensor.getInteger(1), -77);
    EXPECT_EQ(tensor.getInteger(0), -1);
  }
  Tensor flag = make(DataType::I1, {1});
  flag.setInteger(0, 1);
  EXPECT_EQ(flag.getInteger(0), 1);
}

TEST(TensorTest, RandomDataIsNormalAndSeeded) {
  Tensor a = make(DataType::F32, {20000}),
         b = make(DataType::F32, {20000});
  fillRandom(a, 5, 0);
  fillRandom(b, 5, 0);
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.getNumBytes()), 0);
  double sum = 0, squares = 0, fourth = 0, product = 0;
  fillRandom(b, 5, 1);
  for (int64_t i = 0; i < 20000; ++i) {
    double x = a.getDouble(i);
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
    product += x * b.getDouble(i);
  }
  EXPECT_NEAR(sum / 20000, 0, 0.03);
  EXPECT_NEAR(squares / 20000, 1, 0.05);
  EXPECT_NEAR(fourth / 20000, 3, 0.3);
  // Another argument, and another seed, are independent data.
  EXPECT_NEAR(product / 20000, 0, 0.03);
  fillRandom(b, 6, 0);
  EXPECT_NE(std::memcmp(a.data(), b.data(), a.getNumBytes()), 0);
}
