//===- ExpandViews.cpp - Operators over the dimensions of their operands
//----===//
//
// Importers join dimensions before a product and split them after it, and they
// repeat, transpose and join what the product reads. Here every operator gets
// the loops that its operands had before they were joined, so that reshapes
// move away from products and what stays between them are maps: the heads that
// share a key become a loop that the key's map does not have.
//
// Rounds alternate between three steps until nothing changes: reshapes fold
// with operators by expansion, sizes are resolved, equal values are merged. A
// product's reduction is never split: its parts might lie apart in the other
// operand. A reshape folds only where the sizes of its parts are proven.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Analysis/Extents.h"
#include "FTuner/Analysis/LinalgStructure.h"
#include "FTuner/Dialect/UKernel/Utils/Roundings.h"
#include "FTuner/Transforms/Passes.h"
#include "LinalgPatterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace ftuner {
#define GEN_PASS_DEF_UKERNELEXPANDVIEWSPASS
#include "FTuner/Transforms/Passes.h.inc"
} // namespace ftuner

using namespace mlir;
using namespace ftuner;

namespace {
/// Upper bound of the rounds; attention of public models takes three.
constexpr int kMaxRounds = 8;

bool isUnit(int64_t size) { return size == 1; }

/// Returns true if a group of the reshape joins two dimensions or more whose
/// extents are not 1: others are not worth a loop, and units come back.
bool joinsDimensions(ArrayRef<ReassociationIndices> groups,
                     RankedTensorType expanded) {
  return llvm::any_of(groups, [&](const ReassociationIndices &group) {
    return llvm::count_if(group, [&](int64_t dim) {
             return !isUnit(expanded.getDimSize(dim));
           }) > 1;
  });
}

/// Returns true if a group that joins dimensions is one of a reduction loop of
/// the operator.
bool splitsReduction(linalg::LinalgOp op, OpOperand &operand,
                     ArrayRef<ReassociationIndices> groups) {
  AffineMap map = op.getMatchingIndexingMap(&operand);
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  for (auto [index, group] : llvm::enumerate(groups)) {
    auto loop = dyn_cast<AffineDimExpr>(map.getResult(index));
    if (group.size() > 1 &&
        (!loop || linalg::isReductionIterator(iterators[loop.getPosition()])))
      return true;
  }
  return false;
}

/// Returns true if the sizes of the parts are proven to have the size of what
/// is expanded as their product. Nothing asserts that later if the reshape
/// becomes part of an operator.
bool isProven(tensor::ExpandShapeOp op) {
  ExtentAnalysis extents(op->getParentOfType<FunctionOpInterface>());
  extents.assumeAssertionsBefore(op);
  for (auto [index, group] : llvm::enumerate(op.getReassociationIndices()))
    if (!(extents.groupOf(op.getResult(), group) ==
          extents.dimOf(op.getSrc(), index)))
      return false;
  return true;
}

/// Returns true if the reshape becomes part of the operator, whose loops it
/// splits. The operand is the operator's, or the reshape's.
bool shouldExpand(OpOperand *operand) {
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(operand->getOwner())) {
    auto producer = operand->get().getDefiningOp<linalg::LinalgOp>();
    return producer && producer->hasOneUse() &&
           joinsDimensions(expand.getReassociationIndices(),
                           expand.getResultType()) &&
           isProven(expand);
  }
  auto op = dyn_cast<linalg::LinalgOp>(operand->getOwner());
  auto collapse = operand->get().getDefiningOp<tensor::CollapseShapeOp>();
  return op && collapse && !op.hasIndexSemantics() &&
         joinsDimensions(collapse.getReassociationIndices(),
                         collapse.getSrcType()) &&
         !splitsReduction(op, *operand, collapse.getReassociationIndices());
}

/// Replaces a collapse of an expansion that both only move dimensions of extent
/// 1 by one reshape, or by what is expanded.
struct FoldUnitReshapes : public OpRewritePattern<tensor::CollapseShapeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(tensor::CollapseShapeOp op,
                                PatternRewriter &rewriter) const override {
    auto expand = op.getSrc().getDefiningOp<tensor::ExpandShapeOp>();
    if (!expand ||
        joinsDimensions(expand.getReassociationIndices(),
                        expand.getResultType()) ||
        joinsDimensions(op.getReassociationIndices(), op.getSrcType()))
      return failure();
    RankedTensorType from = expand.getSrcType(), to = op.getResultType();
    if (from == to) {
      rewriter.replaceOp(op, expand.getSrc());
      return success();
    }
    bool isCollapse = from.getRank() > to.getRank();
    std::optional<SmallVector<ReassociationIndices>> groups =
        isCollapse
            ? getReassociationIndicesForCollapse(from.getShape(), to.getShape())
            : getReassociationIndicesForCollapse(to.getShape(),
                                                 from.getShape());
    if (!groups || from.getRank() == to.getRank())
      return failure();
    if (isCollapse)
      rewriter.replaceOpWithNewOp<tensor::CollapseShapeOp>(
          op, to, expand.getSrc(), *groups);
    else
      rewriter.replaceOpWithNewOp<tensor::ExpandShapeOp>(
          op, to, expand.getSrc(), *groups);
    return success();
  }
};

/// Drops dimensions of extent 1 from outputs whose maps have the constant 0
/// there, as reductions have that keep the reduced dimension.
struct DropUnitDimsOfOutput : public OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.hasPureTensorSemantics() || op.getNumDpsInits() != 1)
      return failure();
    SmallVector<AffineMap> maps = op.getIndexingMapsArray();
    std::optional<Value> init =
        dropUnitDims(rewriter, op.getLoc(), op.getOutputs()[0], maps.back());
    if (!init)
      return failure();
    SmallVector<OpFoldResult> sizes =
        tensor::getMixedSizes(rewriter, op.getLoc(), op.getOutputs()[0]);
    auto collapse = init->getDefiningOp<tensor::CollapseShapeOp>();
    auto reduced = linalg::GenericOp::create(
        rewriter, op.getLoc(), init->getType(), op.getInputs(), *init, maps,
        op.getIteratorTypesArray());
    rewriter.inlineRegionBefore(op.getRegion(), reduced.getRegion(),
                                reduced.getRegion().begin());
    rewriter.replaceOpWithNewOp<tensor::ExpandShapeOp>(
        op, op.getResult(0).getType(), reduced.getResult(0),
        collapse.getReassociationIndices(), sizes);
    return success();
  }
};

/// Returns true if a group joins the dimension of extent 1 to others, or,
/// without groups, to a scalar. Where all of the group have extent 1, the first
/// one is not joined: it is the one that stays.
bool joinsUnit(ArrayRef<ReassociationIndices> groups, ArrayRef<int64_t> shape,
               int64_t dim) {
  const ReassociationIndices *group =
      llvm::find_if(groups, [&](const ReassociationIndices &candidate) {
        return llvm::is_contained(candidate, dim);
      });
  if (group == groups.end())
    return true;
  bool areUnits =
      llvm::all_of(*group, [&](int64_t part) { return isUnit(shape[part]); });
  return areUnits ? dim != group->front() : group->size() > 1;
}

/// Returns true if all inputs that have the loop of extent 1 are expanded to
/// have it.
bool isExpandedUnit(linalg::LinalgOp op, AffineExpr loop) {
  bool isExpanded = false;
  for (OpOperand *input : op.getDpsInputOperands()) {
    std::optional<unsigned> dim =
        op.getMatchingIndexingMap(input).getResultPosition(loop);
    if (!dim)
      continue;
    auto expand = input->get().getDefiningOp<tensor::ExpandShapeOp>();
    if (!expand || !joinsUnit(expand.getReassociationIndices(),
                              expand.getResultType().getShape(), *dim))
      return false;
    isExpanded = true;
  }
  return isExpanded;
}

/// Returns true if a reshape of the operator's result drops the loop of extent
/// 1, and no other operator computes an input that has it: the loop would only
/// move there.
bool isCollapsedUnit(linalg::LinalgOp op, AffineExpr loop) {
  std::optional<unsigned> dim =
      op.getMatchingIndexingMap(op.getDpsInitOperand(0))
          .getResultPosition(loop);
  if (!dim || !op->hasOneUse())
    return false;
  auto collapse = dyn_cast<tensor::CollapseShapeOp>(*op->user_begin());
  if (!collapse || !joinsUnit(collapse.getReassociationIndices(),
                              collapse.getSrcType().getShape(), *dim))
    return false;
  return matchProjectedCopy(op) ||
         llvm::none_of(op.getDpsInputOperands(), [&](OpOperand *input) {
           return input->get().getDefiningOp<linalg::LinalgOp>() &&
                  op.getMatchingIndexingMap(input).getResultPosition(loop);
         });
}

/// Drops loops of extent 1 that an elementwise operator has only since its
/// inputs are expanded, such as the reduced dimension of a maximum that is
/// kept, or since its moved result is collapsed, such as a single head of keys
/// that is repeated. The reshapes before and after the operator then meet.
struct DropReshapedUnitLoops
    : public OpInterfaceRewritePattern<linalg::LinalgOp> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;

  LogicalResult matchAndRewrite(linalg::LinalgOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.hasPureTensorSemantics() || op->getNumResults() != 1 ||
        op.getNumParallelLoops() != op.getNumLoops())
      return failure();
    SmallVector<unsigned> units;
    for (auto [index, extent] : llvm::enumerate(op.getStaticLoopRanges())) {
      AffineExpr loop = getAffineDimExpr(index, op.getContext());
      if (isUnit(extent) &&
          (isExpandedUnit(op, loop) || isCollapsedUnit(op, loop)))
        units.push_back(index);
    }
    if (units.empty())
      return failure();
    return dropUnitLoops(rewriter, op, units);
  }
};

struct UKernelExpandViewsPass
    : public ftuner::impl::UKernelExpandViewsPassBase<UKernelExpandViewsPass> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (function.isExternal() || !hasReshapedProduct(function))
      return;
    RewritePatternSet set(&getContext());
    linalg::populateFoldReshapeOpsByExpansionPatterns(set, shouldExpand);
    tensor::populateBubbleUpExpandShapePatterns(set);
    linalg::populateEraseUnusedOperandsAndResultsPatterns(set);
    populateDropUnitDimsPatterns(set);
    populateSwappedPartsPatterns(set);
    set.add<FoldUnitReshapes, DropUnitDimsOfOutput, DropReshapedUnitLoops>(
        &getContext());
    populateCleanupPatterns(set);
    FrozenRewritePatternSet patterns(std::move(set));
    IRRewriter rewriter(&getContext());
    for (int round = 0; round < kMaxRounds; ++round) {
      OperationFingerPrint before(function);
      // A round that stops early leaves a program that computes the same.
      (void)applyPatternsGreedily(function, patterns);
      resolveSizes(function);
      DominanceInfo dominance(function);
      eliminateCommonSubExpressions(rewriter, dominance, function);
      if (OperationFingerPrint(function) == before)
        return;
    }
  }

private:
  /// Returns true if the function has a reshape, and a sum of products. Where
  /// an importer broadcasts one factor, that is not a contraction yet.
  static bool hasReshapedProduct(func::FuncOp function) {
    bool hasReshape = false, hasProduct = false;
    function.walk([&](Operation *op) {
      hasReshape |= isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(op);
      auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
      hasProduct |= linalgOp && isSumOfProducts(linalgOp);
    });
    return hasReshape && hasProduct;
  }
};
} // namespace
