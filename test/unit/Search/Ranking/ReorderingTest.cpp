//===- ReorderingTest.cpp - A slow cost model behind a fast one -----------===//
#include "FTuner/Search/Ranking/Reordering.h"
#include "../DeviceTest.h"
#include "../StubModel.h"
#include "FTuner/Search/Planning/RankedStrategy.h"
#include "FTuner/Search/Setup/StrategyRegistry.h"
#include "FTuner/Workload/Contraction.h"
#include <limits>

using namespace ftuner;

namespace {
constexpr int64_t kReordered = 4;

/// Takes the opposite view of `latency`, and counts how often it is asked.
class OppositeModel final : public CostModel {
public:
  llvm::StringRef name() const override { return "opposite"; }
  bool predictsTime() const override { return true; }
  std::optional<Prefilter> prefilter(const CostModelOptions &) const override {
    return Prefilter{findCostModel("latency"), kReordered};
  }
  std::unique_ptr<CostEvaluator>
  createEvaluator(const Workload &workload, const DeviceSpec &device,
                  const CostModelOptions &options) const override {
    struct Evaluator final : CostEvaluator {
      std::unique_ptr<CostEvaluator> latency;
      int64_t &asked;
      explicit Evaluator(int64_t &asked) : asked(asked) {}
      double score(llvm::ArrayRef<int64_t> shape,
                   const Program &program) override {
        ++asked;
        return 1000 / latency->score(shape, program);
      }
      CostBreakdown evaluate(llvm::ArrayRef<int64_t> shape,
                             const Program &program) override {
        return {score(shape, program), {}, {}};
      }
      std::vector<std::string> remarks() const override {
        return {"the opposite"};
      }
    };
    auto evaluator = std::make_unique<Evaluator>(asked);
    evaluator->latency =
        findCostModel("latency")->createEvaluator(workload, device, options);
    return evaluator;
  }

  mutable int64_t asked = 0;
};

class ReorderingTest : public DeviceTest {
protected:
  ReorderingTest()
      : workload(Workload::matmul({1, 24}, SizeRange::fixed(640),
                                  SizeRange::fixed(64))) {
    stub.maxRows = 4;
    stub.maxWorkersM = 8;
  }
  SearchProblem problem(const CostModel &costModel) const {
    return {workload, device, path, costModel, {}};
  }
  RankedShape rank(const SearchProblem &problem, llvm::StringRef strategy,
                   std::unique_ptr<ProgramRanker> &ranker) const {
    const auto &ranking =
        static_cast<const RankedStrategy &>(*findSearchStrategy(strategy));
    ranker = llvm::cantFail(ranking.makeRanker(problem, {}));
    ranker->prepare(RangeSamples(workload).shapes);
    return llvm::cantFail(ranker->rankMeasured(shape));
  }

  Workload workload;
  StubModel stub;
  const CodegenModel *path = &stub;
  OppositeModel opposite;
  Shape shape = {24, 640, 64};
};
} // namespace

TEST_F(ReorderingTest, OrdersTheBestOfThePrefilterAnew) {
  for (const char *strategy : {"ftuner", "exhaustive"}) {
    SCOPED_TRACE(strategy);
    std::unique_ptr<ProgramRanker> ranker, plain;
    SearchProblem p = problem(opposite),
                  byLatency = problem(*findCostModel("latency"));
    RankedShape before = rank(byLatency, strategy, plain);
    opposite.asked = 0;
    RankedShape ranked = rank(p, strategy, ranker);
    EXPECT_EQ(opposite.asked, kReordered);
    ASSERT_TRUE(ranked.reordered);
    ASSERT_EQ(ranked.programs.size(), before.programs.size());
    ASSERT_GT(ranked.programs.size(), size_t(2 * kReordered));
    std::vector<double> known;
    for (const RankedFamily &program : ranked.programs) {
      const KernelFamily &family = ranker->table.families[program.family];
      Program rated{&family, partitionShape(family, shape)};
      if (ranked.reordered->isKnown(rated)) {
        known.push_back(program.score);
        EXPECT_EQ(program.score, p.evaluator().score(shape, rated));
      } else {
        EXPECT_LT(program.score, ranked.reordered->best);
      }
      EXPECT_LE(program.score, ranked.programs.front().score);
      // And so the planner rates it.
      EXPECT_EQ(ranker->rateMeasured(family,
                                     family.path().resources(workload, family),
                                     shape, ranked),
                program.score);
    }
    // What the fast model ranks last of these is first.
    EXPECT_EQ(ranked.programs.front().score, ranked.reordered->best);
    EXPECT_GE(known.size(), size_t(kReordered));
    EXPECT_TRUE(llvm::is_sorted(known, std::greater<double>()));
  }
}

TEST_F(ReorderingTest, AStrategyWithAnOrderOfItsOwnKeepsIt) {
  std::unique_ptr<ProgramRanker> ranker;
  SearchProblem p = problem(opposite);
  EXPECT_FALSE(rank(p, "roller", ranker).reordered);
  // And says so.
  auto says = [&](const SearchProblem &problem, llvm::StringRef strategy) {
    Plan plan = llvm::cantFail(solve(problem, *findSearchStrategy(strategy)));
    return llvm::count(plan.remarks, "strategy '" + strategy.str() +
                                         "' has an order of its own here: cost "
                                         "model 'opposite' does not order its "
                                         "programs anew");
  };
  EXPECT_EQ(says(p, "roller"), 1);
  EXPECT_EQ(says(p, "ftuner"), 0);
  EXPECT_EQ(says(problem(*findCostModel("latency")), "roller"), 0);
  p.options.own["filter"] = std::string("artifact");
  EXPECT_EQ(says(p, "ftuner"), 1);
}

TEST_F(ReorderingTest, PredictionsKnowWhatExplanationsShow) {
  SearchProblem p = problem(opposite);
  p.options.topK = 2 * kReordered;
  const SearchStrategy &strategy = *findSearchStrategy("ftuner");
  Plan plan = llvm::cantFail(solve(p, strategy));
  auto prediction =
      llvm::find_if(plan.predictions, [&](const ShapePrediction &prediction) {
        return prediction.shape == shape;
      });
  ASSERT_NE(prediction, plan.predictions.end());
  std::vector<ShapeReport> reports =
      llvm::cantFail(strategy.explain(p, {}, {shape}));
  ASSERT_EQ(reports[0].programs.size(), size_t(2 * kReordered));
  // The model would predict the other programs to be faster still.
  double fastest = std::numeric_limits<double>::infinity();
  for (const ReportedProgram &program : reports[0].programs)
    fastest = std::min(fastest, program.microseconds());
  EXPECT_LE(prediction->microseconds / (1 + prediction->regret),
            fastest * (1 + 1e-4));
}

TEST_F(ReorderingTest, PlansSayWhatTheModelRemarks) {
  SearchProblem p = problem(opposite);
  Plan plan = llvm::cantFail(solve(p, *findSearchStrategy("ftuner")));
  EXPECT_EQ(plan.costModel, "opposite");
  EXPECT_EQ(llvm::count(plan.remarks, "the opposite"), 1);
  // No more than its share of each shape, and what the plan's own families take
  // beside that.
  int64_t shapes = RangeSamples(workload).shapes.size();
  EXPECT_LT(opposite.asked, 4 * (shapes + 1) * kReordered);
}

TEST_F(ReorderingTest, WithoutAPrefilterNothingChanges) {
  std::unique_ptr<ProgramRanker> ranker;
  SearchProblem p = problem(*findCostModel("latency"));
  EXPECT_EQ(&p.rankingEvaluator(), &p.evaluator());
  EXPECT_FALSE(rank(p, "ftuner", ranker).reordered);
}
