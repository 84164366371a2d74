//===- DietCodeTuning.h - Numbers that tune DietCode ------------*- C++ -*-===//
#ifndef FTUNER_LIB_BASELINES_DIETCODE_DIETCODETUNING_H
#define FTUNER_LIB_BASELINES_DIETCODE_DIETCODETUNING_H

#include <cstddef>
#include <cstdint>

/// The numbers of DietCodeTuning.def.
namespace ftuner::tuning {
#define FTUNER_SEARCH_TUNING(TYPE, NAME, VALUE, TEXT, SOURCE)                  \
  inline constexpr TYPE NAME = VALUE;
#include "DietCodeTuning.def"
} // namespace ftuner::tuning

#endif // FTUNER_LIB_BASELINES_DIETCODE_DIETCODETUNING_H
