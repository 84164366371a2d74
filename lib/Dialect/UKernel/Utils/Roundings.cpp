//===- Roundings.cpp - Rounding operations of a program -------------------===//
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

/// The value before exact casts of the body.
static Value stripCasts(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isExactCast(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

Value SumOfProducts::narrowFactor(unsigned factor) const {
  return stripCasts(factors[factor]);
}

bool SumOfProducts::isComputed(unsigned factor) const {
  return !isa<BlockArgument>(narrowFactor(factor));
}

/// Returns the operations that compute `value` from the factor number `factor`
/// and inputs, in order; no value if they read the other factor or the
/// accumulator, too, or do not read this factor.
static std::optional<SmallVector<Operation *>>
prologueOf(Value value, unsigned factor, Block &body) {
  bool isRead = false;
  SetVector<Operation *> slice;
  SmallVector<Value> pending = {value};
  while (!pending.empty()) {
    Value next = pending.pop_back_val();
    if (next == body.getArgument(1 - factor) ||
        next == body.getArguments().back())
      return std::nullopt;
    isRead |= next == body.getArgument(factor);
    Operation *op = next.getDefiningOp();
    if (!op || op->getBlock() != &body || !slice.insert(op))
      continue;
    llvm::append_range(pending, op->getOperands());
  }
  if (!isRead)
    return std::nullopt;
  SmallVector<Operation *> result;
  for (Operation &op : body.without_terminator())
    if (slice.contains(&op))
      result.push_back(&op);
  return result;
}

std::optional<SumOfProducts> ftuner::matchSumOfProducts(Block &body) {
  if (body.getNumArguments() < 3 || body.back().getNumOperands() != 1)
    return std::nullopt;
  Value accumulator = body.getArguments().back();
  Operation *sum = body.back().getOperand(0).getDefiningOp();
  if (!isa_and_nonnull<arith::AddFOp, arith::AddIOp>(sum))
    return std::nullopt;
  unsigned side = sum->getOperand(0) == accumulator ? 1 : 0;
  Operation *product = sum->getOperand(side).getDefiningOp();
  if (sum->getOperand(1 - side) != accumulator ||
      !isa_and_nonnull<arith::MulFOp, arith::MulIOp>(product))
    return std::nullopt;
  for (unsigned first : {0, 1}) {
    SumOfProducts result;
    SmallPtrSet<Operation *, 8> used = {sum, product};
    bool isMatch = true;
    for (unsigned factor : {0, 1}) {
      result.factors[factor] = product->getOperand(factor ^ first);
      auto prologue = prologueOf(result.factors[factor], factor, body);
      if (!prologue) {
        isMatch = false;
        break;
      }
      used.insert_range(*prologue);
      result.prologues[factor] = std::move(*prologue);
    }
    // The body has no operations without a use.
    if (isMatch && used.size() + 1 == body.getOperations().size())
      return result;
  }
  return std::nullopt;
}

bool ftuner::isSumOfProducts(linalg::LinalgOp op) {
  if (op.getNumDpsInputs() != 2 || op.getNumDpsInits() != 1 ||
      op.getNumReductionLoops() == 0 ||
      !llvm::all_of(op->getOperandTypes(), llvm::IsaPred<ShapedType>))
    return false;
  std::optional<SumOfProducts> parts = matchSumOfProducts(*op.getBlock());
  return parts && parts->narrowFactor(0) == op.getBlock()->getArgument(0) &&
         parts->narrowFactor(1) == op.getBlock()->getArgument(1);
}

/// Returns the operation that computes the next value of an accumulator; null
/// if the output is not an accumulator.
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

/// Returns whether the operation updates an accumulator of the operator around
/// it, or belongs to a sum of products.
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
