//===- RankedStrategy.cpp - A strategy that ranks programs ----------------===//
#include "FTuner/Search/RankedStrategy.h"
#include "FTuner/Search/RangePlanner.h"

using namespace ftuner;

llvm::Expected<Plan>
RankedStrategy::search(const SearchProblem &problem,
                       const SearchContext &context) const {
  llvm::Expected<std::unique_ptr<ProgramRanker>> ranker =
      makeRanker(problem, context);
  if (!ranker)
    return ranker.takeError();
  if (llvm::Error error =
          (*ranker)->check(RangeSamples(problem.workload).shapes.size()))
    return error;
  return planRange(**ranker);
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
  return reportShapes(**ranker, shapes);
}
