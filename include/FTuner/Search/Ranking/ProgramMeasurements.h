//===- ProgramMeasurements.h - Measured times in a ranking ------*- C++ -*-===//
//
// What every ranked strategy does with a measurer: the best programs of a shape
// are measured, and the measured times rank them again. The strategy's scores
// rank what was not measured, and the two share one scale.
//
// A strategy's scores are read as times in an unknown unit: a score is so much
// slower than the best measured program's score (`relativeTime`). One unit for
// each shape, the median of measured over relative times, makes all of them
// microseconds, and back. A program that was measured has its measured time.
// One that was not has the time of its score, but none better than the best
// measured one: a prediction overturns no measurement. Near a measured shape a
// program's time changes by as much as its score says.
//
// Example: three programs score -10, -11 and -15 (microseconds of a cost
// model), and the first two are measured at 30 and 22 us. Relative times are 1,
// 1.1 and 1.5; the unit is the median of 30 and 20, which is 30. So the third
// is taken for 45 us, and the ranking is 22, 30, 45: scores -7.33, -10, -15.
//
// Alternatives: ranks alone (a family for a range needs to know how much is
// lost, not only the order), and a correction of the cost model over all shapes
// (what is wrong with one kind of kernel would move all others).
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_SEARCH_RANKING_PROGRAMMEASUREMENTS_H
#define FTUNER_SEARCH_RANKING_PROGRAMMEASUREMENTS_H

#include "FTuner/Search/Problem/SearchContext.h"
#include "FTuner/Search/Ranking/ProgramRanker.h"
#include "llvm/ADT/StringMap.h"

namespace ftuner {

/// What was measured for one shape; part of a RankedShape.
struct ShapeMeasurements {
  struct Program {
    /// None where the kernel failed.
    std::optional<double> microseconds;
    /// The strategy's.
    double score = 0;
  };
  /// By the program that runs (`programKey`).
  llvm::StringMap<Program> programs;
  /// The best score among the measured ones, and the microseconds of one whose
  /// time relative to it is 1.
  double bestScore = 0, unit = 0;
  /// The least measured time.
  double bestMicroseconds = 0;
};

/// Equal for families that run the same program for a shape: the parts that
/// have blocks, with accesses that the shape allows.
std::string programKey(const Workload &workload, const KernelFamily &family,
                       llvm::ArrayRef<int64_t> shape);

/// How many times as long as a program of score `best` one of `score` takes, if
/// scores are negated times or, where `best` is positive, rates. Falls as the
/// score rises; above 0.
double relativeTime(double score, double best);
/// The score whose relative time that is.
double scoreOfRelativeTime(double time, double best);

/// Measures for one search.
class ProgramMeasurements {
public:
  /// Problem and context outlive it. An error if there is no measurer of times,
  /// or the log cannot be read.
  static llvm::Expected<std::unique_ptr<ProgramMeasurements>>
  create(const SearchProblem &problem, const SearchContext &context);

  /// So many shapes come: each has an equal share of the budget, or, where that
  /// is less than two programs, some of them have two.
  void expectShapes(size_t count);
  /// Measures programs of a shape, and ranks them again. Those that fail leave
  /// the ranking. An error if the measurer fails, or all programs do.
  llvm::Error measure(const FamilyTable &table, RankedShape &ranked);

  /// The rating of a family for a shape near one that was ranked. `scores` are
  /// the strategy's for this shape and for the one that was ranked.
  double rate(const KernelFamily &family, llvm::ArrayRef<int64_t> shape,
              const RankedShape &near, double score, double scoreNear) const;
  /// The measured time of a family's program for a ranked shape.
  std::optional<double> timeOf(const KernelFamily &family,
                               const RankedShape &ranked) const;

  /// Adds who measured and what was counted.
  void report(Plan &plan) const;
  llvm::StringRef measurerName() const { return measurer->name(); }

private:
  ProgramMeasurements(const SearchProblem &problem,
                      const SearchContext &context,
                      std::unique_ptr<LoggingMeasurer> measurer)
      : problem(problem), context(context), measurer(std::move(measurer)) {}
  /// How many programs the next shape may have measured.
  size_t nextShare();
  /// Whether the options let the shape be measured; counts those they do not.
  bool isWanted(const FamilyTable &table, const RankedShape &ranked);
  /// Has the best programs measured, `count` of them at most.
  llvm::Error ask(const FamilyTable &table, const RankedShape &ranked,
                  size_t count, ShapeMeasurements &measured);
  /// Drops programs that failed, and sorts the others by their times.
  void rankAgain(const FamilyTable &table, const ShapeMeasurements &measured,
                 RankedShape &ranked);
  /// How far the cost model trusts its choice of the best program.
  double confidence(const FamilyTable &table,
                    llvm::ArrayRef<RankedFamily> distinct,
                    llvm::ArrayRef<int64_t> shape) const;

  const SearchProblem &problem;
  const SearchContext &context;
  std::unique_ptr<LoggingMeasurer> measurer;

  /// Shapes that are expected, and of these the ones that are measured, with
  /// how many programs each; shapes so far.
  int64_t numShapes = 0, numMeasuredShapes = 0, share = 0, nextShape = 0;
  struct Counts {
    int64_t shapes = 0, programs = 0, failed = 0, unknown = 0, overturned = 0;
    int64_t overBudget = 0, sure = 0, tooLarge = 0;
  } counts;
  /// The first of each.
  std::string firstFailure, firstUnknown;
};

} // namespace ftuner

#endif // FTUNER_SEARCH_RANKING_PROGRAMMEASUREMENTS_H
