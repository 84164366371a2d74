//===- ContractionSchedule.cpp - Schedules of contractions in IR ----------===//
#include "FTuner/Codegen/IR/ContractionSchedule.h"

using namespace mlir;
using namespace ftuner;

LogicalResult
ftuner::verifyContractionSchedule(function_ref<InFlightDiagnostic()> emitError,
                                  StringRef worker, ArrayRef<int64_t> workers,
                                  int64_t stages) {
  if (workers.size() != 2)
    return emitError() << "expected " << worker << "s along m and n, but got "
                       << workers.size()
                       << (workers.size() == 1 ? " number" : " numbers");
  for (int64_t along : workers)
    if (along < 1)
      return emitError() << "expected at least 1 " << worker
                         << " along m and n, but got " << along;
  if (stages < 1)
    return emitError() << "expected at least 1 stage, but got " << stages;
  return success();
}

LogicalResult
ftuner::verifyContractionTile(function_ref<InFlightDiagnostic()> emitError,
                              ArrayRef<int64_t> tile) {
  if (tile.size() < ukernel::WorkloadOp::kNumProductAxes)
    return emitError() << "expected tiles along m, n and k, but got "
                       << tile.size()
                       << (tile.size() == 1 ? " size" : " sizes");
  return success();
}
