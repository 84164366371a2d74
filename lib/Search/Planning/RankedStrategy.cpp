//===- RankedStrategy.cpp - A strategy that ranks programs ----------------===//
#include "FTuner/Search/Planning/RankedStrategy.h"
#include "FTuner/Search/Planning/RangePlanner.h"
#include "FTuner/Search/Ranking/ProgramMeasurements.h"

using namespace ftuner;

/// Gives the ranker its measurements, if anything is to be measured.
static llvm::Error prepareMeasuring(ProgramRanker &ranker,
                                    const SearchProblem &problem,
                                    const SearchContext &context) {
  if (!problem.options.measuring.isOn() || problem.options.measuring.byStrategy)
    return llvm::Error::success();
  llvm::Expected<std::unique_ptr<ProgramMeasurements>> measurements =
      ProgramMeasurements::create(problem, context);
  if (!measurements)
    return measurements.takeError();
  ranker.measureBy(std::move(*measurements));
  return llvm::Error::success();
}

llvm::Expected<Plan> RankedStrategy::planBy(ProgramRanker &ranker,
                                            const SearchProblem &problem,
                                            const SearchContext &context) {
  if (llvm::Error error =
          ranker.check(RangeSamples(problem.workload).shapes.size()))
    return error;
  if (llvm::Error error = prepareMeasuring(ranker, problem, context))
    return error;
  return planRange(ranker);
}

llvm::Expected<Plan>
RankedStrategy::search(const SearchProblem &problem,
                       const SearchContext &context) const {
  llvm::Expected<std::unique_ptr<ProgramRanker>> ranker =
      makeRanker(problem, context);
  if (!ranker)
    return ranker.takeError();
  llvm::Expected<Plan> plan = planBy(**ranker, problem, context);
  if (plan && problem.prefilter() && !(*ranker)->ranksByScore())
    plan->remarks.push_back(("strategy '" + name() +
                             "' has an order of its own here: cost model '" +
                             problem.costModel.name() +
                             "' does not order its programs anew")
                                .str());
  return plan;
}

llvm::Expected<std::vector<ShapeReport>>
RankedStrategy::explain(const SearchProblem &problem,
                        const SearchContext &context,
                        llvm::ArrayRef<Shape> shapes) const {
  llvm::Expected<std::unique_ptr<ProgramRanker>> ranker =
      makeRanker(problem, context);
  if (!ranker)
    return ranker.takeError();
  if (llvm::Error error = (*ranker)->check(shapes.size()))
    return error;
  if (llvm::Error error = prepareMeasuring(**ranker, problem, context))
    return error;
  return reportShapes(**ranker, shapes);
}
