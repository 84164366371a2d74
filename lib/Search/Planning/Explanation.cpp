//===- Explanation.cpp - Why a shape is served as it is -------------------===//
#include "FTuner/Search/Planning/Explanation.h"
#include "FTuner/Schedule/Alignment.h"
#include "FTuner/Search/Problem/Feasibility.h"
#include "FTuner/Search/Problem/SearchTuning.h"
#include "FTuner/Search/Ranking/ProgramRanker.h"
#include "FTuner/Workload/Sampling.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace ftuner;

/// Blocks and points of a shape are counted in 64 bits.
static constexpr int64_t maxPoints = int64_t{1} << 62;
/// Cost models that programs are compared under, whatever the search's is.
static constexpr llvm::StringLiteral siaModel = "sia", timeModel = "latency";

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

/// Returns the name by which the size of an axis without symbols is given.
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

/// Returns the names whose sizes make the extent of an axis; none for a fixed
/// extent.
static std::vector<std::string> axisNames(const Workload &workload,
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
    for (std::string &name : axisNames(workload, axis))
      if (!llvm::is_contained(names, name))
        names.push_back(std::move(name));
  return names;
}

llvm::Expected<Shape> ftuner::bindSizes(const Workload &workload,
                                        const NamedSizes &sizes) {
  Shape shape;
  for (const Axis &axis : workload.axes) {
    int64_t extent = axis.isDynamic() ? axis.factor : axis.range.min;
    for (const std::string &name : axisNames(workload, axis)) {
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
      if (llvm::MulOverflow(extent, size->second, extent))
        extent = std::numeric_limits<int64_t>::max();
    }
    shape.push_back(std::max<int64_t>(extent, 1));
  }
  if (llvm::Error error = checkExtents(workload, shape))
    return error;
  return shape;
}

llvm::Error ftuner::checkExtents(const Workload &workload,
                                 llvm::ArrayRef<int64_t> shape) {
  int64_t points = 1;
  for (auto [axis, extent] : llvm::zip_equal(workload.axes, shape)) {
    if (extent > maxExtent)
      return llvm::createStringError(
          "expected an extent of at most " + llvm::Twine(maxExtent) +
          " on axis " + axis.name + " of workload '" + workload.name + "'");
    if (llvm::MulOverflow(points, extent, points) || points > maxPoints)
      return llvm::createStringError("expected fewer points in the iteration "
                                     "space of workload '" +
                                     workload.name + "'");
  }
  return llvm::Error::success();
}

ShapeSamples ftuner::shapesAlongMainAxis(const Workload &workload,
                                         int64_t limit) {
  unsigned mainAxis = workload.mainAxis();
  // The cell at the middle sizes of all other axes.
  std::vector<ShapeCell> cells = shapeCells(workload, mainAxis);
  const ShapeCell &cell = cells[cells.size() / 2];
  ShapeSamples samples;
  double sum = 0;
  for (const SizeSample &sample : sampleSizes(workload.axes[mainAxis], limit)) {
    samples.shapes.push_back(shapeAt(workload, cell, mainAxis, sample.size));
    samples.weights.push_back(sample.weight);
    sum += sample.weight;
  }
  for (double &weight : samples.weights)
    weight /= sum;
  return samples;
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

bool ftuner::runsTheSame(const ReportedProgram &lhs,
                         const ReportedProgram &rhs) {
  KernelFamily a = runningParts(lhs.family, lhs.partition);
  KernelFamily b = runningParts(rhs.family, rhs.partition);
  return a == b && lhs.partition.blocks() == rhs.partition.blocks() &&
         (a.tiles.size() == 1 || lhs.partition.first == rhs.partition.first);
}

double ftuner::rooflineMicroseconds(const SearchProblem &problem,
                                    llvm::ArrayRef<int64_t> shape) {
  double bytes = problem.workload.compulsoryBytes(shape);
  // The peak of the fastest path.
  double peak = 0;
  for (const CodegenModel *path : problem.paths) {
    llvm::Error error = path->supports(problem.workload, problem.device);
    if (!error)
      peak = std::max(peak, path->peakFlops(problem.workload, problem.device));
    llvm::consumeError(std::move(error));
  }
  double compute =
      problem.workload.flops(problem.workload.mainComputation(), shape) /
      (peak * 1e-6);
  double memory = bytes / (problem.device.dramGbps * 1e3);
  return problem.options.cost.calibration.constants.launch +
         std::max(compute, memory);
}

/// Fills in the plan's choice for a shape.
static void explainChoice(const SearchProblem &problem, const Plan &plan,
                          ShapeExplanation &explanation) {
  const Shape &shape = explanation.report.shape;
  int64_t alignment = alignmentOf(problem.workload, shape);
  explanation.isAligned = alignment >= plan.alignment();
  explanation.entry = entryFor(
      explanation.isAligned ? plan.entries : plan.unalignedEntries, shape);
  explanation.family = plan.familyFor(shape, alignment);
  explanation.program =
      reportProgram(problem, plan.families[explanation.family], shape);
  // The rating comes from the report, or else from the search that made the
  // plan.
  for (const ReportedProgram &program : explanation.report.programs)
    if (runsTheSame(program, explanation.program))
      explanation.program.measuredMicroseconds = program.measuredMicroseconds;
  for (const ShapePrediction &prediction : plan.predictions)
    if (!explanation.program.measuredMicroseconds &&
        prediction.measuredMicroseconds > 0 && prediction.shape == shape &&
        prediction.family == explanation.family)
      explanation.program.measuredMicroseconds =
          prediction.measuredMicroseconds;
  explanation.scoreLoss =
      explanation.best().score.score - explanation.program.score.score;
  explanation.planHasBest =
      llvm::any_of(plan.families, [&](const KernelFamily &family) {
        ReportedProgram program;
        program.family = family;
        program.partition = partitionShape(family, shape);
        return runsTheSame(program, explanation.best());
      });
}

/// Makes the fastest program of one uKernel that was seen the best one, if the
/// search ranks by predicted time: the plan may have families that only other
/// shapes proposed.
static void raiseBestSingle(const SearchProblem &problem,
                            llvm::ArrayRef<const ReportedProgram *> seen,
                            ShapeReport &report) {
  if (!problem.costModel.predictsTime() || !report.measurer.empty())
    return;
  for (const ReportedProgram *program : seen)
    if (runsOneUKernel(program->partition) &&
        (!report.bestSingle ||
         program->microseconds() < report.bestSingle->microseconds()))
      report.bestSingle = reportSingle(problem, *program, report.shape);
}

/// Compares the predicted times of the programs that were seen for the shape.
static void compareTimes(const SearchProblem &problem,
                         llvm::ArrayRef<ReportedProgram> others,
                         ShapeExplanation &explanation) {
  ShapeReport &report = explanation.report;
  std::vector<const ReportedProgram *> seen = {&explanation.program,
                                               &explanation.siaChoice};
  for (const ReportedProgram &program : report.programs)
    seen.push_back(&program);
  for (const ReportedProgram &program : others)
    seen.push_back(&program);
  raiseBestSingle(problem, seen, report);
  if (report.bestSingle)
    seen.push_back(&*report.bestSingle);
  llvm::stable_sort(seen,
                    [](const ReportedProgram *lhs, const ReportedProgram *rhs) {
                      return lhs->microseconds() < rhs->microseconds();
                    });
  // Predictions are for accesses that the shape allows.
  int64_t alignment = alignmentOf(problem.workload, report.shape);
  auto asItRuns = [&](ReportedProgram program) {
    program.family = program.family.path().relaxed(program.family, alignment);
    return program;
  };
  explanation.fastest = *seen.front();
  auto next = llvm::find_if(seen, [&](const ReportedProgram *program) {
    return !runsTheSame(asItRuns(*program), asItRuns(explanation.fastest));
  });
  if (next != seen.end()) {
    double first = explanation.fastest.microseconds();
    double second = (*next)->microseconds();
    explanation.next = **next;
    ChoiceConfidence confidence = problem.predictor()
                                      .confidence(-first, -second)
                                      .value_or(ChoiceConfidence());
    explanation.confidence = confidence.probability;
    explanation.measurementGain = confidence.measurementGain;
  }
  explanation.rooflineMicroseconds =
      rooflineMicroseconds(problem, report.shape);
}

/// Returns the strategy's reports for shapes: up to `topK` programs of each, at
/// least one.
static llvm::Expected<std::vector<ShapeReport>>
judge(SearchProblem problem, const SearchStrategy &strategy,
      const SearchContext &context, llvm::ArrayRef<Shape> shapes,
      int64_t topK) {
  problem.options.topK = topK;
  llvm::Expected<std::vector<ShapeReport>> reports =
      strategy.explain(problem, context, shapes);
  if (!reports)
    return reports.takeError();
  for (const ShapeReport &report : *reports)
    if (report.programs.empty())
      return llvm::createStringError("strategy '" + strategy.name() +
                                     "' found no program for workload '" +
                                     problem.workload.name + "'");
  return reports;
}

/// Returns the problem under another cost model; both share their predictions.
static SearchProblem underModel(const SearchProblem &problem,
                                const CostModel &costModel) {
  SearchProblem other{problem.workload, problem.device,  problem.paths,
                      costModel,        problem.options, problem.rejected};
  other.options.measuring = {};
  problem.predictor();
  const std::shared_ptr<CostEvaluator> &predictor =
      problem.costModel.predictsTime() ? problem.madeEvaluator
                                       : problem.madePredictor;
  (costModel.predictsTime() ? other.madeEvaluator : other.madePredictor) =
      predictor;
  return other;
}

llvm::Expected<std::vector<ShapeExplanation>>
ftuner::explainShapes(const SearchProblem &problem,
                      const SearchStrategy &strategy, const Plan &plan,
                      llvm::ArrayRef<Shape> shapes,
                      const SearchContext &context) {
  if (llvm::Error error = problem.check())
    return error;
  for (auto [index, family] : llvm::enumerate(plan.families))
    if (llvm::Error error = checkKernel(problem, family))
      return llvm::createStringError("family " + llvm::Twine(index) + " (" +
                                     family.str() +
                                     "): " + llvm::toString(std::move(error)));
  auto topK = static_cast<size_t>(problem.options.topK);
  auto reports =
      judge(problem, strategy, context, shapes, shownPrograms(problem.options));
  if (!reports)
    return reports.takeError();
  // Nothing more is measured.
  SearchContext spent = context;
  spent.budget = 0;
  spent.measurer = nullptr;
  std::vector<ShapeReport> bySia, byTime;
  if (problem.costModel.name() != siaModel) {
    auto answer = judge(underModel(problem, *findCostModel(siaModel)), strategy,
                        spent, shapes, 1);
    if (!answer)
      return answer.takeError();
    bySia = std::move(*answer);
  }
  if (!problem.costModel.predictsTime()) {
    auto answer = judge(underModel(problem, *findCostModel(timeModel)),
                        strategy, spent, shapes, 2);
    if (!answer)
      return answer.takeError();
    byTime = std::move(*answer);
  }
  std::vector<ShapeExplanation> explanations(shapes.size());
  for (auto [index, explanation] : llvm::enumerate(explanations)) {
    explanation.report = std::move((*reports)[index]);
    std::vector<ReportedProgram> &programs = explanation.report.programs;
    explanation.siaChoice =
        bySia.empty() ? programs.front() : bySia[index].programs.front();
    explainChoice(problem, plan, explanation);
    llvm::ArrayRef<ReportedProgram> others;
    if (!byTime.empty())
      others = byTime[index].programs;
    compareTimes(problem, others, explanation);
    programs.erase(programs.begin() + std::min(topK, programs.size()),
                   programs.end());
  }
  return explanations;
}

//===----------------------------------------------------------------------===//
// Many shapes
//===----------------------------------------------------------------------===//

/// Returns the mean and the worst regret of a program of each shape.
static ExplanationSummary::Regret sumRegret(
    llvm::ArrayRef<ShapeExplanation> shapes, llvm::ArrayRef<double> weights,
    llvm::function_ref<const ReportedProgram *(const ShapeExplanation &)> get) {
  ExplanationSummary::Regret result;
  double total = 0;
  for (auto [index, shape] : llvm::enumerate(shapes)) {
    const ReportedProgram *program = get(shape);
    if (!program)
      continue;
    double regret = shape.regretOf(*program);
    result.mean += weights[index] * regret;
    total += weights[index];
    if (total == weights[index] || regret > result.worst) {
      result.worst = regret;
      result.worstShape = index;
    }
  }
  if (total > 0)
    result.mean /= total;
  return result;
}

/// Returns whether two shapes have the same two fastest programs, by their
/// uKernels.
static bool isSameChoice(const ShapeExplanation &lhs,
                         const ShapeExplanation &rhs) {
  auto isSame = [](const ReportedProgram &a, const ReportedProgram &b) {
    return runningParts(a.family, a.partition) ==
           runningParts(b.family, b.partition);
  };
  return lhs.next && rhs.next && isSame(lhs.fastest, rhs.fastest) &&
         isSame(*lhs.next, *rhs.next);
}

static std::vector<ExplanationSummary::Measurement>
findMeasurements(llvm::ArrayRef<ShapeExplanation> shapes,
                 llvm::ArrayRef<double> weights, double total) {
  std::vector<ExplanationSummary::Measurement> groups;
  double weight = 0;
  for (auto [index, shape] : llvm::enumerate(shapes)) {
    if (groups.empty() || !isSameChoice(shapes[index - 1], shape)) {
      groups.push_back({index, index, 0, 0});
      weight = 0;
    }
    ExplanationSummary::Measurement &group = groups.back();
    group.lastShape = index;
    weight += weights[index];
    group.gainOfAll += weights[index] * shape.measurementGain / total;
    group.gain = group.gainOfAll * total / weight;
  }
  llvm::stable_sort(groups, [](const auto &lhs, const auto &rhs) {
    return lhs.gainOfAll > rhs.gainOfAll;
  });
  llvm::erase_if(
      groups, [](const auto &group) { return group.gain < tuning::minGain; });
  groups.resize(std::min(groups.size(), tuning::maxMeasurements));
  return groups;
}

ExplanationSummary ftuner::summarize(llvm::ArrayRef<ShapeExplanation> shapes,
                                     llvm::ArrayRef<double> weights) {
  ExplanationSummary summary;
  summary.chosen = sumRegret(shapes, weights,
                             [](const auto &shape) { return &shape.program; });
  summary.siaChoice = sumRegret(
      shapes, weights, [](const auto &shape) { return &shape.siaChoice; });
  auto single = [](const ShapeExplanation &shape) {
    return shape.report.bestSingle ? &*shape.report.bestSingle : nullptr;
  };
  if (llvm::any_of(shapes, single))
    summary.bestSingle = sumRegret(shapes, weights, single);
  double total = 0;
  for (double weight : weights)
    total += weight;
  for (auto [shape, weight] : llvm::zip_equal(shapes, weights)) {
    double time = shape.program.microseconds(), share = weight / total;
    summary.timesRoofline += share * time / shape.rooflineMicroseconds;
    for (const CostTerm &term : shape.program.predicted.terms) {
      auto known = llvm::find_if(summary.termShares, [&](const auto &other) {
        return other.first == term.name;
      });
      if (known == summary.termShares.end())
        known = summary.termShares.insert(known, {term.name, 0.0});
      known->second += share * term.value / time;
    }
    ++llvm::find_if(summary.confidence, [&, &shape = shape](const auto &band) {
        return shape.confidence >= band.atLeast;
      })->shapes;
  }
  summary.worthMeasuring = findMeasurements(shapes, weights, total);
  return summary;
}
