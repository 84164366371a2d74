//===- Explanation.h - Why a shape is served as it is -----------*- C++ -*-===//
//
// A plan is made for a range with few kernels; a strategy judges one shape by
// itself. Both answers side by side say why a program was chosen, what it beat,
// and what few kernels cost.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_SEARCH_EXPLANATION_H
#define FTUNER_SEARCH_EXPLANATION_H

#include "FTuner/Search/SearchStrategy.h"
#include <map>

namespace ftuner {

/// How a plan serves one shape, and how the strategy judges the shape.
struct ShapeExplanation {
  /// The strategy's judgement, whatever the plan holds.
  ShapeReport report;
  /// The plan's family for operands at aligned addresses, by index.
  unsigned family = 0;
  /// The plan's entry that holds the shape; without one the general family
  /// serves it.
  std::optional<unsigned> entry;
  /// Whether the shape allows the accesses of the family that the plan names
  /// for it, given aligned pointers; if not, `family` is the fallback.
  bool isAligned = true;
  /// The program of that family.
  ReportedProgram program;
  /// The score of the shape's best program less that of `program`. Below 0 if
  /// the strategy prefers the former although `program` scores higher.
  double scoreLoss = 0;
  /// Whether a family of the plan runs the shape's best program.
  bool planHasBest = false;

  const ReportedProgram &best() const { return report.programs.front(); }
};

/// Explains shapes (every extent ≥ 1) in their order. Fails for a problem that
/// does not pass its check, for families that cannot be emitted, and where the
/// strategy finds no program.
llvm::Expected<std::vector<ShapeExplanation>>
explainShapes(const SearchProblem &problem, const SearchStrategy &strategy,
              const Plan &plan, llvm::ArrayRef<Shape> shapes);

/// Whether the same uKernels run the same numbers of blocks, with the same
/// stages and accesses; parts without blocks do not count.
bool runsTheSame(const ReportedProgram &lhs, const ReportedProgram &rhs);

/// Sizes by the names of symbols and axes.
using NamedSizes = std::map<std::string, int64_t>;

/// The names that sizes of the workload are given by: its symbols, and the name
/// of every other axis of dynamic extent ("axis_M" where a symbol is called M).
std::vector<std::string> sizeNames(const Workload &workload);

/// The shape at the named sizes; names that the workload lacks are left aside.
/// An error if a size is missing or not positive, or if the shape is too large.
llvm::Expected<Shape> bindSizes(const Workload &workload,
                                const NamedSizes &sizes);

/// Shapes along the main axis: all its sizes if there are at most `limit`, else
/// a sample. Axes with sizes of their own stay at a representative one.
std::vector<Shape> shapesAlongMainAxis(const Workload &workload, int64_t limit);

} // namespace ftuner

#endif // FTUNER_SEARCH_EXPLANATION_H
