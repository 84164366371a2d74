//===- ProgramRanker.cpp - Programs of shapes, best first -----------------===//
#include "FTuner/Search/Ranking/ProgramRanker.h"
#include "FTuner/Search/Problem/SearchTuning.h"
#include "FTuner/Search/Ranking/ProgramMeasurements.h"
#include "FTuner/Search/Ranking/Reordering.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace ftuner;

/// Maximum share of a time that depends on the order of a sum.
static constexpr double kRounding = 1e-9;

ProgramRanker::ProgramRanker(const SearchProblem &problem, CandidateSet set)
    : problem(problem), set(std::move(set)), table(problem, this->set) {}

ProgramRanker::~ProgramRanker() = default;

void ProgramRanker::measureBy(
    std::unique_ptr<ProgramMeasurements> measurements) {
  measuring = std::move(measurements);
}

llvm::Expected<RankedShape>
ProgramRanker::rankMeasured(llvm::ArrayRef<int64_t> shape) {
  llvm::Expected<RankedShape> ranked = rank(shape);
  if (ranked && ranksByScore())
    if (std::optional<Prefilter> prefilter = problem.prefilter())
      reorder(table, problem, *prefilter, *ranked);
  if (ranked && measuring)
    if (llvm::Error error = measuring->measure(table, *ranked))
      return error;
  return ranked;
}

double ProgramRanker::rateMeasured(const KernelFamily &family,
                                   const KernelResources &resources,
                                   llvm::ArrayRef<int64_t> shape,
                                   const RankedShape &neighbour) const {
  auto rateFor = [&](llvm::ArrayRef<int64_t> rated) {
    double score = rate(family, resources, rated, neighbour);
    if (!neighbour.reordered)
      return score;
    // For another shape, the prefilter predicts the change.
    double byPrefilter =
        rated == llvm::ArrayRef<int64_t>(neighbour.shape)
            ? score
            : rate(family, resources, neighbour.shape, neighbour);
    return neighbour.reordered->score(
               {&family, partitionShape(family, neighbour.shape)},
               byPrefilter) *
           (score / byPrefilter);
  };
  double score = rateFor(shape);
  if (!neighbour.measured)
    return score;
  double neighbourScore = shape == llvm::ArrayRef<int64_t>(neighbour.shape)
                              ? score
                              : rateFor(neighbour.shape);
  return measuring->rate(family, shape, neighbour, score, neighbourScore);
}

RangeSamples::RangeSamples(const Workload &workload) {
  unsigned mainAxis = workload.mainAxis();
  cells = shapeCells(workload, mainAxis);
  int64_t limit =
      std::clamp<int64_t>(tuning::maxRankedShapes / cells.size(),
                          tuning::minRankedSizes, tuning::maxRankedSizes);
  sizes = sampleSizes(workload.axes[mainAxis], limit);
  for (const SizeSample &size : sizes)
    for (const ShapeCell &cell : cells) {
      shapes.push_back(shapeAt(workload, cell, mainAxis, size.size));
      weights.push_back(size.weight * cell.weight);
    }
}

std::vector<RankedFamily> ftuner::distinctPrograms(const FamilyTable &table,
                                                   const RankedShape &ranked) {
  std::vector<RankedFamily> result;
  llvm::SmallDenseSet<unsigned> seen;
  for (const RankedFamily &program : ranked.programs) {
    Partition partition =
        partitionShape(table.families[program.family], ranked.shape);
    if (seen.insert(table.runningNumber(program.family, partition)).second)
      result.push_back(program);
  }
  return result;
}

ReportedProgram ftuner::reportProgram(const SearchProblem &problem,
                                      const KernelFamily &family,
                                      llvm::ArrayRef<int64_t> shape) {
  ReportedProgram program;
  program.family = family;
  program.partition = partitionShape(family, shape);
  program.metrics =
      programMetrics(problem.workload, shape, {&family, program.partition},
                     problem.device, metricOptions().read(problem.options.own));
  program.boxRows = family.path().boxRows(problem.workload, family, shape);
  program.score = problem.evaluate(family, shape);
  program.predicted = problem.predict(family, shape);
  program.rating = program.score.score;
  return program;
}

ReportedProgram ftuner::reportSingle(const SearchProblem &problem,
                                     const ReportedProgram &program,
                                     llvm::ArrayRef<int64_t> shape) {
  KernelFamily running = runningParts(program.family, program.partition);
  if (problem.isRejected(running))
    return program;
  ReportedProgram single = reportProgram(problem, running, shape);
  // Beside a larger part an SM may hold fewer of the blocks; that is rarely
  // predicted to be faster.
  if (single.microseconds() > program.microseconds() * (1 + kRounding))
    return program;
  single.rating = program.rating;
  single.measuredMicroseconds = program.measuredMicroseconds;
  return single;
}

ReportedProgram ftuner::reportRanked(const ProgramRanker &ranker,
                                     const RankedShape &ranked,
                                     const RankedFamily &rated) {
  const KernelFamily &family = ranker.table.families[rated.family];
  ReportedProgram program = reportProgram(ranker.problem, family, ranked.shape);
  program.rating = rated.score;
  if (const ProgramMeasurements *measurements = ranker.measurements())
    program.measuredMicroseconds = measurements->timeOf(family, ranked);
  return program;
}

/// Fills the programs of a report from a ranking, best first: the best
/// `options.topK`, the best of one uKernel, and the number of each kind.
static void reportRanking(const ProgramRanker &ranker,
                          const RankedShape &ranked, ShapeReport &report) {
  const SearchProblem &problem = ranker.problem;
  for (const RankedFamily &rated : distinctPrograms(ranker.table, ranked)) {
    const KernelFamily &family = ranker.table.families[rated.family];
    bool isPair = !runsOneUKernel(partitionShape(family, report.shape));
    ++(isPair ? report.pairPrograms : report.singlePrograms);
    bool isTop =
        static_cast<int64_t>(report.programs.size()) < problem.options.topK;
    bool isBestSingle = !isPair && !report.bestSingle;
    if (!isTop && !isBestSingle)
      continue;
    ReportedProgram program = reportRanked(ranker, ranked, rated);
    if (isBestSingle)
      report.bestSingle = reportSingle(problem, program, report.shape);
    if (isTop)
      report.programs.push_back(std::move(program));
  }
}

void ftuner::sortByScore(std::vector<RankedFamily> &programs) {
  llvm::stable_sort(programs, [](const RankedFamily &a, const RankedFamily &b) {
    return a.score > b.score;
  });
}

RankedShape ftuner::rankByScore(const FamilyTable &table,
                                llvm::ArrayRef<unsigned> families,
                                llvm::ArrayRef<int64_t> shape) {
  RankedShape ranked{Shape(shape), {}, static_cast<int64_t>(families.size())};
  for (auto [family, score] :
       llvm::zip_equal(families, table.scoreAll(families, shape)))
    ranked.programs.push_back({family, score});
  sortByScore(ranked.programs);
  return ranked;
}

int64_t ftuner::countRated(llvm::ArrayRef<RankedShape> shapes) {
  int64_t count = 0;
  for (const RankedShape &ranked : shapes)
    count += ranked.numRated;
  return count;
}

llvm::Expected<std::vector<ShapeReport>>
ftuner::reportShapes(ProgramRanker &ranker, llvm::ArrayRef<Shape> shapes) {
  ranker.prepare(RangeSamples(ranker.problem.workload).shapes);
  if (ProgramMeasurements *measurements = ranker.measurements())
    measurements->expectShapes(shapes.size());
  std::vector<ShapeReport> reports;
  for (const Shape &shape : shapes) {
    llvm::Expected<RankedShape> ranked = ranker.rankMeasured(shape);
    if (!ranked)
      return ranked.takeError();
    ShapeReport &report = reports.emplace_back();
    report.shape = shape;
    if (const ProgramMeasurements *measurements = ranker.measurements())
      report.measurer = measurements->measurerName().str();
    report.candidates = ranker.set.candidates.size();
    reportRanking(ranker, *ranked, report);
    ranker.describe(*ranked, report);
  }
  return reports;
}
