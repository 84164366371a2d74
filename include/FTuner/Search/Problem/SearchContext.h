//===- SearchContext.h - What a search has beside its problem ---*- C++ -*-===//
#ifndef FTUNER_SEARCH_PROBLEM_SEARCHCONTEXT_H
#define FTUNER_SEARCH_PROBLEM_SEARCHCONTEXT_H

#include "FTuner/Measure/MeasurementLog.h"
#include "FTuner/Measure/Measurer.h"
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace ftuner {

/// The means of one search. Strategies that need none of them ignore it.
struct SearchContext {
  /// What measures for the search; null where there is nothing to measure with.
  /// It outlives the search and serves no other one at the same time.
  Measurer *measurer = nullptr;
  /// Most kernels that the measurer may be asked for, over the whole search;
  /// ranked strategies count those that the log knows, too.
  int64_t budget = 0;
  /// Of random choices.
  uint64_t seed = 0;
  /// A file of measurements (MeasurementLog.h) that the search goes on from and
  /// adds to; empty for none.
  std::string log = {};
  /// Hears how many of how many shapes are measured; may be empty.
  std::function<void(int64_t done, int64_t total)> progress = {};

  /// The measurer with budget and log: what the log knows of the device costs
  /// nothing, and beyond the budget answers are errors. An error where there is
  /// no measurer of times, or if the log cannot be read. Measurer and
  /// context outlive it; a search makes one, since each has the whole budget.
  llvm::Expected<std::unique_ptr<LoggingMeasurer>>
  openMeasurer(const DeviceSpec &device) const;
};

} // namespace ftuner

#endif // FTUNER_SEARCH_PROBLEM_SEARCHCONTEXT_H
