//===- MainAxisTest.cpp - The axis that programs combine heights along ----===//
#include "FTuner/Search/Ranking/MainAxis.h"
#include "../DeviceTest.h"
#include "../StubModel.h"
#include "FTuner/Search/Setup/StrategyRegistry.h"
#include "llvm/ADT/StringExtras.h"
#include <gtest/gtest.h>

using namespace ftuner;

namespace {
class MainAxisTest : public DeviceTest {
protected:
  SearchProblem problem(MainAxis axis, llvm::StringRef costModel = "sia") {
    SearchProblem result{workload, device, path, *findCostModel(costModel),
                         SearchOptions()};
    result.options.mainAxis = axis;
    result.options.pool = ProgramPool::Exact;
    result.options.topK = 1 << 20;
    return result;
  }
  static ShapeReport explain(const SearchProblem &problem, const Shape &shape) {
    auto reports = findSearchStrategy("ftuner")->explain(problem, {}, shape);
    EXPECT_TRUE(static_cast<bool>(reports));
    return reports ? reports->front() : ShapeReport();
  }
  static std::vector<std::string> remarksOf(const SearchProblem &problem) {
    llvm::Expected<CandidateSet> set = enumerateCandidates(problem);
    EXPECT_TRUE(static_cast<bool>(set));
    return set ? mainAxisRemarks(problem, *set) : std::vector<std::string>();
  }

  /// The columns are static, and more than there ever are rows.
  Workload workload =
      Workload::matmul({1, 128}, SizeRange::fixed(2336), SizeRange::fixed(64));
  StubModel rows, columns{{matmulAxes.m, matmulAxes.n}};
  const CodegenModel *path = &columns;
};
} // namespace

TEST_F(MainAxisTest, LargestCountsStaticAndBatchAxes) {
  EXPECT_EQ(mainAxisOf(problem(MainAxis::Dynamic)), matmulAxes.m);
  EXPECT_EQ(mainAxisOf(problem(MainAxis::Largest)), matmulAxes.n);
  workload = Workload::matmul({1, 4096}, SizeRange::fixed(2336),
                              SizeRange::fixed(1 << 20));
  EXPECT_EQ(mainAxisOf(problem(MainAxis::Largest)), matmulAxes.m);
  SizeRange some{5, 128}, fixed = SizeRange::fixed(64);
  workload = Workload::batchMatmul(SizeRange::fixed(192), some, some, fixed);
  unsigned batch = mainAxisOf(problem(MainAxis::Largest));
  EXPECT_EQ(workload.axes[batch].range.min, 192);
  EXPECT_NE(mainAxisOf(problem(MainAxis::Dynamic)), batch);
}

TEST_F(MainAxisTest, ProgramsCoverTheLargestAxisExactly) {
  // 2336 = 32 · 73: only the narrowest blocks cover it alone.
  SearchProblem p = problem(MainAxis::Largest);
  EXPECT_TRUE(remarksOf(p).empty());
  size_t numPairs = 0;
  for (int64_t m : {5, 53, 128}) {
    ShapeReport report = explain(p, {m, 2336, 64});
    ASSERT_FALSE(report.programs.empty());
    for (const ReportedProgram &program : report.programs) {
      EXPECT_EQ(program.family.combineAxis, matmulAxes.n);
      EXPECT_EQ(program.partition.padded, 0);
    }
    numPairs += report.pairPrograms;
  }
  EXPECT_GT(numPairs, 0u);
  // The range is still dispatched by the rows, which alone vary.
  p.options.topK = 1;
  llvm::Expected<Plan> plan = solve(p, *findSearchStrategy("ftuner"));
  ASSERT_TRUE(static_cast<bool>(plan)) << llvm::toString(plan.takeError());
  EXPECT_EQ(llvm::join(plan->remarks, "\n").find("main-axis"),
            std::string::npos);
}

TEST_F(MainAxisTest, APathThatCannotCombineAlongItSaysSo) {
  path = &rows;
  SearchProblem p = problem(MainAxis::Largest);
  ShapeReport report = explain(p, {53, 2336, 64});
  EXPECT_EQ(report.pairPrograms, 0);
  ASSERT_GT(report.singlePrograms, 0);
  // Exact along the main axis all the same, whatever they pad along the other.
  for (const ReportedProgram &program : report.programs)
    EXPECT_EQ(2336 % program.family.tiles.front()[matmulAxes.n], 0);
  EXPECT_EQ(llvm::join(remarksOf(p), "\n"),
            "main-axis = largest: path 'stub' cannot combine two uKernels "
            "along N, the largest axis, only along M; its programs have one "
            "uKernel");
  p.options.topK = 1;
  llvm::Expected<Plan> plan = solve(p, *findSearchStrategy("ftuner"));
  ASSERT_TRUE(static_cast<bool>(plan)) << llvm::toString(plan.takeError());
  EXPECT_NE(llvm::join(plan->remarks, "\n").find("cannot combine"),
            std::string::npos);
  // There are no remarks unless the largest axis was asked for.
  EXPECT_TRUE(remarksOf(problem(MainAxis::Dynamic)).empty());
}

TEST_F(MainAxisTest, TheLargestOfTheRangeMayNotBeThatOfEveryShape) {
  workload = Workload::matmul({1, 4096, 1}, SizeRange::fixed(2336),
                              SizeRange::fixed(64));
  EXPECT_EQ(llvm::join(remarksOf(problem(MainAxis::Largest)), "\n"),
            "main-axis = largest: M is the largest axis of the range, but N is "
            "larger for some of its shapes");
}
