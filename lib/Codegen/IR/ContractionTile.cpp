//===- ContractionTile.cpp - The tile of a contraction --------------------===//
#include "FTuner/Codegen/IR/CodegenPath.h"
#include "FTuner/Dialect/UKernel/Bridge/OperatorWorkload.h"
#include "FTuner/Dialect/UKernel/Utils/ElementBytes.h"
#include "FTuner/Schedule/Alignment.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace ftuner;

ContractionTile::ContractionTile(const TileEmission &tile)
    : TileEmission(tile),
      workload(cast<ukernel::WorkloadOp>(op.getOperation())),
      axes(family.contractionAxes()) {
  for (auto [number, operand] : llvm::enumerate(operands))
    switch (op.getOperandRole(number)) {
    case OperandRole::Lhs:
      lhs = operand;
      break;
    case OperandRole::Rhs:
      rhs = operand;
      break;
    case OperandRole::Init:
      init = operand;
      break;
    case OperandRole::Extra:
      extras.push_back(operand);
      break;
    case OperandRole::Output:
      output = operand;
      break;
    case OperandRole::Input:
      inputs.push_back(operand);
      break;
    }
}

static bool isContiguousAlong(unsigned axis, AffineMap map) {
  return cast<AffineDimExpr>(map.getResults().back()).getPosition() == axis;
}

bool ContractionTile::isLhsReduceContiguous() const {
  return isContiguousAlong(axes.k, ukernel::WorkloadOp(workload).getLhsMap());
}

bool ContractionTile::isRhsReduceContiguous() const {
  return isContiguousAlong(axes.k, ukernel::WorkloadOp(workload).getRhsMap());
}

bool ContractionTile::hasVectorEpilogue() const {
  if (!ftuner::hasVectorEpilogue(op))
    return false;
  // The alignment of factors says what that of the program's output is, not of
  // the sums of slices, which may be wider.
  int64_t columns = ukernel::OperatorOpInterface(op).getStaticExtents()[axes.n];
  int64_t sumBytes = elementBytesOf(output.getType());
  return family.reduceSplit == 1 || ShapedType::isDynamic(columns) ||
         columns * sumBytes % widestAccessBytes == 0;
}

Value ContractionTile::scalarStart(ImplicitLocOpBuilder &b,
                                   Type accumulatorType) const {
  if (!init || isa<MemRefType>(init.getType()))
    return {};
  if (init.getType() == accumulatorType)
    return init;
  return arith::ExtFOp::create(b, accumulatorType, init);
}
