//===- Sia.h - Options of SIA -----------------------------------*- C++ -*-===//
#ifndef FTUNER_COSTMODEL_SIA_H
#define FTUNER_COSTMODEL_SIA_H

#include "FTuner/Support/Options.h"

namespace ftuner {

/// Coefficients of SIA (paper, equation 1).
struct SiaOptions {
  double c0 = 1, c1 = 1, c2 = 1;
};

/// Table with the options `c0`, `c1` and `c2`, for all cost models and
/// strategies that weigh metrics.
const OptionTable<SiaOptions> &siaOptions();

} // namespace ftuner

#endif // FTUNER_COSTMODEL_SIA_H
