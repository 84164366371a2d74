//===- RankedStrategy.h - A strategy that ranks programs --------*- C++ -*-===//
//
// The base of strategies that can rank the programs of one shape. Such a
// strategy makes a ranker; the plans of ranges and the reports are shared.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_SEARCH_PLANNING_RANKEDSTRATEGY_H
#define FTUNER_SEARCH_PLANNING_RANKEDSTRATEGY_H

#include "FTuner/Search/Ranking/ProgramRanker.h"

namespace ftuner {

class RankedStrategy : public SearchStrategy {
public:
  /// Returns a ranker of the problem's programs, which is not prepared yet.
  /// Problem and context outlive it.
  virtual llvm::Expected<std::unique_ptr<ProgramRanker>>
  makeRanker(const SearchProblem &problem,
             const SearchContext &context) const = 0;

  /// Calls `planRange` or `reportShapes` with a ranker, which has programs
  /// measured as the options of the problem say (ProgramMeasurements.h).
  llvm::Expected<Plan> search(const SearchProblem &problem,
                              const SearchContext &context) const override;
  llvm::Expected<std::vector<ShapeReport>>
  explain(const SearchProblem &problem, const SearchContext &context,
          llvm::ArrayRef<Shape> shapes) const override;

protected:
  /// The plan of a ranker that is not prepared yet.
  static llvm::Expected<Plan> planBy(ProgramRanker &ranker,
                                     const SearchProblem &problem,
                                     const SearchContext &context);
};

} // namespace ftuner

#endif // FTUNER_SEARCH_PLANNING_RANKEDSTRATEGY_H
