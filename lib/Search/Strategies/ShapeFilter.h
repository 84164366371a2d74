//===- ShapeFilter.h - Stages that thin out candidates ----------*- C++ -*-===//
//
// The frame that all readings of the filter share: the candidates of one path
// pass one stage after another, for one shape. A stage that would reject all of
// them keeps the best by its own quality instead.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_SEARCH_STRATEGIES_SHAPEFILTER_H
#define FTUNER_LIB_SEARCH_STRATEGIES_SHAPEFILTER_H

#include "FTuner/CostModel/Sia.h"
#include "FTuner/Search/Strategies/Filter.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace ftuner {

/// A stage that judges each candidate separately.
struct Stage {
  FilterStage stage;
  llvm::function_ref<bool(const Survivor &)> accepts;
  /// The candidates with the greatest quality are kept if none is accepted.
  llvm::function_ref<double(const Survivor &)> quality;
  /// For reports: name of the figure, its value, and the requirement.
  llvm::StringRef figure;
  llvm::function_ref<double(const Survivor &)> value;
  llvm::function_ref<std::string()> requirement;
};

class ShapeFilter {
public:
  /// Begins with the candidates from `first` on, whose metrics are given.
  ShapeFilter(const SearchProblem &problem, const FilterOptions &options,
              const CandidateSet &set, FilterCounts &counts,
              std::vector<StageReport> *reports, unsigned first,
              llvm::ArrayRef<Metrics> metrics);

  /// Keeps the candidates that the stage accepts, and returns true. If it
  /// accepts none, keeps those with the best quality, and returns false.
  bool apply(const Stage &stage);
  /// Keeps at most `max` candidates, those with the greatest values; the first
  /// of equals.
  void keepBest(FilterStage stage, int64_t limit, llvm::StringRef figure,
                llvm::function_ref<double(const Survivor &)> value);
  /// Keeps the Pareto front of (CMR, Pad, Occ) for each height on the combine
  /// axis, and of these at most `max` candidates, those with the greatest sums.
  void keepParetoFronts(int64_t limit);

  const Candidate &candidate(const Survivor &survivor) const {
    return set.candidates[survivor.candidate];
  }

  const SearchProblem &problem;
  const FilterOptions &options;
  /// Candidates that passed all stages so far, ascending.
  std::vector<Survivor> survivors;

private:
  void thinToFronts();
  void report(const Stage &stage, llvm::ArrayRef<Survivor> before,
              bool isRelaxed);
  /// Returns the published sum (equation 1).
  double sum(const Survivor &survivor) const {
    return sia.c0 * survivor.metrics.cmr + sia.c1 * survivor.metrics.pad +
           sia.c2 * survivor.metrics.occ;
  }

  const CandidateSet &set;
  FilterCounts &counts;
  std::vector<StageReport> *reports;
  const SiaOptions sia;
};

/// Returns a requirement as text, e.g. "blocks ≥ 264".
std::string atLeast(llvm::StringRef figure, double minimum);

/// Runs the stages of algorithm 1, and with `FilterReading::Pareto` ours.
/// Returns their demands.
Demands runPaperStages(ShapeFilter &filter);

/// Runs the stages of the authors' artifact.
void runArtifactStages(ShapeFilter &filter);

} // namespace ftuner

#endif // FTUNER_LIB_SEARCH_STRATEGIES_SHAPEFILTER_H
