//===- RowPatterns.cpp - The form that rows start from --------------------===//
#include "RowPatterns.h"

#include "IndexedExtremes.h"
#include "ReductionLoops.h"

#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace ftuner;

/// Replaces named softmaxes by their parts.
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
// Loops
//===----------------------------------------------------------------------===//

/// Drops the dimensions of extent 1 from the output of a reduction.
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

/// Collapses the loops that an operator reduces into one, and the same loops of
/// elementwise operators around it.
class LoopCollapser {
public:
  explicit LoopCollapser(RewriterBase &rewriter) : rewriter(rewriter) {}

  void collapseReduction(linalg::LinalgOp op);

private:
  /// Dimensions of a tensor that were collapsed.
  struct Place {
    Value tensor;
    ReassociationIndices dims;
  };
  /// Returns the places of the tensors that an operator reads and writes
  /// through reshapes.
  SmallVector<Place> findPlaces(linalg::LinalgOp op);
  /// Collapses an elementwise operator that reads or writes a place. Returns
  /// false if there is none.
  bool collapseUser(const Place &place);
  bool collapse(linalg::LinalgOp op, const ReassociationIndices &loops);

  RewriterBase &rewriter;
  /// Operators that are collapsed, but whose neighbours may not be.
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

SmallVector<LoopCollapser::Place>
LoopCollapser::findPlaces(linalg::LinalgOp op) {
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

bool LoopCollapser::collapseUser(const Place &place) {
  // The owners as they are now: an owner that is tried may be erased with its
  // operands.
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

/// Returns true if a reduction with several rows reads the same values as `op`,
/// or values that follow from these by elementwise operators and reshapes. A
/// collapse of `op` to one row would take its rows from these operators.
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
    if (llvm::none_of(findPlaces(next),
                      [&](const Place &place) { return collapseUser(place); }))
      pending.remove(next);
  }
}

static void collapseReductions(FunctionOpInterface function,
                               llvm::function_ref<bool(Type)> areRows,
                               RewriterBase &rewriter) {
  SmallVector<linalg::LinalgOp> reductions;
  function->walk([&](linalg::LinalgOp op) { reductions.push_back(op); });
  for (linalg::LinalgOp op : reductions)
    if (llvm::all_of(op->getOperandTypes(), areRows))
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
    if (llvm::all_of(op->getOperandTypes(), areRows))
      steps = splitReduction(op, rewriter);
    if (steps.empty())
      LoopCollapser(rewriter).collapseReduction(op);
    reductions.append(steps.rbegin(), steps.rend());
  }
}

/// Returns true if a reshape should move before the elementwise operator whose
/// result it reads: a reduction of the reshaped elements can then have the
/// operator in its kernel.
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

/// Returns true if an elementwise operator computes little, from an element's
/// position only: each reader computes it anew.
static bool shouldFusePositions(OpOperand *operand) {
  constexpr size_t kMaxOperations = 8;
  auto producer = operand->get().getDefiningOp<linalg::GenericOp>();
  return producer && isa<linalg::LinalgOp>(operand->getOwner()) &&
         producer.getNumDpsInputs() == 0 && producer.hasIndexSemantics() &&
         producer.getNumParallelLoops() == producer.getNumLoops() &&
         producer.getBlock()->getOperations().size() <= kMaxOperations;
}

void ftuner::normalizeRows(
    FunctionOpInterface function, llvm::function_ref<bool(Type)> areRows,
    llvm::function_ref<bool(linalg::LinalgOp)> isSupported,
    RewriterBase &rewriter) {
  decomposeSoftmax(function, rewriter);
  splitIndexedExtremes(function, areRows, isSupported, rewriter);
  collapseReductions(function, areRows, rewriter);
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
  // The patterns need not reach a fixed point.
  (void)applyPatternsGreedily(function, std::move(patterns));
  // Reshapes of one tensor are one value.
  DominanceInfo dominance(function);
  eliminateCommonSubExpressions(rewriter, dominance, function);
}
