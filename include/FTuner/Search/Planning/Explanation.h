//===- Explanation.h - Why a shape is served as it is -----------*- C++ -*-===//
//
// A plan is made for a range with few kernels; a strategy judges one shape by
// itself. Both answers side by side say why a program was chosen, what it beat,
// and what few kernels cost. Whatever the cost model is, times are those that
// `latency` predicts.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_SEARCH_PLANNING_EXPLANATION_H
#define FTUNER_SEARCH_PLANNING_EXPLANATION_H

#include "FTuner/Search/Problem/SearchStrategy.h"
#include <array>
#include <map>

namespace ftuner {

/// The way a plan serves one shape, and the strategy's judgement of the shape.
struct ShapeExplanation {
  /// The strategy's judgement, whatever the plan holds.
  ShapeReport report;
  /// The plan's family for operands at aligned addresses, by index.
  unsigned family = 0;
  /// The plan's entry that holds the shape. Without an entry the general family
  /// serves the shape or, if the shape is not aligned, the unaligned general
  /// family.
  std::optional<unsigned> entry;
  /// True if the shape has the alignment of `Plan::alignment`, given aligned
  /// pointers; if not, `entry` is one of `Plan::unalignedEntries`.
  bool isAligned = true;
  /// The program of that family.
  ReportedProgram program;
  /// The score of the shape's best program minus the score of `program`. It is
  /// below 0 if the strategy prefers the former although `program` scores
  /// higher.
  double scoreLoss = 0;
  /// True if a family of the plan runs the shape's best program.
  bool planHasBest = false;

  /// The strategy's choice for the shape under the cost model `sia`.
  ReportedProgram siaChoice;
  /// The program with the minimum predicted time among the plan's programs, the
  /// programs of the report, SIA's choice and, under a cost model that does not
  /// predict times, the strategy's choice by predicted times.
  ReportedProgram fastest;
  /// The program with the second lowest predicted time; no value if all run the
  /// same.
  std::optional<ReportedProgram> next;
  /// Probability that `fastest` is really at least as fast as `next`, and the
  /// mean gain of measuring both, as a share of the time; by the cost model
  /// that predicted their times (`ChoiceConfidence`).
  double confidence = 1, measurementGain = 0;
  /// `ftuner::rooflineMicroseconds`.
  double rooflineMicroseconds = 0;

  const ReportedProgram &best() const { return report.programs.front(); }
  /// Returns the predicted time of a program divided by the fastest one's,
  /// minus 1.
  double regretOf(const ReportedProgram &reported) const {
    return reported.microseconds() / fastest.microseconds() - 1;
  }
  double regret() const { return regretOf(program); }
};

/// Explains shapes (every extent ≥ 1) in their order. Returns an error for a
/// problem that does not pass its check, for families that cannot be emitted,
/// and if the strategy finds no program. The budget of the context is for the
/// strategy's judgement by the problem's cost model; judgements by other models
/// measure nothing new.
llvm::Expected<std::vector<ShapeExplanation>>
explainShapes(const SearchProblem &problem, const SearchStrategy &strategy,
              const Plan &plan, llvm::ArrayRef<Shape> shapes,
              const SearchContext &context = {});

/// Returns whether two programs run the same uKernels with the same numbers of
/// blocks, stages and accesses; parts without blocks do not count.
bool runsTheSame(const ReportedProgram &lhs, const ReportedProgram &rhs);

/// Returns the minimum microseconds in which a device computes a shape at its
/// peak and moves every operand once between DRAM and the SMs, plus the time of
/// a launch. A kernel may be faster if operands are in L2 already.
double rooflineMicroseconds(const SearchProblem &problem,
                            llvm::ArrayRef<int64_t> shape);

//===----------------------------------------------------------------------===//
// Many shapes
//===----------------------------------------------------------------------===//

/// Figures over several shapes; means are weighted.
struct ExplanationSummary {
  /// Predicted time divided by the time of each shape's fastest program,
  /// less 1.
  struct Regret {
    double mean = 0, worst = 0;
    /// Index of the shape with the worst regret.
    size_t worstShape = 0;
  };
  Regret chosen, siaChoice;
  /// Regret of the best single uKernel over the shapes that have one; no value
  /// if none has.
  std::optional<Regret> bestSingle;
  /// Mean ratio of the predicted time to the roofline.
  double timesRoofline = 0;
  /// Names of terms and the mean share of the predicted time that each has.
  std::vector<std::pair<std::string, double>> termShares;
  /// Shapes by the confidence of their choice.
  struct ConfidenceBand {
    double atLeast = 0;
    size_t shapes = 0;
  };
  std::array<ConfidenceBand, 4> confidence = {
      {{0.95, 0}, {0.8, 0}, {0.65, 0}, {0, 0}}};
  /// Neighbouring shapes with the same two fastest programs, which are worth
  /// measuring. The list is sorted by the sum of weight · gain, the greatest
  /// first.
  struct Measurement {
    size_t firstShape = 0, lastShape = 0;
    /// Mean gain over these shapes and over all shapes, as shares of the time.
    double gain = 0, gainOfAll = 0;
  };
  std::vector<Measurement> worthMeasuring;
};

/// Summarizes at least one shape, in ascending order. `weights` has a positive
/// weight for each shape, relative to each other.
ExplanationSummary summarize(llvm::ArrayRef<ShapeExplanation> shapes,
                             llvm::ArrayRef<double> weights);

/// Sizes by the names of symbols and axes.
using NamedSizes = std::map<std::string, int64_t>;

/// Returns the names by which sizes of the workload are given: its symbols, and
/// the name of every other axis of dynamic extent ("axis_M" if a symbol is
/// called M).
std::vector<std::string> sizeNames(const Workload &workload);

/// Returns the shape at the named sizes; other names are ignored. Returns an
/// error if a size is missing or not positive, or if the shape is too large.
llvm::Expected<Shape> bindSizes(const Workload &workload,
                                const NamedSizes &sizes);

/// Returns an error if an extent exceeds `maxExtent`, or if there are too many
/// points.
llvm::Error checkExtents(const Workload &workload,
                         llvm::ArrayRef<int64_t> shape);

/// Shapes and their weights: by the declared histogram of the main axis, or
/// else equal. Weights add up to 1.
struct ShapeSamples {
  std::vector<Shape> shapes;
  std::vector<double> weights;
};

/// Returns shapes along the main axis: all of its sizes if there are at most
/// `limit`, or else a sample. Other axes that do not follow the main one have a
/// representative size.
ShapeSamples shapesAlongMainAxis(const Workload &workload, int64_t limit);

} // namespace ftuner

#endif // FTUNER_SEARCH_PLANNING_EXPLANATION_H
