//===- SplitCandidates.h - Candidates with split-K slices -------*- C++ -*-===//
#ifndef FTUNER_LIB_SEARCH_RANKING_SPLITCANDIDATES_H
#define FTUNER_LIB_SEARCH_RANKING_SPLITCANDIDATES_H

#include "FTuner/Search/Ranking/Candidates.h"

namespace ftuner {

/// Adds candidates of the set with slices of the reduce axis, where the cost
/// model predicts some shape of the range to be faster with them than by every
/// candidate without. Nothing for cost models that do not predict time, for
/// exact pools (the paper's programs). The option `split-k` allows slices of
/// several blocks, `sliced-k` those within a block.
void addSplitCandidates(const SearchProblem &problem, CandidateSet &set);

} // namespace ftuner

#endif // FTUNER_LIB_SEARCH_RANKING_SPLITCANDIDATES_H
