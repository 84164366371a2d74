//===- ContractionTile.cpp - The tile of a contraction --------------------===//
#include "FTuner/Codegen/IR/CodegenPath.h"

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
      llvm_unreachable("a contraction has an lhs and an rhs");
    }
}
