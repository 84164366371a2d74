//===- StrategyRegistry.h - Every search strategy ---------------*- C++ -*-===//
//
// The strategies of FTuner (SearchStrategies.def), and after them the published
// ones that it is compared with (Baselines.def).
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_SEARCH_SETUP_STRATEGYREGISTRY_H
#define FTUNER_SEARCH_SETUP_STRATEGYREGISTRY_H

#include "FTuner/Search/Problem/SearchStrategy.h"

namespace ftuner {

/// Returns all strategies, baselines last; the first one is the default.
llvm::ArrayRef<const SearchStrategy *> searchStrategies();
/// Returns the published strategies among them.
llvm::ArrayRef<const SearchStrategy *> baselines();
/// Returns the strategy of a name; null if there is none.
const SearchStrategy *findSearchStrategy(llvm::StringRef name);

} // namespace ftuner

#endif // FTUNER_SEARCH_SETUP_STRATEGYREGISTRY_H
