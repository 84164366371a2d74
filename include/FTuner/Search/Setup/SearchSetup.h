//===- SearchSetup.h - From values of options to a search -------*- C++ -*-===//
//
// Turns values of options, wherever they come from, into the input of the
// search.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_SEARCH_SETUP_SEARCHSETUP_H
#define FTUNER_SEARCH_SETUP_SEARCHSETUP_H

#include "FTuner/CostModel/Calibration.h"
#include "FTuner/Search/Problem/SearchStrategy.h"
#include "FTuner/Search/Setup/SearchOptionList.h"
#include <optional>

namespace ftuner {

/// A search without its workload and device.
struct SearchSetup {
  const SearchStrategy *strategy = nullptr;
  const CostModel *costModel = nullptr;
  /// Codegen paths whose families compete; problems refer to this list.
  ChosenPaths paths = {defaultCodegenModels()};
  /// Options of the search; the cost model's options lack the calibration.
  SearchOptions options;
  /// The given calibration; without it, each device has its own or the global
  /// one.
  std::optional<Calibration> calibration;
  /// A line for each option that is given and has no effect, since neither the
  /// strategy nor the cost model reads it. Such options are not errors: a
  /// script that compares strategies may pass the same options to all.
  std::vector<std::string> unread;

  SearchProblem problem(const Workload &workload, const DeviceSpec &device,
                        std::vector<KernelFamily> rejected = {}) const {
    SearchProblem problem{workload,   device,  paths.models,
                          *costModel, options, std::move(rejected)};
    problem.options.cost = costOptions(device);
    return problem;
  }
  CostModelOptions costOptions(const DeviceSpec &device) const {
    return {calibrationFor(device), options.cost.own, options.cost.loaded};
  }
  /// Returns the given calibration or else the device's own; a predictor that
  /// corrects `latency` uses the constants of its training.
  Calibration calibrationFor(const DeviceSpec &device) const;
};

/// Reads values of the options in `searchOptionList`; an option without a value
/// has its default. An error names the option, its bounds, and the value.
llvm::Expected<SearchSetup> makeSearchSetup(const OptionValues &given);

} // namespace ftuner

#endif // FTUNER_SEARCH_SETUP_SEARCHSETUP_H
