//===- ProgramMeasurementsTest.cpp - Measured times in rankings -----------===//
#include "FTuner/Search/Ranking/ProgramMeasurements.h"
#include "../DeviceTest.h"
#include "FTuner/Codegen/Simt/SimtSchedule.h"
#include "FTuner/Measure/CostModelMeasurer.h"
#include "FTuner/Measure/MeasurementLog.h"
#include "FTuner/Schedule/CodegenModel.h"
#include "FTuner/Search/Setup/StrategyRegistry.h"
#include "FTuner/Workload/Contraction.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <limits>
#include <set>

using namespace ftuner;

namespace {
/// Measurer with times unlike the cost model's: a hash of kernel and shape,
/// from 1 to 2 µs. Counts the requests.
class HashMeasurer final : public Measurer {
public:
  llvm::StringRef name() const override { return "hash"; }
  bool measuresTime() const override { return true; }
  size_t batchSize() const override { return 3; }
  using Measurer::measure;
  std::vector<llvm::Expected<Measurement>>
  measure(llvm::ArrayRef<MeasurementRequest> requests) override {
    std::vector<llvm::Expected<Measurement>> answers;
    for (const MeasurementRequest &request : requests) {
      if (count == failsAfter) {
        answers.push_back(llvm::make_error<MeasurerFailed>("it went away"));
        continue;
      }
      ++count;
      shapes.insert(request.shape);
      if (unknown && unknown(request)) {
        answers.push_back(llvm::make_error<NotMeasured>("not recorded"));
        continue;
      }
      if (objects && objects(request)) {
        answers.push_back(llvm::createStringError("no such kernel"));
        continue;
      }
      Measurement measurement;
      measurement.microseconds = timeOf(request.family, request.shape);
      if (model)
        measurement.microseconds =
            llvm::cantFail(model->measure(*request.workload, request.family,
                                          request.shape))
                .microseconds;
      answers.push_back(measurement);
    }
    return answers;
  }

  static double timeOf(const KernelFamily &family,
                       llvm::ArrayRef<int64_t> shape) {
    std::string text = family.str() + tileText(shape);
    uint32_t hash = 2166136261u;
    for (char c : text)
      hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
    return 1 + (hash % 1000) / 1000.0;
  }

  int64_t count = 0, failsAfter = -1;
  std::function<bool(const MeasurementRequest &)> objects, unknown;
  /// Answers in place of the hash, if given.
  CostModelMeasurer *model = nullptr;
  std::set<Shape> shapes;
};

class ProgramMeasurementsTest : public DeviceTest {
protected:
  ProgramMeasurementsTest()
      : DeviceTest("h200"),
        workload(Workload::matmul({1, 64}, SizeRange::fixed(256),
                                  SizeRange::fixed(128))) {
    llvm::SmallString<64> name;
    EXPECT_FALSE(llvm::sys::fs::createTemporaryFile("log", "jsonl", name));
    path = name.str().str();
    llvm::sys::fs::remove(path);
  }
  ~ProgramMeasurementsTest() override { llvm::sys::fs::remove(path); }

  SearchProblem problem(MeasureOptions measuring) const {
    SearchProblem problem{
        workload, device, simt, *findCostModel("latency"), {}};
    // So that the space is small enough for `exhaustive`.
    problem.options.tileRule = TileRule::Divisors;
    problem.options.measuring = std::move(measuring);
    return problem;
  }
  static MeasureOptions top(int64_t count) {
    MeasureOptions options;
    options.top = count;
    return options;
  }
  Plan solved(const MeasureOptions &measuring, const SearchContext &context,
              llvm::StringRef strategy = "ftuner") const {
    llvm::Expected<Plan> plan =
        solve(problem(measuring), *findSearchStrategy(strategy), context);
    if (plan)
      return *plan;
    ADD_FAILURE() << llvm::toString(plan.takeError());
    return {};
  }
  std::string errorOf(const MeasureOptions &measuring,
                      const SearchContext &context) const {
    llvm::Expected<Plan> plan =
        solve(problem(measuring), *findSearchStrategy("ftuner"), context);
    return plan ? "" : llvm::toString(plan.takeError());
  }
  std::string logText() const {
    return (*llvm::MemoryBuffer::getFile(path))->getBuffer().str();
  }
  void writeLog(llvm::StringRef text) const {
    std::error_code code;
    llvm::raw_fd_ostream(path, code) << text;
    ASSERT_FALSE(code);
  }

  Workload workload;
  const CodegenModel *simt = findCodegenModel("simt");
  std::string path;
};
} // namespace

static std::string textOf(const Plan &plan) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << plan.measurer << "\n";
  for (const KernelFamily &family : plan.families)
    os << family.str() << "\n";
  for (const DispatchEntry &entry : plan.entries) {
    for (const SizeRange &range : entry.box)
      os << range.min << "-" << range.max.value_or(-1) << " ";
    os << entry.family << "\n";
  }
  for (const ShapePrediction &prediction : plan.predictions)
    os << prediction.microseconds << " " << prediction.measuredMicroseconds
       << "\n";
  for (const SearchStatistic &statistic : plan.statistics)
    os << statistic.name << " " << statistic.value << "\n";
  for (const std::string &remark : plan.remarks)
    os << remark << "\n";
  return text;
}

static double statistic(const Plan &plan, llvm::StringRef name) {
  for (const SearchStatistic &statistic : plan.statistics)
    if (statistic.name == name)
      return statistic.value;
  return -1;
}

TEST(RelativeTime, FallsAsScoresRiseAndTurnsBack) {
  for (double best : {-10.0, -0.5, 0.0, 0.25, 8.0}) {
    double before = std::numeric_limits<double>::infinity();
    EXPECT_DOUBLE_EQ(relativeTime(best, best), 1);
    for (double score = best - 20; score < best + 0.2; score += 0.125) {
      double time = relativeTime(score, best);
      EXPECT_GT(time, 0);
      EXPECT_LT(time, before) << score << " " << best;
      before = time;
      EXPECT_NEAR(scoreOfRelativeTime(time, best), score, 1e-9);
    }
  }
  // Negated times and rates, as they are meant.
  EXPECT_DOUBLE_EQ(relativeTime(-15, -10), 1.5);
  EXPECT_DOUBLE_EQ(relativeTime(0.5, 0.75), 1.5);
}

TEST_F(ProgramMeasurementsTest, TimesRankThePrograms) {
  // Whatever a strategy holds for best, the fastest of what was measured is
  // first, and what was not measured is behind it.
  for (const SearchStrategy *strategy : searchStrategies()) {
    if (strategy->measures())
      continue;
    SCOPED_TRACE(strategy->name().str());
    HashMeasurer measurer;
    SearchContext context{&measurer, 1000};
    SearchProblem p = problem(top(4)), plain = problem({});
    p.options.topK = plain.options.topK = 1 << 20;
    std::vector<Shape> shapes;
    for (int64_t rows : {1, 5, 17, 33, 48, 64})
      shapes.push_back({rows, 256, 128});
    std::vector<ShapeReport> reports =
        llvm::cantFail(strategy->explain(p, context, shapes));
    std::vector<ShapeReport> before =
        llvm::cantFail(strategy->explain(plain, {}, shapes));
    int overturned = 0;
    for (auto [report, old] : llvm::zip_equal(reports, before)) {
      EXPECT_EQ(report.measurer, "hash");
      EXPECT_EQ(old.measurer, "");
      double minTime = std::numeric_limits<double>::infinity();
      for (const ReportedProgram &program :
           llvm::ArrayRef(old.programs).take_front(4))
        minTime = std::min(minTime,
                           HashMeasurer::timeOf(program.family, report.shape));
      ASSERT_TRUE(report.programs.front().measuredMicroseconds);
      EXPECT_EQ(*report.programs.front().measuredMicroseconds, minTime);
      EXPECT_EQ(
          llvm::count_if(report.programs,
                         [](const ReportedProgram &program) {
                           return program.measuredMicroseconds.has_value();
                         }),
          std::min<ptrdiff_t>(4, report.programs.size()));
      double last = 0;
      for (const ReportedProgram &program : report.programs)
        if (program.measuredMicroseconds) {
          EXPECT_GE(*program.measuredMicroseconds, last);
          last = *program.measuredMicroseconds;
          // A prediction stays one.
          EXPECT_EQ(program.microseconds(),
                    -p.predict(program.family, report.shape).score);
        }
      overturned += report.programs.front().family.str() !=
                    old.programs.front().family.str();
    }
    EXPECT_GT(overturned, 0);
  }
}

TEST_F(ProgramMeasurementsTest, TimesChooseTheFamilies) {
  for (const SearchStrategy *strategy : searchStrategies()) {
    SCOPED_TRACE(strategy->name().str());
    HashMeasurer measurer;
    Plan plan = solved(top(4), {&measurer, 100000}, strategy->name());
    Plan predicted = solved({}, {}, strategy->name());
    EXPECT_EQ(plan.measurer, "hash");
    EXPECT_EQ(predicted.measurer, "");
    EXPECT_EQ(statistic(predicted, "measured_programs"), -1);
    EXPECT_EQ(statistic(plan, "measured_programs"), measurer.count);
    EXPECT_NE(textOf(plan), textOf(predicted));
    // The samples and the shape beyond them.
    if (!strategy->measures()) {
      EXPECT_EQ(statistic(plan, "measured_shapes"),
                plan.predictions.size() + 1);
      EXPECT_GT(statistic(plan, "measured_overturned"), 0);
    }
    int64_t measured = 0;
    for (const ShapePrediction &prediction : plan.predictions) {
      if (prediction.measuredMicroseconds == 0)
        continue;
      ++measured;
      EXPECT_NEAR(prediction.measuredMicroseconds, 1.5, 0.501);
    }
    EXPECT_GT(measured, 0);
  }
}

TEST_F(ProgramMeasurementsTest, StrategiesThatMeasureKeepTheBudget) {
  for (const SearchStrategy *strategy : searchStrategies()) {
    if (!strategy->measures())
      continue;
    SCOPED_TRACE(strategy->name().str());
    HashMeasurer measurer;
    Plan plan = solved({}, {&measurer, 150}, strategy->name());
    EXPECT_EQ(measurer.count, 150);
    EXPECT_EQ(statistic(plan, "measured_programs"), 150);
  }
}

TEST_F(ProgramMeasurementsTest, AWrongModelIsOverturned) {
  // The device is as `latency` has it, the ranking is by SIA: with everything
  // measured the plan takes for each shape what is fastest.
  const CostModel &latency = *findCostModel("latency");
  CostModelMeasurer measurer(device, latency, {});
  auto timeOf = [&](const Plan &plan) {
    double sum = 0;
    for (const ShapePrediction &prediction : plan.predictions)
      sum += prediction.microseconds;
    return sum;
  };
  auto solveBySia = [&](const MeasureOptions &measuring) {
    SearchProblem p{workload, device, simt, *findCostModel("sia"), {}};
    p.options.measuring = measuring;
    return llvm::cantFail(
        solve(p, *findSearchStrategy("ftuner"), {&measurer, 1'000'000}));
  };
  double predicted = timeOf(solveBySia({}));
  double few = timeOf(solveBySia(top(10)));
  MeasureOptions all;
  all.set = MeasuredSet::Filter;
  double allMeasured = timeOf(solveBySia(all));
  EXPECT_LT(few, predicted);
  EXPECT_LE(allMeasured, few);
}

TEST_F(ProgramMeasurementsTest, TheBudgetIsKeptAndSpread) {
  for (int64_t budget : {0, 1, 2, 7, 40, 100}) {
    SCOPED_TRACE(budget);
    HashMeasurer measurer;
    Plan plan = solved(top(4), {&measurer, budget});
    EXPECT_LE(measurer.count, budget);
    EXPECT_EQ(statistic(plan, "measured_programs"), measurer.count);
    EXPECT_EQ(statistic(plan, "measure_budget"), budget);
    EXPECT_EQ(llvm::any_of(plan.remarks,
                           [](const std::string &remark) {
                             return llvm::StringRef(remark).contains(
                                 "the budget is");
                           }),
              budget < 130);
    // Two programs of a shape at least, and not of the first shapes alone.
    if (budget >= 2)
      EXPECT_EQ(measurer.shapes.size(), budget / 2 < 65 ? budget / 2 : 65);
    if (budget >= 7)
      EXPECT_GT((*measurer.shapes.rbegin())[0], 32);
  }
}

TEST_F(ProgramMeasurementsTest, AStoppedSearchGoesOnFromItsLog) {
  HashMeasurer whole;
  std::string plan = textOf(solved(top(4), {&whole, 150, 0, path}));
  std::string log = logText();
  EXPECT_EQ(llvm::StringRef(log).count('\n'), size_t(whole.count));

  // All of it is known.
  HashMeasurer none;
  EXPECT_EQ(textOf(solved(top(4), {&none, 150, 0, path})), plan);
  EXPECT_EQ(none.count, 0);

  // Stopped in the middle of a line.
  size_t half = log.find('\n', log.size() / 2);
  writeLog(llvm::StringRef(log).take_front(half + 30));
  HashMeasurer rest;
  EXPECT_EQ(textOf(solved(top(4), {&rest, 150, 0, path})), plan);
  EXPECT_EQ(rest.count,
            whole.count -
                int64_t(llvm::StringRef(log).take_front(half + 1).count('\n')));
  EXPECT_EQ(logText(), log);

  // A measurer that fails stops the search; its earlier answers are kept.
  writeLog("");
  HashMeasurer broken;
  broken.failsAfter = 50;
  EXPECT_EQ(errorOf(top(4), {&broken, 150, 0, path}), "it went away");
  EXPECT_EQ(llvm::StringRef(logText()).count('\n'), 50u);
  HashMeasurer again;
  EXPECT_EQ(textOf(solved(top(4), {&again, 150, 0, path})), plan);
  EXPECT_EQ(again.count, whole.count - 50);
}

TEST_F(ProgramMeasurementsTest, OnlyShapesWhereTheModelIsUnsure) {
  auto countFor = [&](double threshold) {
    HashMeasurer measurer;
    MeasureOptions options = top(2);
    options.unsure = threshold;
    Plan plan = solved(options, {&measurer, 1000});
    EXPECT_EQ(statistic(plan, "measured_programs"), measurer.count);
    return measurer.count;
  };
  // No choice is less sure than a coin.
  EXPECT_EQ(countFor(0.5), 0);
  std::vector<double> confidences;
  for (const ShapePrediction &prediction : solved({}, {}).predictions)
    confidences.push_back(prediction.confidence);
  llvm::sort(confidences);
  int64_t some = countFor(confidences[confidences.size() / 2]);
  EXPECT_GT(some, 0);
  EXPECT_LT(some, 130);
  EXPECT_EQ(countFor(1), 130);
  EXPECT_EQ(countFor(0), 130);
}

TEST_F(ProgramMeasurementsTest, OnlyShapesThatFitTheMemory) {
  // A: M × 128, B: 128 × 256, C: M × 256, f32: a MiB at M = 597 and beyond, so
  // only the shape beyond the range.
  HashMeasurer measurer;
  MeasureOptions options = top(2);
  options.memoryMib = 1;
  Plan plan = solved(options, {&measurer, 1000});
  EXPECT_EQ(measurer.count, 128);
  EXPECT_TRUE(llvm::is_contained(plan.remarks,
                                 "1 shapes are not measured: their operands "
                                 "take more than 1 MiB"));
}

TEST_F(ProgramMeasurementsTest, ProgramsThatFailAreNotChosen) {
  HashMeasurer measurer;
  measurer.objects = [](const MeasurementRequest &request) {
    return request.family.tiles.back()[0] > 16;
  };
  Plan plan = solved(top(1000), {&measurer, 1000000});
  EXPECT_GT(statistic(plan, "measured_failed"), 0);
  for (const DispatchEntry &entry : plan.entries)
    EXPECT_LE(plan.families[entry.family].tiles.back()[0], 16);
  EXPECT_TRUE(llvm::any_of(plan.remarks, [](const std::string &remark) {
    return llvm::StringRef(remark).contains("failed where 'hash' measured");
  }));

  measurer.objects = [](const MeasurementRequest &) { return true; };
  std::string error = errorOf(top(3), {&measurer, 1000});
  EXPECT_TRUE(llvm::StringRef(error).starts_with("all 3 programs of workload"))
      << error;
  EXPECT_TRUE(llvm::StringRef(error).contains("failed: ")) << error;
  EXPECT_TRUE(llvm::StringRef(error).ends_with("no such kernel")) << error;
}

TEST_F(ProgramMeasurementsTest, WhatIsNotRecordedStaysPredicted) {
  // A log of one shape: there the programs are measured.
  HashMeasurer measurer;
  solved(top(3), {&measurer, 3, 0, path});
  RecordedMeasurer recorded(
      llvm::cantFail(MeasurementLog::read(path, device.name)));
  EXPECT_EQ(recorded.name(), "recorded (hash)");
  Plan plan = solved(top(3), {&recorded, 1000});
  EXPECT_EQ(plan.measurer, "recorded (hash)");
  EXPECT_EQ(statistic(plan, "measured_programs"), measurer.count);
  EXPECT_EQ(statistic(plan, "measured_unknown"), 65 * 3 - measurer.count);
  EXPECT_EQ(statistic(plan, "measured_failed"), 0);
}

TEST_F(ProgramMeasurementsTest, NoPredictionOverturnsAMeasurement) {
  // The device is as predicted, but the program that is predicted fastest
  // cannot be measured: a measured one is chosen.
  CostModelMeasurer model(device, *findCostModel("latency"), {});
  SearchProblem plain = problem({}), p = problem(top(4));
  plain.options.topK = p.options.topK = 4;
  const SearchStrategy &strategy = *findSearchStrategy("ftuner");
  std::vector<Shape> shape = {{48, 256, 128}};
  std::vector<ShapeReport> before =
      llvm::cantFail(strategy.explain(plain, {}, shape));
  KernelFamily fastest = before.front().programs.front().family;
  HashMeasurer measurer;
  measurer.model = &model;
  measurer.unknown = [&](const MeasurementRequest &request) {
    return request.family == fastest;
  };
  std::vector<ShapeReport> after =
      llvm::cantFail(strategy.explain(p, {&measurer, 100}, shape));
  const ReportedProgram &first = after.front().programs.front();
  EXPECT_TRUE(first.measuredMicroseconds);
  EXPECT_EQ(first.family.str(), before.front().programs[1].family.str());
  EXPECT_EQ(after.front().programs[1].family.str(), fastest.str());
  EXPECT_FALSE(after.front().programs[1].measuredMicroseconds);
}

TEST_F(ProgramMeasurementsTest, ProgramsThatFailLeaveTheRanking) {
  SearchProblem p = problem(top(6));
  p.options.topK = 1 << 20;
  HashMeasurer measurer;
  std::vector<std::string> failed;
  measurer.objects = [&](const MeasurementRequest &request) {
    if (measurer.count % 2 == 0)
      return false;
    failed.push_back(request.family.str());
    return true;
  };
  std::vector<ShapeReport> reports =
      llvm::cantFail(findSearchStrategy("ftuner")->explain(
          p, {&measurer, 100}, std::vector<Shape>{{48, 256, 128}}));
  EXPECT_EQ(failed.size(), 3u);
  for (const ReportedProgram &program : reports.front().programs)
    EXPECT_FALSE(llvm::is_contained(failed, program.family.str()));
}

TEST_F(ProgramMeasurementsTest, RatesAreOnTheScaleOfScores) {
  // The example of ProgramMeasurements.h, and what failed.
  HashMeasurer measurer;
  SearchProblem p = problem(top(4));
  SearchContext context{&measurer, 100};
  std::unique_ptr<ProgramMeasurements> measurements =
      llvm::cantFail(ProgramMeasurements::create(p, context));
  std::vector<KernelFamily> families;
  for (int64_t rows : {1, 2, 4, 8})
    families.push_back(simtFamily({16, 16, 2, 4}, {rows}, 4, 16));
  RankedShape neighbour{{64, 256, 128}, {}};
  auto measured = std::make_shared<ShapeMeasurements>();
  auto add = [&](unsigned family, std::optional<double> time, double score) {
    measured->programs[programKey(workload, families[family],
                                  neighbour.shape)] = {time, score};
  };
  add(0, 30, -10);
  add(1, 22, -11);
  add(3, std::nullopt, -12);
  measured->bestScore = -10;
  measured->unit = 30;
  measured->bestMicroseconds = 22;
  neighbour.measured = measured;
  auto rate = [&](unsigned family, llvm::ArrayRef<int64_t> shape, double score,
                  double neighbourScore) {
    return measurements->rate(families[family], shape, neighbour, score,
                              neighbourScore);
  };
  EXPECT_DOUBLE_EQ(rate(0, neighbour.shape, -10, -10), -10);
  EXPECT_DOUBLE_EQ(rate(1, neighbour.shape, -11, -11), -10 * 22. / 30);
  EXPECT_DOUBLE_EQ(rate(2, neighbour.shape, -15, -15), -15);
  // No prediction is better than the best measurement.
  EXPECT_NEAR(rate(2, neighbour.shape, -1, -1), -10 * 22. / 30, 1e-6);
  EXPECT_LT(rate(2, neighbour.shape, -1, -1), -10 * 22. / 30);
  // A program that failed is worse than any other.
  EXPECT_LT(rate(3, neighbour.shape, -12, -12), -1e6);
  // Nearby, times change as scores do.
  EXPECT_DOUBLE_EQ(rate(0, {65, 256, 128}, -20, -10), -20);
  EXPECT_DOUBLE_EQ(rate(1, {65, 256, 128}, -22, -11), -20 * 22. / 30);
  EXPECT_DOUBLE_EQ(rate(2, {65, 256, 128}, -30, -15), -30);

  EXPECT_EQ(measurements->timeOf(families[1], neighbour), 22);
  EXPECT_EQ(measurements->timeOf(families[2], neighbour), std::nullopt);
  EXPECT_EQ(measurements->timeOf(families[3], neighbour), std::nullopt);
}

TEST_F(ProgramMeasurementsTest, TellsHowFarItIs) {
  HashMeasurer measurer;
  SearchContext context{&measurer, 1000};
  std::vector<int64_t> steps;
  context.progress = [&](int64_t done, int64_t total) {
    EXPECT_EQ(total, 65);
    steps.push_back(done);
  };
  solved(top(1), context);
  ASSERT_EQ(steps.size(), 65u);
  EXPECT_EQ(steps.front(), 1);
  EXPECT_EQ(steps.back(), 65);
}

TEST_F(ProgramMeasurementsTest, NobodyMeasuresWithoutAMeasurer) {
  EXPECT_EQ(errorOf(top(1), {}), "expected a measurer, but got none");
  HashMeasurer measurer;
  solved({}, {&measurer, 1000});
  EXPECT_EQ(measurer.count, 0);
}
