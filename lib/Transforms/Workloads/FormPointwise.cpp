//===- FormPointwise.cpp - Elementwise operators to ukernel.pointwise -----===//
#include "FTuner/Transforms/Passes.h"
#include "Linalg/LinalgPatterns.h"
#include "PointwiseFormation.h"

#include "FTuner/Dialect/UKernel/Bridge/PlanAttributes.h"
#include "FTuner/Schedule/CodegenModel.h"

#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace ftuner {
#define GEN_PASS_DEF_UKERNELFORMPOINTWISEPASS
#include "FTuner/Transforms/Passes.h.inc"
} // namespace ftuner

using namespace mlir;
using namespace ftuner;

//===----------------------------------------------------------------------===//
// Fusion
//===----------------------------------------------------------------------===//

/// Returns true if an operator can be part of an elementwise consumer that
/// reads each of its elements several times: its body has no expensive
/// function.
static bool isCheap(linalg::LinalgOp op) {
  return llvm::none_of(*op.getBlock(), [](Operation &inner) {
    return isa<math::MathDialect>(inner.getDialect()) &&
           !isa<math::AbsFOp, math::AbsIOp, math::CeilOp, math::CopySignOp,
                math::FloorOp, math::IsFiniteOp, math::IsInfOp, math::IsNaNOp,
                math::RoundEvenOp, math::RoundOp, math::TruncOp>(inner);
  });
}

/// Returns the elementwise operator that makes a value for one user only; null
/// if something else makes it.
static linalg::LinalgOp elementwiseProducer(Value value) {
  auto op = value.getDefiningOp<linalg::LinalgOp>();
  bool isElementwise = op && op->hasOneUse() && !isa<linalg::FillOp>(*op) &&
                       op.hasPureTensorSemantics() &&
                       op.getNumParallelLoops() == op.getNumLoops();
  return isElementwise ? op : linalg::LinalgOp();
}

/// Maximum number of operands of operators that are fused: the registers of a
/// thread hold vectors of all of them.
static constexpr unsigned kMaxOperands = 16;

/// Returns true if an elementwise producer becomes part of an elementwise
/// consumer.
static bool shouldFuse(OpOperand *operand) {
  auto consumer = dyn_cast<linalg::LinalgOp>(operand->getOwner());
  linalg::LinalgOp producer = elementwiseProducer(operand->get());
  if (!consumer || !producer ||
      consumer.getNumParallelLoops() != consumer.getNumLoops() ||
      consumer->getNumOperands() + producer->getNumOperands() > kMaxOperands)
    return false;
  return isCheap(producer) ||
         consumer.getMatchingIndexingMap(operand).isPermutation();
}

/// Returns true if a reshape only drops dimensions of size 1 from the result of
/// a cheap elementwise operator, for elementwise consumers that repeat it.
static bool shouldDropUnitDims(OpOperand *operand) {
  auto reshape = dyn_cast<tensor::CollapseShapeOp>(operand->getOwner());
  linalg::LinalgOp producer = elementwiseProducer(operand->get());
  if (!reshape || !producer || producer.hasIndexSemantics() ||
      !isCheap(producer) ||
      !llvm::all_of(reshape->getUsers(), llvm::IsaPred<linalg::LinalgOp>))
    return false;
  ArrayRef<int64_t> shape = reshape.getSrcType().getShape();
  return llvm::all_of(reshape.getReassociationIndices(),
                      [&](const auto &group) {
                        return llvm::count_if(group, [&](int64_t dim) {
                                 return shape[dim] != 1;
                               }) <= 1;
                      });
}

LogicalResult ftuner::fuseElementwise(FunctionOpInterface function) {
  RewritePatternSet patterns(function.getContext());
  linalg::populateElementwiseOpsFusionPatterns(patterns, shouldFuse);
  linalg::populateFoldReshapeOpsByCollapsingPatterns(patterns,
                                                     shouldDropUnitDims);
  populateDropUnitDimsPatterns(patterns);
  populateCleanupPatterns(patterns);
  LogicalResult result = applyPatternsGreedily(function, std::move(patterns));
  if (failed(result))
    function.emitError("elementwise operators did not reach a fixed form");
  return result;
}

bool ftuner::mayExceedPoints(linalg::LinalgOp op, ExtentAnalysis &extents) {
  Value output = op.getDpsInits().front();
  int64_t rank = cast<RankedTensorType>(output.getType()).getRank();
  SizeRange range = toSizeRange(extents.rangeOf(
      extents.groupOf(output, llvm::to_vector(llvm::seq(rank)))));
  return range.max && *range.max > maxExtent;
}

FailureOr<PathSupport> ftuner::supportOfPaths(ModuleOp module,
                                              StringRef paths) {
  FailureOr<PathSupport> support = PathSupport::forModule(module);
  if (failed(support) || paths.empty())
    return support;
  llvm::Expected<SmallVector<const CodegenModel *>> chosen =
      parseCodegenModels(paths);
  if (!chosen)
    return module.emitError("option --paths: ")
           << llvm::toString(chosen.takeError());
  return support->restrictedTo(*chosen);
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

namespace {
struct UKernelFormPointwisePass
    : public ftuner::impl::UKernelFormPointwisePassBase<
          UKernelFormPointwisePass> {
  using UKernelFormPointwisePassBase::UKernelFormPointwisePassBase;

  void runOnOperation() override {
    FailureOr<PathSupport> support = supportOfPaths(getOperation(), paths);
    if (failed(support))
      return signalPassFailure();
    IRRewriter rewriter(&getContext());
    WalkResult result = getOperation().walk([&](FunctionOpInterface function) {
      if (function.isExternal())
        return WalkResult::advance();
      if (failed(fuseElementwise(function)))
        return WalkResult::interrupt();
      copyConcatenatedParts(function);
      SmallVector<linalg::LinalgOp> ops;
      ExtentAnalysis extents(function);
      function->walk([&](linalg::LinalgOp op) {
        if (isPointwiseWorkload(op, *support) && !mayExceedPoints(op, extents))
          ops.push_back(op);
      });
      for (linalg::LinalgOp op : ops) {
        formPointwise(op, extents, rewriter);
        ++numFormed;
      }
      remarkOnCopies(function);
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
