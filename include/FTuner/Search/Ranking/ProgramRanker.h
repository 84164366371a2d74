//===- ProgramRanker.h - Programs of shapes, best first ---------*- C++ -*-===//
//
// The interface between a strategy and the planning of a range: a ranker lists
// the programs of each shape, best first, and rates further programs. Plans
// (RangePlanner.h) and reports are made from these rankings.
//
// A ranker is bound to one problem and, by `prepare`, to the sampled shapes of
// its range. From then on every answer is a function of the arguments: it does
// not depend on the shapes that were ranked before, nor on their order. Data
// that a ranker needs again for a shape go into the answer
// (`RankedShape::notes`). Other state of a ranker only saves work.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_SEARCH_RANKING_PROGRAMRANKER_H
#define FTUNER_SEARCH_RANKING_PROGRAMRANKER_H

#include "FTuner/Search/Ranking/FamilyTable.h"
#include "FTuner/Workload/Sampling.h"
#include <memory>

namespace ftuner {

struct ReorderedPrograms;
struct ShapeMeasurements;
class ProgramMeasurements;

/// A family of a FamilyTable with the rating of its program: its score, less
/// the strategy's penalties.
struct RankedFamily {
  unsigned family = 0;
  double score = 0;
};

/// A ranker's answer for one shape.
struct RankedShape {
  /// Data of a ranker for `rate`, `describe` and `report`, private to it.
  struct Notes {
    virtual ~Notes() = default;
  };

  Shape shape;
  /// Programs whose families may be chosen, best first.
  std::vector<RankedFamily> programs;
  /// Number of programs that were rated, whether they are among `programs` or
  /// not.
  int64_t numRated = 0;
  std::shared_ptr<const Notes> notes = nullptr;
  /// Scores of a cost model with a prefilter (Reordering.h); null with other
  /// models.
  std::shared_ptr<const ReorderedPrograms> reordered = nullptr;
  /// Measured times (ProgramMeasurements.h); null if nothing was measured.
  std::shared_ptr<const ShapeMeasurements> measured = nullptr;
};

/// Ranks the programs of shapes for a strategy. Not thread-safe.
class ProgramRanker {
public:
  /// Makes a ranker of programs from the set's candidates. The problem outlives
  /// it.
  ProgramRanker(const SearchProblem &problem, CandidateSet set);
  ProgramRanker(const ProgramRanker &) = delete;
  ProgramRanker &operator=(const ProgramRanker &) = delete;
  virtual ~ProgramRanker();

  /// Returns an error if the ranker cannot handle so many shapes.
  virtual llvm::Error check(size_t numShapes) const {
    return llvm::Error::success();
  }
  /// Receives the sampled shapes of the range, once, before any shape is
  /// ranked.
  virtual void prepare(llvm::ArrayRef<Shape> samples) {}
  /// Ranks a shape (every extent ≥ 1), which may be a sample or not. The answer
  /// has at least one program.
  virtual llvm::Expected<RankedShape> rank(llvm::ArrayRef<int64_t> shape) = 0;
  /// Returns the rating of a family for a shape near one that was ranked: its
  /// score, or less if the strategy would not have chosen it. `resources` are
  /// the family's; `neighbour` is an answer of this ranker.
  virtual double rate(const KernelFamily &family,
                      const KernelResources &resources,
                      llvm::ArrayRef<int64_t> shape,
                      const RankedShape &neighbour) const {
    return problem.score(family, shape);
  }
  /// Returns whether ratings are the scores of
  /// `SearchProblem::rankingEvaluator`. If so, a cost model with a prefilter
  /// orders the best programs anew.
  virtual bool ranksByScore() const { return true; }
  /// Adds the strategy's stages to the report of a shape, which already has its
  /// programs.
  virtual void describe(const RankedShape &ranked, ShapeReport &report) {}
  /// Adds the strategy's counts for the samples to the plan. Each sample may
  /// have only its best program.
  virtual void report(llvm::ArrayRef<RankedShape> samples, Plan &plan) const {}

  /// Sets the measurements of this ranker, before any shape is ranked. Without
  /// them `rankMeasured` and `rateMeasured` are `rank` and `rate`.
  void measureBy(std::unique_ptr<ProgramMeasurements> measurements);
  /// Returns the measurements; null if nothing is measured.
  ProgramMeasurements *measurements() const { return measuring.get(); }
  /// Like `rank`, reordered by a cost model that has a prefilter, and by
  /// measured times if there are any.
  llvm::Expected<RankedShape> rankMeasured(llvm::ArrayRef<int64_t> shape);
  /// Like `rate`, on the scale of `rankMeasured`; `neighbour` is an answer of
  /// that.
  double rateMeasured(const KernelFamily &family,
                      const KernelResources &resources,
                      llvm::ArrayRef<int64_t> shape,
                      const RankedShape &neighbour) const;

  const SearchProblem &problem;
  const CandidateSet set;
  FamilyTable table;

private:
  std::unique_ptr<ProgramMeasurements> measuring;
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

/// Returns the programs without those that equal an earlier one: families may
/// differ only in a part that has no blocks.
std::vector<RankedFamily> distinctPrograms(const FamilyTable &table,
                                           const RankedShape &ranked);

/// Returns a family's program for a shape with its metrics and the terms of its
/// score.
ReportedProgram reportProgram(const SearchProblem &problem,
                              const KernelFamily &family,
                              llvm::ArrayRef<int64_t> shape);
/// Returns a program that runs one uKernel as the program of the family that
/// has only this uKernel. Returns it unchanged if that family is rejected, or
/// slower.
ReportedProgram reportSingle(const SearchProblem &problem,
                             const ReportedProgram &program,
                             llvm::ArrayRef<int64_t> shape);
/// Returns a program of the ranker's table with its rating for the shape and
/// its measured time, if there is one.
ReportedProgram reportRanked(const ProgramRanker &ranker,
                             const RankedShape &ranked,
                             const RankedFamily &rated);
/// Ranks families of the table for a shape by their scores.
RankedShape rankByScore(const FamilyTable &table,
                        llvm::ArrayRef<unsigned> families,
                        llvm::ArrayRef<int64_t> shape);
/// Sorts programs by score, best first; equal ones keep their order.
void sortByScore(std::vector<RankedFamily> &programs);
/// Returns the number of programs that were rated for all of the shapes.
int64_t countRated(llvm::ArrayRef<RankedShape> shapes);

/// Prepares the ranker, and returns a report for each shape: its ranking, and
/// the ranker's description.
llvm::Expected<std::vector<ShapeReport>>
reportShapes(ProgramRanker &ranker, llvm::ArrayRef<Shape> shapes);

} // namespace ftuner

#endif // FTUNER_SEARCH_RANKING_PROGRAMRANKER_H
