//===- SimtEmitter.cpp - The SIMT codegen path ------------------*- C++ -*-===//
#include "SimtEmitter.h"
#include "SimtAddresses.h"

#include "FTuner/Transforms/PlanAttributes.h"

using namespace mlir;
using namespace ftuner;

SimtTileEmitter::SimtTileEmitter(ImplicitLocOpBuilder &b,
                                 const TileEmission &tile,
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

  KernelResources tileResources(ukernel::WorkloadOp workload,
                                ukernel::UKernelAttr ukernel,
                                Attribute path) const override {
    SimtLayout layout =
        layoutOf(workload, ukernel, stagesAndVectorWidth(path).first);
    KernelResources resources;
    resources.threads = layout.threads();
    resources.sharedMemoryBytes = layout.sharedMemoryBytes();
    return resources;
  }

  LogicalResult emitTile(ImplicitLocOpBuilder &builder,
                         const TileEmission &tile) const override {
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
