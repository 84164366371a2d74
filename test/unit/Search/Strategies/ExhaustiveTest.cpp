//===- ExhaustiveTest.cpp - The optimum of a cost model -------------------===//
#include "../DeviceTest.h"
#include "../StubModel.h"
#include "FTuner/CostModel/Metrics.h"
#include "FTuner/Search/Ranking/Candidates.h"
#include "FTuner/Search/Setup/StrategyRegistry.h"
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>

using namespace ftuner;

namespace {
class ExhaustiveTest : public DeviceTest {
protected:
  ExhaustiveTest() : DeviceTest("t4") {}

  SearchProblem problem(const CostModel &model) {
    return {workload, device, path, model, options};
  }
  static llvm::Expected<std::vector<ShapeReport>>
  explain(const SearchProblem &problem, llvm::StringRef strategy,
          llvm::ArrayRef<Shape> shapes) {
    return findSearchStrategy(strategy)->explain(problem, {}, shapes);
  }
  /// Scores of the best programs of some shapes.
  static std::vector<double> bestScores(const SearchProblem &problem,
                                        llvm::StringRef strategy,
                                        llvm::ArrayRef<Shape> shapes) {
    auto reports = explain(problem, strategy, shapes);
    EXPECT_TRUE(static_cast<bool>(reports));
    std::vector<double> scores;
    for (const ShapeReport &report : *reports)
      scores.push_back(report.programs.front().score.score);
    return scores;
  }

  Workload workload =
      Workload::matmul({1, 12}, SizeRange::fixed(40), SizeRange::fixed(24));
  StubModel stub;
  const CodegenModel *path = &stub;
  SearchOptions options;
};
} // namespace

/// Returns the best score of a shape over every family of one and two uKernels,
/// built here from the candidates; a part may idle.
static double bruteForce(const SearchProblem &problem, const CandidateSet &set,
                         const Shape &shape) {
  double best = -std::numeric_limits<double>::infinity();
  for (const Candidate &candidate : set.candidates) {
    int64_t maxRows = candidate.ukernel.registerTile[0];
    for (int64_t rows = maxRows; rows >= 1; --rows) {
      KernelFamily family = candidate.family;
      BlockTile lower = family.tiles.front();
      lower[0] = lower[0] / maxRows * rows;
      if (rows < maxRows)
        family.tiles.insert(family.tiles.begin(), lower);
      if (llvm::Error error = checkFamily(problem, family))
        llvm::consumeError(std::move(error));
      else
        best = std::max(best, problem.evaluate(family, shape).score);
    }
  }
  return best;
}

TEST_F(ExhaustiveTest, EqualsBruteForce) {
  workload =
      Workload::matmul({1, 24}, SizeRange::fixed(320), SizeRange::fixed(64));
  std::vector<Shape> shapes;
  for (int64_t m = 1; m <= 24; ++m)
    shapes.push_back({m, 320, 64});
  for (const CostModel *model : costModels()) {
    SearchProblem p = problem(*model);
    llvm::Expected<CandidateSet> set = enumerateCandidates(p);
    ASSERT_TRUE(static_cast<bool>(set));
    auto reports = explain(p, "exhaustive", shapes);
    ASSERT_TRUE(static_cast<bool>(reports));
    int64_t numPairs = 0;
    for (const ShapeReport &report : *reports) {
      EXPECT_DOUBLE_EQ(report.programs.front().score.score,
                       bruteForce(p, *set, report.shape))
          << model->name().str() << " " << report.shape[0];
      ASSERT_EQ(report.stages.size(), 1u);
      EXPECT_EQ(report.stages[0].kept,
                report.singlePrograms + report.pairPrograms);
      // A part that is not a candidate may still run by itself.
      EXPECT_GE(report.singlePrograms,
                static_cast<int64_t>(set->candidates.size()));
      ASSERT_TRUE(report.bestSingle.has_value());
      EXPECT_LE(report.bestSingle->score.score,
                report.programs.front().score.score);
      numPairs += report.pairPrograms;
    }
    EXPECT_GT(numPairs, 0);
  }
}

TEST_F(ExhaustiveTest, BoundsEveryOtherStrategy) {
  std::vector<Shape> shapes;
  for (int64_t m : {1, 5, 7, 13, 31, 53, 64, 97, 128})
    shapes.push_back({m, 320, 64});
  workload =
      Workload::matmul({1, 128}, SizeRange::fixed(320), SizeRange::fixed(64));
  for (const CostModel *model : costModels()) {
    SearchProblem p = problem(*model);
    std::vector<double> best = bestScores(p, "exhaustive", shapes);
    for (const SearchStrategy *strategy : searchStrategies()) {
      std::vector<double> scores = bestScores(p, strategy->name(), shapes);
      for (unsigned i = 0; i < shapes.size(); ++i)
        EXPECT_LE(scores[i], best[i] + 1e-12)
            << strategy->name().str() << " " << shapes[i][0];
    }
  }
}

/// Returns whether the program is in the pool of `ftuner` with its filter
/// opened wide: its parts that run have at least 128 threads and a block for
/// each SM, it covers the shape exactly (if any program does), and neither of
/// two parts could do so by itself (`Pairing::NoDivisors`).
static bool isInOpenPool(const SearchProblem &problem,
                         const ReportedProgram &program, const Shape &shape) {
  const KernelFamily &family = program.family;
  int64_t counts[] = {program.partition.first, program.partition.second};
  bool isPair = counts[0] > 0 && counts[1] > 0;
  for (unsigned part = 0; part < family.tiles.size(); ++part) {
    if (counts[part] == 0)
      continue;
    Metrics metrics =
        ukernelMetrics(problem.workload, shape, family, part, problem.device);
    if (family.threads() < 128 || metrics.blocks < problem.device.smCount)
      return false;
    if (isPair && shape[family.combineAxis] % family.height(part) == 0)
      return false;
  }
  return program.partition.padded == 0;
}

TEST_F(ExhaustiveTest, FTunerFindsTheOptimumWithoutItsFilter) {
  workload =
      Workload::matmul({1, 128}, SizeRange::fixed(640), SizeRange::fixed(64));
  for (const char *name : {"epsilon-min", "lambda-min", "lambda-max", "psi"})
    options.own[name] = 0.0;
  options.own["active-blocks-per-sm"] = int64_t(1);
  options.zeta = 1;
  options.own["max-candidates"] = int64_t(1 << 20);
  int numChecked = 0, numOptimal = 0;
  for (const CostModel *model : costModels())
    for (int64_t m = 16; m <= 128; m += 7) {
      Shape shape = {m, 640, 64};
      SearchProblem p = problem(*model);
      double found = bestScores(p, "ftuner", {shape}).front();
      p.options.topK = 1 << 20;
      auto reports = explain(p, "exhaustive", {shape});
      ASSERT_TRUE(static_cast<bool>(reports));
      const std::vector<ReportedProgram> &all = reports->front().programs;
      EXPECT_LE(found, all.front().score.score + 1e-12) << m;
      numOptimal += found >= all.front().score.score - 1e-12;
      for (const ReportedProgram &program : all)
        if (isInOpenPool(p, program, shape)) {
          ++numChecked;
          EXPECT_GE(found, program.score.score - 1e-12)
              << model->name().str() << " " << m << " " << program.family.str();
          break;
        }
    }
  EXPECT_GT(numChecked, 20);
  EXPECT_GT(numOptimal, 8);
}

TEST_F(ExhaustiveTest, PlansTheWholeRange) {
  for (const CostModel *model : costModels()) {
    SearchProblem p = problem(*model);
    p.options.maxKernels = 64;
    llvm::Expected<Plan> plan = solve(p, *findSearchStrategy("exhaustive"));
    ASSERT_TRUE(static_cast<bool>(plan)) << llvm::toString(plan.takeError());
    // With as many kernels as it likes, every size gets its optimum.
    std::vector<Shape> shapes;
    for (int64_t m = 1; m <= 12; ++m)
      shapes.push_back({m, 40, 24});
    std::vector<double> best = bestScores(p, "exhaustive", shapes);
    for (unsigned i = 0; i < shapes.size(); ++i) {
      const KernelFamily &family = plan->families[plan->familyFor(shapes[i])];
      EXPECT_NEAR(p.evaluate(family, shapes[i]).score, best[i],
                  1e-3 * std::abs(best[i]));
    }
  }
}

TEST_F(ExhaustiveTest, RefusesLargeSpaces) {
  // Many heights.
  stub.maxRows = 64;
  workload = Workload::matmul({1, 4096}, SizeRange::fixed(2304),
                              SizeRange::fixed(768));
  SearchProblem p = problem(*findCostModel("sia"));
  auto expectRefusal = [](auto answer) {
    ASSERT_FALSE(static_cast<bool>(answer));
    std::string message = llvm::toString(answer.takeError());
    EXPECT_NE(message.find("expected at most 20000000 evaluations"),
              std::string::npos)
        << message;
    EXPECT_NE(message.find("programs for each of "), std::string::npos)
        << message;
    EXPECT_NE(message.find("fewer sizes in the ranges"), std::string::npos);
  };
  expectRefusal(solve(p, *findSearchStrategy("exhaustive")));
  expectRefusal(
      explain(p, "exhaustive", std::vector<Shape>(256, {4, 2304, 768})));
}

TEST_F(ExhaustiveTest, HonoursRejections) {
  workload = Workload::matmul(SizeRange::fixed(1), SizeRange::fixed(1),
                              SizeRange::fixed(1));
  SearchProblem p = problem(*findCostModel("sia"));
  const SearchStrategy &strategy = *findSearchStrategy("exhaustive");
  int64_t numRejected = 0;
  while (true) {
    auto reports = strategy.explain(p, {}, {{1, 1, 1}});
    if (!reports) {
      EXPECT_EQ(llvm::toString(reports.takeError()),
                "every uKernel of workload '" + workload.name +
                    "' was rejected");
      break;
    }
    const KernelFamily &best = reports->front().programs.front().family;
    ASSERT_FALSE(p.isRejected(best));
    ASSERT_LT(++numRejected, 1000);
    p.rejected.push_back(best);
  }
  EXPECT_GT(numRejected, 1);
  llvm::Expected<Plan> plan = solve(p, strategy);
  EXPECT_FALSE(static_cast<bool>(plan));
  llvm::consumeError(plan.takeError());
}
