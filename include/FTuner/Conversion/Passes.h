//===- Passes.h - Conversions -----------------------------------*- C++ -*-===//
#ifndef FTUNER_CONVERSION_PASSES_H
#define FTUNER_CONVERSION_PASSES_H

#include "mlir/Pass/Pass.h"

namespace mlir::gpu {
class GPUModuleOp;
} // namespace mlir::gpu

namespace ftuner {
#define GEN_PASS_DECL
#include "FTuner/Conversion/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "FTuner/Conversion/Passes.h.inc"
} // namespace ftuner

#endif // FTUNER_CONVERSION_PASSES_H
