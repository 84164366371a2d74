//===- FilterOptions.h - Options of FTuner's filter -------------*- C++ -*-===//
#ifndef FTUNER_SEARCH_STRATEGIES_FILTEROPTIONS_H
#define FTUNER_SEARCH_STRATEGIES_FILTEROPTIONS_H

#include "FTuner/Support/Options.h"

namespace ftuner {

/// The rules by which uKernels may serve a shape (Filter.h).
enum class FilterReading {
  /// Algorithm 1, blocks of four warps, and the Pareto front of its metrics.
  Pareto,
  /// Algorithm 1 as printed.
  Paper,
  /// The stages of the authors' code, with its ranking of programs
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
  /// Minimum share of the shape's best compute-to-memory ratio (ψ, relative).
  double psi = 0.5;
  /// ψ as a count: the number of uKernels with the best ratios that the
  /// artifact keeps, by its ratio of shared memory and then by its ratio of
  /// registers.
  int64_t psiCountShared = 20, psiCount = 10;
  /// Blocks per SM that saturate the device (ACTIVE_BLOCK_PER_SM).
  int64_t activeBlocksPerSm = 2;
  /// Maximum number of candidates for each shape after the filter.
  int64_t maxCandidates = 256;
};

/// filter, epsilon-min, epsilon-max, epsilon-step, lambda-max, lambda-min,
/// lambda-step, psi, psi-count-shared, psi-count, active-blocks-per-sm and
/// max-candidates.
const OptionTable<FilterOptions> &filterOptions();

/// Returns a line for each of these options that is given although no stage of
/// the filter's reading uses it.
std::vector<std::string> unreadFilterOptions(const OptionValues &given);

} // namespace ftuner

#endif // FTUNER_SEARCH_STRATEGIES_FILTEROPTIONS_H
