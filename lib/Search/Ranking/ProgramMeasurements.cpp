//===- ProgramMeasurements.cpp - Measured times in a ranking --------------===//
#include "FTuner/Search/Ranking/ProgramMeasurements.h"
#include "FTuner/Schedule/Alignment.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include <algorithm>
#include <cmath>
#include <limits>

using namespace ftuner;

/// Minimum number of measured programs of a shape: one program cannot be
/// compared.
static constexpr int64_t minShare = 2;
/// Minimum distance between the best measured program and a program that was
/// not measured, as a share. It is so small that it only decides ties.
static constexpr double unmeasuredShare = 1e-9;
/// Time of a program that failed, as a multiple of any other time.
static constexpr double failedShare = 1e6;
static constexpr double bytesOfMib = 1 << 20;
/// Minimum of relative times.
static constexpr double minRelativeTime = 1e-9;

//===----------------------------------------------------------------------===//
// Scores as times
//===----------------------------------------------------------------------===//

double ftuner::relativeTime(double score, double best) {
  if (best < 0)
    return std::max(score / best, minRelativeTime);
  if (best == 0)
    return std::max(1 - score, minRelativeTime);
  // The score is a rate. Below half of the best one the curve is replaced by
  // its tangent there, since rates may fall below 0.
  if (score >= best / 2)
    return best / score;
  return 4 - 4 * score / best;
}

double ftuner::scoreOfRelativeTime(double time, double best) {
  if (best < 0)
    return best * time;
  if (best == 0)
    return 1 - time;
  return time <= 2 ? best / time : best * (4 - time) / 4;
}

std::string ftuner::programKey(const Workload &workload,
                               const KernelFamily &family,
                               llvm::ArrayRef<int64_t> shape) {
  KernelFamily running = runningParts(family, partitionShape(family, shape));
  return running.path().relaxed(running, alignmentOf(workload, shape)).str();
}

//===----------------------------------------------------------------------===//
// Choice of measured programs
//===----------------------------------------------------------------------===//

llvm::Expected<std::unique_ptr<ProgramMeasurements>>
ProgramMeasurements::create(const SearchProblem &problem,
                            const SearchContext &context) {
  llvm::Expected<std::unique_ptr<LoggingMeasurer>> measurer =
      context.openMeasurer(problem.device);
  if (!measurer)
    return measurer.takeError();
  return std::unique_ptr<ProgramMeasurements>(
      new ProgramMeasurements(problem, context, std::move(*measurer)));
}

void ProgramMeasurements::expectShapes(size_t count) {
  const MeasureOptions &options = problem.options.measuring;
  int64_t wanted = options.set == MeasuredSet::Filter
                       ? std::numeric_limits<int64_t>::max()
                       : options.top;
  numShapes = std::max<int64_t>(count, 1);
  share = std::min(wanted, std::max(context.budget / numShapes,
                                    std::min(minShare, context.budget)));
  numMeasuredShapes =
      share > 0 ? std::min(numShapes, context.budget / share) : 0;
}

size_t ProgramMeasurements::nextShare() {
  int64_t index = nextShape++;
  // Evenly over the shapes.
  bool isMeasured =
      index < numShapes && (index + 1) * numMeasuredShapes / numShapes >
                               index * numMeasuredShapes / numShapes;
  return isMeasured ? share : 0;
}

double ProgramMeasurements::confidence(const FamilyTable &table,
                                       llvm::ArrayRef<RankedFamily> distinct,
                                       llvm::ArrayRef<int64_t> shape) const {
  if (distinct.size() < 2)
    return 1;
  if (!problem.costModel.predictsTime())
    return ChoiceConfidence().probability;
  auto scoreOf = [&](const RankedFamily &program) {
    const KernelFamily &family = table.families[program.family];
    return problem.evaluator().score(shape,
                                     {&family, partitionShape(family, shape)});
  };
  double first = scoreOf(distinct[0]), second = scoreOf(distinct[1]);
  // The strategy may not order programs by score.
  return problem.evaluator()
      .confidence(std::max(first, second), std::min(first, second))
      .value_or(ChoiceConfidence())
      .probability;
}

bool ProgramMeasurements::isWanted(const FamilyTable &table,
                                   const RankedShape &ranked) {
  const MeasureOptions &options = problem.options.measuring;
  if (options.memoryMib > 0 &&
      problem.workload.compulsoryBytes(ranked.shape) >
          static_cast<double>(options.memoryMib) * bytesOfMib) {
    ++counts.tooLarge;
    return false;
  }
  if (options.unsure > 0 && confidence(table, distinctPrograms(table, ranked),
                                       ranked.shape) >= options.unsure) {
    ++counts.sure;
    return false;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Ranking
//===----------------------------------------------------------------------===//

/// Fills in best score, best time and unit. If all measured programs failed,
/// `bestScore` is the best score, and scores keep their scale.
static void findUnit(ShapeMeasurements &measured, double bestScore) {
  std::vector<std::pair<double, double>> found;
  for (const auto &entry : measured.programs)
    if (entry.second.microseconds)
      found.emplace_back(entry.second.score, *entry.second.microseconds);
  measured.bestScore = bestScore;
  measured.unit = 1;
  if (found.empty())
    return;
  measured.bestScore = llvm::max_element(found)->first;
  std::vector<double> units;
  measured.bestMicroseconds = found.front().second;
  for (auto [score, microseconds] : found) {
    measured.bestMicroseconds =
        std::min(measured.bestMicroseconds, microseconds);
    units.push_back(microseconds / relativeTime(score, measured.bestScore));
  }
  auto middle = units.begin() + units.size() / 2;
  std::nth_element(units.begin(), middle, units.end());
  measured.unit = *middle;
}

/// Returns the microseconds of a program: as measured, or else predicted from
/// its score.
static double timeOn(const ShapeMeasurements &measured, llvm::StringRef key,
                     double score) {
  double predicted = measured.unit * relativeTime(score, measured.bestScore);
  double minimum = measured.bestMicroseconds * (1 + unmeasuredShare);
  auto entry = measured.programs.find(key);
  if (entry == measured.programs.end())
    return std::max(predicted, minimum);
  if (!entry->second.microseconds)
    return failedShare * std::max(predicted, minimum);
  return *entry->second.microseconds;
}

llvm::Error ProgramMeasurements::ask(const FamilyTable &table,
                                     const RankedShape &ranked, size_t count,
                                     ShapeMeasurements &measured) {
  const Shape &shape = ranked.shape;
  int64_t alignment = alignmentOf(problem.workload, shape);
  std::vector<MeasurementRequest> requests;
  std::vector<std::string> keys;
  for (const RankedFamily &program : ranked.programs) {
    if (requests.size() == count)
      break;
    const KernelFamily &family = table.families[program.family];
    std::string key = programKey(problem.workload, family, shape);
    if (!measured.programs.try_emplace(key).second)
      continue;
    measured.programs[key].score = program.score;
    keys.push_back(std::move(key));
    requests.push_back(
        {&problem.workload, family.path().relaxed(family, alignment), shape});
  }
  size_t numFailed = 0;
  llvm::Error broken = llvm::Error::success();
  for (auto [request, key, answer] :
       llvm::zip_equal(requests, keys, measurer->measure(requests))) {
    if (answer && answer->microseconds) {
      ++counts.programs;
      measured.programs[key].microseconds = *answer->microseconds;
      continue;
    }
    llvm::Error error = answer ? llvm::make_error<NotMeasured>("it has no time")
                               : answer.takeError();
    if (error.isA<MeasurerFailed>()) {
      // All that follow fail for the same reason.
      llvm::consumeError(std::move(broken));
      broken = std::move(error);
      continue;
    }
    bool isUnknown = error.isA<NotMeasured>();
    std::string reason =
        request.family.str() + ": " + llvm::toString(std::move(error));
    std::string &first = isUnknown ? firstUnknown : firstFailure;
    if (first.empty())
      first = std::move(reason);
    if (isUnknown)
      measured.programs.erase(key);
    numFailed += !isUnknown;
    ++(isUnknown ? counts.unknown : counts.failed);
  }
  if (broken)
    return broken;
  if (numFailed > 0 && numFailed == requests.size())
    return llvm::createStringError(
        "all " + llvm::Twine(numFailed) + " programs of workload '" +
        problem.workload.name + "' that '" + measurer->name() +
        "' measured for " + tileText(shape) + " failed: " + firstFailure);
  return llvm::Error::success();
}

llvm::Error ProgramMeasurements::measure(const FamilyTable &table,
                                         RankedShape &ranked) {
  size_t count = nextShare();
  counts.overBudget += count == 0;
  if (count == 0 || !isWanted(table, ranked))
    return llvm::Error::success();
  auto measured = std::make_shared<ShapeMeasurements>();
  if (llvm::Error error = ask(table, ranked, count, *measured))
    return error;
  ++counts.shapes;
  if (context.progress)
    context.progress(nextShape, numShapes);
  if (measured->programs.empty())
    return llvm::Error::success();
  findUnit(*measured, ranked.programs.front().score);
  rankAgain(table, *measured, ranked);
  ranked.measured = std::move(measured);
  return llvm::Error::success();
}

void ProgramMeasurements::rankAgain(const FamilyTable &table,
                                    const ShapeMeasurements &measured,
                                    RankedShape &ranked) {
  auto keyOf = [&](const RankedFamily &program) {
    return programKey(problem.workload, table.families[program.family],
                      ranked.shape);
  };
  std::string before = keyOf(ranked.programs.front());
  std::vector<RankedFamily> again;
  for (const RankedFamily &program : ranked.programs) {
    std::string key = keyOf(program);
    auto entry = measured.programs.find(key);
    if (entry != measured.programs.end() && !entry->second.microseconds)
      continue;
    double time = timeOn(measured, key, program.score);
    again.push_back({program.family, scoreOfRelativeTime(time / measured.unit,
                                                         measured.bestScore)});
  }
  sortByScore(again);
  ranked.programs = std::move(again);
  counts.overturned += before != keyOf(ranked.programs.front());
}

double ProgramMeasurements::rate(const KernelFamily &family,
                                 llvm::ArrayRef<int64_t> shape,
                                 const RankedShape &neighbour, double score,
                                 double neighbourScore) const {
  const ShapeMeasurements &measured = *neighbour.measured;
  double time =
      timeOn(measured, programKey(problem.workload, family, neighbour.shape),
             neighbourScore);
  double best = measured.bestScore;
  double change =
      shape == llvm::ArrayRef<int64_t>(neighbour.shape)
          ? 1
          : relativeTime(score, best) / relativeTime(neighbourScore, best);
  return scoreOfRelativeTime(time / measured.unit * change, best);
}

std::optional<double>
ProgramMeasurements::timeOf(const KernelFamily &family,
                            const RankedShape &ranked) const {
  if (!ranked.measured)
    return std::nullopt;
  auto entry = ranked.measured->programs.find(
      programKey(problem.workload, family, ranked.shape));
  if (entry == ranked.measured->programs.end())
    return std::nullopt;
  return entry->second.microseconds;
}

void ProgramMeasurements::report(Plan &plan) const {
  plan.measurer = measurer->name().str();
  auto add = [&](llvm::StringRef name, int64_t value) {
    plan.statistics.push_back({name.str(), static_cast<double>(value)});
  };
  add("measured_programs", counts.programs);
  add("measured_failed", counts.failed);
  add("measured_unknown", counts.unknown);
  add("measured_shapes", counts.shapes);
  add("measured_overturned", counts.overturned);
  add("measure_budget", context.budget);
  auto remark = [&](int64_t count, const llvm::Twine &text) {
    if (count > 0)
      plan.remarks.push_back((llvm::Twine(count) + text).str());
  };
  remark(counts.failed, " programs failed where '" + measurer->name() +
                            "' measured them, e.g. " + firstFailure);
  remark(counts.unknown, " programs stay predicted, since '" +
                             measurer->name() +
                             "' did not measure them, e.g. " + firstUnknown);
  remark(counts.overBudget, " of " + llvm::Twine(numShapes) +
                                " shapes are not measured: the budget is " +
                                llvm::Twine(context.budget) + " programs");
  remark(counts.sure,
         " shapes are not measured: the cost model is sure of its choice");
  remark(counts.tooLarge, " shapes are not measured: their operands take more "
                          "than " +
                              llvm::Twine(problem.options.measuring.memoryMib) +
                              " MiB");
}
