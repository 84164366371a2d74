//===- GensorTuning.h - Numbers that tune Gensor ----------------*- C++ -*-===//
#ifndef FTUNER_LIB_BASELINES_GENSOR_GENSORTUNING_H
#define FTUNER_LIB_BASELINES_GENSOR_GENSORTUNING_H

#include <cstddef>
#include <cstdint>

/// The numbers of GensorTuning.def.
namespace ftuner::tuning {
#define FTUNER_SEARCH_TUNING(TYPE, NAME, VALUE, TEXT, SOURCE)                  \
  inline constexpr TYPE NAME = VALUE;
#include "GensorTuning.def"
} // namespace ftuner::tuning

#endif // FTUNER_LIB_BASELINES_GENSOR_GENSORTUNING_H
