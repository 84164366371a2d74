//===- RangePlanner.h - From ranked shapes to a plan ------------*- C++ -*-===//
//
// The planning of a range, which all ranked strategies share. Shapes of the
// range are sampled, the strategy ranks the programs of each, few families are
// chosen that lose little over all samples, and every shape is sent to the best
// of these. The cost grows with the number of samples and of kernels, not with
// the range.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_SEARCH_PLANNING_RANGEPLANNER_H
#define FTUNER_SEARCH_PLANNING_RANGEPLANNER_H

#include "FTuner/Search/Ranking/ProgramRanker.h"

namespace ftuner {

/// Returns a plan for the whole range that passes `SearchProblem::verify`.
/// Prepares the ranker and ranks the shapes of `RangeSamples`, and for a closed
/// range one more shape beyond it. The loss of a family on a shape is a share
/// of the shape's best rating. Returns an error if a shape cannot be ranked, or
/// if no family without alignment requirements is left.
llvm::Expected<Plan> planRange(ProgramRanker &ranker);

} // namespace ftuner

#endif // FTUNER_SEARCH_PLANNING_RANGEPLANNER_H
