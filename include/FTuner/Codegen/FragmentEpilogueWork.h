//===- FragmentEpilogueWork.h - What epilogues execute ----------*- C++ -*-===//
#ifndef FTUNER_CODEGEN_FRAGMENTEPILOGUEWORK_H
#define FTUNER_CODEGEN_FRAGMENTEPILOGUEWORK_H

#include "FTuner/Codegen/FragmentTile.h"

namespace ftuner {

/// Instructions of one warp that take its sums from fragments to the output of
/// a contraction, through a staging tile of shared memory. `accessBytes`: of
/// the factors' copies (TensorFactors.h).
double fragmentEpilogueInstructions(const Workload &workload,
                                    const FragmentTile &tile,
                                    int64_t accessBytes);

} // namespace ftuner

#endif // FTUNER_CODEGEN_FRAGMENTEPILOGUEWORK_H
