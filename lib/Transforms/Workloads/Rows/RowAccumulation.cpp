//===- RowAccumulation.cpp - Reductions of one loop as rows reduce --------===//
#include "RowAccumulation.h"

#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/Dialect/UKernel/Utils/Roundings.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace ftuner;
using ukernel::RowReductionOp;

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

/// Returns true if a body computes only with its arguments, positions and
/// scalars.
static bool isPlainBody(Block &body) {
  return llvm::all_of(body.without_terminator(), [&](Operation &op) {
    if (isa<linalg::IndexOp>(op))
      return true;
    return op.getNumRegions() == 0 &&
           isa<arith::ArithDialect, math::MathDialect>(op.getDialect()) &&
           llvm::all_of(op.getOperands(), [&](Value operand) {
             return operand.getParentBlock() == &body ||
                    !isa<ShapedType>(operand.getType());
           });
  });
}

/// Returns true for an operator on tensors with a plain body and one result.
static bool isPlain(linalg::LinalgOp op) {
  return op.hasPureTensorSemantics() && op.getNumDpsInits() == 1 &&
         op->getNumResults() == 1 && isPlainBody(*op.getBlock()) &&
         llvm::all_of(op->getOperandTypes(),
                      [](Type type) { return !isa<UnrankedTensorType>(type); });
}

AffineMap ftuner::getInitMap(linalg::LinalgOp op) {
  return op.getMatchingIndexingMap(op.getDpsInitOperand(0));
}

bool ftuner::isElementwise(linalg::LinalgOp op) {
  return isPlain(op) && op.getNumParallelLoops() == op.getNumLoops() &&
         !op.payloadUsesValueFromOperand(op.getDpsInitOperand(0)) &&
         getInitMap(op).isPermutation();
}

unsigned ftuner::getReductionLoop(linalg::LinalgOp op) {
  SmallVector<unsigned> loops;
  op.getReductionDims(loops);
  return loops.front();
}

//===----------------------------------------------------------------------===//
// Matching
//===----------------------------------------------------------------------===//

/// Returns the type in which rows accumulate values of type `own`, of 32 bits
/// except for f64; null for other types. A sum of booleans is less than the
/// length of a row.
static Type getAccumulatorType(Operation *combining, Type own) {
  MLIRContext *context = own.getContext();
  if (own.isF64())
    return own;
  if (own.isF32() || own.isF16() || own.isBF16())
    return Float32Type::get(context);
  if (own.isSignlessInteger(1) || own.isSignlessInteger(8) ||
      own.isSignlessInteger(16) || own.isSignlessInteger(32))
    return IntegerType::get(context, 32);
  if (!own.isSignlessInteger(64) || !isa<arith::AddIOp>(combining))
    return Type();
  bool isCount = llvm::any_of(combining->getOperands(), [](Value addend) {
    auto extended = addend.getDefiningOp<arith::ExtUIOp>();
    return extended && extended.getIn().getType().isInteger(1);
  });
  return isCount ? IntegerType::get(context, 32) : Type();
}

/// Returns the operation of wider integers that does what `combining` does;
/// nothing if there is none.
static std::optional<OperationName> getWideOperation(Operation *combining,
                                                     Type own) {
  auto named = [&](StringRef name) {
    return OperationName(name, combining->getContext());
  };
  if (!isa<arith::OrIOp, arith::AndIOp, arith::XOrIOp>(combining))
    return combining->getName();
  if (!own.isInteger(1))
    return std::nullopt;
  if (isa<arith::OrIOp>(combining))
    return named(arith::MaxUIOp::getOperationName());
  if (isa<arith::AndIOp>(combining))
    return named(arith::MinUIOp::getOperationName());
  return named(arith::AddIOp::getOperationName());
}

/// Sets the value that a reduction starts from, unless it is the neutral
/// element. Returns false if rows cannot start from it.
static bool findStart(linalg::LinalgOp op, Attribute neutral,
                      RowAccumulation &result) {
  Value init = op.getDpsInitOperand(0)->get();
  Type own = getElementTypeOrSelf(init.getType());
  result.start = init;
  if (auto fill = init.getDefiningOp<linalg::FillOp>())
    result.start = fill.value();
  if (matchPattern(result.start, m_Constant(&result.constantStart))) {
    result.start = Value();
    auto splat = dyn_cast<SplatElementsAttr>(result.constantStart);
    if (splat)
      result.constantStart = splat.getSplatValue<Attribute>();
    else if (isa<ElementsAttr>(result.constantStart))
      return false;
    // Extremes of narrow integers begin with another value than wide ones.
    bool isSameNeutral = own == result.type || !own.isInteger() ||
                         isa<arith::AddIOp, arith::MulIOp, arith::AndIOp,
                             arith::OrIOp, arith::XOrIOp>(result.combining);
    if (isSameNeutral && result.constantStart == neutral)
      result.constantStart = Attribute();
  }
  // A count may start from a number that is wider than the count.
  return !own.isInteger(64) || !result.hasStart();
}

std::optional<RowAccumulation> ftuner::matchRowReduction(linalg::LinalgOp op) {
  if (!isPlain(op) || op.getNumReductionLoops() != 1 ||
      op.getNumLoops() > RowReductionOp::kMaxSpaceAxes + 1)
    return std::nullopt;
  unsigned numIndexed = 0;
  for (AffineExpr position : getInitMap(op).getResults())
    numIndexed += isa<AffineDimExpr>(position);
  Operation *combining = ukernel::findCombiningOp(*op.getBlock());
  if (!combining || numIndexed + 1 != op.getNumLoops())
    return std::nullopt;
  Type own = getElementTypeOrSelf(op.getDpsInitOperand(0)->get().getType());
  std::optional<TypedAttr> neutral = arith::getNeutralElement(combining);
  Type type = getAccumulatorType(combining, own);
  std::optional<OperationName> name = getWideOperation(combining, own);
  if (!neutral || !type || !name)
    return std::nullopt;
  // No path computes products of matrices in f64, and rows would read each
  // factor once for every element of the product.
  if (own.isF64() && isSumOfProducts(op))
    return std::nullopt;
  RowAccumulation result{combining, *name, type, {}, {}};
  if (!findStart(op, *neutral, result))
    return std::nullopt;
  return result;
}

bool ftuner::isRowReduction(linalg::LinalgOp op) {
  return matchRowReduction(op).has_value();
}

//===----------------------------------------------------------------------===//
// Operations of accumulators
//===----------------------------------------------------------------------===//

Value RowAccumulation::widen(OpBuilder &b, Value value) const {
  Location loc = value.getLoc();
  if (value.getType() == type)
    return value;
  if (isa<FloatType>(type))
    return arith::ExtFOp::create(b, loc, type, value);
  if (value.getType().getIntOrFloatBitWidth() > type.getIntOrFloatBitWidth())
    return arith::TruncIOp::create(b, loc, type, value);
  StringRef wide = name.getStringRef();
  if (wide == arith::MaxUIOp::getOperationName() ||
      wide == arith::MinUIOp::getOperationName())
    return arith::ExtUIOp::create(b, loc, type, value);
  return arith::ExtSIOp::create(b, loc, type, value);
}

Value RowAccumulation::narrow(OpBuilder &b, Value accumulator, Type type) {
  Location loc = accumulator.getLoc();
  if (accumulator.getType() == type)
    return accumulator;
  if (isa<FloatType>(type))
    return arith::TruncFOp::create(b, loc, type, accumulator);
  // Counts are narrower than their sums in the program.
  if (accumulator.getType().getIntOrFloatBitWidth() <
      type.getIntOrFloatBitWidth())
    return arith::ExtUIOp::create(b, loc, type, accumulator);
  return arith::TruncIOp::create(b, loc, type, accumulator);
}

Value RowAccumulation::combine(OpBuilder &b, ValueRange operands) const {
  return createWide(b, combining, name, operands);
}

Value ftuner::createWide(OpBuilder &b, Operation *op, OperationName name,
                         ValueRange operands) {
  OperationState state(op->getLoc(), name);
  state.addOperands(operands);
  state.addTypes(operands.front().getType());
  // Wide integers may overflow where narrow ones do not.
  if (isa<FloatType>(operands.front().getType()))
    state.addAttributes(op->getAttrs());
  return b.create(state)->getResult(0);
}
