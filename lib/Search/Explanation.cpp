//===- Explanation.cpp - Why a shape is served as it is -------------------===//
#include "FTuner/Search/Explanation.h"
#include "FTuner/Search/Sampling.h"
#include "RangePlanner.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace ftuner;

/// Blocks and points of a shape are counted in 64 bits.
static constexpr int64_t maxPoints = int64_t{1} << 62;

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

/// The name that the size of an axis without symbols is given by.
static std::string nameOf(const Workload &workload, const Axis &axis) {
  std::string name = axis.name;
  auto isSymbol = [&](llvm::StringRef text) {
    return llvm::any_of(workload.axes, [&](const Axis &other) {
      return llvm::is_contained(other.symbols, text);
    });
  };
  while (isSymbol(name))
    name = "axis_" + name;
  return name;
}

/// The names whose sizes make the extent of an axis; none for a fixed one.
static std::vector<std::string> namesOf(const Workload &workload,
                                        const Axis &axis) {
  if (!axis.isDynamic())
    return {};
  if (axis.symbols.empty())
    return {nameOf(workload, axis)};
  return axis.symbols;
}

std::vector<std::string> ftuner::sizeNames(const Workload &workload) {
  std::vector<std::string> names;
  for (const Axis &axis : workload.axes)
    for (std::string &name : namesOf(workload, axis))
      if (!llvm::is_contained(names, name))
        names.push_back(std::move(name));
  return names;
}

llvm::Expected<Shape> ftuner::bindSizes(const Workload &workload,
                                        const NamedSizes &sizes) {
  Shape shape;
  int64_t points = 1;
  for (const Axis &axis : workload.axes) {
    int64_t extent = axis.isDynamic() ? axis.factor : axis.range.min;
    for (const std::string &name : namesOf(workload, axis)) {
      auto size = sizes.find(name);
      if (size == sizes.end())
        return llvm::createStringError(
            "expected a size of '" + name + "' for axis " + axis.name +
            " of workload '" + workload.name + "', whose sizes are " +
            llvm::join(sizeNames(workload), ", "));
      if (size->second < 1)
        return llvm::createStringError("expected a positive size of '" + name +
                                       "', but got " +
                                       llvm::Twine(size->second));
      if (llvm::MulOverflow(extent, size->second, extent) || extent > maxExtent)
        return llvm::createStringError(
            "expected an extent of at most " + llvm::Twine(maxExtent) +
            " on axis " + axis.name + " of workload '" + workload.name + "'");
    }
    shape.push_back(std::max<int64_t>(extent, 1));
    if (llvm::MulOverflow(points, shape.back(), points) || points > maxPoints)
      return llvm::createStringError("expected fewer points in the iteration "
                                     "space of workload '" +
                                     workload.name + "'");
  }
  return shape;
}

std::vector<Shape> ftuner::shapesAlongMainAxis(const Workload &workload,
                                               int64_t limit) {
  unsigned mainAxis = workload.mainAxis();
  // The cell at the middle sizes of all other axes.
  std::vector<ShapeCell> cells = shapeCells(workload, mainAxis);
  const ShapeCell &cell = cells[cells.size() / 2];
  std::vector<Shape> shapes;
  for (const SizeSample &sample : sampleSizes(workload.axes[mainAxis], limit))
    shapes.push_back(shapeAt(workload, cell, mainAxis, sample.size));
  return shapes;
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

bool ftuner::runsTheSame(const ReportedProgram &lhs,
                         const ReportedProgram &rhs) {
  KernelFamily a = runningParts(lhs.family, lhs.cover);
  KernelFamily b = runningParts(rhs.family, rhs.cover);
  return a == b && lhs.cover.blocks() == rhs.cover.blocks() &&
         (a.parts.size() == 1 || lhs.cover.first == rhs.cover.first);
}

llvm::Expected<std::vector<ShapeExplanation>>
ftuner::explainShapes(const SearchProblem &problem,
                      const SearchStrategy &strategy, const Plan &plan,
                      llvm::ArrayRef<Shape> shapes) {
  if (llvm::Error error = problem.check())
    return error;
  for (auto [index, family] : llvm::enumerate(plan.families))
    if (llvm::Error error = checkFamily(problem, family))
      return llvm::createStringError("family " + llvm::Twine(index) + " (" +
                                     family.str() +
                                     "): " + llvm::toString(std::move(error)));
  llvm::Expected<std::vector<ShapeReport>> reports =
      strategy.explain(problem, shapes);
  if (!reports)
    return reports.takeError();
  std::vector<ShapeExplanation> explanations;
  for (ShapeReport &report : *reports) {
    if (report.programs.empty())
      return llvm::createStringError("strategy '" + strategy.name() +
                                     "' found no program for workload '" +
                                     problem.workload.name + "'");
    ShapeExplanation &explanation = explanations.emplace_back();
    explanation.report = std::move(report);
    const Shape &shape = explanation.report.shape;
    explanation.entry = plan.entryFor(shape);
    explanation.family = plan.familyFor(shape);
    explanation.isAligned =
        plan.families[explanation.family].vectorWidth <=
        problem.codegen.vectorWidth(problem.workload, shape);
    if (!explanation.isAligned)
      explanation.family = plan.fallbackFamily;
    explanation.program =
        reportProgram(problem, plan.families[explanation.family], shape);
    explanation.scoreLoss =
        explanation.best().score.score - explanation.program.score.score;
    explanation.planHasBest =
        llvm::any_of(plan.families, [&](const KernelFamily &family) {
          ReportedProgram program;
          program.family = family;
          program.cover = coverExtent(family, shape[family.combineAxis]);
          return runsTheSame(program, explanation.best());
        });
  }
  return explanations;
}
