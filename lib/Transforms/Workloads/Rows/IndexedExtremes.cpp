//===- IndexedExtremes.cpp - Extremes with their positions ----------------===//
#include "IndexedExtremes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"

#include <limits>

using namespace mlir;
using namespace ftuner;

namespace {

/// A reduction to an extreme and the position of the first element that has it:
///
///   best, at = value before best ? value, position : best, at
///
/// where a value comes before another one if it is greater, for a maximum, or
/// less, for a minimum. A NaN comes before no value.
struct IndexedExtreme {
  Value value;
  /// Compares a value with the best one before.
  Operation *comparison;
  bool isMaximum, isFloat, isUnsigned;
  /// True if the first NaN becomes `best` and stays it; else no NaN does.
  bool keepsNan;
  /// Scalars that `best` and `at` start from.
  Value start, startPosition;

  static std::optional<IndexedExtreme> match(linalg::GenericOp op);
};

} // namespace

/// Matches a comparison of a value with `best`.
static std::optional<IndexedExtreme> matchComparison(Value condition,
                                                     Value best) {
  IndexedExtreme found{};
  found.comparison = condition.getDefiningOp();
  bool isSwapped;
  if (auto compare = condition.getDefiningOp<arith::CmpFOp>()) {
    isSwapped = compare.getLhs() == best;
    arith::CmpFPredicate predicate = compare.getPredicate();
    if (predicate != arith::CmpFPredicate::OGT &&
        predicate != arith::CmpFPredicate::OLT)
      return std::nullopt;
    found.isFloat = true;
    found.isMaximum = (predicate == arith::CmpFPredicate::OGT) != isSwapped;
  } else if (auto compare = condition.getDefiningOp<arith::CmpIOp>()) {
    isSwapped = compare.getLhs() == best;
    arith::CmpIPredicate predicate = compare.getPredicate();
    bool isGreater = predicate == arith::CmpIPredicate::sgt ||
                     predicate == arith::CmpIPredicate::ugt;
    bool isLess = predicate == arith::CmpIPredicate::slt ||
                  predicate == arith::CmpIPredicate::ult;
    if (!isGreater && !isLess)
      return std::nullopt;
    found.isUnsigned = predicate == arith::CmpIPredicate::ugt ||
                       predicate == arith::CmpIPredicate::ult;
    found.isMaximum = isGreater != isSwapped;
  } else {
    return std::nullopt;
  }
  found.value = found.comparison->getOperand(isSwapped);
  if (found.comparison->getOperand(!isSwapped) != best || found.value == best)
    return std::nullopt;
  return found;
}

/// Returns true if a value of the body is the position along the loop, cast or
/// not.
static bool isPosition(Value value, unsigned loop, linalg::LinalgOp op) {
  if (op.getStaticLoopRanges()[loop] == 1 && matchPattern(value, m_Zero()))
    return true;
  while (auto cast = value.getDefiningOp<arith::IndexCastOp>())
    value = cast.getIn();
  auto index = value.getDefiningOp<linalg::IndexOp>();
  return index && index.getDim() == loop;
}

std::optional<IndexedExtreme> IndexedExtreme::match(linalg::GenericOp op) {
  if (!op.hasPureTensorSemantics() || op.getNumResults() != 2 ||
      op.getNumDpsInits() != 2 || op.getNumReductionLoops() != 1)
    return std::nullopt;
  SmallVector<unsigned> loops;
  op.getReductionDims(loops);
  Block &body = *op.getBlock();
  Value best = op.getRegionOutputArgs()[0], at = op.getRegionOutputArgs()[1];
  Value next = body.getTerminator()->getOperand(0);
  auto choice =
      body.getTerminator()->getOperand(1).getDefiningOp<arith::SelectOp>();
  if (!choice || choice.getFalseValue() != at ||
      !isPosition(choice.getTrueValue(), loops.front(), op))
    return std::nullopt;
  std::optional<IndexedExtreme> found =
      matchComparison(choice.getCondition(), best);
  if (!found)
    return std::nullopt;
  Operation *update = next.getDefiningOp();
  if (auto select = dyn_cast_or_null<arith::SelectOp>(update)) {
    if (select.getCondition() != choice.getCondition() ||
        select.getTrueValue() != found->value || select.getFalseValue() != best)
      return std::nullopt;
  } else {
    auto isUpdate = [&]() {
      if (!found->isFloat)
        return found->isMaximum
                   ? (found->isUnsigned ? isa<arith::MaxUIOp>(update)
                                        : isa<arith::MaxSIOp>(update))
                   : (found->isUnsigned ? isa<arith::MinUIOp>(update)
                                        : isa<arith::MinSIOp>(update));
      return found->isMaximum ? isa<arith::MaximumFOp>(update)
                              : isa<arith::MinimumFOp>(update);
    };
    if (!update || !isUpdate())
      return std::nullopt;
    bool isOfBoth = llvm::is_contained(update->getOperands(), best) &&
                    llvm::is_contained(update->getOperands(), found->value);
    if (!isOfBoth)
      return std::nullopt;
    found->keepsNan = found->isFloat;
  }
  // Nothing else reads the state.
  for (Value state : {best, at})
    for (Operation *user : state.getUsers())
      if (user != choice && user != found->comparison && user != update)
        return std::nullopt;
  std::array<Value, 2> starts;
  for (unsigned number : {0, 1}) {
    auto fill = op.getDpsInits()[number].getDefiningOp<linalg::FillOp>();
    if (!fill)
      return std::nullopt;
    starts[number] = fill.value();
  }
  found->start = starts[0];
  found->startPosition = starts[1];
  return found;
}

namespace {

/// Splits an indexed extreme into plain reductions:
///
///   none = the position of the first NaN, if `keepsNan`
///   best = the extreme of the elements before it
///   at   = the minimum position of an element before it that equals `best`
class IndexedExtremeSplitter {
public:
  IndexedExtremeSplitter(linalg::GenericOp op, const IndexedExtreme &extreme,
                         RewriterBase &rewriter)
      : op(op), extreme(extreme), b(op.getLoc(), rewriter), rewriter(rewriter),
        rowMap(op.getMatchingIndexingMap(op.getDpsInitOperand(0))) {
    b.setInsertionPoint(op);
    SmallVector<unsigned> loops;
    op.getReductionDims(loops);
    rowLoop = loops.front();
    before = op->getPrevNode();
  }
  /// Creates the reductions, and replaces the uses of the operator's results.
  void split();
  /// The first of the reductions.
  linalg::LinalgOp getFirst() const { return first; }
  /// Erases the reductions, and restores the uses of the operator.
  void undo();
  /// Erases the operator.
  void finish() { rewriter.eraseOp(op); }

private:
  void replaceUses(unsigned result, Value value);
  /// Body of a reduction: takes an element of the row, its position as an i32,
  /// values of the row, and the accumulator.
  using Body =
      llvm::function_ref<Value(OpBuilder &, Value element, Value position,
                               ValueRange rowValues, Value last)>;

  Value integer(int32_t value) {
    return arith::ConstantOp::create(b, b.getI32IntegerAttr(value));
  }
  Value cloneValue(OpBuilder &inner, Value value, IRMapping &mapping);
  /// Creates a tensor with one element for each row.
  Value createEmpty(Type element);
  Value reduce(Value start, ValueRange rowValues, Body body);
  /// Computes a value of each row from other values of it.
  Value compute(Type type, ValueRange rowValues,
                llvm::function_ref<Value(OpBuilder &, ValueRange)> body);
  Value combine(OpBuilder &inner, Value lhs, Value rhs);
  /// Creates the extreme of no elements.
  Value createNeutral();

  linalg::GenericOp op;
  IndexedExtreme extreme;
  ImplicitLocOpBuilder b;
  RewriterBase &rewriter;
  AffineMap rowMap;
  unsigned rowLoop;
  linalg::LinalgOp first;
  /// The operation before all that are created; null at the block's beginning.
  Operation *before;
  /// Replaced uses of the results, by their numbers.
  SmallVector<std::pair<OpOperand *, unsigned>> replaced;
};

} // namespace

Value IndexedExtremeSplitter::cloneValue(OpBuilder &inner, Value value,
                                         IRMapping &mapping) {
  Operation *definition = value.getDefiningOp();
  if (mapping.contains(value) || !definition ||
      definition->getBlock() != op.getBlock())
    return mapping.lookupOrDefault(value);
  for (Value operand : definition->getOperands())
    cloneValue(inner, operand, mapping);
  inner.clone(*definition, mapping);
  return mapping.lookup(value);
}

Value IndexedExtremeSplitter::createEmpty(Type element) {
  Value like = op.getDpsInits()[0].getDefiningOp<linalg::FillOp>().output();
  return tensor::EmptyOp::create(b, tensor::getMixedSizes(b, b.getLoc(), like),
                                 element);
}

Value IndexedExtremeSplitter::reduce(Value start, ValueRange rowValues,
                                     Body body) {
  Value empty = createEmpty(start.getType());
  Value init = linalg::FillOp::create(b, start, empty).getResult(0);
  SmallVector<Value> inputs = op.getDpsInputs();
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  maps.resize(inputs.size());
  unsigned numOwn = inputs.size();
  for (Value value : rowValues) {
    inputs.push_back(value);
    maps.push_back(rowMap);
  }
  maps.push_back(rowMap);
  auto reduction = linalg::GenericOp::create(
      b, init.getType(), inputs, init, maps, op.getIteratorTypesArray(),
      [&](OpBuilder &inner, Location loc, ValueRange arguments) {
        IRMapping mapping;
        mapping.map(op.getRegionInputArgs(), arguments.take_front(numOwn));
        Value element = cloneValue(inner, extreme.value, mapping);
        Value index = linalg::IndexOp::create(inner, loc, rowLoop);
        Value position =
            arith::IndexCastOp::create(inner, loc, inner.getI32Type(), index);
        linalg::YieldOp::create(inner, loc,
                                body(inner, element, position,
                                     arguments.drop_front(numOwn).drop_back(),
                                     arguments.back()));
      });
  if (!first)
    first = reduction;
  return reduction.getResult(0);
}

Value IndexedExtremeSplitter::compute(
    Type type, ValueRange rowValues,
    llvm::function_ref<Value(OpBuilder &, ValueRange)> body) {
  Value empty = createEmpty(type);
  int64_t rank = rowMap.getNumResults();
  SmallVector<AffineMap> maps(rowValues.size() + 1,
                              b.getMultiDimIdentityMap(rank));
  SmallVector<utils::IteratorType> kinds(rank, utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             b, empty.getType(), rowValues, empty, maps, kinds,
             [&](OpBuilder &inner, Location loc, ValueRange arguments) {
               linalg::YieldOp::create(inner, loc,
                                       body(inner, arguments.drop_back()));
             })
      .getResult(0);
}

Value IndexedExtremeSplitter::combine(OpBuilder &inner, Value lhs, Value rhs) {
  Location loc = b.getLoc();
  if (!extreme.isFloat) {
    if (extreme.isUnsigned)
      return extreme.isMaximum
                 ? arith::MaxUIOp::create(inner, loc, lhs, rhs).getResult()
                 : arith::MinUIOp::create(inner, loc, lhs, rhs).getResult();
    return extreme.isMaximum
               ? arith::MaxSIOp::create(inner, loc, lhs, rhs).getResult()
               : arith::MinSIOp::create(inner, loc, lhs, rhs).getResult();
  }
  if (extreme.keepsNan)
    return extreme.isMaximum
               ? arith::MaximumFOp::create(inner, loc, lhs, rhs).getResult()
               : arith::MinimumFOp::create(inner, loc, lhs, rhs).getResult();
  return extreme.isMaximum
             ? arith::MaxNumFOp::create(inner, loc, lhs, rhs).getResult()
             : arith::MinNumFOp::create(inner, loc, lhs, rhs).getResult();
}

Value IndexedExtremeSplitter::createNeutral() {
  auto type = cast<FloatType>(extreme.value.getType());
  APFloat infinity = APFloat::getInf(type.getFloatSemantics(),
                                     /*Negative=*/extreme.isMaximum);
  return arith::ConstantOp::create(b, b.getFloatAttr(type, infinity));
}

void IndexedExtremeSplitter::split() {
  auto last = std::numeric_limits<int32_t>::max();
  Location loc = b.getLoc();
  // An extreme whose position nobody reads is a plain reduction.
  if (op.getResult(1).use_empty()) {
    Value best =
        reduce(extreme.start, {},
               [&](OpBuilder &inner, Value element, Value, ValueRange,
                   Value acc) { return combine(inner, acc, element); });
    replaceUses(0, best);
    return;
  }
  Value none = integer(last);
  SmallVector<Value> rowValues;
  if (extreme.keepsNan)
    rowValues.push_back(reduce(
        none, {},
        [&](OpBuilder &inner, Value element, Value position, ValueRange,
            Value acc) -> Value {
          Value isNan = arith::CmpFOp::create(
              inner, loc, arith::CmpFPredicate::UNO, element, element);
          Value at = arith::SelectOp::create(inner, loc, isNan, position, none);
          return arith::MinSIOp::create(inner, loc, acc, at);
        }));
  Value outOfRow = extreme.keepsNan ? createNeutral() : Value();
  auto isBefore = [&](OpBuilder &inner, Value position, Value end) -> Value {
    return arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::slt,
                                 position, end);
  };
  Value best =
      reduce(extreme.start, rowValues,
             [&](OpBuilder &inner, Value element, Value position,
                 ValueRange row, Value acc) {
               if (extreme.keepsNan)
                 element = arith::SelectOp::create(
                     inner, loc, isBefore(inner, position, row.front()),
                     element, outOfRow);
               return combine(inner, acc, element);
             });
  rowValues.push_back(best);
  Value at = reduce(
      none, rowValues,
      [&](OpBuilder &inner, Value element, Value position, ValueRange row,
          Value acc) -> Value {
        Value isHere;
        if (extreme.isFloat)
          isHere = arith::CmpFOp::create(inner, loc, arith::CmpFPredicate::OEQ,
                                         element, row.back());
        else
          isHere = arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::eq,
                                         element, row.back());
        if (extreme.keepsNan)
          isHere = arith::AndIOp::create(
              inner, loc, isHere, isBefore(inner, position, row.front()));
        Value found =
            arith::SelectOp::create(inner, loc, isHere, position, none);
        return arith::MinSIOp::create(inner, loc, acc, found);
      });
  // No element may come before the start.
  Type positionType = extreme.startPosition.getType();
  Value position = compute(
      positionType, {best, at}, [&](OpBuilder &inner, ValueRange row) -> Value {
        IRMapping mapping;
        mapping.map(extreme.value, row.front());
        mapping.map(op.getRegionOutputArgs()[0], extreme.start);
        Value isFound = inner.clone(*extreme.comparison, mapping)->getResult(0);
        Value own = row.back();
        if (positionType.isIndex())
          own = arith::IndexCastOp::create(inner, loc, positionType, own);
        else if (positionType != own.getType())
          own = arith::ExtSIOp::create(inner, loc, positionType, own);
        return arith::SelectOp::create(inner, loc, isFound, own,
                                       extreme.startPosition);
      });
  if (extreme.keepsNan && !op.getResult(0).use_empty()) {
    auto type = cast<FloatType>(extreme.value.getType());
    Value nan = arith::ConstantOp::create(
        b, b.getFloatAttr(type, APFloat::getQNaN(type.getFloatSemantics())));
    best = compute(
        type, {rowValues.front(), best},
        [&](OpBuilder &inner, ValueRange row) -> Value {
          Value isNumber = arith::CmpIOp::create(
              inner, loc, arith::CmpIPredicate::eq, row.front(), none);
          return arith::SelectOp::create(inner, loc, isNumber, row.back(), nan);
        });
  }
  replaceUses(0, best);
  replaceUses(1, position);
}

void IndexedExtremeSplitter::replaceUses(unsigned result, Value value) {
  for (OpOperand &use :
       llvm::make_early_inc_range(op.getResult(result).getUses())) {
    replaced.emplace_back(&use, result);
    rewriter.modifyOpInPlace(use.getOwner(), [&] { use.set(value); });
  }
}

void IndexedExtremeSplitter::undo() {
  for (auto [use, result] : replaced)
    rewriter.modifyOpInPlace(use->getOwner(), [&, use = use, result = result] {
      use->set(op.getResult(result));
    });
  while (op->getPrevNode() != before)
    rewriter.eraseOp(op->getPrevNode());
}

void ftuner::splitIndexedExtremes(
    FunctionOpInterface function, llvm::function_ref<bool(Type)> areRows,
    llvm::function_ref<bool(linalg::LinalgOp)> isSupported,
    RewriterBase &rewriter) {
  SmallVector<linalg::GenericOp> ops;
  function->walk([&](linalg::GenericOp op) { ops.push_back(op); });
  for (linalg::GenericOp op : ops) {
    std::optional<IndexedExtreme> extreme = IndexedExtreme::match(op);
    bool isRows = extreme && areRows(extreme->value.getType()) &&
                  llvm::all_of(op.getDpsInputs(), [&](Value input) {
                    return areRows(input.getType());
                  });
    Type position = extreme ? extreme->startPosition.getType() : Type();
    if (!isRows ||
        !(position.isIndex() || position.getIntOrFloatBitWidth() >= 32))
      continue;
    IndexedExtremeSplitter splitter(op, *extreme, rewriter);
    splitter.split();
    if (isSupported(splitter.getFirst()))
      splitter.finish();
    else
      splitter.undo();
  }
}
