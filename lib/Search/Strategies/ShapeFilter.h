//===- ShapeFilter.h - Stages that thin out candidates ----------*- C++ -*-===//
//
// What the readings of the filter share: candidates of one path for one shape
// pass stages, one after another. A stage that would leave none keeps the best
// by its own quality instead.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_SEARCH_STRATEGIES_SHAPEFILTER_H
#define FTUNER_LIB_SEARCH_STRATEGIES_SHAPEFILTER_H

#include "FTuner/CostModel/Sia.h"
#include "FTuner/Search/Strategies/Filter.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace ftuner {

/// One stage that looks at each candidate by itself.
struct Stage {
  FilterStage stage;
  llvm::function_ref<bool(const Survivor &)> accepts;
  /// What is kept instead where nothing is accepted: the greatest.
  llvm::function_ref<double(const Survivor &)> quality;
  /// For reports: what is measured, its value, and what is asked for.
  llvm::StringRef figure;
  llvm::function_ref<double(const Survivor &)> value;
  llvm::function_ref<std::string()> requirement;
};

class ShapeFilter {
public:
  /// Begins with the candidates from `first` on, which have these metrics.
  ShapeFilter(const SearchProblem &problem, const FilterOptions &options,
              const CandidateSet &set, FilterCounts &counts,
              std::vector<StageReport> *reports, unsigned first,
              llvm::ArrayRef<Metrics> metrics);

  /// Keeps what the stage accepts, or if that is nothing, what has the best
  /// quality; whether something was accepted.
  bool apply(const Stage &stage);
  /// Keeps those with the greatest values, at most `most`; the first of equals.
  void keepBest(FilterStage stage, int64_t limit, llvm::StringRef figure,
                llvm::function_ref<double(const Survivor &)> value);
  /// Keeps the Pareto front of (CMR, Pad, Occ) for each height on the combine
  /// axis, and of these the `most` with the greatest sums.
  void keepParetoFronts(int64_t limit);

  const Candidate &candidate(const Survivor &survivor) const {
    return set.candidates[survivor.candidate];
  }

  const SearchProblem &problem;
  const FilterOptions &options;
  /// What is left, ascending by candidate.
  std::vector<Survivor> survivors;

private:
  void thinToFronts();
  void report(const Stage &stage, llvm::ArrayRef<Survivor> before,
              bool isRelaxed);
  /// The published sum (equation 1).
  double sum(const Survivor &survivor) const {
    return sia.c0 * survivor.metrics.cmr + sia.c1 * survivor.metrics.pad +
           sia.c2 * survivor.metrics.occ;
  }

  const CandidateSet &set;
  FilterCounts &counts;
  std::vector<StageReport> *reports;
  const SiaOptions sia;
};

/// "blocks ≥ 264".
std::string atLeast(llvm::StringRef figure, double least);

/// The stages of algorithm 1, and with `FilterReading::Pareto` ours; what they
/// asked for.
Demands runPaperStages(ShapeFilter &filter);

/// The stages of the authors' artifact.
void runArtifactStages(ShapeFilter &filter);

} // namespace ftuner

#endif // FTUNER_LIB_SEARCH_STRATEGIES_SHAPEFILTER_H
