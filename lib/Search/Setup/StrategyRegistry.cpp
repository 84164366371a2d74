//===- StrategyRegistry.cpp - Every search strategy -----------------------===//
#include "FTuner/Search/Setup/StrategyRegistry.h"
#include "llvm/ADT/STLExtras.h"

namespace ftuner {
#define FTUNER_SEARCH_STRATEGY(FUNCTION) const SearchStrategy &FUNCTION();
#include "FTuner/Search/Strategies/SearchStrategies.def"
#define FTUNER_BASELINE(FUNCTION) const SearchStrategy &FUNCTION();
#include "FTuner/Baselines/Baselines.def"
} // namespace ftuner

using namespace ftuner;

llvm::ArrayRef<const SearchStrategy *> ftuner::baselines() {
  static const SearchStrategy *const strategies[] = {
#define FTUNER_BASELINE(FUNCTION) &FUNCTION(),
#include "FTuner/Baselines/Baselines.def"
  };
  return strategies;
}

llvm::ArrayRef<const SearchStrategy *> ftuner::searchStrategies() {
  static const std::vector<const SearchStrategy *> strategies = [] {
    std::vector<const SearchStrategy *> all = {
#define FTUNER_SEARCH_STRATEGY(FUNCTION) &FUNCTION(),
#include "FTuner/Search/Strategies/SearchStrategies.def"
    };
    llvm::append_range(all, baselines());
    return all;
  }();
  return strategies;
}

const SearchStrategy *ftuner::findSearchStrategy(llvm::StringRef name) {
  for (const SearchStrategy *strategy : searchStrategies())
    if (strategy->name() == name)
      return strategy;
  return nullptr;
}
