//===- MeasuringTest.cpp - Searches that measure --------------------------===//
#include "../DeviceTest.h"
#include "FTuner/Measure/CostModelMeasurer.h"
#include "FTuner/Measure/MeasurementLog.h"
#include "FTuner/Schedule/CodegenModel.h"
#include "FTuner/Search/Setup/StrategyRegistry.h"
#include "FTuner/Workload/Contraction.h"
#include "MeasuringStrategy.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include <limits>

using namespace ftuner;

namespace {
/// A device that takes longest for what the cost model predicts fastest.
class ContraryMeasurer final : public Measurer {
public:
  explicit ContraryMeasurer(const DeviceSpec &device)
      : predicted(device, *findCostModel("latency"), {}) {}

  llvm::StringRef name() const override { return "contrary"; }
  bool measuresTime() const override { return measuresTimes; }
  using Measurer::measure;
  std::vector<llvm::Expected<Measurement>>
  measure(llvm::ArrayRef<MeasurementRequest> requests) override {
    std::vector<llvm::Expected<Measurement>> answers;
    for (const MeasurementRequest &request : requests) {
      ++count;
      if (failsAll) {
        answers.push_back(llvm::createStringError("no such kernel"));
        continue;
      }
      llvm::Expected<Measurement> answer =
          predicted.measure(*request.workload, request.family, request.shape);
      if (answer)
        answer->microseconds =
            illegalTime ? *illegalTime : 1e3 / *answer->microseconds;
      answers.push_back(std::move(answer));
    }
    return answers;
  }

  int64_t count = 0;
  bool measuresTimes = true, failsAll = false;
  std::optional<double> illegalTime;

private:
  CostModelMeasurer predicted;
};

class MeasuringTest : public DeviceTest {
protected:
  MeasuringTest()
      : DeviceTest("h200"),
        workload(Workload::matmul({1, 64}, SizeRange::fixed(256),
                                  SizeRange::fixed(128))) {
    llvm::SmallString<64> name;
    EXPECT_FALSE(llvm::sys::fs::createTemporaryFile("log", "jsonl", name));
    path = name.str().str();
    llvm::sys::fs::remove(path);
  }
  ~MeasuringTest() override { llvm::sys::fs::remove(path); }

  SearchProblem problem() const {
    return {workload, device, simt, *findCostModel("latency"), {}};
  }
  Plan solved(const SearchContext &context) const {
    llvm::Expected<Plan> plan = solve(problem(), measuringStrategy(), context);
    if (plan)
      return *plan;
    ADD_FAILURE() << llvm::toString(plan.takeError());
    return {};
  }
  std::string errorOf(const SearchContext &context) const {
    llvm::Expected<Plan> plan = solve(problem(), measuringStrategy(), context);
    return plan ? "" : llvm::toString(plan.takeError());
  }

  Workload workload;
  const CodegenModel *simt = findCodegenModel("simt");
  std::string path;
};
} // namespace

static std::string textOf(const Plan &plan) {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (const KernelFamily &family : plan.families)
    os << family.str() << "\n";
  for (const DispatchEntry &entry : plan.entries) {
    for (const SizeRange &range : entry.box)
      os << range.min << "-" << range.max.value_or(-1) << " ";
    os << entry.family << "\n";
  }
  return text;
}

static double statistic(const Plan &plan, llvm::StringRef name) {
  for (const SearchStatistic &statistic : plan.statistics)
    if (statistic.name == name)
      return statistic.value;
  return -1;
}

TEST_F(MeasuringTest, MeasurementsDecide) {
  ContraryMeasurer measurer(device);
  Plan plan = solved({&measurer, 1000});
  // Four programs of four shapes.
  EXPECT_EQ(measurer.count, 16);
  EXPECT_EQ(statistic(plan, "measured"), 16);
  EXPECT_EQ(statistic(plan, "changed_by_measurement"), 4);
  EXPECT_TRUE(plan.rankings.empty());
  SearchProblem p = problem();
  Plan predicted = llvm::cantFail(solve(p, *findSearchStrategy("ftuner")));
  size_t worse = 0;
  for (auto [measured, predictedOne] :
       llvm::zip_equal(plan.predictions, predicted.predictions)) {
    ASSERT_EQ(measured.shape, predictedOne.shape);
    EXPECT_EQ(measured.family, plan.familyFor(measured.shape));
    worse += measured.microseconds > predictedOne.microseconds;
  }
  EXPECT_EQ(worse, 4u);

  // A device as the model predicts it changes nothing for the worse.
  CostModelMeasurer agreeing(device, *findCostModel("latency"), {});
  Plan confirmed = solved({&agreeing, 1000});
  for (auto [measured, predictedOne] :
       llvm::zip_equal(confirmed.predictions, predicted.predictions))
    EXPECT_LE(measured.microseconds, predictedOne.microseconds * (1 + 1e-5));
}

TEST_F(MeasuringTest, TheBudgetIsNeverExceeded) {
  for (int64_t budget : {0, 1, 6, 16, 100}) {
    ContraryMeasurer measurer(device);
    Plan plan = solved({&measurer, budget});
    int64_t asked = std::min<int64_t>(budget, 16);
    EXPECT_EQ(measurer.count, asked);
    EXPECT_EQ(statistic(plan, "measured"), asked);
    EXPECT_EQ(statistic(plan, "not_measured"), 16 - asked);
  }
}

TEST_F(MeasuringTest, ASearchGoesOnFromItsLog) {
  ContraryMeasurer measurer(device);
  SearchContext context{&measurer, 10, 0, path};
  solved(context);
  EXPECT_EQ(measurer.count, 10);
  Plan whole = solved(context);
  EXPECT_EQ(measurer.count, 16);
  context.budget = 0;
  EXPECT_EQ(textOf(solved(context)), textOf(whole));
  EXPECT_EQ(measurer.count, 16);
  // A table of what was measured elsewhere answers alike.
  RecordedMeasurer recorded(
      llvm::cantFail(MeasurementLog::read(path, device.name)));
  EXPECT_EQ(textOf(solved({&recorded, 16})), textOf(whole));
  // Reports are judged by the same measurements.
  auto reports = measuringStrategy().explain(problem(), context,
                                             {whole.predictions.front().shape});
  ASSERT_TRUE(static_cast<bool>(reports));
  EXPECT_EQ(reports->front().programs.size(), 1u);
  EXPECT_EQ(measurer.count, 16);

  llvm::sys::fs::remove(path);
  std::error_code code;
  llvm::raw_fd_ostream(path, code) << "no line\n";
  EXPECT_NE(errorOf(context).find(path + ":1: "), std::string::npos);
}

TEST_F(MeasuringTest, TheSeedChooses) {
  auto shapesOf = [&](uint64_t seed) {
    ContraryMeasurer measurer(device);
    std::string text = textOf(solved({&measurer, 1000, seed}));
    EXPECT_EQ(text, textOf(solved({&measurer, 1000, seed})));
    return text;
  };
  EXPECT_NE(shapesOf(1), shapesOf(2));
}

TEST_F(MeasuringTest, WhatCannotBeMeasuredIsNoChoice) {
  ContraryMeasurer measurer(device);
  measurer.failsAll = true;
  Plan plan = solved({&measurer, 1000, 0, path});
  EXPECT_EQ(statistic(plan, "measured"), 0);
  EXPECT_EQ(statistic(plan, "not_measured"), 16);
  SearchProblem p = problem();
  Plan predicted = llvm::cantFail(solve(p, *findSearchStrategy("ftuner")));
  EXPECT_EQ(textOf(plan), textOf(predicted));
  // Failures are known from then on, too.
  int64_t asked = measurer.count;
  measurer.failsAll = false;
  EXPECT_EQ(textOf(solved({&measurer, 1000, 0, path})), textOf(predicted));
  EXPECT_EQ(measurer.count, asked);

  // Invalid times are errors, too.
  llvm::sys::fs::remove(path);
  for (double time : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(),
                      std::numeric_limits<double>::infinity()}) {
    measurer.illegalTime = time;
    plan = solved({&measurer, 1000, 0, path});
    EXPECT_EQ(statistic(plan, "not_measured"), 16);
    EXPECT_EQ(textOf(plan), textOf(predicted));
    // The log is read again.
    EXPECT_EQ(errorOf({&measurer, 0, 0, path}), "");
    llvm::sys::fs::remove(path);
  }

  EXPECT_EQ(errorOf({}), "expected a measurer, but got none");
  measurer.measuresTimes = false;
  EXPECT_EQ(errorOf({&measurer, 1000}),
            "expected a measurer of times, but got 'contrary'");
}
