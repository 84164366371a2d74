//===- ExplanationTest.cpp - Why a shape is served as it is ---------------===//
#include "FTuner/Search/Planning/Explanation.h"
#include "../DeviceTest.h"
#include "FTuner/Codegen/Simt/SimtSchedule.h"
#include "FTuner/Search/Setup/StrategyRegistry.h"
#include "llvm/ADT/STLExtras.h"
#include <gtest/gtest.h>
#include <numeric>

using namespace ftuner;

namespace {
class ExplanationTest : public DeviceTest {
protected:
  SearchProblem problem() {
    return {workload, device, codegenModels(), *findCostModel(costModel),
            options};
  }
  Plan solved() {
    llvm::Expected<Plan> plan = solve(problem(), *findSearchStrategy("ftuner"));
    EXPECT_TRUE(static_cast<bool>(plan));
    return plan ? std::move(*plan) : Plan();
  }
  std::vector<ShapeExplanation> explained(const Plan &plan,
                                          llvm::ArrayRef<Shape> shapes) {
    auto explanations =
        explainShapes(problem(), *findSearchStrategy("ftuner"), plan, shapes);
    EXPECT_TRUE(static_cast<bool>(explanations));
    return explanations ? std::move(*explanations)
                        : std::vector<ShapeExplanation>();
  }

  Workload workload =
      Workload::matmul({1, 128}, SizeRange::fixed(2304), SizeRange::fixed(768));
  SearchOptions options;
  llvm::StringRef costModel = "sia-program";
};
} // namespace

static std::string messageOf(llvm::Expected<Shape> shape) {
  return shape ? "" : llvm::toString(shape.takeError());
}

TEST_F(ExplanationTest, FollowsThePlan) {
  options.topK = 5;
  Plan plan = solved();
  std::vector<Shape> shapes = shapesAlongMainAxis(workload, 512).shapes;
  ASSERT_EQ(shapes.size(), 128u);
  std::vector<ShapeExplanation> explanations = explained(plan, shapes);
  ASSERT_EQ(explanations.size(), shapes.size());
  for (auto [shape, explanation] : llvm::zip_equal(shapes, explanations)) {
    EXPECT_EQ(explanation.report.shape, shape);
    ASSERT_TRUE(explanation.entry.has_value());
    EXPECT_EQ(plan.entries[*explanation.entry].family, explanation.family);
    EXPECT_EQ(explanation.family, plan.familyFor(shape));
    EXPECT_EQ(explanation.program.family, plan.families[explanation.family]);
    EXPECT_DOUBLE_EQ(explanation.scoreLoss,
                     explanation.best().score.score -
                         explanation.program.score.score);
    EXPECT_TRUE(explanation.planHasBest ||
                !runsTheSame(explanation.program, explanation.best()));
    EXPECT_LE(explanation.report.programs.size(), 5u);
  }
}

TEST_F(ExplanationTest, NoEntryHoldsSizesBeyondTheRange) {
  Plan plan = solved();
  std::vector<ShapeExplanation> explanations =
      explained(plan, Shape{1000, 2304, 768});
  ASSERT_EQ(explanations.size(), 1u);
  EXPECT_FALSE(explanations[0].entry.has_value());
  EXPECT_EQ(explanations[0].family, plan.generalFamily);
}

TEST_F(ExplanationTest, OneKernelLacksTheBestProgramOfSomeSize) {
  options.maxKernels = 1;
  Plan plan = solved();
  std::vector<ShapeExplanation> explanations =
      explained(plan, shapesAlongMainAxis(workload, 512).shapes);
  EXPECT_TRUE(llvm::any_of(explanations, [](const ShapeExplanation &shape) {
    return !shape.planHasBest && shape.scoreLoss > 0;
  }));
}

TEST_F(ExplanationTest, RefusesFamiliesThatCannotBeEmitted) {
  Plan plan = solved();
  plan.families[plan.generalFamily].tiles[0][1] *= 4096;
  auto explanations = explainShapes(problem(), *findSearchStrategy("ftuner"),
                                    plan, Shape{53, 2304, 768});
  ASSERT_FALSE(static_cast<bool>(explanations));
  EXPECT_NE(llvm::toString(explanations.takeError()).find("family"),
            std::string::npos);
}

TEST_F(ExplanationTest, ComparesPredictedTimesWhateverTheCostModel) {
  Shape shape = {53, 2304, 768};
  const Calibration &calibration = options.cost.calibration;
  for (llvm::StringRef model : {"latency", "sia", "sia-program"}) {
    SCOPED_TRACE(model.str());
    costModel = model;
    options.topK = 4;
    std::vector<ShapeExplanation> explanations = explained(solved(), shape);
    ASSERT_EQ(explanations.size(), 1u);
    const ShapeExplanation &explanation = explanations[0];
    ASSERT_TRUE(explanation.next.has_value());
    ASSERT_TRUE(explanation.report.bestSingle.has_value());
    double fastest = explanation.fastest.microseconds();
    double next = explanation.next->microseconds();
    EXPECT_GT(fastest, 0);
    EXPECT_GE(next, fastest);
    EXPECT_FALSE(runsTheSame(explanation.fastest, *explanation.next));
    std::vector<const ReportedProgram *> seen = {
        &explanation.program, &explanation.siaChoice,
        &*explanation.report.bestSingle};
    for (const ReportedProgram &program : explanation.report.programs)
      seen.push_back(&program);
    for (const ReportedProgram *program : seen) {
      EXPECT_GE(explanation.regretOf(*program), 0);
      EXPECT_TRUE(runsTheSame(*program, explanation.fastest) ||
                  program->microseconds() >= next);
      EXPECT_NEAR(-program->microseconds(),
                  problem().predict(program->family, shape).score, 1e-9);
    }
    EXPECT_DOUBLE_EQ(explanation.regret(),
                     explanation.program.microseconds() / fastest - 1);
    EXPECT_DOUBLE_EQ(explanation.confidence,
                     choiceConfidence(calibration, fastest, next));
    EXPECT_DOUBLE_EQ(explanation.measurementGain,
                     measurementGain(calibration, fastest, next));

    // What a search by SIA chooses.
    costModel = "sia";
    auto reports = findSearchStrategy("ftuner")->explain(problem(), {}, shape);
    ASSERT_TRUE(static_cast<bool>(reports));
    EXPECT_TRUE(
        runsTheSame(explanation.siaChoice, reports->front().programs[0]));
  }
}

TEST_F(ExplanationTest, OneListedProgramHasANextOne) {
  costModel = "latency";
  options.topK = 1;
  std::vector<ShapeExplanation> explanations =
      explained(solved(), Shape{53, 2304, 768});
  ASSERT_EQ(explanations.size(), 1u);
  EXPECT_EQ(explanations[0].report.programs.size(), 1u);
  EXPECT_TRUE(explanations[0].next.has_value());
  EXPECT_LT(explanations[0].confidence, 1);
}

TEST_F(ExplanationTest, UnalignedShapesArePredictedWithNarrowAccesses) {
  costModel = "latency";
  options.minGain = 1e-4;
  workload = Workload::matmul({1, 512}, {1, 512}, SizeRange::fixed(512));
  workload.axes[0].symbols = workload.axes[1].symbols = {"T"};
  Plan plan = solved();
  std::vector<Shape> shapes = {{213, 213, 512}, {212, 212, 512}};
  std::vector<ShapeExplanation> explanations = explained(plan, shapes);
  ASSERT_EQ(explanations.size(), 2u);
  EXPECT_FALSE(explanations[0].isAligned);
  EXPECT_EQ(explanations[0].family, plan.familyFor(shapes[0], 1));
  ASSERT_TRUE(explanations[0].entry.has_value());
  EXPECT_TRUE(
      plan.unalignedEntries[*explanations[0].entry].contains(shapes[0]));
  EXPECT_TRUE(explanations[1].isAligned);
  KernelFamily narrow = explanations[0].best().family;
  ASSERT_EQ(narrow.alignment(), 16);
  narrow = narrow.path().relaxed(narrow, 4);
  ASSERT_EQ(narrow.alignment(), 1);
  EXPECT_DOUBLE_EQ(explanations[0].best().microseconds(),
                   -problem().predict(narrow, shapes[0]).score);
  EXPECT_LT(problem().predict(narrow, shapes[1]).score,
            problem().predict(explanations[0].best().family, shapes[1]).score);
}

TEST_F(ExplanationTest, NoProgramOfOneUKernelBeatsTheBestSingle) {
  llvm::Expected<DeviceSpec> h200 = loadDeviceSpec("h200");
  ASSERT_TRUE(static_cast<bool>(h200));
  device = *h200;
  options.topK = 1 << 20;
  std::vector<Shape> shapes;
  for (int64_t rows = 1; rows <= 128; rows += 3)
    shapes.push_back({rows, 2304, 768});
  for (llvm::StringRef model : {"latency", "sia-program", "sia"}) {
    SCOPED_TRACE(model.str());
    costModel = model;
    auto reports = findSearchStrategy("ftuner")->explain(problem(), {}, shapes);
    ASSERT_TRUE(static_cast<bool>(reports));
    int numAcross = 0;
    for (const ShapeReport &report : *reports) {
      ASSERT_TRUE(report.bestSingle.has_value());
      EXPECT_TRUE(runsOneUKernel(report.bestSingle->partition));
      numAcross += report.bestSingle->family.combineAxis != matmulAxes.m;
      for (const ReportedProgram &program : report.programs)
        EXPECT_TRUE(!runsOneUKernel(program.partition) ||
                    program.rating <= report.bestSingle->rating)
            << program.family.str();
    }
    // The widths of pairs along n are not separate candidates.
    EXPECT_EQ(numAcross > 0, model == "latency");
  }
}

TEST_F(ExplanationTest, PlansHaveNoFasterProgramOfOneUKernel) {
  costModel = "latency";
  Plan plan = solved();
  std::vector<Shape> shapes;
  for (int64_t rows = 1; rows <= 128; rows += 3)
    shapes.push_back({rows, 2304, 768});
  // Roller's tiles are slower than the plan's.
  auto explanations =
      explainShapes(problem(), *findSearchStrategy("roller"), plan, shapes);
  ASSERT_TRUE(static_cast<bool>(explanations));
  int numOfPlan = 0;
  for (const ShapeExplanation &explanation : *explanations) {
    const ReportedProgram &single = *explanation.report.bestSingle;
    for (const ReportedProgram *program :
         {&explanation.program, &explanation.siaChoice, &explanation.fastest})
      EXPECT_TRUE(!runsOneUKernel(program->partition) ||
                  program->microseconds() >= single.microseconds() * (1 - 1e-9))
          << program->family.str() << " beats " << single.family.str();
    numOfPlan += runsTheSame(explanation.program, single);
  }
  EXPECT_GT(numOfPlan, 0);
}

TEST_F(ExplanationTest, PlansSayWhoMadeThemAndWhatTheyPredict) {
  for (llvm::StringRef model : {"latency", "sia"}) {
    SCOPED_TRACE(model.str());
    costModel = model;
    options.cost.calibration.name = "mine";
    options.topK = 3;
    Plan plan = solved();
    EXPECT_EQ(plan.strategy, "ftuner");
    EXPECT_EQ(plan.costModel, model);
    EXPECT_EQ(plan.calibration, "mine");
    std::vector<Shape> shapes;
    for (const ShapePrediction &prediction : plan.predictions)
      shapes.push_back(prediction.shape);
    ASSERT_EQ(shapes.size(), 128u);
    std::vector<ShapeExplanation> explanations = explained(plan, shapes);
    for (auto [prediction, explanation] :
         llvm::zip_equal(plan.predictions, explanations)) {
      EXPECT_EQ(prediction.family, explanation.family);
      double time = explanation.program.microseconds();
      EXPECT_NEAR(prediction.microseconds, time, 1e-5 * time);
      EXPECT_LE(prediction.regret, explanation.regret() + 1e-5);
    }
    ASSERT_EQ(plan.rankings.size(), 128u);
    for (const ShapeRanking &ranking : plan.rankings)
      for (const RankedProgram &program : ranking.programs) {
        double time = -problem().predict(program.family, ranking.shape).score;
        EXPECT_NEAR(program.microseconds, time, 1e-5 * time);
      }
  }
}

TEST_F(ExplanationTest, RooflineIsTheSlowerOfComputeAndMemory) {
  SearchProblem problem = this->problem();
  double launch = options.cost.calibration.constants.launch;
  double flops = 2.0 * 4096 * 2304 * 768;
  EXPECT_NEAR(rooflineMicroseconds(problem, {4096, 2304, 768}),
              launch + flops / (device.fp32Tflops * 1e6), 1e-9);
  double bytes = 4.0 * (768 + 2304 * 768 + 2304);
  EXPECT_NEAR(rooflineMicroseconds(problem, {1, 2304, 768}),
              launch + bytes / (device.dramGbps * 1e3), 1e-9);
}

/// A program of one uKernel with its predicted time, half of it a term "a".
static ReportedProgram timed(int64_t height, double microseconds) {
  ReportedProgram program;
  program.family = simtFamily(SimtSchedule(), height, 2, 16);
  program.partition = {1, 0, 0};
  program.predicted.score = -microseconds;
  program.predicted.terms = {{"a", microseconds / 2, -1},
                             {"b", microseconds / 2, -1}};
  return program;
}

TEST(Summary, WeighsShapes) {
  std::vector<ShapeExplanation> shapes(4);
  for (auto [index, shape] : llvm::enumerate(shapes)) {
    shape.fastest = timed(8, 10);
    shape.next = timed(index < 2 ? 4 : 2, 11);
    shape.program = timed(8, 10 + index);
    shape.siaChoice = timed(4, 20);
    shape.rooflineMicroseconds = 5;
    shape.confidence = 0.5 + 0.1 * index;
    shape.measurementGain = 0.04 - 0.01 * index;
  }
  shapes[1].report.bestSingle = timed(4, 15);
  shapes[3].report.bestSingle = timed(4, 12);
  ExplanationSummary summary = summarize(shapes, {1, 1, 4, 2});
  EXPECT_NEAR(summary.chosen.mean, (0.1 + 4 * 0.2 + 2 * 0.3) / 8, 1e-12);
  EXPECT_NEAR(summary.chosen.worst, 0.3, 1e-12);
  EXPECT_EQ(summary.chosen.worstShape, 3u);
  EXPECT_NEAR(summary.siaChoice.mean, 1, 1e-12);
  ASSERT_TRUE(summary.bestSingle.has_value());
  EXPECT_NEAR(summary.bestSingle->mean, (0.5 + 2 * 0.2) / 3, 1e-12);
  EXPECT_EQ(summary.bestSingle->worstShape, 1u);
  EXPECT_NEAR(summary.timesRoofline, (2.0 + 2.2 + 4 * 2.4 + 2 * 2.6) / 8,
              1e-12);
  ASSERT_EQ(summary.termShares.size(), 2u);
  EXPECT_EQ(summary.termShares[0].first, "a");
  EXPECT_NEAR(summary.termShares[0].second, 0.5, 1e-12);
  EXPECT_EQ(summary.confidence[0].shapes, 0u);
  EXPECT_EQ(summary.confidence[1].shapes + summary.confidence[2].shapes, 2u);
  EXPECT_EQ(summary.confidence[3].shapes, 2u);
  // The last two weigh more, though each gains less.
  ASSERT_EQ(summary.worthMeasuring.size(), 2u);
  EXPECT_EQ(summary.worthMeasuring[0].firstShape, 2u);
  EXPECT_EQ(summary.worthMeasuring[0].lastShape, 3u);
  EXPECT_NEAR(summary.worthMeasuring[0].gainOfAll, (4 * 0.02 + 2 * 0.01) / 8,
              1e-12);
  EXPECT_NEAR(summary.worthMeasuring[0].gain, (4 * 0.02 + 2 * 0.01) / 6, 1e-12);
  EXPECT_NEAR(summary.worthMeasuring[1].gainOfAll, (0.04 + 0.03) / 8, 1e-12);
}

TEST(Summary, NothingToMeasureWithoutANextProgram) {
  std::vector<ShapeExplanation> shapes(1);
  shapes[0].program = shapes[0].fastest = shapes[0].siaChoice = timed(8, 10);
  shapes[0].rooflineMicroseconds = 5;
  ExplanationSummary summary = summarize(shapes, {1});
  EXPECT_FALSE(summary.bestSingle.has_value());
  EXPECT_TRUE(summary.worthMeasuring.empty());
  EXPECT_EQ(summary.confidence[0].shapes, 1u);
}

TEST(ShapesAlongMainAxis, HaveTheWeightsOfTheHistogram) {
  Workload workload =
      Workload::matmul({1, 4}, SizeRange::fixed(64), SizeRange::fixed(64));
  ShapeSamples uniform = shapesAlongMainAxis(workload, 512);
  EXPECT_EQ(uniform.weights, std::vector<double>(4, 0.25));
  workload.axes[0].weights = {{2, 3}, {4, 1}};
  ShapeSamples weighted = shapesAlongMainAxis(workload, 512);
  ASSERT_EQ(weighted.weights.size(), 4u);
  EXPECT_NEAR(weighted.weights[1], 0.75, 0.01);
  EXPECT_NEAR(weighted.weights[3], 0.25, 0.01);
  EXPECT_NEAR(
      std::accumulate(weighted.weights.begin(), weighted.weights.end(), 0.0), 1,
      1e-12);
}

TEST(RunsTheSame, LooksOnlyAtPartsWithBlocks) {
  ReportedProgram pair, single;
  SimtSchedule schedule;
  pair.family = simtFamily(schedule, {7, 8}, 2, 16);
  pair.partition = {0, 3, 0};
  single.family = simtFamily(schedule, 8, 2, 16);
  single.partition = {3, 0, 0};
  EXPECT_TRUE(runsTheSame(pair, single));
  pair.partition = {1, 3, 0};
  EXPECT_FALSE(runsTheSame(pair, single));
  pair.partition = {0, 3, 0};
  schedule.stages = 5;
  single.family = simtFamily(schedule, 8, 2, 16);
  EXPECT_FALSE(runsTheSame(pair, single));
}

TEST(BindSizes, MultipliesSymbols) {
  Workload workload = Workload::matmul({16, 2048, 16}, {1, 64}, {1, 32});
  workload.axes[0].factor = 16;
  workload.axes[0].symbols = {"S", "T"};
  workload.axes[1].symbols = {"T"};
  EXPECT_EQ(sizeNames(workload), (std::vector<std::string>{"S", "T", "K"}));
  llvm::Expected<Shape> shape =
      bindSizes(workload, {{"S", 2}, {"T", 3}, {"K", 7}, {"X", 9}});
  ASSERT_TRUE(static_cast<bool>(shape));
  EXPECT_EQ(*shape, (Shape{96, 3, 7}));

  EXPECT_NE(messageOf(bindSizes(workload, {{"S", 2}, {"T", 3}}))
                .find("expected a size of 'K'"),
            std::string::npos);
  EXPECT_NE(messageOf(bindSizes(workload, {{"S", 2}, {"T", 0}, {"K", 1}}))
                .find("expected a positive size of 'T'"),
            std::string::npos);
  EXPECT_NE(messageOf(bindSizes(workload, {{"S", int64_t{1} << 40},
                                           {"T", int64_t{1} << 40},
                                           {"K", 1}}))
                .find("expected an extent of at most"),
            std::string::npos);
}

TEST(BindSizes, AxesWithoutSymbolsHaveNamesOfTheirOwn) {
  Workload workload = Workload::matmul({1, 64}, {1, 64}, SizeRange::fixed(32));
  workload.axes[1].symbols = {"M"}; // A symbol called as another axis.
  EXPECT_EQ(sizeNames(workload), (std::vector<std::string>{"axis_M", "M"}));
  llvm::Expected<Shape> shape = bindSizes(workload, {{"M", 5}, {"axis_M", 6}});
  ASSERT_TRUE(static_cast<bool>(shape));
  EXPECT_EQ(*shape, (Shape{6, 5, 32}));
}

TEST(ShapesAlongMainAxis, TiedAxesFollow) {
  Workload workload =
      Workload::batchMatmul({1, 64}, {1, 128}, {1, 128}, SizeRange::fixed(64));
  workload.axes[0].symbols = workload.axes[1].symbols = {"T"};
  std::vector<Shape> shapes = shapesAlongMainAxis(workload, 512).shapes;
  ASSERT_EQ(shapes.size(), 128u);
  // Of the batch, a middle cell.
  EXPECT_EQ(shapes[52], (Shape{53, 53, 64, 10}));
  EXPECT_LE(shapesAlongMainAxis(workload, 20).shapes.size(), 20u);
}
