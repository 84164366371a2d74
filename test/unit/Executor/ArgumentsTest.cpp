//===- ArgumentsTest.cpp - Arguments of a run -----------------------------===//
#include "FTuner/Executor/Arguments.h"

#include "llvm/ADT/bit.h"
#include "gtest/gtest.h"

using namespace ftuner;

static SignatureType tensor(DataType type, llvm::ArrayRef<int64_t> shape,
                            llvm::SmallVector<std::string> symbols = {}) {
  SignatureType result;
  result.isTensor = true;
  result.type = type;
  result.shape.assign(shape.begin(), shape.end());
  result.symbols = std::move(symbols);
  return result;
}

static SignatureType scalar(DataType type) {
  SignatureType result;
  result.type = type;
  return result;
}

constexpr int64_t kDynamic = mlir::ShapedType::kDynamic;

static Signature signature() {
  return {"f",
          {tensor(DataType::F32, {kDynamic, 8}, {"T", ""}),
           scalar(DataType::F32),
           tensor(DataType::I32, {kDynamic, kDynamic}, {"T", "N"}),
           scalar(DataType::I8)},
          {}};
}

static std::string check(llvm::StringRef text) {
  return llvm::toString(checkArguments(text, signature()));
}

TEST(ArgumentsTest, BindsSizesAndScalarsInOrder) {
  auto values = parseArguments("5x8xf32, -0.75, 5x3xi32, -7", signature(), {});
  ASSERT_TRUE(static_cast<bool>(values));
  AbiValues abi = getAbiValues(signature(), *values);
  EXPECT_EQ(abi.sizes, (std::vector<int64_t>{5, 5, 3}));
  ASSERT_EQ(abi.scalars.size(), 2u);
  EXPECT_EQ(abi.scalars[0], llvm::bit_cast<uint32_t>(-0.75f));
  EXPECT_EQ(abi.scalars[1], 0xf9u);
  EXPECT_EQ((*values)[1].getScalarDouble(), -0.75);
  // Arguments have different data.
  EXPECT_NE((*values)[0].tensor.getDouble(0), (*values)[0].tensor.getDouble(1));
}

TEST(ArgumentsTest, ChecksScalars) {
  EXPECT_EQ(check("0x8xf32,1e3,0x0xi32,255"), "");
  EXPECT_EQ(check("0x8xf32,+1,0x0xi32,-128"), "");
  EXPECT_EQ(check("0x8xf32,nan,0x0xi32,0"), "");
  EXPECT_EQ(check("0x8xf32,1,0x0xi32,256"),
            "argument 3: expected a number that fits i8, but got '256'");
  EXPECT_EQ(check("0x8xf32,1,0x0xi32,-129"),
            "argument 3: expected a number that fits i8, but got '-129'");
  EXPECT_EQ(check("0x8xf32,1,0x0xi32,1.0"),
            "argument 3: expected a number that fits i8, but got '1.0'");
  EXPECT_EQ(check("0x8xf32,-1e39,0x0xi32,1"),
            "argument 1: expected a number that fits f32, but got '-1e39'");
  EXPECT_NE(check("0x8xf32,one,0x0xi32,1"), "");
  EXPECT_NE(check("0x8xf32,,0x0xi32,1"), "");
}

TEST(ArgumentsTest, ChecksTensors) {
  EXPECT_EQ(check("5x8xf32,1,6x3xi32,1"),
            "argument 2: expected size 5 of dimension 0 (symbol 'T', as in "
            "argument 0), but got 6");
  EXPECT_EQ(check("5x9xf32,1,5x3xi32,1"),
            "argument 0: expected a tensor of type ?x8xf32, but got '5x9xf32'");
  EXPECT_EQ(check("5x8xf32,1,5xi32,1"),
            "argument 2: expected a tensor of type ?x?xi32, but got '5xi32'");
  EXPECT_EQ(check("5x8xf32,1"),
            "expected 4 arguments for function 'f', but got 2");
  EXPECT_NE(check("5x8xf32@,1,5x3xi32,1"), "");
  EXPECT_NE(check("5x8xfloat,1,5x3xi32,1"), "");
  EXPECT_NE(check("99999999999999999999x8xf32,1,5x3xi32,1"), "");
}
