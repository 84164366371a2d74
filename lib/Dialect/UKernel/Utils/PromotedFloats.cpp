//===- PromotedFloats.cpp - f16 and bf16 computed in f32 ------------------===//
#include "FTuner/Dialect/UKernel/Utils/PromotedFloats.h"

#include "FTuner/Dialect/UKernel/Utils/Roundings.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace ftuner;

bool ftuner::isNarrowFloat(Type type) {
  Type element = getElementTypeOrSelf(type);
  return element.isF16() || element.isBF16();
}

/// `type`, a scalar or vector, with elements of `element`.
static Type withElements(Type type, Type element) {
  auto vector = dyn_cast<VectorType>(type);
  return vector ? vector.clone(element) : element;
}

Value ftuner::promoted(OpBuilder &b, Location loc, Value value) {
  Type type = value.getType();
  if (!isNarrowFloat(type))
    return value;
  return arith::ExtFOp::create(b, loc, withElements(type, b.getF32Type()),
                               value);
}

Value ftuner::rounded(OpBuilder &b, Location loc, Value value, Type element) {
  Type type = value.getType();
  if (getElementTypeOrSelf(type) == element)
    return value;
  return arith::TruncFOp::create(b, loc, withElements(type, element), value);
}

/// A constant of a narrow type, as a scalar in f32; null for others.
static Value cloneConstant(OpBuilder &b, Operation &op) {
  auto constant = dyn_cast<arith::ConstantOp>(op);
  if (!constant || !isNarrowFloat(constant.getType()))
    return {};
  auto value = cast<FloatAttr>(constant.getValue());
  return arith::ConstantOp::create(
      b, op.getLoc(), b.getF32FloatAttr(value.getValue().convertToDouble()));
}

void ftuner::clonePromoted(OpBuilder &b, Operation &op, IRMapping &mapping,
                           int64_t width) {
  Location loc = op.getLoc();
  auto typed = [&](Type element) -> Type {
    return width > 0 ? VectorType::get({width}, element) : element;
  };
  auto lookup = [&](Value operand) {
    return promoted(b, loc, mapping.lookupOrDefault(operand));
  };
  if (op.hasTrait<OpTrait::ConstantLike>()) {
    if (Value wide = cloneConstant(b, op))
      mapping.map(op.getResult(0), wide);
    else
      b.clone(op, mapping);
    return;
  }
  if (auto extension = dyn_cast<arith::ExtFOp>(op)) {
    Value source = lookup(extension.getIn());
    if (source.getType() == typed(extension.getType())) {
      mapping.map(extension.getResult(), source);
      return;
    }
  }
  // A bitcast needs the bits of the type itself.
  bool isOfBits = isa<arith::BitcastOp>(op);
  for (Value operand : op.getOperands()) {
    Value value = lookup(operand);
    if (isOfBits && isNarrowFloat(operand.getType()))
      value = rounded(b, loc, value, operand.getType());
    mapping.map(operand, value);
  }
  Operation *clone = b.clone(op, mapping);
  for (auto [original, result] :
       llvm::zip_equal(op.getResults(), clone->getResults())) {
    Type type = original.getType();
    // Straight to the narrow type: from f64 by way of f32 would round twice.
    bool isStraight = isOfBits || isa<arith::TruncFOp>(op);
    if (!isNarrowFloat(type) || isStraight) {
      result.setType(typed(type));
      mapping.map(original, promoted(b, loc, result));
      continue;
    }
    result.setType(typed(b.getF32Type()));
    Value value = result;
    if (roundsResults(&op))
      value = promoted(b, loc, rounded(b, loc, value, type));
    mapping.map(original, value);
  }
}
