//===- FilterOptions.h - Options of FTuner's filter -------------*- C++ -*-===//
#ifndef FTUNER_SEARCH_STRATEGIES_FILTEROPTIONS_H
#define FTUNER_SEARCH_STRATEGIES_FILTEROPTIONS_H

#include "FTuner/Support/Options.h"

namespace ftuner {

/// Which uKernels may serve a shape (Filter.h).
enum class FilterReading {
  /// Algorithm 1, blocks of four warps, and the Pareto front of its metrics.
  Pareto,
  /// Algorithm 1 alone.
  Paper,
  /// The stages of the authors' code. Programs are ranked as it does
  /// (ThroughputRating.h).
  Artifact,
};

/// Hyper-parameters of the filter under the paper's names (section IV).
struct FilterOptions {
  FilterReading reading = FilterReading::Pareto;
  /// Padding threshold ε: from epsilonMin to epsilonMax by epsilonStep.
  double epsilonMin = 0.50, epsilonMax = 0.95, epsilonStep = 0.01;
  /// Occupancy threshold λ: from lambdaMax down to lambdaMin by lambdaStep.
  double lambdaMax = 0.95, lambdaMin = 0.90, lambdaStep = 0.001;
  /// Least share of the shape's best compute-to-memory ratio (ψ, relative).
  double psi = 0.5;
  /// The same as a count, by the artifact's ratio of shared memory and then by
  /// that of registers.
  int64_t psiCountShared = 20, psiCount = 10;
  /// Blocks per SM that saturate the device (ACTIVE_BLOCK_PER_SM).
  int64_t activeBlocksPerSm = 2;
  /// Most candidates for each shape after the filter.
  int64_t maxCandidates = 256;
};

/// filter, epsilon-min, epsilon-max, epsilon-step, lambda-max, lambda-min,
/// lambda-step, psi, psi-count-shared, psi-count, active-blocks-per-sm and
/// max-candidates.
const OptionTable<FilterOptions> &filterOptions();

/// A line for each of these options that is given although the filter's reading
/// has no stage that reads it.
std::vector<std::string> unreadFilterOptions(const OptionValues &given);

} // namespace ftuner

#endif // FTUNER_SEARCH_STRATEGIES_FILTEROPTIONS_H
