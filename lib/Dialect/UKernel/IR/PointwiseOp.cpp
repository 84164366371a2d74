//===- PointwiseOp.cpp - Chains of elementwise operators ------------------===//
#include "FTuner/Dialect/UKernel/IR/Computations.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace ftuner;
using namespace ftuner::ukernel;

static unsigned numDimsOf(PointwiseOp op) {
  return cast<AffineMapAttr>(op.getIndexingMaps()[0]).getValue().getNumDims();
}

unsigned PointwiseOp::getNumLoops() {
  return std::max(numDimsOf(*this), 2u) - 1;
}

SmallVector<utils::IteratorType> PointwiseOp::getLoopIteratorTypes() {
  return {utils::IteratorType::parallel};
}

StringRef PointwiseOp::getAxisName(unsigned) { return "p"; }

SmallVector<FusedLoop> PointwiseOp::getFusedLoops() {
  SmallVector<FusedLoop> loops;
  for (unsigned loop = 0; loop + 1 < numDimsOf(*this); ++loop)
    loops.push_back({0, "d" + std::to_string(loop)});
  return loops;
}

OperandRole PointwiseOp::getOperandRole(unsigned number) {
  return number < getInputs().size() ? OperandRole::Input : OperandRole::Output;
}

/// pointwise_c1 and pointwise_c2.
static LogicalResult verifyLoops(PointwiseOp op) {
  unsigned numDims = numDimsOf(op);
  if (numDims != 1 && (numDims < 3 || numDims > PointwiseOp::kMaxLoops + 1))
    return op.emitOpError("expected maps of one axis, or of it and 2 to ")
           << PointwiseOp::kMaxLoops << " loops";
  if (op.getOutputs().empty())
    return op.emitOpError("expected an output");
  MLIRContext *context = op.getContext();
  for (OpOperand &output : op.getOutputsMutable()) {
    AffineMap map = op.getMatchingIndexingMap(&output);
    bool isFirst = &output == op.getOutputsMutable().begin();
    SmallVector<AffineExpr> loops;
    for (unsigned dim = numDims > 1; dim < numDims; ++dim)
      loops.push_back(getAffineDimExpr(dim, context));
    bool hasAll = map.getNumResults() == loops.size() &&
                  llvm::all_of(loops, [&](AffineExpr loop) {
                    return llvm::is_contained(map.getResults(), loop);
                  });
    if (!hasAll || (isFirst && map.getResults() != ArrayRef(loops)))
      return op.emitOpError("expected each output to have one dimension for "
                            "each loop, and the first output to have them in "
                            "the order of the loops, but got ")
             << AffineMapAttr::get(map);
  }
  return success();
}

LogicalResult PointwiseOp::verifyRegions() {
  if (failed(verifyLoops(*this)))
    return failure();
  auto elementType = [&](Value value) {
    return getElementTypeOrSelf(value.getType());
  };
  // pointwise_c3.
  if (failed(verifyScalarRegion(
          *this, getMap(), "map", llvm::map_to_vector(getInputs(), elementType),
          llvm::map_to_vector(getOutputs(), elementType))))
    return failure();
  return verifyComputations(*this);
}

LogicalResult PointwiseOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyPlanUse(*this, symbols);
}

void PointwiseOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  getOperatorEffects(*this, effects);
}

LogicalResult
PointwiseOp::reifyResultShapes(OpBuilder &builder,
                               ReifiedRankedShapedTypeDims &shapes) {
  return reifyOutputShapes(*this, builder, shapes);
}

/// Number of points up to which an operator without a declared maximum is
/// planned. DRAM bounds what is larger, whatever the kernel is.
static constexpr int64_t kPlannedPoints = 1 << 28;

void PointwiseOp::describe(Workload &workload) {
  // The end at which searches stop for open ranges suits rows and columns, not
  // their product.
  SizeRange &range = workload.axes.front().range;
  if (!range.max) {
    int64_t more = std::max<int64_t>(kPlannedPoints - range.min, 0);
    range.max = range.min + more / range.step * range.step;
  }
  Computation map;
  map.name = "map";
  map.axes = {0};
  for (unsigned number : llvm::seq<unsigned>((*this)->getNumOperands())) {
    if (isInput(number))
      map.reads.push_back(Read::operand(number));
    else
      map.writes.push_back(number);
  }
  map.operations = collectOperations(getMap().front());
  workload.computations.push_back(std::move(map));
}
