//===- RandomTest.cpp - Draws of candidates -------------------------------===//
#include "../DeviceTest.h"
#include "FTuner/Schedule/CodegenModel.h"
#include "FTuner/Search/Ranking/Candidates.h"
#include "FTuner/Search/Setup/StrategyRegistry.h"
#include "FTuner/Workload/Contraction.h"
#include <cmath>
#include <map>
#include <set>

using namespace ftuner;

namespace {
class RandomTest : public DeviceTest {
protected:
  RandomTest()
      : DeviceTest("h200"),
        workload(Workload::matmul(SizeRange::fixed(96), SizeRange::fixed(256),
                                  SizeRange::fixed(128))) {}

  SearchProblem problem() const {
    SearchProblem problem{
        workload, device, simt, *findCostModel("latency"), {}};
    problem.options.topK = 1 << 20;
    return problem;
  }
  std::set<std::string> draws(int64_t count, int64_t seed,
                              uint64_t contextSeed = 0) const {
    SearchProblem p = problem();
    p.options.own = {{"draws", count}, {"draw-seed", seed}};
    SearchContext context;
    context.seed = contextSeed;
    std::vector<ShapeReport> reports =
        llvm::cantFail(findSearchStrategy("random")->explain(
            p, context, std::vector<Shape>{{96, 256, 128}}));
    std::set<std::string> families;
    for (const ReportedProgram &program : reports.front().programs)
      families.insert(program.family.str());
    return families;
  }

  Workload workload;
  const CodegenModel *simt = findCodegenModel("simt");
};
} // namespace

TEST_F(RandomTest, DrawsWithoutRepetition) {
  SearchProblem p = problem();
  size_t all = llvm::cantFail(enumerateCandidates(p)).candidates.size();
  ASSERT_GT(all, 20u);
  for (size_t count : {size_t(1), size_t(10), all - 1, all, 2 * all})
    EXPECT_EQ(draws(count, 3).size(), std::min(count, all));
}

TEST_F(RandomTest, SeedsDecide) {
  EXPECT_EQ(draws(10, 3), draws(10, 3));
  EXPECT_NE(draws(10, 3), draws(10, 4));
  EXPECT_NE(draws(10, 3), draws(10, 3, 1));
}

TEST_F(RandomTest, CandidatesHaveEqualOdds) {
  // Each shape has its own draws.
  Workload range =
      Workload::matmul({1, 600}, SizeRange::fixed(64), SizeRange::fixed(32));
  SearchProblem p{range, device, simt, *findCostModel("latency"), {}};
  p.options.topK = 1 << 20;
  p.options.tileRule = TileRule::Divisors;
  constexpr int64_t rounds = 600, count = 200;
  p.options.own = {{"draws", count}};
  std::vector<Shape> shapes;
  for (int64_t rows = 1; rows <= rounds; ++rows)
    shapes.push_back({rows, 64, 32});
  std::vector<ShapeReport> reports =
      llvm::cantFail(findSearchStrategy("random")->explain(p, {}, shapes));
  std::map<std::string, int> counts;
  for (const ShapeReport &report : reports)
    for (const ReportedProgram &program : report.programs)
      ++counts[program.family.str()];
  // Each is binomial: five standard deviations around the mean.
  size_t all = llvm::cantFail(enumerateCandidates(p)).candidates.size();
  double share = double(count) / all, mean = rounds * share;
  double deviation = std::sqrt(mean * (1 - share));
  ASSERT_GT(mean, 25);
  EXPECT_EQ(counts.size(), all);
  for (const auto &[family, number] : counts)
    EXPECT_NEAR(number, mean, 5 * deviation) << family;
}
