//===- MeasuringStrategy.h - A strategy that measures -----------*- C++ -*-===//
#ifndef FTUNER_TEST_LIB_SEARCH_MEASURINGSTRATEGY_H
#define FTUNER_TEST_LIB_SEARCH_MEASURINGSTRATEGY_H

#include "FTuner/Search/Problem/SearchStrategy.h"

namespace ftuner {

/// The plan of `ftuner`, but for few sampled shapes, which the seed chooses:
/// their best programs are measured, and the fastest one serves the shape. What
/// could not be measured stays as it is predicted. For tests.
const SearchStrategy &measuringStrategy();

} // namespace ftuner

#endif // FTUNER_TEST_LIB_SEARCH_MEASURINGSTRATEGY_H
