//===- RangePlanner.h - From ranked shapes to a plan ------------*- C++ -*-===//
//
// What strategies share: shapes of the range are sampled, the strategy ranks
// the programs of each, few families are chosen that lose little on all of
// them, and every shape is sent to the best of these. Cost grows with the
// number of samples and of kernels, not with the range.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_SEARCH_RANGEPLANNER_H
#define FTUNER_LIB_SEARCH_RANGEPLANNER_H

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

/// A plan for the whole range. Ranks the shapes of `RangeSamples`, and for a
/// closed range one more beyond it.
llvm::Expected<Plan> planRange(ProgramRanker &ranker);

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

#endif // FTUNER_LIB_SEARCH_RANGEPLANNER_H
