//===- SiaSum.h - The weighted sum of SIA -----------------------*- C++ -*-===//
#ifndef FTUNER_LIB_COSTMODEL_SIASUM_H
#define FTUNER_LIB_COSTMODEL_SIASUM_H

#include "FTuner/CostModel/CostModel.h"
#include "FTuner/CostModel/Metrics.h"

namespace ftuner {

/// c0 · CMR + c1 · Pad + c2 · Occ (paper, equation 1).
inline CostBreakdown siaSum(const Metrics &metrics,
                            const CostModelOptions &options) {
  CostBreakdown breakdown;
  breakdown.terms = {{"cmr", metrics.cmr, options.c0},
                     {"pad", metrics.pad, options.c1},
                     {"occ", metrics.occ, options.c2}};
  for (const CostTerm &term : breakdown.terms)
    breakdown.score += term.weight * term.value;
  return breakdown;
}

} // namespace ftuner

#endif // FTUNER_LIB_COSTMODEL_SIASUM_H
