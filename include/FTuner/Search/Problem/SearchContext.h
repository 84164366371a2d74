//===- SearchContext.h - Context of a search --------------------*- C++ -*-===//
#ifndef FTUNER_SEARCH_PROBLEM_SEARCHCONTEXT_H
#define FTUNER_SEARCH_PROBLEM_SEARCHCONTEXT_H

#include "FTuner/Measure/MeasurementLog.h"
#include "FTuner/Measure/Measurer.h"
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace ftuner {

/// The resources of one search beside its problem: measurer, budget, seed, log.
struct SearchContext {
  /// The measurer; null if nothing can be measured. It outlives the search and
  /// serves only one search at a time.
  Measurer *measurer = nullptr;
  /// The maximum number of kernels to be measured in the whole search. Ranked
  /// strategies count kernels that the log knows, too.
  int64_t budget = 0;
  /// The seed of random choices.
  uint64_t seed = 0;
  /// The path of a file of measurements (MeasurementLog.h), which the search
  /// reads and appends to; empty for no log.
  std::string log = {};
  /// Called with the number of measured shapes and the number of all shapes;
  /// may be empty.
  std::function<void(int64_t done, int64_t total)> progress = {};

  /// Returns the measurer with budget and log: programs that the log knows cost
  /// nothing, and answers beyond the budget are errors. Returns an error if
  /// there is no measurer of times, or if the log cannot be read. Measurer and
  /// context outlive the object. A search opens it once, since each object has
  /// the whole budget.
  llvm::Expected<std::unique_ptr<LoggingMeasurer>>
  openMeasurer(const DeviceSpec &device) const;
};

} // namespace ftuner

#endif // FTUNER_SEARCH_PROBLEM_SEARCHCONTEXT_H
