//===- SearchSetup.h - From values of options to a search -------*- C++ -*-===//
//
// The one place that turns values of options, wherever they come from, into
// what the core takes.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_SEARCH_SETUP_SEARCHSETUP_H
#define FTUNER_SEARCH_SETUP_SEARCHSETUP_H

#include "FTuner/CostModel/Calibration.h"
#include "FTuner/Search/Problem/SearchStrategy.h"
#include "FTuner/Search/Setup/SearchOptionList.h"
#include <optional>

namespace ftuner {

/// A search but for the workload and the device.
struct SearchSetup {
  const SearchStrategy *strategy = nullptr;
  const CostModel *costModel = nullptr;
  /// Codegen paths whose families compete. Problems refer to them.
  ChosenPaths paths = {defaultCodegenModels()};
  /// Those of the cost model but for the calibration.
  SearchOptions options;
  /// Where none is given, each device has its own or the global one.
  std::optional<Calibration> calibration;
  /// A line for each option that is given and has no effect, since neither the
  /// strategy nor the cost model reads it. Such options are no errors: a script
  /// that compares strategies may pass the same options to all.
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
  /// A predictor that corrects `latency` does so with the constants that it was
  /// trained with.
  Calibration calibrationFor(const DeviceSpec &device) const;
};

/// Reads values of the options in `searchOptionList`; what is not given has its
/// default. An error names the option, what it takes, and the value.
llvm::Expected<SearchSetup> makeSearchSetup(const OptionValues &given);

} // namespace ftuner

#endif // FTUNER_SEARCH_SETUP_SEARCHSETUP_H
