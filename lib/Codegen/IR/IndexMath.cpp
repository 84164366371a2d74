//===- IndexMath.cpp - Index arithmetic of emitters -----------------------===//
#include "FTuner/Codegen/IR/IndexMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace ftuner;

static constexpr auto kNoWrap =
    arith::IntegerOverflowFlags::nsw | arith::IntegerOverflowFlags::nuw;

Value ftuner::createI32(ImplicitLocOpBuilder &b, int64_t value) {
  return arith::ConstantOp::create(
      b, b.getI32IntegerAttr(static_cast<int32_t>(value)));
}

Value ftuner::toIndex(ImplicitLocOpBuilder &b, Value number) {
  return arith::IndexCastUIOp::create(b, b.getIndexType(), number);
}

Value IndexMath::constant(int64_t value) {
  return arith::ConstantIndexOp::create(b, value);
}

Value IndexMath::add(Value lhs, Value rhs) {
  if (isZeroInteger(lhs))
    return rhs;
  if (isZeroInteger(rhs))
    return lhs;
  return arith::AddIOp::create(b, lhs, rhs, kNoWrap);
}

Value IndexMath::add(Value lhs, int64_t rhs) {
  return rhs == 0 ? lhs : add(lhs, constant(rhs));
}

Value IndexMath::sub(Value lhs, int64_t rhs) {
  return arith::SubIOp::create(b, lhs, constant(rhs),
                               arith::IntegerOverflowFlags::nsw);
}

Value IndexMath::mul(Value lhs, Value rhs) {
  if (std::optional<int64_t> constant = getConstantIntValue(rhs))
    return mul(lhs, *constant);
  return arith::MulIOp::create(b, lhs, rhs, kNoWrap);
}

Value IndexMath::mul(Value lhs, int64_t rhs) {
  if (rhs == 1)
    return lhs;
  return arith::MulIOp::create(b, lhs, constant(rhs), kNoWrap);
}

Value IndexMath::div(Value lhs, int64_t rhs) {
  if (rhs == 1)
    return lhs;
  return arith::DivUIOp::create(b, lhs, constant(rhs));
}

Value IndexMath::rem(Value lhs, int64_t rhs) {
  if (rhs == 1)
    return constant(0);
  return arith::RemUIOp::create(b, lhs, constant(rhs));
}

Value IndexMath::bitXor(Value lhs, Value rhs) {
  return isZeroInteger(rhs) ? lhs
                            : arith::XOrIOp::create(b, lhs, rhs).getResult();
}

Value IndexMath::less(Value lhs, Value rhs) {
  return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, lhs, rhs);
}

Value IndexMath::minimum(Value lhs, Value rhs) {
  return arith::MinSIOp::create(b, lhs, rhs);
}
