//===- SearchStrategy.cpp - The registered strategies ---------------------===//
#include "FTuner/Search/Problem/SearchStrategy.h"
#include "llvm/ADT/STLExtras.h"

namespace ftuner {
#define FTUNER_SEARCH_STRATEGY(FUNCTION) const SearchStrategy &FUNCTION();
#include "FTuner/Search/Strategies/SearchStrategies.def"
} // namespace ftuner

using namespace ftuner;

llvm::ArrayRef<const SearchStrategy *> ftuner::searchStrategies() {
  static const SearchStrategy *const strategies[] = {
#define FTUNER_SEARCH_STRATEGY(FUNCTION) &FUNCTION(),
#include "FTuner/Search/Strategies/SearchStrategies.def"
  };
  return strategies;
}

const SearchStrategy *ftuner::findSearchStrategy(llvm::StringRef name) {
  for (const SearchStrategy *strategy : searchStrategies())
    if (strategy->name() == name)
      return strategy;
  return nullptr;
}

llvm::Expected<Plan> ftuner::solve(const SearchProblem &problem,
                                   const SearchStrategy &strategy,
                                   const SearchContext &context) {
  if (llvm::Error error = problem.check())
    return error;
  const SearchOptions &options = problem.options;
  if (llvm::Error error = checkValues(strategy.options(), options.own))
    return error;
  if (llvm::Error error =
          checkValues(problem.costModel.options(), options.cost.own))
    return error;
  llvm::Expected<Plan> plan = strategy.search(problem, context);
  if (!plan)
    return plan.takeError();
  plan->strategy = strategy.name().str();
  plan->costModel = problem.costModel.name().str();
  plan->calibration = problem.costModel.calibrationName(problem.options.cost);
  llvm::append_range(plan->remarks, problem.evaluator().remarks());
  plan->paths = namesOf(problem.paths, ",");
  if (llvm::Error error = problem.verify(*plan))
    return error;
  return plan;
}
