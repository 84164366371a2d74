//===- SearchSetup.h - From pass options to a search ------------*- C++ -*-===//
//
// The one place that turns options, as a pass or a pipeline declares them, into
// what the core takes.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_TRANSFORMS_SEARCHSETUP_H
#define FTUNER_TRANSFORMS_SEARCHSETUP_H

#include "FTuner/CostModel/Calibration.h"
#include "FTuner/Search/SearchStrategy.h"
#include <optional>

namespace ftuner {

/// A search but for the workload and the device.
struct SearchSetup {
  const SearchStrategy *strategy = nullptr;
  const CostModel *costModel = nullptr;
  /// Codegen paths whose families compete: all that are registered.
  llvm::ArrayRef<const CodegenModel *> paths = codegenModels();
  /// Those of the cost model but for the calibration.
  SearchOptions options;
  /// Where none is given, each device has its own or the global one.
  std::optional<Calibration> calibration;

  SearchProblem problem(const Workload &workload, const DeviceSpec &device,
                        std::vector<KernelFamily> rejected = {}) const {
    SearchProblem problem{workload,   device,  paths,
                          *costModel, options, std::move(rejected)};
    problem.options.cost.calibration = calibrationFor(device);
    return problem;
  }
  Calibration calibrationFor(const DeviceSpec &device) const {
    return calibration ? *calibration : defaultCalibration(device);
  }
};

/// Finds what is given by name; options keep their defaults. An error names the
/// option and the values that it takes.
llvm::Expected<SearchSetup> findSearch(llvm::StringRef strategy,
                                       llvm::StringRef costModel,
                                       llvm::StringRef tileRule,
                                       llvm::StringRef pool);

/// The calibration of that name or path; none for an empty text. An error names
/// the option.
llvm::Expected<std::optional<Calibration>>
findCalibration(llvm::StringRef nameOrPath);

/// Reads `ukernel-plan-workloads`, its options struct or FTunerOptions, which
/// name their fields alike. An error for values that are out of range.
template <typename Options>
llvm::Expected<SearchSetup> makeSearchSetup(const Options &given) {
  llvm::Expected<SearchSetup> setup =
      findSearch(given.strategy, given.costModel, given.tileRule, given.pool);
  if (!setup)
    return setup;
  SearchOptions &options = setup->options;
  options.epsilonMin = given.epsilonMin;
  options.epsilonMax = given.epsilonMax;
  options.epsilonStep = given.epsilonStep;
  options.lambdaMin = given.lambdaMin;
  options.lambdaMax = given.lambdaMax;
  options.lambdaStep = given.lambdaStep;
  options.zeta = given.zeta;
  options.psi = given.psi;
  options.activeBlocksPerSm = given.activeBlocks;
  options.cost.c0 = given.c0;
  options.cost.c1 = given.c1;
  options.cost.c2 = given.c2;
  options.topK = given.topK;
  options.maxKernels = given.maxKernels;
  options.maxCandidates = given.maxCandidates;
  if (llvm::Error error = options.check())
    return error;
  llvm::Expected<std::optional<Calibration>> calibration =
      findCalibration(given.calibration);
  if (!calibration)
    return calibration.takeError();
  setup->calibration = std::move(*calibration);
  return setup;
}

} // namespace ftuner

#endif // FTUNER_TRANSFORMS_SEARCHSETUP_H
