//===- SearchMeasurer.h - Who measures for a module's searches --*- C++ -*-===//
#ifndef FTUNER_PIPELINES_SEARCHMEASURER_H
#define FTUNER_PIPELINES_SEARCHMEASURER_H

#include "FTuner/Measure/Measurer.h"
#include "FTuner/Search/Setup/SearchSetup.h"
#include "mlir/IR/BuiltinOps.h"

namespace ftuner {

/// The measurer that a setup names: a `MeasurerSource` (Transforms/Passes.h).
/// "gpu" is the first GPU, on which the kernels of the module's workloads,
/// which are on tensors, run one at a time. The device outlives the measurer.
llvm::Expected<std::unique_ptr<Measurer>>
makeSearchMeasurer(mlir::ModuleOp module, const SearchSetup &setup,
                   const DeviceSpec &device);

} // namespace ftuner

#endif // FTUNER_PIPELINES_SEARCHMEASURER_H
