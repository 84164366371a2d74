//===- ConstructibleTiles.h - What tiles are constructed of -----*- C++ -*-===//
#ifndef FTUNER_BASELINES_CONSTRUCTIBLETILES_H
#define FTUNER_BASELINES_CONSTRUCTIBLETILES_H

#include "FTuner/Search/Problem/SearchOptions.h"
#include "FTuner/Search/Ranking/Candidates.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace ftuner {

/// Sizes of register tiles along an axis.
enum class RegisterTiles {
  /// The sizes that the strategy has by itself.
  Own,
  Powers,
  Any,
};

/// Options of strategies that construct tiles: tile-rule, register-tiles, zeta.
OptionDecls constructionOptions();

/// Returns the candidates of strategies that construct tiles of a product along
/// m and n (Roller, Gensor): blocks have one element along batch axes, and
/// `isAllowed` holds. Register tiles are as the option `register-tiles` says:
/// powers of two or any, and of the strategy's `own` sizes by default. No other
/// model than their own chooses tiles, and the rules of the paper's candidates
/// bind them only with `tile-rule=divisors`; they cannot tell depths and stages
/// of the reduce axis apart, so these follow the rule of Candidates.h, by a
/// model that predicts time where the problem has one. An error if there are
/// none.
llvm::Expected<CandidateSet> enumerateConstructibleTiles(
    const SearchProblem &problem, RegisterTiles own,
    llvm::function_ref<bool(const Candidate &)> isAllowed);

} // namespace ftuner

#endif // FTUNER_BASELINES_CONSTRUCTIBLETILES_H
