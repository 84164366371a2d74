//===- SimtEmitter.cpp - The SIMT codegen path ------------------*- C++ -*-===//
#include "SimtEmitter.h"
#include "SimtAddresses.h"

#include "FTuner/Transforms/PlanAttributes.h"

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

SimtTileEmitter::SimtTileEmitter(ImplicitLocOpBuilder &b,
                                 const ContractionTile &tile,
                                 const SimtLayout &layout, int64_t vectorWidth)
    : b(b), math(b), tile(tile), layout(layout), vectorWidth(vectorWidth),
      rowChunks(layout.rowChunks()), columnChunks(layout.columnChunks()) {}

LogicalResult SimtTileEmitter::emit() {
  ThreadCoordinates<IndexMath> thread =
      threadCoordinates(math, layout, tile.threadId);
  tm = thread.m;
  tn = thread.n;
  emitEpilogue(emitMainLoop());
  return success();
}

//===----------------------------------------------------------------------===//
// The path
//===----------------------------------------------------------------------===//

namespace {

/// Whether an operand is contiguous along the reduce axis.
bool isReduceContiguous(AffineMap map) {
  return cast<AffineDimExpr>(map.getResults().back()).getPosition() ==
         Workload::kK;
}

SimtLayout layoutOf(ukernel::WorkloadOp workload, ukernel::UKernelAttr attr,
                    int64_t stages) {
  return simtLayout(isReduceContiguous(workload.getLhsMap()),
                    isReduceContiguous(workload.getRhsMap()), toUKernel(attr),
                    stages);
}

class SimtPath final : public CodegenPath {
public:
  const CodegenModel &model() const override {
    return *findCodegenModel("simt");
  }

  std::pair<int64_t, int64_t>
  stagesAndVectorWidth(Attribute path) const override {
    auto simt = cast<ukernel::SimtAttr>(path);
    return {simt.getStages(), simt.getVector()};
  }

  KernelResources tileResources(ukernel::OperatorOpInterface op,
                                ukernel::UKernelAttr ukernel,
                                Attribute path) const override {
    SimtLayout layout =
        layoutOf(cast<ukernel::WorkloadOp>(op.getOperation()), ukernel,
                 stagesAndVectorWidth(path).first);
    KernelResources resources;
    resources.threads = layout.threads();
    resources.sharedMemoryBytes = layout.sharedMemoryBytes();
    return resources;
  }

  LogicalResult emitTile(ImplicitLocOpBuilder &builder,
                         const TileEmission &emission) const override {
    ContractionTile tile(emission);
    auto [stages, vectorWidth] = stagesAndVectorWidth(tile.path);
    SimtLayout layout = layoutOf(tile.workload, tile.ukernel, stages);
    return SimtTileEmitter(builder, tile, layout, vectorWidth).emit();
  }
};

} // namespace

const CodegenPath *ftuner::findCodegenPath(Attribute path) {
  static const SimtPath simt;
  if (isa<ukernel::SimtAttr>(path))
    return &simt;
  return nullptr;
}
