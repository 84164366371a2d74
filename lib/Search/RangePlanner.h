//===- RangePlanner.h - From ranked shapes to a plan ------------*- C++ -*-===//
//
// What strategies share: shapes of the range are sampled, the strategy ranks
// the programs of each, few families are chosen that lose little on all of
// them, and every shape is sent to the best of these. Cost grows with the
// number of samples and of kernels, not with the range.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_SEARCH_RANGEPLANNER_H
#define FTUNER_LIB_SEARCH_RANGEPLANNER_H

#include "ProgramRanker.h"

namespace ftuner {

/// A plan for the whole range. Ranks the shapes of `RangeSamples`, and for a
/// closed range one more beyond it.
llvm::Expected<Plan> planRange(ProgramRanker &ranker);

} // namespace ftuner

#endif // FTUNER_LIB_SEARCH_RANGEPLANNER_H
