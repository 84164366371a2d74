//===- ProgramRanker.h - Programs of shapes, best first ---------*- C++ -*-===//
//
// What a strategy says of programs: of each shape which there are, in which
// order, and how good one is beside them. Plans and reports are made of that.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_SEARCH_PROGRAMRANKER_H
#define FTUNER_LIB_SEARCH_PROGRAMRANKER_H

#include "FTuner/Search/Candidates.h"
#include "FTuner/Workload/Sampling.h"
#include "FamilyTable.h"

namespace ftuner {

/// A family of a FamilyTable with the rating of its program: its score, less
/// what the strategy holds against it.
struct RankedFamily {
  unsigned family = 0;
  double score = 0;
};

/// How a strategy ranks programs; called with one shape after another.
class ProgramRanker {
public:
  ProgramRanker(const SearchProblem &problem, const CandidateSet &set)
      : problem(problem), table(problem, set) {}
  virtual ~ProgramRanker() = default;

  /// Sees the sampled shapes of the range, once, before any is ranked.
  virtual void prepare(llvm::ArrayRef<Shape> samples) {}
  /// Programs of a shape (every extent ≥ 1) whose families may be chosen, best
  /// first; at least one. The n-th call is sample n − 1.
  virtual llvm::Expected<std::vector<RankedFamily>>
  rank(llvm::ArrayRef<int64_t> shape) = 0;
  /// How well a family serves a shape near a sample: its score, or less where
  /// the strategy would not have chosen it.
  virtual double rate(const KernelFamily &family,
                      const KernelResources &resources,
                      llvm::ArrayRef<int64_t> shape, size_t sample) const {
    return problem.score(family, shape);
  }
  /// Adds to the report of the shape that was ranked last, whose programs are
  /// there, what the strategy's stages did.
  virtual void describe(ShapeReport &report) = 0;
  /// Adds what the strategy counted.
  virtual void report(Plan &plan, size_t numSamples) const = 0;

  const SearchProblem &problem;
  FamilyTable table;
};

/// The shapes of a workload's range that strategies rank, and their weights
/// (relative to each other, positive): for each sampled size of the main axis
/// one of every cell of the other axes.
struct RangeSamples {
  explicit RangeSamples(const Workload &workload);

  std::vector<ShapeCell> cells;
  std::vector<SizeSample> sizes;
  /// Sample of size i and cell j at i · cells.size() + j.
  std::vector<Shape> shapes;
  std::vector<double> weights;
};

/// The ranking without families that run the same program as one before: they
/// differ in a part that has no blocks.
std::vector<RankedFamily>
distinctPrograms(const FamilyTable &table, llvm::ArrayRef<RankedFamily> ranking,
                 llvm::ArrayRef<int64_t> shape);

/// A program of the table with its metrics and the terms of its score.
ReportedProgram reportProgram(const SearchProblem &problem,
                              const KernelFamily &family,
                              llvm::ArrayRef<int64_t> shape);
/// Best first; equal ones keep their order.
void sortByScore(std::vector<RankedFamily> &ranking);

/// A report for each shape: its ranking, and what the ranker describes.
llvm::Expected<std::vector<ShapeReport>>
reportShapes(ProgramRanker &ranker, llvm::ArrayRef<Shape> shapes);

} // namespace ftuner

#endif // FTUNER_LIB_SEARCH_PROGRAMRANKER_H
