//===- ProgramMeasurements.h - Measured times in a ranking ------*- C++ -*-===//
//
// Every ranked strategy uses a measurer in the same way: the best programs of a
// shape are measured, and the measured times rank them again. The strategy's
// scores rank the programs that were not measured. Times and scores share one
// scale.
//
// A score is read as a time relative to the time of the best score among the
// measured programs (`relativeTime`). One unit for each shape, the median of
// measured over relative times, converts relative times to microseconds, and
// back. A program that was measured has its measured time. A program that was
// not measured has the time of its score, and never a better one than the best
// measured program: a prediction overturns no measurement. Near a measured
// shape a program's time changes as its score does.
//
// Example: three programs score -10, -11 and -15 (microseconds of a cost
// model), and the first two are measured at 30 and 22 us. Relative times are 1,
// 1.1 and 1.5; the unit is the median of 30 and 20, which is 30. So the third
// is taken for 45 us, and the ranking is 22, 30, 45: scores -7.33, -10, -15.
//
// Rejected alternatives: to use only ranks (the choice of families for a range
// depends on how much time is lost, not only on the order), and to correct the
// cost model over all shapes (an error for one kind of kernel would move all
// others).
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_SEARCH_RANKING_PROGRAMMEASUREMENTS_H
#define FTUNER_SEARCH_RANKING_PROGRAMMEASUREMENTS_H

#include "FTuner/Search/Problem/SearchContext.h"
#include "FTuner/Search/Ranking/ProgramRanker.h"
#include "llvm/ADT/StringMap.h"

namespace ftuner {

/// The measurements for one shape; part of a RankedShape.
struct ShapeMeasurements {
  struct Program {
    /// The measured time; no value if the kernel failed.
    std::optional<double> microseconds;
    /// The strategy's score.
    double score = 0;
  };
  /// Measured programs by `programKey`.
  llvm::StringMap<Program> programs;
  /// The best score among the measured ones, and the microseconds of one whose
  /// time relative to it is 1.
  double bestScore = 0, unit = 0;
  /// The minimum of the measured times.
  double bestMicroseconds = 0;
};

/// Returns a key that is equal for families that run the same program for a
/// shape: the parts that have blocks, with accesses that the shape allows.
std::string programKey(const Workload &workload, const KernelFamily &family,
                       llvm::ArrayRef<int64_t> shape);

/// Returns the time of a program of `score` divided by the time of one of score
/// `best`. Scores are negated times or, if `best` is positive, rates. The ratio
/// is above 0 and falls as the score rises.
double relativeTime(double score, double best);
/// Returns the score of a relative time: the inverse of `relativeTime`.
double scoreOfRelativeTime(double time, double best);

/// Measures programs for one search.
class ProgramMeasurements {
public:
  /// Returns an error if there is no measurer of times, or the log cannot be
  /// read. Problem and context outlive the object.
  static llvm::Expected<std::unique_ptr<ProgramMeasurements>>
  create(const SearchProblem &problem, const SearchContext &context);

  /// Announces the number of shapes to come. Each shape gets an equal share of
  /// the budget; if that is less than two programs, only some shapes get two.
  void expectShapes(size_t count);
  /// Measures programs of a shape, and ranks them again without programs that
  /// failed. Returns an error if the measurer fails, or if all programs do.
  llvm::Error measure(const FamilyTable &table, RankedShape &ranked);

  /// Returns the rating of a family for a shape near one that was ranked.
  /// `score` and `neighbourScore` are the strategy's scores of the family, for
  /// this shape and for the ranked one.
  double rate(const KernelFamily &family, llvm::ArrayRef<int64_t> shape,
              const RankedShape &neighbour, double score,
              double neighbourScore) const;
  /// Returns the measured time of a family's program for a ranked shape.
  std::optional<double> timeOf(const KernelFamily &family,
                               const RankedShape &ranked) const;

  /// Adds the measurer's name and all counts to the plan.
  void report(Plan &plan) const;
  llvm::StringRef measurerName() const { return measurer->name(); }

private:
  ProgramMeasurements(const SearchProblem &problem,
                      const SearchContext &context,
                      std::unique_ptr<LoggingMeasurer> measurer)
      : problem(problem), context(context), measurer(std::move(measurer)) {}
  /// Returns the number of programs that may be measured for the next shape.
  size_t nextShare();
  /// Returns whether the options let the shape be measured, and counts the
  /// shapes that they exclude.
  bool isWanted(const FamilyTable &table, const RankedShape &ranked);
  /// Has at most `count` of the best programs measured.
  llvm::Error ask(const FamilyTable &table, const RankedShape &ranked,
                  size_t count, ShapeMeasurements &measured);
  /// Drops programs that failed, and sorts the others by their times.
  void rankAgain(const FamilyTable &table, const ShapeMeasurements &measured,
                 RankedShape &ranked);
  /// Returns the cost model's confidence in its choice of the best program.
  double confidence(const FamilyTable &table,
                    llvm::ArrayRef<RankedFamily> distinct,
                    llvm::ArrayRef<int64_t> shape) const;

  const SearchProblem &problem;
  const SearchContext &context;
  std::unique_ptr<LoggingMeasurer> measurer;

  /// Number of expected shapes and, among these, of measured ones; programs of
  /// each measured shape; number of shapes so far.
  int64_t numShapes = 0, numMeasuredShapes = 0, share = 0, nextShape = 0;
  struct Counts {
    int64_t shapes = 0, programs = 0, failed = 0, unknown = 0, overturned = 0;
    int64_t overBudget = 0, sure = 0, tooLarge = 0;
  } counts;
  /// The first failure, and the first program that the measurer does not know.
  std::string firstFailure, firstUnknown;
};

} // namespace ftuner

#endif // FTUNER_SEARCH_RANKING_PROGRAMMEASUREMENTS_H
