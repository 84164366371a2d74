//===- RowPatterns.cpp - The form that rows start from --------------------===//
#include "RowPatterns.h"

#include "ReductionLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/SetVector.h"

#include <limits>

using namespace mlir;
using namespace ftuner;

/// A named softmax as its parts.
static void decomposeSoftmax(FunctionOpInterface function,
                             RewriterBase &rewriter) {
  SmallVector<linalg::SoftmaxOp> ops;
  function->walk([&](linalg::SoftmaxOp op) {
    if (op.hasPureTensorSemantics())
      ops.push_back(op);
  });
  for (linalg::SoftmaxOp op : ops) {
    rewriter.setInsertionPoint(op);
    FailureOr<SmallVector<Value>> parts = op.decomposeOperation(rewriter);
    if (succeeded(parts))
      rewriter.replaceOp(op, *parts);
  }
}

//===----------------------------------------------------------------------===//
// Extremes with their positions
//===----------------------------------------------------------------------===//

namespace {

/// A reduction to an extreme and the position of the first element that has it:
///
///   best, at = value before best ? value, position : best, at
///
/// where one value comes before another if it is greater, or less. A NaN comes
/// before none. It stays `best` once it is, if `keepsNan`, or is never.
struct IndexedExtreme {
  Value value;
  /// Compares a value with the best one before.
  Operation *comparison;
  bool isMaximum, isFloat, isUnsigned, keepsNan;
  /// Where both start from: scalars.
  Value start, startPosition;

  static std::optional<IndexedExtreme> match(linalg::GenericOp op);
};

} // namespace

/// The comparison as one of `value` with `best`; nothing for others.
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

/// Whether a value of the body is the position along the loop, cast or not.
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
  // Nothing else asks for what was before.
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

/// Makes plain reductions of an indexed extreme:
///
///   none = the position of the first NaN, if that stays
///   best = the extreme of the elements before it
///   at   = the least position of an element before it that is `best`
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
  /// Replaces the uses of the operator's results.
  void split();
  /// The first of the reductions.
  linalg::LinalgOp getFirst() const { return first; }
  /// Undoes it, and leaves the operator.
  void undo();
  /// Erases the operator.
  void finish() { rewriter.eraseOp(op); }

private:
  void replaceUses(unsigned result, Value value);
  /// An element of the row, its position as an i32, elements of values of rows,
  /// and the accumulator.
  using Body =
      llvm::function_ref<Value(OpBuilder &, Value element, Value position,
                               ValueRange ofRow, Value last)>;

  Value integer(int32_t value) {
    return arith::ConstantOp::create(b, b.getI32IntegerAttr(value));
  }
  Value cloneValue(OpBuilder &inner, Value value, IRMapping &mapping);
  /// A tensor of an element for each row.
  Value createEmpty(Type element);
  Value reduce(Value start, ValueRange ofRow, Body body);
  /// A value of rows that is computed of others.
  Value compute(Type type, ValueRange ofRow,
                llvm::function_ref<Value(OpBuilder &, ValueRange)> body);
  Value combine(OpBuilder &inner, Value lhs, Value rhs);
  /// What an extreme of no elements is.
  Value neutral();

  linalg::GenericOp op;
  IndexedExtreme extreme;
  ImplicitLocOpBuilder b;
  RewriterBase &rewriter;
  AffineMap rowMap;
  unsigned rowLoop;
  linalg::LinalgOp first;
  /// What is in front of all that is made; null at the block's beginning.
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

Value IndexedExtremeSplitter::reduce(Value start, ValueRange ofRow, Body body) {
  Value empty = createEmpty(start.getType());
  Value init = linalg::FillOp::create(b, start, empty).getResult(0);
  SmallVector<Value> inputs = op.getDpsInputs();
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  maps.resize(inputs.size());
  unsigned numOwn = inputs.size();
  for (Value value : ofRow) {
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
    Type type, ValueRange ofRow,
    llvm::function_ref<Value(OpBuilder &, ValueRange)> body) {
  Value empty = createEmpty(type);
  int64_t rank = rowMap.getNumResults();
  SmallVector<AffineMap> maps(ofRow.size() + 1, b.getMultiDimIdentityMap(rank));
  SmallVector<utils::IteratorType> kinds(rank, utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             b, empty.getType(), ofRow, empty, maps, kinds,
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

Value IndexedExtremeSplitter::neutral() {
  auto type = cast<FloatType>(extreme.value.getType());
  APFloat infinity = APFloat::getInf(type.getFloatSemantics(),
                                     /*Negative=*/extreme.isMaximum);
  return arith::ConstantOp::create(b, b.getFloatAttr(type, infinity));
}

void IndexedExtremeSplitter::split() {
  auto last = std::numeric_limits<int32_t>::max();
  Location loc = b.getLoc();
  // Without the position an extreme is a plain one.
  if (op.getResult(1).use_empty()) {
    Value best =
        reduce(extreme.start, {},
               [&](OpBuilder &inner, Value element, Value, ValueRange,
                   Value acc) { return combine(inner, acc, element); });
    replaceUses(0, best);
    return;
  }
  Value none = integer(last);
  SmallVector<Value> ofRow;
  if (extreme.keepsNan)
    ofRow.push_back(reduce(
        none, {},
        [&](OpBuilder &inner, Value element, Value position, ValueRange,
            Value acc) -> Value {
          Value isNan = arith::CmpFOp::create(
              inner, loc, arith::CmpFPredicate::UNO, element, element);
          Value at = arith::SelectOp::create(inner, loc, isNan, position, none);
          return arith::MinSIOp::create(inner, loc, acc, at);
        }));
  Value outOfRow = extreme.keepsNan ? neutral() : Value();
  auto isBefore = [&](OpBuilder &inner, Value position, Value end) -> Value {
    return arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::slt,
                                 position, end);
  };
  Value best =
      reduce(extreme.start, ofRow,
             [&](OpBuilder &inner, Value element, Value position,
                 ValueRange row, Value acc) {
               if (extreme.keepsNan)
                 element = arith::SelectOp::create(
                     inner, loc, isBefore(inner, position, row.front()),
                     element, outOfRow);
               return combine(inner, acc, element);
             });
  ofRow.push_back(best);
  Value at = reduce(
      none, ofRow,
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
        type, {ofRow.front(), best},
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

static void
splitIndexedExtremes(FunctionOpInterface function,
                     llvm::function_ref<bool(Type)> takes,
                     llvm::function_ref<bool(linalg::LinalgOp)> isComputed,
                     RewriterBase &rewriter) {
  SmallVector<linalg::GenericOp> ops;
  function->walk([&](linalg::GenericOp op) { ops.push_back(op); });
  for (linalg::GenericOp op : ops) {
    std::optional<IndexedExtreme> extreme = IndexedExtreme::match(op);
    bool isTaken = extreme && takes(extreme->value.getType()) &&
                   llvm::all_of(op.getDpsInputs(), [&](Value input) {
                     return takes(input.getType());
                   });
    Type position = extreme ? extreme->startPosition.getType() : Type();
    if (!isTaken ||
        !(position.isIndex() || position.getIntOrFloatBitWidth() >= 32))
      continue;
    IndexedExtremeSplitter splitter(op, *extreme, rewriter);
    splitter.split();
    if (isComputed(splitter.getFirst()))
      splitter.finish();
    else
      splitter.undo();
  }
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

/// A reduction whose output keeps dimensions of extent 1 writes one without
/// them.
static void dropUnitOutputs(linalg::GenericOp op, RewriterBase &rewriter) {
  if (!op.hasPureTensorSemantics() || op.getNumDpsInits() != 1 ||
      op.getNumReductionLoops() < 2)
    return;
  OpOperand *init = op.getDpsInitOperand(0);
  AffineMap map = op.getMatchingIndexingMap(init);
  auto type = cast<RankedTensorType>(init->get().getType());
  SmallVector<ReassociationIndices> groups;
  SmallVector<AffineExpr> kept;
  ReassociationIndices group;
  for (auto [dim, position] : llvm::enumerate(map.getResults())) {
    group.push_back(dim);
    if (isa<AffineConstantExpr>(position) && type.getDimSize(dim) == 1)
      continue;
    groups.push_back(std::exchange(group, {}));
    kept.push_back(position);
  }
  if (kept.size() == map.getNumResults())
    return;
  if (!groups.empty())
    groups.back().append(group);
  rewriter.setInsertionPoint(op);
  Location loc = op.getLoc();
  Value narrow =
      tensor::CollapseShapeOp::create(rewriter, loc, init->get(), groups);
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  maps.back() = AffineMap::get(map.getNumDims(), 0, kept, op.getContext());
  auto reduction = linalg::GenericOp::create(rewriter, loc, narrow.getType(),
                                             op.getDpsInputs(), narrow, maps,
                                             op.getIteratorTypesArray());
  rewriter.inlineRegionBefore(op.getRegion(), reduction.getRegion(),
                              reduction.getRegion().end());
  Value like = narrow.getDefiningOp<tensor::CollapseShapeOp>().getSrc();
  if (auto fill = like.getDefiningOp<linalg::FillOp>())
    like = fill.output();
  Value wide = tensor::ExpandShapeOp::create(
      rewriter, loc, type, reduction.getResult(0), groups,
      tensor::getMixedSizes(rewriter, loc, like));
  rewriter.replaceOp(op, wide);
}

namespace {

/// Makes one loop of several that are reduced, and of the same loops of
/// elementwise operators around.
class LoopCollapser {
public:
  explicit LoopCollapser(RewriterBase &rewriter) : rewriter(rewriter) {}

  void collapseReduction(linalg::LinalgOp op);

private:
  /// What was collapsed of a tensor: these dimensions.
  struct Place {
    Value tensor;
    ReassociationIndices dims;
  };
  /// The tensors that an operator reads and writes through reshapes.
  SmallVector<Place> placesOf(linalg::LinalgOp op);
  /// Collapses an elementwise operator that reads or writes these dimensions;
  /// whether there was one.
  bool collapseAround(const Place &place);
  bool collapse(linalg::LinalgOp op, const ReassociationIndices &loops);

  RewriterBase &rewriter;
  /// Collapsed, while those around them may not be.
  llvm::SetVector<Operation *> pending;
};

} // namespace

bool LoopCollapser::collapse(linalg::LinalgOp op,
                             const ReassociationIndices &loops) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  if (loops.size() < 2 || !hasPlainMaps(op) ||
      !linalg::areDimSequencesPreserved(maps, {loops}))
    return false;
  rewriter.setInsertionPoint(op);
  auto generic = dyn_cast<linalg::GenericOp>(op.getOperation());
  if (!generic) {
    FailureOr<linalg::GenericOp> made = linalg::generalizeNamedOp(rewriter, op);
    if (failed(made))
      return false;
    generic = *made;
  }
  FailureOr<linalg::CollapseResult> result =
      linalg::collapseOpIterationDims(generic, {loops}, rewriter);
  if (failed(result))
    return false;
  pending.remove(generic);
  pending.insert(result->collapsedOp);
  rewriter.replaceOp(generic, result->results);
  return true;
}

SmallVector<LoopCollapser::Place> LoopCollapser::placesOf(linalg::LinalgOp op) {
  SmallVector<Place> places;
  auto add = [&](Value tensor, ArrayRef<ReassociationIndices> groups) {
    for (const ReassociationIndices &group : groups)
      if (group.size() > 1)
        places.push_back({tensor, group});
  };
  for (OpOperand *input : op.getDpsInputOperands())
    if (auto reshape = input->get().getDefiningOp<tensor::CollapseShapeOp>())
      add(reshape.getSrc(), reshape.getReassociationIndices());
  for (Operation *user : op->getResult(0).getUsers())
    if (auto reshape = dyn_cast<tensor::ExpandShapeOp>(user))
      add(reshape.getResult(), reshape.getReassociationIndices());
  return places;
}

bool LoopCollapser::collapseAround(const Place &place) {
  // The owners as they are now: one that is tried may be gone afterwards, with
  // its operands.
  SmallVector<std::pair<Operation *, OpOperand *>> uses;
  for (OpOperand &use : place.tensor.getUses())
    uses.emplace_back(use.getOwner(), &use);
  if (auto producer = place.tensor.getDefiningOp<linalg::LinalgOp>())
    if (producer.hasPureTensorSemantics() && producer.getNumDpsInits() == 1)
      uses.emplace_back(producer, producer.getDpsInitOperand(0));
  llvm::SmallPtrSet<Operation *, 8> tried;
  for (auto [owner, use] : uses) {
    if (tried.contains(owner))
      continue;
    auto op = dyn_cast<linalg::LinalgOp>(owner);
    if (!op || op.getNumParallelLoops() != op.getNumLoops() ||
        isa<linalg::FillOp>(owner) || !hasPlainMaps(op))
      continue;
    AffineMap map = op.getMatchingIndexingMap(use);
    ReassociationIndices loops;
    for (int64_t dim : place.dims)
      loops.push_back(cast<AffineDimExpr>(map.getResult(dim)).getPosition());
    if (!llvm::is_sorted(loops))
      continue;
    tried.insert(owner);
    if (collapse(op, loops))
      return true;
  }
  return false;
}

/// Returns true if a reduction that has rows of its own reads what `op` reads
/// or what follows from that, through elementwise operators and reshapes: these
/// would lose its rows in a collapse to one row.
static bool sharesWithRows(linalg::LinalgOp op) {
  llvm::SetVector<Value> values;
  values.insert_range(op.getDpsInputs());
  for (size_t next = 0; next < values.size(); ++next) {
    if (!isa<RankedTensorType>(values[next].getType()))
      continue;
    SmallVector<Operation *> around(values[next].getUsers());
    if (Operation *definition = values[next].getDefiningOp())
      around.push_back(definition);
    for (Operation *other : around) {
      auto linalgOp = dyn_cast<linalg::LinalgOp>(other);
      if (linalgOp && linalgOp.getNumReductionLoops() != 0) {
        if (linalgOp.getNumParallelLoops() != 0)
          return true;
        continue;
      }
      bool isReshape =
          isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(other);
      if (isa<linalg::FillOp>(other) || (!linalgOp && !isReshape))
        continue;
      // Not the tensor that gives a result its sizes.
      values.insert_range(isReshape ? SmallVector<Value>{other->getOperand(0)}
                                    : linalgOp.getDpsInputs());
      values.insert_range(other->getResults());
    }
  }
  return false;
}

void LoopCollapser::collapseReduction(linalg::LinalgOp op) {
  ReassociationIndices loops;
  SmallVector<unsigned> reduced;
  op.getReductionDims(reduced);
  for (unsigned loop : reduced) {
    if (!loops.empty() && loops.back() + 1 != loop)
      return;
    loops.push_back(loop);
  }
  bool isAlone = op.getNumParallelLoops() == 0 && sharesWithRows(op);
  if (!collapse(op, loops) || isAlone)
    return;
  while (!pending.empty()) {
    auto next = cast<linalg::LinalgOp>(pending.back());
    if (llvm::none_of(placesOf(next), [&](const Place &place) {
          return collapseAround(place);
        }))
      pending.remove(next);
  }
}

static void collapseReductions(FunctionOpInterface function,
                               llvm::function_ref<bool(Type)> takes,
                               RewriterBase &rewriter) {
  SmallVector<linalg::LinalgOp> reductions;
  function->walk([&](linalg::LinalgOp op) { reductions.push_back(op); });
  for (linalg::LinalgOp op : reductions)
    if (llvm::all_of(op->getOperandTypes(), takes))
      reduceWholeWindow(op, rewriter);
  SmallVector<linalg::GenericOp> generics;
  function->walk([&](linalg::GenericOp op) { generics.push_back(op); });
  for (linalg::GenericOp op : generics)
    dropUnitOutputs(op, rewriter);
  reductions.clear();
  function->walk([&](linalg::LinalgOp op) {
    if (op.getNumReductionLoops() > 1 && hasPlainMaps(op))
      reductions.push_back(op);
  });
  while (!reductions.empty()) {
    linalg::LinalgOp op = reductions.pop_back_val();
    SmallVector<linalg::LinalgOp> steps;
    if (llvm::all_of(op->getOperandTypes(), takes))
      steps = splitReduction(op, rewriter);
    if (steps.empty())
      LoopCollapser(rewriter).collapseReduction(op);
    reductions.append(steps.rbegin(), steps.rend());
  }
}

/// Whether a reshape moves from behind an elementwise operator to before it: a
/// reduction of the reshaped elements can then have that in its kernel.
static bool shouldExpand(OpOperand *operand) {
  auto reshape = dyn_cast<tensor::ExpandShapeOp>(operand->getOwner());
  auto producer = operand->get().getDefiningOp<linalg::LinalgOp>();
  return reshape && producer && operand->get().hasOneUse() &&
         producer.getNumParallelLoops() == producer.getNumLoops() &&
         llvm::any_of(reshape->getUsers(), [](Operation *user) {
           auto op = dyn_cast<linalg::LinalgOp>(user);
           return op && op.getNumReductionLoops() != 0;
         });
}

/// Whether an elementwise operator computes an element's position alone, or
/// little of it: each that reads it computes it anew.
static bool shouldFusePositions(OpOperand *operand) {
  constexpr size_t kMaxOperations = 8;
  auto producer = operand->get().getDefiningOp<linalg::GenericOp>();
  return producer && isa<linalg::LinalgOp>(operand->getOwner()) &&
         producer.getNumDpsInputs() == 0 && producer.hasIndexSemantics() &&
         producer.getNumParallelLoops() == producer.getNumLoops() &&
         producer.getBlock()->getOperations().size() <= kMaxOperations;
}

void ftuner::normalizeRows(
    FunctionOpInterface function, llvm::function_ref<bool(Type)> takes,
    llvm::function_ref<bool(linalg::LinalgOp)> isComputed,
    RewriterBase &rewriter) {
  decomposeSoftmax(function, rewriter);
  splitIndexedExtremes(function, takes, isComputed, rewriter);
  collapseReductions(function, takes, rewriter);
  MLIRContext *context = rewriter.getContext();
  RewritePatternSet patterns(context);
  linalg::populateFoldReshapeOpsByExpansionPatterns(patterns, shouldExpand);
  linalg::populateElementwiseOpsFusionPatterns(patterns, shouldFusePositions);
  linalg::FillOp::getCanonicalizationPatterns(patterns, context);
  tensor::CollapseShapeOp::getCanonicalizationPatterns(patterns, context);
  tensor::ExpandShapeOp::getCanonicalizationPatterns(patterns, context);
  tensor::EmptyOp::getCanonicalizationPatterns(patterns, context);
  tensor::populateFoldTensorEmptyPatterns(patterns);
  // A dimension of a result must not count as a use of the result.
  memref::populateResolveRankedShapedTypeResultDimsPatterns(patterns);
  // Whether it reached a fixed form does not matter.
  (void)applyPatternsGreedily(function, std::move(patterns));
  // Reshapes of one tensor are one value.
  DominanceInfo dominance(function);
  eliminateCommonSubExpressions(rewriter, dominance, function);
}
