//===- Roundings.cpp - Where a program rounds -----------------------------===//
#include "FTuner/Dialect/UKernel/Utils/Roundings.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace ftuner;

bool ftuner::isExactCast(Operation *op) {
  if (isa<arith::ExtFOp, arith::ExtSIOp, arith::ExtUIOp>(op))
    return true;
  if (!isa<arith::SIToFPOp, arith::UIToFPOp>(op))
    return false;
  unsigned bits =
      getElementTypeOrSelf(op->getOperand(0).getType()).getIntOrFloatBitWidth();
  auto result =
      cast<FloatType>(getElementTypeOrSelf(op->getResult(0).getType()));
  return bits - isa<arith::SIToFPOp>(op) <= result.getFPMantissaWidth();
}

Type ftuner::getAccumulatorTypeFor(Type type) {
  if (type.isF16() || type.isBF16())
    return Float32Type::get(type.getContext());
  return type;
}

/// Counts the exact casts of the body between a factor and its argument.
static Value stripCasts(Value value, unsigned &numCasts) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isExactCast(op))
      break;
    value = op->getOperand(0);
    ++numCasts;
  }
  return value;
}

/// yield(acc + a · b), operands of both in any order, factors possibly widened.
bool ftuner::isSumOfProducts(Block &body) {
  if (body.getNumArguments() != 3 || body.back().getNumOperands() != 1)
    return false;
  Value accumulator = body.getArgument(2);
  Operation *sum = body.back().getOperand(0).getDefiningOp();
  if (!isa_and_nonnull<arith::AddFOp, arith::AddIOp>(sum))
    return false;
  unsigned side = sum->getOperand(0) == accumulator ? 1 : 0;
  Operation *product = sum->getOperand(side).getDefiningOp();
  if (sum->getOperand(1 - side) != accumulator ||
      !isa_and_nonnull<arith::MulFOp, arith::MulIOp>(product))
    return false;
  unsigned numCasts = 0;
  Value a = stripCasts(product->getOperand(0), numCasts);
  Value b = stripCasts(product->getOperand(1), numCasts);
  if (a != body.getArgument(0))
    std::swap(a, b);
  return a == body.getArgument(0) && b == body.getArgument(1) &&
         body.getOperations().size() == 3 + numCasts;
}

bool ftuner::isSumOfProducts(linalg::LinalgOp op) {
  return op.getNumDpsInputs() == 2 && op.getNumDpsInits() == 1 &&
         op.getNumReductionLoops() > 0 &&
         llvm::all_of(op->getOperandTypes(), llvm::IsaPred<ShapedType>) &&
         isSumOfProducts(*op.getBlock());
}

/// What computes the next value of an accumulator; null where the output is
/// none.
static Operation *getUpdate(linalg::LinalgOp op, unsigned number) {
  if (op.getNumReductionLoops() == 0)
    return nullptr;
  Value next = op.getBlock()->getTerminator()->getOperand(number);
  Value current = op.getMatchingBlockArgument(op.getDpsInitOperand(number));
  Operation *update = next.getDefiningOp();
  bool isUpdate = update && update->getBlock() == op.getBlock() &&
                  llvm::is_contained(update->getOperands(), current);
  return isUpdate ? update : nullptr;
}

bool ftuner::accumulates(linalg::LinalgOp op, unsigned number) {
  return getUpdate(op, number) != nullptr;
}

/// Whether the operation works for an accumulator of the operator around it.
static bool staysWide(Operation *op) {
  auto structured = dyn_cast_or_null<linalg::LinalgOp>(op->getParentOp());
  if (!structured)
    return false;
  for (int64_t number = 0; number < structured.getNumDpsInits(); ++number)
    if (getUpdate(structured, number) == op)
      return true;
  return isSumOfProducts(structured);
}

bool ftuner::roundsResults(Operation *op) {
  if (!isa_and_nonnull<arith::ArithDialect, math::MathDialect>(
          op->getDialect()) ||
      op->hasTrait<OpTrait::ConstantLike>() || isExactCast(op) ||
      isa<arith::BitcastOp, arith::MaximumFOp, arith::MaxNumFOp,
          arith::MinimumFOp, arith::MinNumFOp, arith::NegFOp, arith::SelectOp,
          math::AbsFOp, math::CopySignOp>(op) ||
      llvm::none_of(op->getResultTypes(), [](Type type) {
        return isa<FloatType>(getElementTypeOrSelf(type));
      }))
    return false;
  return !staysWide(op);
}
