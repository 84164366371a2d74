//===- LoopSplit.cpp - Loops of a linalg op over threads ------------------===//
#include "FTuner/Analysis/LoopSplit.h"

#include "FTuner/Dialect/UKernel/Utils/PromotedFloats.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace ftuner;

bool ftuner::promotesToF32(linalg::LinalgOp op) {
  bool hasNarrow = false;
  for (Operation &inner : op.getBlock()->without_terminator()) {
    if (isa<linalg::IndexOp, cf::AssertOp>(inner))
      continue;
    if (inner.getNumRegions() != 0 || isa<arith::BitcastOp>(inner) ||
        !isa<arith::ArithDialect, math::MathDialect>(inner.getDialect()))
      return false;
  }
  for (Type type : op.getBlock()->getArgumentTypes())
    hasNarrow |= isNarrowFloat(type);
  return hasNarrow;
}

bool ftuner::staysInRegister(linalg::LinalgOp op, const LoopSplit &split,
                             OpOperand &output) {
  AffineMap map = op.getMatchingIndexingMap(&output);
  return llvm::none_of(split.sequential, [&](unsigned loop) {
    return map.isFunctionOfDim(loop);
  });
}

std::optional<SmallVector<Operation *>>
ftuner::laneCombiners(linalg::LinalgOp op, const LoopSplit &split) {
  SmallVector<Operation *> all;
  ArrayRef<BlockArgument> sums = op.getRegionOutputArgs();
  for (OpOperand &output : op.getDpsInitsMutable()) {
    SmallVector<Operation *> combiners;
    BlockArgument sum = op.getMatchingBlockArgument(&output);
    if (!staysInRegister(op, split, output) ||
        !matchReduction(sums, all.size(), combiners) || combiners.size() != 1)
      return std::nullopt;
    bool isKnown = linalg::getCombinerOpKind(combiners.front()) &&
                   arith::getNeutralElement(combiners.front());
    bool isPromoted = promotesToF32(op) && isNarrowFloat(sum.getType());
    if (!isKnown ||
        (!isPromoted && sum.getType().getIntOrFloatBitWidth() != 32))
      return std::nullopt;
    all.push_back(combiners.front());
  }
  return all;
}

/// The sequential loop along which an operand is contiguous, if there is one.
static std::optional<unsigned> contiguousLoop(linalg::LinalgOp op,
                                              const LoopSplit &split) {
  for (OpOperand *input : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(input);
    if (!isa<ShapedType>(input->get().getType()) || map.getNumResults() == 0 ||
        !op.payloadUsesValueFromOperand(input))
      continue;
    auto last = dyn_cast<AffineDimExpr>(map.getResults().back());
    if (last && llvm::is_contained(split.sequential, last.getPosition()))
      return last.getPosition();
  }
  return std::nullopt;
}

/// Minimum number of iterations for which a warp computes a point.
static constexpr int64_t kMinLaneIterations = 8;

static void splitAcrossLanes(linalg::LinalgOp op, LoopSplit &split) {
  std::optional<unsigned> loop = contiguousLoop(op, split);
  if (!loop || !laneCombiners(op, split))
    return;
  int64_t extent = op.getStaticLoopRanges()[*loop];
  if (!ShapedType::isDynamic(extent) && extent < kMinLaneIterations)
    return;
  llvm::erase(split.sequential, *loop);
  split.sequential.push_back(*loop);
  split.isAcrossLanes = true;
}

LoopSplit ftuner::splitLoops(linalg::LinalgOp op) {
  SmallVector<AffineMap> outputs;
  for (OpOperand &operand : op.getDpsInitsMutable())
    outputs.push_back(op.getMatchingIndexingMap(&operand));
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  llvm::SmallBitVector isParallel(iterators.size());
  for (auto [loop, iterator] : llvm::enumerate(iterators))
    if (iterator == utils::IteratorType::parallel)
      isParallel[loop] = llvm::all_of(outputs, [&, loop = loop](AffineMap map) {
        return llvm::is_contained(map.getResults(),
                                  getAffineDimExpr(loop, op->getContext()));
      });
  LoopSplit split;
  // In the order of the first output, so that neighbouring threads write
  // neighbouring elements.
  if (!outputs.empty())
    for (AffineExpr expr : outputs.front().getResults())
      if (auto dim = dyn_cast<AffineDimExpr>(expr))
        if (isParallel[dim.getPosition()] &&
            !llvm::is_contained(split.parallel, dim.getPosition()))
          split.parallel.push_back(dim.getPosition());
  for (unsigned loop = 0; loop < iterators.size(); ++loop)
    if (!isParallel[loop])
      split.sequential.push_back(loop);
  splitAcrossLanes(op, split);
  return split;
}
