//===- TensorMapEncodingTest.cpp - Tensor maps in signatures --------------===//
#include "FTuner/Kernel/TensorMapEncoding.h"
#include "FTuner/Kernel/KernelSignature.h"
#include "FTuner/Runtime/EmulatedTensorMap.h"

#include "mlir/IR/Builders.h"
#include <gtest/gtest.h>

using namespace ftuner;
using emulator::TensorMapSwizzle;
using emulator::TensorMapType;
using ukernel::ParameterKind;

namespace {

class TensorMapEncodingTest : public ::testing::Test {
protected:
  TensorMapEncodingTest() { context.loadDialect<ukernel::UKernelDialect>(); }

  ukernel::TensorMapAttr map(const TensorMapBox &box) {
    mlir::SmallVector<mlir::Attribute> sizes(box.sizes.size(),
                                             b.getI64IntegerAttr(100));
    mlir::SmallVector<mlir::Attribute> strides(box.sizes.size() - 1,
                                               b.getI64IntegerAttr(64));
    return ukernel::TensorMapAttr::get(
        &context, "lhs", b.getArrayAttr(sizes), b.getArrayAttr(strides),
        box.sizes, box.swizzleBytes, box.l2PromotionBytes, box.fitBelow);
  }

  mlir::MLIRContext context;
  mlir::Builder b{&context};
};

TEST_F(TensorMapEncodingTest, HasTheNumbersOfTheDriver) {
  const std::pair<mlir::Type, TensorMapType> types[] = {
      {b.getF16Type(), TensorMapType::Float16},
      {b.getBF16Type(), TensorMapType::BFloat16},
      {b.getF32Type(), TensorMapType::Float32},
      {b.getType<mlir::FloatTF32Type>(), TensorMapType::TFloat32},
      {b.getF64Type(), TensorMapType::Float64},
      {b.getI8Type(), TensorMapType::UInt8},
      {b.getIntegerType(16), TensorMapType::UInt16},
      {b.getI32Type(), TensorMapType::Int32},
      {b.getI64Type(), TensorMapType::Int64}};
  for (auto [type, number] : types) {
    TensorMapEncoding encoding = encodingOf(map({{16, 3}, 32, 0}), type);
    EXPECT_EQ(encoding.elementType, static_cast<uint32_t>(number));
    // Of tf32, which has 19 bits, as many as f32 has.
    EXPECT_EQ(emulator::getElementBytes(number),
              llvm::PowerOf2Ceil(type.getIntOrFloatBitWidth()) / 8);
    EXPECT_EQ(encoding.rank, 2u);
    EXPECT_EQ(encoding.box, (std::array<uint32_t, 5>{16, 3, 1, 1, 1}));
  }
  const std::pair<int64_t, TensorMapSwizzle> swizzles[] = {
      {0, TensorMapSwizzle::None},
      {32, TensorMapSwizzle::Bytes32},
      {64, TensorMapSwizzle::Bytes64},
      {128, TensorMapSwizzle::Bytes128}};
  for (auto [bytes, number] : swizzles)
    EXPECT_EQ(encodingOf(map({{16}, bytes, 0}), b.getI8Type()).swizzle,
              static_cast<uint32_t>(number));
  uint32_t number = 0;
  for (int64_t bytes : {0, 64, 128, 256})
    EXPECT_EQ(encodingOf(map({{16}, 0, bytes}), b.getI8Type()).l2Promotion,
              number++);
}

TEST(TensorMapBox, IsFittedToFewerRows) {
  // As many as there are, in eights, and the box's own from the bound on.
  for (auto [size, expected] : {std::pair(1, 8),
                                {8, 8},
                                {9, 16},
                                {120, 120},
                                {121, 128},
                                {127, 128},
                                {128, 64},
                                {300, 64}})
    EXPECT_EQ(fittedBox(/*box=*/64, /*fitBelow=*/128, size), expected) << size;
  EXPECT_EQ(fittedBox(64, /*fitBelow=*/0, 1), 64);
}

TEST_F(TensorMapEncodingTest, EqualMapsAreOneParameter) {
  KernelSignature signature;
  signature.addPart(&context);
  signature.addScalar(2, "scale", b.getF32Type());
  signature.addPointer(0, "lhs", b.getF16Type(),
                       ukernel::ParameterAccess::Read);
  signature.addPointer(1, "rhs", b.getBF16Type(),
                       ukernel::ParameterAccess::Read);
  signature.addAxisSize(0, "m", &context);
  signature.addStride(0, 0, "lhs_stride0", &context);
  mlir::Attribute sizes[] = {b.getI64IntegerAttr(64), b.getStringAttr("m")};
  mlir::Attribute strides[] = {b.getStringAttr("lhs_stride0")};
  TensorMapBox box{{64, 128}}, lower{{64, 8}};
  auto add = [&](unsigned operand, const TensorMapBox &ofMap,
                 bool rounds = false) {
    return signature.addTensorMap({operand, {1, 0}, ofMap, rounds}, sizes,
                                  strides);
  };
  EXPECT_FALSE(signature.hasTensorMaps());
  EXPECT_EQ(add(0, box), 0u);
  EXPECT_EQ(add(1, box), 0u);
  EXPECT_EQ(add(0, lower), 1u);
  EXPECT_EQ(add(0, box), 0u);
  EXPECT_EQ(add(0, lower), 1u);
  EXPECT_TRUE(signature.hasTensorMaps());
  KernelSignature fitting = signature;
  TensorMapBox fitted = box;
  fitted.fitBelow = {0, 128};
  EXPECT_EQ(fitting.addTensorMap({0, {1, 0}, fitted, false}, sizes, strides),
            2u);

  std::vector<std::string> names;
  for (const KernelParameter &parameter : signature.getParameters())
    names.push_back(parameter.name);
  EXPECT_EQ(names, (std::vector<std::string>{"lhs", "rhs", "m", "lhs_stride0",
                                             "scale", "lhs_map", "rhs_map",
                                             "lhs_map1", "first_part_blocks"}));
  const KernelParameter &second = signature.getParameters()[6];
  EXPECT_EQ(second.kind, ParameterKind::TensorMap);
  EXPECT_EQ(second.type, b.getBF16Type());
  EXPECT_EQ(second.map.getPointer(), "rhs");
  EXPECT_EQ(second.map.toBox(), box);

  mlir::ArrayAttr attribute = signature.toAttribute(&context);
  auto entry = ukernel::EntryAttr::get(&context, 32, 0, 16, attribute,
                                       /*uses=*/{});
  EXPECT_EQ(KernelSignature::of(entry).toAttribute(&context), attribute);
}

TEST_F(TensorMapEncodingTest, MapsThatRoundAreOfTF32) {
  KernelSignature signature;
  signature.addPointer(0, "lhs", b.getF32Type(),
                       ukernel::ParameterAccess::Read);
  signature.addAxisSize(0, "m", &context);
  mlir::Attribute sizes[] = {b.getI64IntegerAttr(64), b.getStringAttr("m")};
  mlir::Attribute strides[] = {b.getI64IntegerAttr(64)};
  TensorMap map{0, {1, 0}, {{32, 128}}};
  EXPECT_EQ(signature.addTensorMap(map, sizes, strides), 0u);
  map.roundsToTF32 = true;
  EXPECT_EQ(signature.addTensorMap(map, sizes, strides), 1u);
  auto entry = ukernel::EntryAttr::get(&context, 32, 0, 16,
                                       signature.toAttribute(&context),
                                       /*uses=*/{});
  KernelSignature read = KernelSignature::of(entry);
  auto parameters = read.getParameters();
  ASSERT_EQ(parameters.size(), 4u);
  EXPECT_EQ(parameters[2].type, b.getF32Type());
  EXPECT_EQ(parameters[3].type, b.getType<mlir::FloatTF32Type>());
}

} // namespace
