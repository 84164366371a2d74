//===- SplitCandidates.h - Candidates with split-K slices -------*- C++ -*-===//
#ifndef FTUNER_LIB_SEARCH_RANKING_SPLITCANDIDATES_H
#define FTUNER_LIB_SEARCH_RANKING_SPLITCANDIDATES_H

#include "FTuner/Search/Ranking/Candidates.h"

namespace ftuner {

/// Adds candidates with slices of the reduce axis to the set, if the cost model
/// predicts some shape of the range to be faster with them than with every
/// candidate without slices. Adds none with a cost model that does not predict
/// time, nor for exact pools (the paper's programs). The option `split-k`
/// allows slices of several blocks, `sliced-k` those within a block.
void addSplitCandidates(const SearchProblem &problem, CandidateSet &set);

} // namespace ftuner

#endif // FTUNER_LIB_SEARCH_RANKING_SPLITCANDIDATES_H
