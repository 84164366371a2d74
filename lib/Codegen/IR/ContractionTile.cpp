//===- ContractionTile.cpp - The tile of a contraction --------------------===//
#include "FTuner/Codegen/IR/CodegenPath.h"
#include "FTuner/Dialect/UKernel/Bridge/OperatorWorkload.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace ftuner;

ContractionTile::ContractionTile(const TileEmission &tile)
    : TileEmission(tile),
      workload(cast<ukernel::WorkloadOp>(op.getOperation())) {
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

static bool isReduceContiguous(AffineMap map) {
  return cast<AffineDimExpr>(map.getResults().back()).getPosition() ==
         Workload::kK;
}

bool ContractionTile::isLhsReduceContiguous() const {
  return isReduceContiguous(ukernel::WorkloadOp(workload).getLhsMap());
}

bool ContractionTile::isRhsReduceContiguous() const {
  return isReduceContiguous(ukernel::WorkloadOp(workload).getRhsMap());
}

bool ContractionTile::hasVectorEpilogue() const {
  return ftuner::hasVectorEpilogue(op);
}

Value ContractionTile::scalarStart(ImplicitLocOpBuilder &b,
                                   Type accumulatorType) const {
  if (!init || isa<MemRefType>(init.getType()))
    return {};
  if (init.getType() == accumulatorType)
    return init;
  return arith::ExtFOp::create(b, accumulatorType, init);
}
