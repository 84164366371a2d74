//===- Passes.h - Passes that run pipelines ---------------------*- C++ -*-===//
#ifndef FTUNER_PIPELINES_PASSES_H
#define FTUNER_PIPELINES_PASSES_H

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

namespace ftuner {
#define GEN_PASS_DECL
#include "FTuner/Pipelines/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "FTuner/Pipelines/Passes.h.inc"
} // namespace ftuner

#endif // FTUNER_PIPELINES_PASSES_H
