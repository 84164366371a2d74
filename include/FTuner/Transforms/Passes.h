//===- Passes.h - Transformations -------------------------------*- C++ -*-===//
#ifndef FTUNER_TRANSFORMS_PASSES_H
#define FTUNER_TRANSFORMS_PASSES_H

#include "mlir/Pass/Pass.h"

namespace ftuner {
#define GEN_PASS_DECL
#include "FTuner/Transforms/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "FTuner/Transforms/Passes.h.inc"
} // namespace ftuner

#endif // FTUNER_TRANSFORMS_PASSES_H
