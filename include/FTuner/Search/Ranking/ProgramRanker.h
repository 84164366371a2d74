//===- ProgramRanker.h - Programs of shapes, best first ---------*- C++ -*-===//
//
// What a strategy says of programs: of each shape which there are, in which
// order, and how good one is beside them. Plans (RangePlanner.h) and reports
// are made of that.
//
// A ranker is bound to one problem and, by `prepare`, to the sampled shapes of
// its range. From then on every answer follows from the arguments alone: which
// shapes were ranked before, and in which order, does not matter. What a ranker
// wants to know again of a shape goes into the answer (`RankedShape::notes`).
// What it keeps for itself only saves work.
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
/// what the strategy holds against it.
struct RankedFamily {
  unsigned family = 0;
  double score = 0;
};

/// What a ranker says of one shape.
struct RankedShape {
  /// What a ranker needs for `rate`, `describe` and `report`; its own affair.
  struct Notes {
    virtual ~Notes() = default;
  };

  Shape shape;
  /// Programs whose families may be chosen, best first.
  std::vector<RankedFamily> programs;
  /// Programs that were rated, whether they are among `programs` or not.
  int64_t numRated = 0;
  std::shared_ptr<const Notes> notes = nullptr;
  /// What a cost model with a prefilter says of the best; null with others
  /// (Reordering.h).
  std::shared_ptr<const ReorderedPrograms> reordered = nullptr;
  /// What was measured; null where nothing was (ProgramMeasurements.h).
  std::shared_ptr<const ShapeMeasurements> measured = nullptr;
};

/// How a strategy ranks programs. Not for several threads at once.
class ProgramRanker {
public:
  /// The problem outlives the ranker. Programs are made of the set's
  /// candidates.
  ProgramRanker(const SearchProblem &problem, CandidateSet set);
  ProgramRanker(const ProgramRanker &) = delete;
  ProgramRanker &operator=(const ProgramRanker &) = delete;
  virtual ~ProgramRanker();

  /// An error if the ranker cannot walk so many shapes.
  virtual llvm::Error check(size_t numShapes) const {
    return llvm::Error::success();
  }
  /// Sees the sampled shapes of the range, once, before any shape is ranked.
  virtual void prepare(llvm::ArrayRef<Shape> samples) {}
  /// Ranks a shape (every extent ≥ 1), a sample or another one: at least one
  /// program.
  virtual llvm::Expected<RankedShape> rank(llvm::ArrayRef<int64_t> shape) = 0;
  /// How well a family serves a shape near one that was ranked: its score, or
  /// less where the strategy would not have chosen it. `resources` are those of
  /// the family; `near` is an answer of this ranker.
  virtual double rate(const KernelFamily &family,
                      const KernelResources &resources,
                      llvm::ArrayRef<int64_t> shape,
                      const RankedShape &near) const {
    return problem.score(family, shape);
  }
  /// Whether ratings are the scores of `SearchProblem::rankingEvaluator`: then
  /// a cost model with a prefilter has the last word.
  virtual bool ranksByScore() const { return true; }
  /// Adds to the report of a shape, whose programs are there, what the
  /// strategy's stages did.
  virtual void describe(const RankedShape &ranked, ShapeReport &report) {}
  /// Adds what the strategy counted for the samples. Of their programs only the
  /// best may be there.
  virtual void report(llvm::ArrayRef<RankedShape> samples, Plan &plan) const {}

  /// What measures for this ranker, before any shape is ranked. Without it the
  /// functions below say what `rank` and `rate` do.
  void measureBy(std::unique_ptr<ProgramMeasurements> measurements);
  /// Null where nothing measures.
  ProgramMeasurements *measurements() const { return measuring.get(); }
  /// `rank`, by the cost model where `rank` goes by its prefilter, and by
  /// measured times where there are such.
  llvm::Expected<RankedShape> rankMeasured(llvm::ArrayRef<int64_t> shape);
  /// `rate`, by the same; `near` is an answer of `rankMeasured`.
  double rateMeasured(const KernelFamily &family,
                      const KernelResources &resources,
                      llvm::ArrayRef<int64_t> shape,
                      const RankedShape &near) const;

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

/// The programs without families that run the same program as one before: they
/// differ in a part that has no blocks.
std::vector<RankedFamily> distinctPrograms(const FamilyTable &table,
                                           const RankedShape &ranked);

/// A program of the table with its metrics and the terms of its score.
ReportedProgram reportProgram(const SearchProblem &problem,
                              const KernelFamily &family,
                              llvm::ArrayRef<int64_t> shape);
/// A program that runs one uKernel, as that of a family of this uKernel alone;
/// unchanged where that family is rejected, or slower.
ReportedProgram reportSingle(const SearchProblem &problem,
                             const ReportedProgram &program,
                             llvm::ArrayRef<int64_t> shape);
/// A program of the ranker's table with its rating for the shape and, where
/// there is one, its measured time.
ReportedProgram reportRanked(const ProgramRanker &ranker,
                             const RankedShape &ranked,
                             const RankedFamily &rated);
/// Families of the table as the programs of a shape, by their scores.
RankedShape rankByScore(const FamilyTable &table,
                        llvm::ArrayRef<unsigned> families,
                        llvm::ArrayRef<int64_t> shape);
/// Best first; equal ones keep their order.
void sortByScore(std::vector<RankedFamily> &programs);
/// Programs that were rated for all of the shapes.
int64_t countRated(llvm::ArrayRef<RankedShape> shapes);

/// A report for each shape: its ranking, and what the ranker describes.
/// Prepares the ranker.
llvm::Expected<std::vector<ShapeReport>>
reportShapes(ProgramRanker &ranker, llvm::ArrayRef<Shape> shapes);

} // namespace ftuner

#endif // FTUNER_SEARCH_RANKING_PROGRAMRANKER_H
