//===- IreeReport.h - What IREE dispatches to FTuner ------------*- C++ -*-===//
#ifndef FTUNER_TARGET_IREEREPORT_H
#define FTUNER_TARGET_IREEREPORT_H

#include "FTuner/Target/Iree.h"

#include "llvm/Support/raw_ostream.h"

namespace ftuner {

/// Writes as JSON what the dispatches of a module carry, and what is left to
/// IREE (docs/iree.md, "The report"): FLOPs as formulas and at the least, a
/// middle and the greatest of every function's sizes.
void writeIreeReport(const IreeKernels &kernels, llvm::raw_ostream &os);

} // namespace ftuner

#endif // FTUNER_TARGET_IREEREPORT_H
