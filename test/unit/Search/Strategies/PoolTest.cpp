//===- PoolTest.cpp - The programs that a shape may have ------------------===//
//
// The pools of `ftuner`, exact and tight, against pools built here from the
// definition (ProgramPool).
//
//===----------------------------------------------------------------------===//
#include "../DeviceTest.h"
#include "../StubModel.h"
#include "FTuner/Search/Planning/RangePlanner.h"
#include "FTuner/Search/Setup/StrategyRegistry.h"
#include "FTuner/Search/Strategies/Combination.h"
#include "FTuner/Search/Strategies/Filter.h"
#include "FTuner/Workload/Contraction.h"
#include "llvm/ADT/STLExtras.h"
#include <gtest/gtest.h>
#include <set>

using namespace ftuner;

namespace {
class PoolTest : public DeviceTest {
protected:
  PoolTest() : DeviceTest("t4") {}

  void SetUp() override {
    DeviceTest::SetUp();
    if (HasFatalFailure())
      return;
    // A few candidates, so that not every size has an exact partition.
    options.own["max-candidates"] = int64_t(3);
    options.topK = 1 << 20;
  }
  SearchProblem problem(ProgramPool pool) {
    SearchProblem result{workload, device, path, *findCostModel("sia"),
                         options};
    result.options.pool = pool;
    return result;
  }
  ShapeReport explain(const SearchProblem &problem, const Shape &shape) {
    auto reports = findSearchStrategy("ftuner")->explain(problem, {}, shape);
    EXPECT_TRUE(static_cast<bool>(reports));
    return reports ? reports->front() : ShapeReport();
  }
  /// K.Filter: candidates that the filter leaves for some shape of the range.
  static std::set<unsigned> keptOf(const SearchProblem &problem,
                                   const CandidateSet &set) {
    std::set<unsigned> kept;
    CandidateFilter filter(problem, set);
    for (const Shape &shape : RangeSamples(problem.workload).shapes)
      for (const Survivor &survivor : filter.run(shape).survivors)
        kept.insert(survivor.candidate);
    return kept;
  }

  Workload workload =
      Workload::matmul({1, 128}, SizeRange::fixed(640), SizeRange::fixed(64));
  StubModel stub;
  const CodegenModel *path = &stub;
  SearchOptions options;
};
} // namespace

/// Columns fill waves that rows leave ragged: for some sizes a pair along n is
/// the best program, and plans of the range are legal with such families.
TEST(PairsAcross, ServeSizesWhoseRowsLeaveSmsIdle) {
  llvm::Expected<DeviceSpec> device = loadDeviceSpec("a100");
  ASSERT_TRUE(static_cast<bool>(device));
  Workload workload = Workload::matmul(
      {1, 1024, 8}, SizeRange::fixed(4096), SizeRange::fixed(4096),
      /*transposeLhs=*/false, /*transposeRhs=*/true);
  for (Operand &operand : workload.operands)
    operand = Operand(operand.role, operand.axes, ElementType::F16);
  changeContraction(workload, [](ContractionParts &parts) {
    parts.multipliedType = ElementType::F16;
  });
  const CodegenModel *path = findCodegenModel("mma");
  SearchProblem problem{workload, *device, path, *findCostModel("latency"),
                        SearchOptions()};
  const SearchStrategy &strategy = *findSearchStrategy("ftuner");
  std::vector<Shape> shapes;
  for (int64_t m = 136; m <= 1024; m += 24)
    shapes.push_back({m, 4096, 4096});
  auto reports = strategy.explain(problem, {}, shapes);
  ASSERT_TRUE(static_cast<bool>(reports));
  size_t numAcross = 0;
  for (const ShapeReport &report : *reports) {
    const KernelFamily &best = report.programs.front().family;
    if (best.combineAxis != matmulAxes.n)
      continue;
    ++numAcross;
    EXPECT_EQ(best.tiles.size(), 2u);
    EXPECT_GT(best.balancedSms, 0);
    EXPECT_LT(best.tiles[0][matmulAxes.n], best.tiles[1][matmulAxes.n]);
    EXPECT_EQ(best.tiles[0][matmulAxes.m], best.tiles[1][matmulAxes.m]);
  }
  EXPECT_GT(numAcross, 0u);
  llvm::Expected<Plan> plan = strategy.search(problem, {});
  ASSERT_TRUE(static_cast<bool>(plan)) << llvm::toString(plan.takeError());
  EXPECT_EQ(llvm::toString(problem.verify(*plan)), "");
}

/// Returns the blocks that run as text: their number, block and register tiles.
static std::string textOf(const UKernel &ukernel, int64_t count) {
  return std::to_string(count) + " x " + ukernel.str();
}

static std::set<std::string> textsOf(llvm::ArrayRef<ReportedProgram> programs) {
  std::set<std::string> texts;
  for (const ReportedProgram &program : programs) {
    const KernelFamily &family = program.family;
    std::string text;
    if (program.partition.first > 0)
      text += textOf(family.ukernel(0), program.partition.first);
    if (program.partition.second > 0)
      text += textOf(family.ukernel(1), program.partition.second);
    EXPECT_TRUE(texts.insert(text).second) << "twice: " << text;
  }
  return texts;
}

/// uProg by trying all numbers of blocks: one uKernel whose height divides the
/// extent, or two that differ in rows alone, of which one does not divide it;
/// with `NoDivisors` neither does.
static std::set<std::string> exactPool(const SearchProblem &problem,
                                       const CandidateSet &set,
                                       const std::set<unsigned> &kept,
                                       int64_t extent,
                                       Pairing pairing = Pairing::Printed) {
  std::set<std::string> texts;
  for (unsigned low : kept) {
    const Candidate &a = set.candidates[low];
    int64_t height = a.family.lowHeight();
    if (extent % height == 0) {
      texts.insert(textOf(a.ukernel, extent / height));
      if (pairing == Pairing::NoDivisors)
        continue;
    }
    for (unsigned high : kept) {
      const Candidate &b = set.candidates[high];
      int64_t other = b.family.lowHeight();
      KernelFamily sameRows = b.family;
      sameRows.tiles.front()[0] = height;
      if (other <= height || extent % other == 0 || !(sameRows == a.family))
        continue;
      KernelFamily family = b.family;
      family.tiles.insert(family.tiles.begin(), a.family.tiles.front());
      if (llvm::Error error = checkFamily(problem, family)) {
        llvm::consumeError(std::move(error));
        continue;
      }
      for (int64_t first = 1; first * height < extent; ++first)
        if ((extent - first * height) % other == 0) {
          texts.insert(textOf(a.ukernel, first) +
                       textOf(b.ukernel, (extent - first * height) / other));
          break;
        }
    }
  }
  return texts;
}

TEST_F(PoolTest, ExactIsTheProgramsOfAlgorithm2) {
  SearchProblem p = problem(ProgramPool::Exact);
  llvm::Expected<CandidateSet> set = enumerateCandidates(p);
  ASSERT_TRUE(static_cast<bool>(set));
  std::set<unsigned> kept = keptOf(p, *set);
  ASSERT_LT(kept.size(), set->candidates.size());
  int numExact = 0, numPairs = 0;
  for (int64_t rows : {1, 5, 13, 31, 53, 64, 97, 101, 120, 127, 128}) {
    ShapeReport report = explain(p, {rows, 640, 64});
    std::set<std::string> expected = exactPool(p, *set, kept, rows);
    std::set<std::string> texts = textsOf(report.programs);
    EXPECT_EQ(report.singlePrograms + report.pairPrograms,
              static_cast<int64_t>(texts.size()));
    numExact += !expected.empty();
    numPairs += report.pairPrograms;
    EXPECT_EQ(texts, expected) << rows;
    double last = report.programs.front().rating;
    for (const ReportedProgram &program : report.programs) {
      EXPECT_EQ(program.partition.padded, 0);
      // Ranked by score alone.
      EXPECT_EQ(program.rating, program.score.score);
      EXPECT_LE(program.rating, last);
      last = program.rating;
    }
  }
  EXPECT_GT(numExact, 3);
  EXPECT_GT(numPairs, 3);
}

TEST_F(PoolTest, OthersServeWhereNoProgramIsExact) {
  // What the filter leaves for 64 and 128 rows does not cover 53.
  workload.axes[0].range = {64, 128, 64};
  SearchProblem p = problem(ProgramPool::Exact);
  llvm::Expected<CandidateSet> set = enumerateCandidates(p);
  ASSERT_TRUE(static_cast<bool>(set));
  std::set<unsigned> kept = keptOf(p, *set);
  EXPECT_TRUE(exactPool(p, *set, kept, 53).empty());
  EXPECT_FALSE(explain(p, {53, 640, 64}).programs.empty());
  // And where one is, they do not.
  EXPECT_EQ(textsOf(explain(p, {64, 640, 64}).programs),
            exactPool(p, *set, kept, 64));
}

TEST_F(PoolTest, TightPadsLessThanARowOfThreadsAndHoldsExactOnes) {
  SearchProblem exact = problem(ProgramPool::Exact);
  SearchProblem tight = problem(ProgramPool::Tight);
  llvm::Expected<CandidateSet> set = enumerateCandidates(exact);
  ASSERT_TRUE(static_cast<bool>(set));
  std::set<unsigned> kept = keptOf(exact, *set);
  int numLarger = 0, numPenalised = 0;
  for (int64_t rows : {1, 5, 13, 31, 53, 64, 97, 101, 120, 127, 128}) {
    ShapeReport report = explain(tight, {rows, 640, 64});
    std::set<std::string> texts = textsOf(report.programs);
    std::set<std::string> expected =
        exactPool(exact, *set, kept, rows, Pairing::NoDivisors);
    for (const std::string &text : expected)
      EXPECT_TRUE(texts.count(text)) << rows << ": " << text;
    numLarger += texts.size() > expected.size();
    auto isTight = [&](const ReportedProgram &program) {
      return program.partition.padded < stub.heightGranule(program.family);
    };
    if (llvm::any_of(report.programs, isTight)) {
      EXPECT_TRUE(llvm::all_of(report.programs, isTight)) << rows;
    }
    double last = report.programs.front().rating;
    for (const ReportedProgram &program : report.programs) {
      EXPECT_LE(program.rating, program.score.score);
      EXPECT_LE(program.rating, last);
      last = program.rating;
      numPenalised += program.rating < program.score.score;
    }
  }
  EXPECT_GT(numLarger, 5);
  EXPECT_GT(numPenalised, 5);
}

TEST_F(PoolTest, ProgramsThatMissWhatTheFilterAsksRankLower) {
  SearchProblem p = problem(ProgramPool::Tight);
  llvm::Expected<CandidateSet> set = enumerateCandidates(p);
  ASSERT_TRUE(static_cast<bool>(set));
  int numMissing = 0;
  for (int64_t rows : {53, 97, 128}) {
    Shape shape = {rows, 640, 64};
    CandidateFilter filter(p, *set);
    Demands demands = filter.run(shape).demandsOf(stub);
    for (const ReportedProgram &program : explain(p, shape).programs) {
      const KernelFamily &family = program.family;
      KernelResources resources = stub.resources(workload, family);
      int64_t counts[] = {program.partition.first, program.partition.second};
      bool misses = false;
      for (unsigned part = 0; part < family.tiles.size(); ++part)
        misses |=
            counts[part] > 0 &&
            filter.violation(
                demands, ukernelMetrics(workload, shape, family, part, device),
                resources) > 0;
      EXPECT_EQ(program.rating < program.score.score, misses) << family.str();
      numMissing += misses;
    }
  }
  EXPECT_GT(numMissing, 0);
}

TEST_F(PoolTest, RejectedFamiliesAreInNoPool) {
  Shape shape = {53, 640, 64};
  for (ProgramPool pool : {ProgramPool::Exact, ProgramPool::Tight}) {
    SearchProblem p = problem(pool);
    for (int round = 0; round < 5; ++round) {
      ShapeReport report = explain(p, shape);
      ASSERT_FALSE(report.programs.empty());
      ASSERT_TRUE(report.bestSingle.has_value());
      EXPECT_FALSE(p.isRejected(report.bestSingle->family));
      for (const ReportedProgram &program : report.programs)
        EXPECT_FALSE(p.isRejected(program.family)) << program.family.str();
      for (const ReportedProgram &program : report.programs)
        p.rejected.push_back(program.family);
    }
  }
}
