//===- Passes.h - Transformations -------------------------------*- C++ -*-===//
#ifndef FTUNER_TRANSFORMS_PASSES_H
#define FTUNER_TRANSFORMS_PASSES_H

#include "FTuner/Device/DeviceSpec.h"
#include "FTuner/Support/Options.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include <functional>
#include <memory>

namespace ftuner {
#define GEN_PASS_DECL
#include "FTuner/Transforms/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "FTuner/Transforms/Passes.h.inc"

class Measurer;
struct SearchSetup;

/// Makes what measures for the searches of a module, whose workloads are on
/// tensors. The device outlives it.
using MeasurerSource = std::function<llvm::Expected<std::unique_ptr<Measurer>>(
    mlir::ModuleOp module, const SearchSetup &setup, const DeviceSpec &device)>;

/// `ukernel-plan-workloads` with values of the options in `searchOptionList`;
/// other names are left out. Without a source there are only measurers that
/// need no kernels (MeasurerFactory.h).
std::unique_ptr<mlir::Pass>
createUKernelPlanWorkloadsPass(const OptionValues &options,
                               MeasurerSource measurers = {});
} // namespace ftuner

#endif // FTUNER_TRANSFORMS_PASSES_H
