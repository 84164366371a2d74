//===- SearchStrategy.h - Problem, solvers and checker ----------*- C++ -*-===//
//
// Always the same three steps: the problem checks itself, a strategy solves it,
// the problem verifies the answer, for every strategy (`solve`).
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_SEARCH_PROBLEM_SEARCHSTRATEGY_H
#define FTUNER_SEARCH_PROBLEM_SEARCHSTRATEGY_H

#include "FTuner/Search/Problem/SearchContext.h"
#include "FTuner/Search/Problem/SearchProblem.h"
#include "FTuner/Search/Problem/ShapeReport.h"

namespace ftuner {

/// A solver of search problems. Several threads may call one strategy at once,
/// each with its own problem and context, so it keeps no state between
/// problems. Plans and reports are functions of the problem, the context's seed
/// and the answers of the measurer and its log.
class SearchStrategy {
public:
  virtual ~SearchStrategy() = default;
  virtual llvm::StringRef name() const = 0;
  /// Returns the options that the strategy reads in addition to the options of
  /// every search: members of SearchOptions, and options of the strategy, whose
  /// values are in `SearchOptions::own`.
  virtual OptionDecls options() const { return {}; }
  /// Returns whether the strategy calls the measurer itself. The options of
  /// `MeasureOptions` that say what is measured then have no effect.
  virtual bool measures() const { return false; }
  /// Returns a line for each option of the strategy that is given and has no
  /// effect with the given values of its other options.
  virtual std::vector<std::string>
  unreadOptions(const OptionValues &given) const {
    return {};
  }
  /// Returns a plan that passes `SearchProblem::verify`. A strategy that
  /// measures asks the context's measurer for at most `SearchContext::budget`
  /// kernels, failed ones included. Without a measurer it may return an error.
  virtual llvm::Expected<Plan> search(const SearchProblem &problem,
                                      const SearchContext &context) const = 0;
  /// Returns a report for each shape (every extent ≥ 1): the rejected
  /// candidates of each stage, and up to `options.topK` programs, best first.
  /// The budget is for this call.
  virtual llvm::Expected<std::vector<ShapeReport>>
  explain(const SearchProblem &problem, const SearchContext &context,
          llvm::ArrayRef<Shape> shapes) const = 0;
};

/// Checks the problem, searches, and verifies the answer.
llvm::Expected<Plan> solve(const SearchProblem &problem,
                           const SearchStrategy &strategy,
                           const SearchContext &context = {});

} // namespace ftuner

#endif // FTUNER_SEARCH_PROBLEM_SEARCHSTRATEGY_H
