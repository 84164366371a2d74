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

/// How a plan serves one shape, and how the strategy judges the shape.
struct ShapeExplanation {
  /// The strategy's judgement, whatever the plan holds.
  ShapeReport report;
  /// The plan's family for operands at aligned addresses, by index.
  unsigned family = 0;
  /// The plan's entry that holds the shape; without one the general family
  /// serves it, or the unaligned general family if it is not aligned.
  std::optional<unsigned> entry;
  /// Whether the shape has the alignment of `Plan::alignment`, given aligned
  /// pointers; if not, `entry` is one of `Plan::unalignedEntries`.
  bool isAligned = true;
  /// The program of that family.
  ReportedProgram program;
  /// The score of the shape's best program less that of `program`. Below 0 if
  /// the strategy prefers the former although `program` scores higher.
  double scoreLoss = 0;
  /// Whether a family of the plan runs the shape's best program.
  bool planHasBest = false;

  /// What the strategy chooses for the shape under the cost model `sia`.
  ReportedProgram siaChoice;
  /// The program with the least predicted time of all that were seen: that of
  /// the plan, those of the report, SIA's choice, and under a cost model that
  /// predicts no times what the strategy chooses by predicted times.
  ReportedProgram fastest;
  /// The one with the next least; none if all run the same.
  std::optional<ReportedProgram> next;
  /// How likely `fastest` is really at least as fast as `next`, and what
  /// measuring the two gains on average, as a share of the time: the word of
  /// the cost model that predicted their times (`ChoiceConfidence`).
  double confidence = 1, measurementGain = 0;
  /// `ftuner::rooflineMicroseconds`.
  double rooflineMicroseconds = 0;

  const ReportedProgram &best() const { return report.programs.front(); }
  /// Predicted time of a program over that of the fastest one, less 1.
  double regretOf(const ReportedProgram &reported) const {
    return reported.microseconds() / fastest.microseconds() - 1;
  }
  double regret() const { return regretOf(program); }
};

/// Explains shapes (every extent ≥ 1) in their order. Fails for a problem that
/// does not pass its check, for families that cannot be emitted, and where the
/// strategy finds no program. The budget of
/// the context is for the strategy's judgement by the problem's cost model;
/// those by others measure nothing new.
llvm::Expected<std::vector<ShapeExplanation>>
explainShapes(const SearchProblem &problem, const SearchStrategy &strategy,
              const Plan &plan, llvm::ArrayRef<Shape> shapes,
              const SearchContext &context = {});

/// Whether the same uKernels run the same numbers of blocks, with the same
/// stages and accesses; parts without blocks do not count.
bool runsTheSame(const ReportedProgram &lhs, const ReportedProgram &rhs);

/// The least microseconds in which a device computes a shape at its peak and
/// moves every operand once between DRAM and the SMs, plus what precedes a
/// kernel. Operands that are in L2 already may beat it.
double rooflineMicroseconds(const SearchProblem &problem,
                            llvm::ArrayRef<int64_t> shape);

//===----------------------------------------------------------------------===//
// Many shapes
//===----------------------------------------------------------------------===//

/// Figures over several shapes; means are weighted.
struct ExplanationSummary {
  /// Predicted time over that of each shape's fastest program, less 1.
  struct Regret {
    double mean = 0, worst = 0;
    /// The shape with the worst, by index.
    size_t worstShape = 0;
  };
  Regret chosen, siaChoice;
  /// Of the shapes that have a best single uKernel; none if no shape has.
  std::optional<Regret> bestSingle;
  /// Mean of the predicted time over the roofline.
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
  /// Neighbouring shapes with the same two fastest programs; measuring these
  /// two is worth most here, the greatest sum of weight · gain first.
  struct Measurement {
    size_t firstShape = 0, lastShape = 0;
    /// Mean gain over its shapes, and what that is worth over all shapes: both
    /// as shares of the time.
    double gain = 0, gainOfAll = 0;
  };
  std::vector<Measurement> worthMeasuring;
};

/// Sums up shapes in ascending order; at least one. Weights are relative to
/// each other, one for each shape, positive.
ExplanationSummary summarize(llvm::ArrayRef<ShapeExplanation> shapes,
                             llvm::ArrayRef<double> weights);

/// Sizes by the names of symbols and axes.
using NamedSizes = std::map<std::string, int64_t>;

/// The names that sizes of the workload are given by: its symbols, and the name
/// of every other axis of dynamic extent ("axis_M" where a symbol is called M).
std::vector<std::string> sizeNames(const Workload &workload);

/// The shape at the named sizes; names that the workload lacks are left aside.
/// An error if a size is missing or not positive, or if the shape is too large.
llvm::Expected<Shape> bindSizes(const Workload &workload,
                                const NamedSizes &sizes);

/// An error if an extent is beyond `maxExtent`, or if there are too many
/// points.
llvm::Error checkExtents(const Workload &workload,
                         llvm::ArrayRef<int64_t> shape);

/// Shapes, and how often each occurs: by the declared histogram of the main
/// axis, else all alike. Weights add up to 1.
struct ShapeSamples {
  std::vector<Shape> shapes;
  std::vector<double> weights;
};

/// Shapes along the main axis: all its sizes if there are at most `limit`, else
/// a sample. Axes with sizes of their own stay at a representative one.
ShapeSamples shapesAlongMainAxis(const Workload &workload, int64_t limit);

} // namespace ftuner

#endif // FTUNER_SEARCH_PLANNING_EXPLANATION_H
