//===- Reordering.h - A slow cost model after a fast one --------*- C++ -*-===//
//
// A cost model with a prefilter (`CostModel::prefilter`) is too slow for every
// program of a search. So the prefilter's scores rank a shape's programs, and
// the model's own times order the best of them anew. Both share one scale: a
// program that the model did not see has the prefilter's time, multiplied by
// the median ratio of both models over the programs that it saw, and never a
// time below the best of these.
//
// Measured programs are ranked in the same way, after this step
// (ProgramMeasurements.h).
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_SEARCH_RANKING_REORDERING_H
#define FTUNER_SEARCH_RANKING_REORDERING_H

#include "FTuner/Search/Ranking/ProgramRanker.h"
#include <unordered_map>

namespace ftuner {

/// The cost model's scores of a shape's best programs; part of a RankedShape.
struct ReorderedPrograms {
  using Key = llvm::SmallVector<int64_t, 40>;
  /// Scores by `programNumbers`.
  std::unordered_map<Key, double, ProgramNumbersHash> scores;
  /// The best of these scores, and the median of their ratios to the
  /// prefilter's.
  double best = 0, ratio = 1;

  bool isKnown(const Program &program) const {
    return scores.find(programNumbers(program)) != scores.end();
  }
  /// Returns the score of a program on the cost model's scale, given the
  /// prefilter's score.
  double score(const Program &program, double byPrefilter) const;
};

/// Orders a shape's programs, whose scores are the prefilter's negated
/// microseconds, by the cost model's.
void reorder(const FamilyTable &table, const SearchProblem &problem,
             const Prefilter &prefilter, RankedShape &ranked);

} // namespace ftuner

#endif // FTUNER_SEARCH_RANKING_REORDERING_H
