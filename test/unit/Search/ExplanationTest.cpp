//===- ExplanationTest.cpp - Why a shape is served as it is ---------------===//
#include "FTuner/Search/Explanation.h"
#include "DeviceTest.h"
#include "llvm/ADT/STLExtras.h"
#include <gtest/gtest.h>

using namespace ftuner;

namespace {
class ExplanationTest : public DeviceTest {
protected:
  SearchProblem problem() {
    return {workload, device, *findCodegenModel("simt"),
            *findCostModel("sia-program"), options};
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
};
} // namespace

static std::string messageOf(llvm::Expected<Shape> shape) {
  return shape ? "" : llvm::toString(shape.takeError());
}

TEST_F(ExplanationTest, FollowsThePlan) {
  options.topK = 5;
  Plan plan = solved();
  std::vector<Shape> shapes = shapesAlongMainAxis(workload, 512);
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
      explained(plan, shapesAlongMainAxis(workload, 512));
  EXPECT_TRUE(llvm::any_of(explanations, [](const ShapeExplanation &shape) {
    return !shape.planHasBest && shape.scoreLoss > 0;
  }));
}

TEST_F(ExplanationTest, RefusesFamiliesThatCannotBeEmitted) {
  Plan plan = solved();
  plan.families[plan.generalFamily].parts[0].smemTile[1] *= 4096;
  auto explanations = explainShapes(problem(), *findSearchStrategy("ftuner"),
                                    plan, Shape{53, 2304, 768});
  ASSERT_FALSE(static_cast<bool>(explanations));
  EXPECT_NE(llvm::toString(explanations.takeError()).find("family"),
            std::string::npos);
}

TEST(RunsTheSame, LooksAtPartsWithBlocksAlone) {
  ReportedProgram pair, single;
  UKernel low{{7, 64, 16}, {7, 2, 1}}, high{{8, 64, 16}, {8, 2, 1}};
  pair.family.parts = {low, high};
  pair.cover = {0, 3, 0};
  single.family.parts = {high};
  single.cover = {3, 0, 0};
  EXPECT_TRUE(runsTheSame(pair, single));
  pair.cover = {1, 3, 0};
  EXPECT_FALSE(runsTheSame(pair, single));
  pair.cover = {0, 3, 0};
  single.family.stages = 5;
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
  std::vector<Shape> shapes = shapesAlongMainAxis(workload, 512);
  ASSERT_EQ(shapes.size(), 128u);
  EXPECT_EQ(shapes[52], (Shape{53, 53, 64, 8}));
  EXPECT_LE(shapesAlongMainAxis(workload, 20).size(), 20u);
}
