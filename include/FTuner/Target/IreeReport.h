//===- IreeReport.h - Report on dispatches of IREE --------------*- C++ -*-===//
#ifndef FTUNER_TARGET_IREEREPORT_H
#define FTUNER_TARGET_IREEREPORT_H

#include "FTuner/Target/Iree.h"

#include "llvm/Support/raw_ostream.h"

namespace ftuner {

/// Writes as JSON the FLOPs of a module's dispatches, and the FLOPs that are
/// left to IREE (docs/iree.md, "The report"): as formulas, and at the smallest,
/// a middle and the largest of every function's sizes.
void writeIreeReport(const IreeKernels &kernels, llvm::raw_ostream &os);

} // namespace ftuner

#endif // FTUNER_TARGET_IREEREPORT_H
