//===- ConstructibleTiles.h - What tiles are constructed of -----*- C++ -*-===//
#ifndef FTUNER_LIB_SEARCH_CONSTRUCTIBLETILES_H
#define FTUNER_LIB_SEARCH_CONSTRUCTIBLETILES_H

#include "FTuner/Search/Candidates.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace ftuner {

/// The candidates that strategies choose from which construct tiles of a
/// product along m and n (Roller, Gensor): register tiles are powers of two,
/// blocks have one element along batch axes, and `isAllowed` holds. The rules
/// of the paper's candidates do not bind them, and no other model than their
/// own chooses tiles; they cannot tell depths and stages of the reduce axis
/// apart, so these follow the rule of Candidates.h, by a model that predicts
/// time where the problem has one. An error if there are none.
llvm::Expected<CandidateSet> enumerateConstructibleTiles(
    const SearchProblem &problem,
    llvm::function_ref<bool(const Candidate &)> isAllowed);

} // namespace ftuner

#endif // FTUNER_LIB_SEARCH_CONSTRUCTIBLETILES_H
