//===- Passes.h - Transformations -------------------------------*- C++ -*-===//
#ifndef FTUNER_TRANSFORMS_PASSES_H
#define FTUNER_TRANSFORMS_PASSES_H

#include "FTuner/Support/Options.h"
#include "mlir/Pass/Pass.h"

namespace ftuner {
#define GEN_PASS_DECL
#include "FTuner/Transforms/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "FTuner/Transforms/Passes.h.inc"

/// `ukernel-plan-workloads` with values of the options in `searchOptionList`;
/// other names are left out.
std::unique_ptr<mlir::Pass>
createUKernelPlanWorkloadsPass(const OptionValues &options);
} // namespace ftuner

#endif // FTUNER_TRANSFORMS_PASSES_H
