//===- SearchStrategy.cpp - Check, search, verify -------------------------===//
#include "FTuner/Search/Problem/SearchStrategy.h"
#include "llvm/ADT/STLExtras.h"

using namespace ftuner;

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
