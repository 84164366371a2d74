//===- RollerTuning.h - Numbers that tune Roller ----------------*- C++ -*-===//
#ifndef FTUNER_LIB_BASELINES_ROLLER_ROLLERTUNING_H
#define FTUNER_LIB_BASELINES_ROLLER_ROLLERTUNING_H

#include <cstddef>
#include <cstdint>

/// The numbers of RollerTuning.def.
namespace ftuner::tuning {
#define FTUNER_SEARCH_TUNING(TYPE, NAME, VALUE, TEXT, SOURCE)                  \
  inline constexpr TYPE NAME = VALUE;
#include "RollerTuning.def"
} // namespace ftuner::tuning

#endif // FTUNER_LIB_BASELINES_ROLLER_ROLLERTUNING_H
