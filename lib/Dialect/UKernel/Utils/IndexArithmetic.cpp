//===- IndexArithmetic.cpp - Formulas of the grid as IR -------------------===//
#include "FTuner/Dialect/UKernel/Utils/IndexArithmetic.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace ftuner::ukernel;

Value IndexArithmetic::constant(int64_t value) {
  return arith::ConstantIndexOp::create(b, value);
}
Value IndexArithmetic::add(Value lhs, Value rhs) {
  return b.createOrFold<arith::AddIOp>(lhs, rhs);
}
Value IndexArithmetic::sub(Value lhs, Value rhs) {
  return b.createOrFold<arith::SubIOp>(lhs, rhs);
}
Value IndexArithmetic::mul(Value lhs, Value rhs) {
  return b.createOrFold<arith::MulIOp>(lhs, rhs);
}
Value IndexArithmetic::div(Value lhs, Value rhs) {
  return b.createOrFold<arith::DivUIOp>(lhs, rhs);
}
Value IndexArithmetic::rem(Value lhs, Value rhs) {
  return b.createOrFold<arith::RemUIOp>(lhs, rhs);
}
Value IndexArithmetic::compare(arith::CmpIPredicate predicate, Value lhs,
                               Value rhs) {
  return b.createOrFold<arith::CmpIOp>(predicate, lhs, rhs);
}
Value IndexArithmetic::less(Value lhs, Value rhs) {
  return compare(arith::CmpIPredicate::ult, lhs, rhs);
}
Value IndexArithmetic::atMost(Value lhs, Value rhs) {
  return compare(arith::CmpIPredicate::ule, lhs, rhs);
}
Value IndexArithmetic::atLeast(Value lhs, Value rhs) {
  return compare(arith::CmpIPredicate::uge, lhs, rhs);
}
Value IndexArithmetic::select(Value condition, Value lhs, Value rhs) {
  return b.createOrFold<arith::SelectOp>(condition, lhs, rhs);
}
std::optional<int64_t> IndexArithmetic::known(Value value) {
  return getConstantIntValue(value);
}
