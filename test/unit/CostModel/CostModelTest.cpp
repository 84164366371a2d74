//===- CostModelTest.cpp - Scores of programs -----------------------------===//
#include "FTuner/CostModel/CostModel.h"
#include "FTuner/Codegen/Simt/SimtSchedule.h"
#include "FTuner/CostModel/LatencyLaunch.h"
#include "FTuner/CostModel/Metrics.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace ftuner;

class CostModelTest : public ::testing::Test {
protected:
  void SetUp() override {
    llvm::Expected<DeviceSpec> loaded = loadDeviceSpec("v100");
    ASSERT_TRUE(static_cast<bool>(loaded));
    device = *loaded;
    // 28 and 32 rows.
    family = simtFamily({4, 32, 2, 4}, {7, 8}, 4, 16);
  }
  CostBreakdown evaluate(llvm::StringRef model) {
    return findCostModel(model)->evaluate(
        workload, shape, {&family, partitionShape(family, shape)}, device,
        options);
  }

  DeviceSpec device;
  Workload workload = Workload::matmul({1, 4096}, SizeRange::fixed(2304),
                                       SizeRange::fixed(768));
  KernelFamily family;
  Shape shape = {212, 2304, 768}; // 3 · 28 + 4 · 32
  CostModelOptions options;
};

TEST_F(CostModelTest, AreRegistered) {
  ASSERT_NE(findCostModel("sia"), nullptr);
  ASSERT_NE(findCostModel("sia-program"), nullptr);
  EXPECT_EQ(findCostModel("nonsense"), nullptr);
  for (const CostModel *model : costModels())
    EXPECT_EQ(findCostModel(model->name()), model);
}

TEST_F(CostModelTest, ScoreIsTheWeightedSumOfItsTerms) {
  options.own = {{"c0", 0.5}, {"c1", 2.0}, {"c2", 3.0}};
  for (const CostModel *model : costModels()) {
    CostBreakdown breakdown = evaluate(model->name());
    double sum = 0;
    for (const CostTerm &term : breakdown.terms)
      sum += term.weight * term.value;
    EXPECT_NEAR(breakdown.score, sum, 1e-12);
    EXPECT_TRUE(std::isfinite(breakdown.score));
  }
}

TEST_F(CostModelTest, ManyProgramsScoreAsEachByItself) {
  KernelFamily other = simtFamily({16, 16, 2, 1}, {8}, 4, 16);
  for (const CostModel *model : costModels()) {
    auto evaluator = model->createEvaluator(workload, device, options);
    std::vector<Program> programs;
    std::vector<const FamilyCosts *> costs;
    for (const KernelFamily *scored : {&family, &other, &family}) {
      programs.push_back({scored, partitionShape(*scored, shape)});
      costs.push_back(evaluator->costsOf(*scored));
    }
    std::vector<double> scores(programs.size());
    evaluator->scoreAll(programs, costs, shape, scores);
    for (size_t i = 0; i < programs.size(); ++i)
      EXPECT_EQ(scores[i], evaluator->score(shape, programs[i]));

    Shape taller = shape;
    ++taller[0];
    std::vector<llvm::ArrayRef<int64_t>> shapes = {shape, taller, taller};
    programs[1].partition = partitionShape(other, taller);
    programs[2].partition = partitionShape(family, taller);
    evaluator->scoreEach(programs, shapes, scores);
    auto fresh = model->createEvaluator(workload, device, options);
    for (size_t i = 0; i < programs.size(); ++i)
      EXPECT_EQ(scores[i], fresh->score(shapes[i], programs[i]));
  }
}

TEST_F(CostModelTest, SiaIsTheMeanOfWholeShapeScores) {
  Metrics first = ukernelMetrics(workload, shape, family, 0, device);
  Metrics second = ukernelMetrics(workload, shape, family, 1, device);
  auto sum = [](const Metrics &m) { return m.cmr + m.pad + m.occ; };
  EXPECT_NEAR(evaluate("sia").score, (sum(first) + sum(second)) / 2, 1e-12);
  // 212 pads to 224 under either height alone.
  EXPECT_NEAR(evaluate("sia").terms[1].value, 212.0 / 224, 1e-12);
}

TEST_F(CostModelTest, SiaScoresOnlyThePartThatRuns) {
  shape[0] = 96; // 3 · 32
  Metrics only = ukernelMetrics(workload, shape, family, 1, device);
  EXPECT_NEAR(evaluate("sia").score, only.cmr + only.pad + only.occ, 1e-12);
}

TEST_F(CostModelTest, SiaProgramSeesTheExactPartition) {
  EXPECT_DOUBLE_EQ(evaluate("sia-program").terms[1].value, 1);
  EXPECT_GT(evaluate("sia-program").score, evaluate("sia").score);
}

TEST_F(CostModelTest, SlicesCostASecondKernelAndTheTrafficOfTheirSums) {
  auto figure = [](const CostBreakdown &breakdown, llvm::StringRef name) {
    for (llvm::ArrayRef<CostTerm> terms :
         {llvm::ArrayRef(breakdown.terms), llvm::ArrayRef(breakdown.figures)})
      for (const CostTerm &term : terms)
        if (term.name == name)
          return term.value;
    return 0.0;
  };
  // f16 results are summed in f32.
  for (Operand &operand : workload.operands)
    if (operand.role == OperandRole::Output)
      operand.elementBytes = 2;
  CostBreakdown whole = evaluate("latency");
  EXPECT_EQ(figure(whole, "second_kernel"), 0);
  double before = options.calibration.constants.secondKernel;
  for (int64_t split : {2, 3, 6}) {
    family.reduceSplit = split;
    CostBreakdown sliced = evaluate("latency");
    // Each slice is written, in four bytes, and read by the second kernel.
    EXPECT_GT(figure(sliced, "second_kernel"), before);
    before = figure(sliced, "second_kernel");
    EXPECT_EQ(describeLaunch(workload, shape,
                             {&family, partitionShape(family, shape)}, device)
                  .grid.sumBytes,
              4.0 * split * shape[0] * shape[1]);
  }
}

TEST_F(CostModelTest, OnlyPartsThatRunReadTheirRows) {
  // 32 and 64 columns, of which 72 blocks of 32 cover all.
  family = simtFamily({4, 8, 2, 4}, {4}, 4, 16);
  family.combineAxis = matmulAxes.n;
  BlockTile wide = family.tiles.front();
  wide[matmulAxes.n] *= 2;
  family.tiles.push_back(wide);
  auto runOf = [&](Partition partition) {
    return describeLaunch(workload, shape, {&family, partition}, device)
        .grid.rhsRunBytes;
  };
  EXPECT_EQ(runOf({72, 0, 0}), 4 * 32);
  EXPECT_EQ(runOf({0, 36, 0}), 4 * 64);
  EXPECT_EQ(runOf({2, 35, 0}), 4 * 64);
}

TEST_F(CostModelTest, SlicesPayForFewBlocksAndALongReduceAxis) {
  auto gain = [&] {
    family.reduceSplit = 1;
    double whole = evaluate("latency").score;
    family.reduceSplit = 8;
    return evaluate("latency").score - whole;
  };
  shape = {60, 64, 65536};
  EXPECT_GT(gain(), 0);
  // No idle SMs, and a reduce axis that is done before a second kernel starts.
  shape = {4096, 4096, 768};
  EXPECT_LT(gain(), 0);
  shape = {60, 64, 32};
  EXPECT_LT(gain(), 0);
}
