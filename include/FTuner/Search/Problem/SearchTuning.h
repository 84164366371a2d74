//===- SearchTuning.h - Numbers that tune searches --------------*- C++ -*-===//
#ifndef FTUNER_SEARCH_PROBLEM_SEARCHTUNING_H
#define FTUNER_SEARCH_PROBLEM_SEARCHTUNING_H

#include <cstddef>
#include <cstdint>

/// The numbers of SearchTuning.def.
namespace ftuner::tuning {
#define FTUNER_SEARCH_TUNING(TYPE, NAME, VALUE, TEXT, SOURCE)                  \
  inline constexpr TYPE NAME = VALUE;
#include "FTuner/Search/Problem/SearchTuning.def"
} // namespace ftuner::tuning

#endif // FTUNER_SEARCH_PROBLEM_SEARCHTUNING_H
