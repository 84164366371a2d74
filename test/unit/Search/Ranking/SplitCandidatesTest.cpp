//===- SplitCandidatesTest.cpp - Tests of slices of k ---------------------===//
#include "../DeviceTest.h"
#include "FTuner/Search/Ranking/Candidates.h"
#include "FTuner/Search/Setup/StrategyRegistry.h"
#include "FTuner/Workload/Contraction.h"
#include "llvm/ADT/STLExtras.h"
#include <gtest/gtest.h>

using namespace ftuner;

namespace {

class SplitCandidatesTest : public DeviceTest {
protected:
  SplitCandidatesTest() : DeviceTest("a100-80gb") { options.slicedK = false; }

  /// f16, the rhs contiguous along k.
  static Workload productOf(SizeRange rows, int64_t columns, int64_t depth) {
    Workload workload =
        Workload::matmul(rows, SizeRange::fixed(columns),
                         SizeRange::fixed(depth), /*transposeLhs=*/false,
                         /*transposeRhs=*/true);
    for (Operand &operand : workload.operands) {
      operand.elementType = ElementType::F16;
      operand.elementBytes = 2;
    }
    changeContraction(workload, [](ContractionParts &parts) {
      parts.multipliedType = ElementType::F16;
    });
    return workload;
  }
  SearchProblem problemOf(const Workload &workload,
                          llvm::StringRef costModel = "latency") {
    options.cost.calibration = defaultCalibration(device);
    return {workload, device, codegenModels(), *findCostModel(costModel),
            options};
  }
  CandidateSet candidatesOf(const SearchProblem &problem) {
    llvm::Expected<CandidateSet> set = enumerateCandidates(problem);
    EXPECT_TRUE(static_cast<bool>(set));
    return set ? std::move(*set) : CandidateSet();
  }
  /// The plan's family of a shape.
  KernelFamily familyOf(const SearchProblem &problem, const Shape &shape) {
    llvm::Expected<Plan> plan = solve(problem, *findSearchStrategy("ftuner"));
    EXPECT_TRUE(static_cast<bool>(plan));
    return plan ? plan->families[plan->familyFor(shape)] : KernelFamily();
  }

  SearchOptions options;
};

TEST_F(SplitCandidatesTest, AreFoundForFewBlocksAndALongReduceAxis) {
  // One tile of rows, eight of columns, on 108 SMs.
  Workload workload = productOf({1, 128}, 1024, 16384);
  SearchProblem problem = problemOf(workload);
  CandidateSet set = candidatesOf(problem);
  EXPECT_GT(set.numSplit, 0);
  // They follow the others, and each equals one of these except for its slices.
  size_t first = set.candidates.size() - set.numSplit;
  for (auto [index, candidate] : llvm::enumerate(set.candidates)) {
    SCOPED_TRACE(candidate.family.str());
    EXPECT_EQ(candidate.family.reduceSplit > 1, index >= first);
    EXPECT_EQ(candidate.ukernel.reduceSplit, candidate.family.reduceSplit);
    if (index < first)
      continue;
    EXPECT_TRUE(isFeasible(problem, candidate.family));
    KernelFamily whole = candidate.family;
    whole.reduceSplit = 1;
    EXPECT_TRUE(llvm::any_of(
        llvm::ArrayRef(set.candidates).take_front(first),
        [&](const Candidate &other) { return other.family == whole; }));
  }

  // Where a kernel without them takes some 20 us, too.
  EXPECT_GT(candidatesOf(problemOf(productOf({1, 64}, 128, 8192))).numSplit, 0);

  Shape shape = {128, 1024, 16384};
  KernelFamily chosen = familyOf(problem, shape);
  EXPECT_GT(chosen.reduceSplit, 1) << chosen.str();
  options.splitK = false;
  SearchProblem withoutSplits = problemOf(workload);
  KernelFamily whole = familyOf(withoutSplits, shape);
  EXPECT_EQ(whole.reduceSplit, 1) << whole.str();
  EXPECT_GT(problem.predict(chosen, shape).score,
            problem.predict(whole, shape).score);
}

TEST_F(SplitCandidatesTest, ServeNoSizeBeyondARange) {
  Workload workload = productOf({1, 128}, 1024, 16384);
  SearchProblem problem = problemOf(workload);
  llvm::Expected<Plan> plan = solve(problem, *findSearchStrategy("ftuner"));
  ASSERT_TRUE(static_cast<bool>(plan));
  EXPECT_EQ(plan->families[plan->unalignedGeneralFamily].reduceSplit, 1);
  bool hasWhole = llvm::any_of(plan->families, [](const KernelFamily &family) {
    return family.reduceSplit == 1 && !family.takesAnyAlignment();
  });
  if (hasWhole) {
    EXPECT_EQ(plan->families[plan->generalFamily].reduceSplit, 1);
  }
}

TEST_F(SplitCandidatesTest, AreNotLookedForWhereTheyCannotPay) {
  auto numSplit = [&](const Workload &workload,
                      llvm::StringRef costModel = "latency") {
    SearchProblem problem = problemOf(workload, costModel);
    return candidatesOf(problem).numSplit;
  };
  // Enough blocks.
  EXPECT_EQ(numSplit(productOf({2048, 4096}, 4096, 16384)), 0);
  // A second kernel would take as long as the whole product.
  EXPECT_EQ(numSplit(productOf({1, 128}, 1024, 512)), 0);
  // Models that do not predict time, exact pools and an option leave them out.
  Workload workload = productOf({1, 128}, 1024, 16384);
  EXPECT_EQ(numSplit(workload, "sia"), 0);
  options.pool = ProgramPool::Exact;
  EXPECT_EQ(numSplit(workload), 0);
  options.pool = ProgramPool::Tight;
  options.splitK = false;
  EXPECT_EQ(numSplit(workload), 0);
}

TEST_F(SplitCandidatesTest, ShareStepsOutWithinFewBlocks) {
  options.splitK = false;
  options.slicedK = true;
  // f32, on the CUDA cores: too short for a second kernel.
  Workload workload =
      Workload::matmul({1, 64}, SizeRange::fixed(2304), SizeRange::fixed(768));
  SearchProblem problem = problemOf(workload);
  auto hasSlices = [&](const KernelFamily &family) {
    return family.path().slicedVariants(family).empty() &&
           family.path().threads(family) > family.ukernel(0).workers;
  };
  CandidateSet set = candidatesOf(problem);
  EXPECT_GT(set.numSplit, 0);
  size_t first = set.candidates.size() - set.numSplit;
  for (auto [index, candidate] : llvm::enumerate(set.candidates)) {
    SCOPED_TRACE(candidate.family.str());
    EXPECT_EQ(candidate.family.reduceSplit, 1);
    EXPECT_EQ(hasSlices(candidate.family), index >= first);
    EXPECT_TRUE(isFeasible(problem, candidate.family));
  }
  Shape shape = {4, 2304, 768};
  KernelFamily chosen = familyOf(problem, shape);
  EXPECT_TRUE(hasSlices(chosen)) << chosen.str();
  options.slicedK = false;
  SearchProblem withoutSlices = problemOf(workload);
  KernelFamily whole = familyOf(withoutSlices, shape);
  EXPECT_FALSE(hasSlices(whole)) << whole.str();
  EXPECT_GT(problem.predict(chosen, shape).score,
            problem.predict(whole, shape).score);
  // Enough blocks.
  options.slicedK = true;
  EXPECT_EQ(candidatesOf(
                problemOf(Workload::matmul({2048, 4096}, SizeRange::fixed(4096),
                                           SizeRange::fixed(768))))
                .numSplit,
            0);
}

} // namespace
