//===- SearchStrategy.h - Problem, solvers and checker ----------*- C++ -*-===//
//
// Always the same three steps: the problem checks itself, a strategy solves it,
// the problem verifies the answer, whoever solved it (`solve`).
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_SEARCH_PROBLEM_SEARCHSTRATEGY_H
#define FTUNER_SEARCH_PROBLEM_SEARCHSTRATEGY_H

#include "FTuner/Search/Problem/SearchContext.h"
#include "FTuner/Search/Problem/SearchProblem.h"
#include "FTuner/Search/Problem/ShapeReport.h"

namespace ftuner {

/// How problems are solved. Several threads may ask one strategy at once, each
/// with its own problem and context, so it keeps no state between problems.
/// Plans and reports follow from the problem, the context's seed and the
/// measurer's answers (those of its log among them) alone.
class SearchStrategy {
public:
  virtual ~SearchStrategy() = default;
  virtual llvm::StringRef name() const = 0;
  /// Options that the strategy reads beside those of every search: members of
  /// SearchOptions, or its own, whose values are in `SearchOptions::own`.
  virtual OptionDecls options() const { return {}; }
  /// Whether the strategy asks the measurer by itself where one is named, and
  /// options of `MeasureOptions` that say what is measured do not concern it.
  virtual bool measures() const { return false; }
  /// A line for each option of the strategy that is given and has no effect
  /// beside the other ones.
  virtual std::vector<std::string>
  unreadOptions(const OptionValues &given) const {
    return {};
  }
  /// A plan that passes `SearchProblem::verify`. A strategy that measures asks
  /// the context's measurer for at most `SearchContext::budget` kernels, failed
  /// ones included. Where there is no measurer it may return an error.
  virtual llvm::Expected<Plan> search(const SearchProblem &problem,
                                      const SearchContext &context) const = 0;
  /// How the strategy judges shapes (every extent ≥ 1), one report each: what
  /// each of its stages threw out, and up to `options.topK` programs, best
  /// first. The budget is that of this call.
  virtual llvm::Expected<std::vector<ShapeReport>>
  explain(const SearchProblem &problem, const SearchContext &context,
          llvm::ArrayRef<Shape> shapes) const = 0;
};

/// check, search, verify.
llvm::Expected<Plan> solve(const SearchProblem &problem,
                           const SearchStrategy &strategy,
                           const SearchContext &context = {});

} // namespace ftuner

#endif // FTUNER_SEARCH_PROBLEM_SEARCHSTRATEGY_H
