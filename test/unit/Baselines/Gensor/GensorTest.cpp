//===- GensorTest.cpp - Gensor's walk, by numbers worked by hand ----------===//
#include "../../Search/DeviceTest.h"
#include "FTuner/Search/Problem/SearchStrategy.h"
#include "FTuner/Search/Problem/ShapeReport.h"
#include "FTuner/Search/Setup/StrategyRegistry.h"
#include "GensorWalk.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <set>
#include <thread>

using namespace ftuner;

/// A product of f32 on a V100: 900 GB/s for 80 SMs of 1530 MHz.
static GensorFacts v100Facts(int64_t m, int64_t n, int64_t k) {
  GensorFacts facts;
  facts.m = m;
  facts.n = n;
  facts.k = k;
  facts.sharedMemoryBytes = 98304;
  facts.dramBytesPerCycle = 900e3 / (80 * 1530.0);
  return facts;
}

static GensorState atBlock(int64_t bm, int64_t bn) {
  GensorState state;
  state.block = {bm, bn};
  return state;
}

static GensorState atRegisters(int64_t bm, int64_t bn, int64_t rm, int64_t rn) {
  GensorState state = atBlock(bm, bn);
  state.level = 1;
  state.reg = {rm, rn};
  return state;
}

static double probability(const std::vector<GensorEdge> &edges,
                          GensorAction::Kind kind, unsigned axis = 0) {
  for (const GensorEdge &edge : edges)
    if (edge.action.kind == kind && edge.action.axis == axis)
      return edge.probability;
  return 0;
}

TEST(GensorTest, BlockOfASquareProductAsWorkedByHand) {
  GensorModel model(v100Facts(1024, 1024, 1024), {});
  GensorState state = atBlock(32, 32);
  EXPECT_EQ(model.traffic(state, 2), 272629760);
  EXPECT_EQ(model.traffic(atBlock(64, 32), 2), 205520896);
  EXPECT_EQ(model.footprint(state, 2), 2048);
  EXPECT_EQ(model.footprint(atBlock(64, 32), 2), 3072);
  for (unsigned axis : {0u, 1u})
    EXPECT_EQ(model.tileBenefit(state, axis), 65536);
  EXPECT_NEAR(model.cacheBenefit(state), 15.6202, 1e-4);
  struct Row {
    int t;
    double tile, inverse, cache;
  };
  for (const Row &row : {Row{0, 0.4000, 0.1000, 0},
                         {8, 0.3905, 0.0976, 0.0237},
                         {12, 0.2877, 0.0719, 0.2808},
                         {16, 0.0552, 0.0138, 0.8620}}) {
    SCOPED_TRACE(row.t);
    std::vector<GensorEdge> edges = model.edges(state, row.t);
    for (unsigned axis : {0u, 1u}) {
      EXPECT_NEAR(probability(edges, GensorAction::Tile, axis), row.tile, 5e-5);
      EXPECT_NEAR(probability(edges, GensorAction::InverseTile, axis),
                  row.inverse, 5e-5);
    }
    EXPECT_NEAR(probability(edges, GensorAction::Cache), row.cache, 5e-5);
  }
}

TEST(GensorTest, RegistersOfASquareProductAsWorkedByHand) {
  GensorModel model(v100Facts(1024, 1024, 1024), {});
  GensorState state = atRegisters(128, 128, 4, 4);
  EXPECT_EQ(model.traffic(state, 1), 2147483648);
  EXPECT_EQ(model.traffic(atRegisters(128, 128, 8, 4), 1), 1610612736);
  EXPECT_EQ(model.footprint(state, 1), 96);
  EXPECT_EQ(model.footprint(atRegisters(128, 128, 8, 4), 1), 176);
  EXPECT_NEAR(model.tileBenefit(state, 0), 6710886.4, 0.1);
  EXPECT_NEAR(model.cacheBenefit(state), 10.0714, 1e-4);
  EXPECT_EQ(GensorModel::virtualThreadBenefit(128 * 8, 1), 2);
  EXPECT_EQ(GensorModel::virtualThreadBenefit(128 * 8, 2), 2);
  EXPECT_NEAR(GensorModel::virtualThreadBenefit(53 * 3, 1), 1.6667, 1e-4);
  EXPECT_EQ(GensorModel::virtualThreadBenefit(24, 1), 1);
}

TEST(GensorTest, AwkwardExtentAsWorkedByHand) {
  GensorModel model(v100Facts(53, 2304, 768), {});
  GensorState state = atBlock(32, 64);
  EXPECT_EQ(model.traffic(state, 2), 20505600);
  EXPECT_EQ(model.tileBenefit(state, 0), 6912);
  EXPECT_EQ(model.tileBenefit(state, 1), 1431);
  EXPECT_NEAR(model.cacheBenefit(state), 15.8850, 1e-4);
  EXPECT_NEAR(probability(model.edges(state, 14), GensorAction::Cache), 0.9615,
              5e-5);
  // One row of blocks is enough from 64 rows on.
  GensorState whole = atBlock(64, 64);
  std::vector<GensorEdge> edges = model.edges(whole, 1);
  EXPECT_EQ(model.tileBenefit(whole, 0), 0);
  for (const GensorEdge &edge : edges) {
    EXPECT_FALSE(edge.action.kind == GensorAction::Tile &&
                 edge.action.axis == 0);
    if (edge.action.kind == GensorAction::InverseTile && edge.action.axis == 0)
      EXPECT_EQ(edge.benefit, 357.75);
    if (edge.action.kind == GensorAction::Tile)
      EXPECT_EQ(edge.benefit, 1431);
  }
}

TEST(GensorTest, VirtualThreadsCompeteWithTheNextLevel) {
  GensorModel model(v100Facts(1024, 1024, 1024), {});
  GensorState state = atRegisters(128, 128, 8, 8);
  std::vector<GensorEdge> edges = model.edges(state, 40);
  double cache = probability(edges, GensorAction::Cache);
  double strips = probability(edges, GensorAction::SetVirtualThreads, 1);
  // 8 lanes of vectors of 4 columns by 4 lanes of rows: 128 points, 4 conflicts
  // of 32 to 2. Both are ratios of times.
  EXPECT_NEAR(strips / cache, 2 / model.cacheBenefit(state), 1e-9);
  // Strips end where they spare nothing: at single columns at the latest.
  state.virtualThreads = {8, 8};
  edges = model.edges(state, 40);
  EXPECT_EQ(probability(edges, GensorAction::SetVirtualThreads, 1), 0);
  // And none where the path lays workers out in one way.
  GensorFacts facts = v100Facts(1024, 1024, 1024);
  facts.hasVirtualThreads = false;
  for (const GensorEdge &edge :
       GensorModel(facts, {}).edges(atRegisters(128, 128, 8, 8), 40))
    EXPECT_NE(edge.action.kind, GensorAction::SetVirtualThreads);
}

// The product of A, 1024 each, lhs rows along k and rhs rows along n, with the
// k tile as an axis of the walk.
TEST(GensorTest, ReduceTileIsAnAxisCountedInSectors) {
  GensorFacts facts = v100Facts(1024, 1024, 1024);
  facts.walksReduce = true;
  GensorModel model(facts, {});
  GensorState state = model.start();
  EXPECT_EQ(state.depth, 1);
  state.block = {32, 32};
  // Single elements of lhs rows take sectors of 32 bytes, eight times as much.
  constexpr double whole = 4.0 * 32 * 1024 * 1024, output = 4.0 * 1024 * 1024;
  EXPECT_EQ(model.traffic(state, 2), 8 * whole + whole + output);
  EXPECT_EQ(model.footprint(state, 2), 4 * 64);
  EXPECT_EQ(model.tileBenefit(state, 2), 4 * whole / 256);
  // From a sector on a longer k tile saves nothing.
  state.depth = 8;
  EXPECT_EQ(model.traffic(state, 2), 272629760);
  EXPECT_EQ(model.tileBenefit(state, 2), 0);
  EXPECT_EQ(model.tileBenefit(state, 0), 65536);
  EXPECT_EQ(state.str(), "shared memory: 32 x 32 x 8");
  // Four columns of the rhs take a sector of eight.
  state.block = {32, 4};
  EXPECT_EQ(model.traffic(state, 2), 8 * whole + 2 * whole + 2 * output);
  // Only block tiles have actions along k.
  auto hasReduce = [&](const GensorState &from) {
    return llvm::any_of(model.edges(from, 1), [](const GensorEdge &edge) {
      return edge.action.axis == 2;
    });
  };
  EXPECT_TRUE(hasReduce(state));
  EXPECT_EQ(GensorAction({GensorAction::Tile, 2}).str(), "tile(k)");
  state.level = 1;
  EXPECT_FALSE(hasReduce(state));
  // Walks stay in memory, and find k tiles.
  std::set<int64_t> depths;
  for (uint64_t seed = 0; seed < 1000; ++seed)
    for (const GensorStep &step : walkGensor(model, seed).steps) {
      ASSERT_FALSE(model.overflows(step.to));
      depths.insert(step.to.depth);
    }
  EXPECT_TRUE(depths.count(8));
  EXPECT_GT(depths.size(), 3u);
}

TEST(GensorTest, ScalingOutHalvesUntilThereAreEnoughBlocks) {
  GensorModel model(v100Facts(1, 16384, 4096), {});
  GensorState scaled = model.scaledOut(atRegisters(1, 1024, 1, 8), 80);
  // 16 blocks of 1024 columns, and 128 of 128.
  EXPECT_EQ(scaled.block, (GensorState::Pair{1, 128}));
  EXPECT_EQ(scaled.reg, (GensorState::Pair{1, 1}));
  // Enough already; and never enough.
  GensorState enough = atRegisters(1, 64, 1, 8);
  EXPECT_TRUE(model.scaledOut(enough, 80) == enough);
  GensorModel tiny(v100Facts(2, 2, 64), {});
  EXPECT_EQ(tiny.scaledOut(atRegisters(4, 4, 2, 2), 80).block,
            (GensorState::Pair{1, 1}));
}

/// States of one level that a walk without `cache` may have.
static std::map<GensorState, size_t> statesOfLevel(const GensorModel &model) {
  std::map<GensorState, size_t> numbers;
  std::vector<GensorState> open = {GensorState()};
  while (!open.empty()) {
    GensorState state = open.back();
    open.pop_back();
    if (!numbers.try_emplace(state, numbers.size()).second)
      continue;
    for (const GensorEdge &edge : model.edges(state, 0))
      if (edge.action.kind != GensorAction::Cache && edge.probability > 0)
        open.push_back(edge.to);
  }
  return numbers;
}

// Why ρ = 0 loses nothing: a walk begins at the least tile, and grows to every
// other one without a step back. Steps back only change how often it is where.
TEST(GensorTest, EveryBlockTileIsReachedWithoutGoingBack) {
  GensorOptions forward;
  forward.back = 0;
  GensorFacts shapes[] = {v100Facts(53, 2304, 768), v100Facts(65536, 1024, 4),
                          v100Facts(1, 16384, 16384), v100Facts(77, 77, 64)};
  for (const GensorFacts &facts : shapes) {
    std::map<GensorState, size_t> withBacktracks =
        statesOfLevel(GensorModel(facts, {}));
    std::map<GensorState, size_t> withoutBacktracks =
        statesOfLevel(GensorModel(facts, forward));
    EXPECT_GT(withBacktracks.size(), 10u);
    for (const auto &[state, number] : withBacktracks)
      EXPECT_TRUE(withoutBacktracks.count(state)) << state.str();
  }
}

// At step 0 `cache` has no odds, so a walk that stays there is a Markov chain
// over block tiles.
TEST(GensorTest, LongWalksVisitStatesAsTheirStationaryDistributionSays) {
  GensorModel model(v100Facts(8, 8, 64), {});
  std::map<GensorState, size_t> numbers = statesOfLevel(model);
  ASSERT_EQ(numbers.size(), 16u);
  std::vector<double> stationary(16, 1.0 / 16);
  for (int step = 0; step < 20000; ++step) {
    // Half of it stays: this ends oscillations, and changes nothing else.
    std::vector<double> next(16);
    for (const auto &[state, number] : numbers) {
      next[number] += stationary[number] / 2;
      for (const GensorEdge &edge : model.edges(state, 0))
        if (edge.probability > 0)
          next[numbers.at(edge.to)] +=
              stationary[number] / 2 * edge.probability;
    }
    stationary = next;
  }
  for (double share : stationary)
    EXPECT_GT(share, 0);
  std::vector<std::vector<GensorEdge>> edgesOf(16);
  std::vector<std::vector<double>> oddsOf(16);
  for (const auto &[state, number] : numbers) {
    edgesOf[number] = model.edges(state, 0);
    for (const GensorEdge &edge : edgesOf[number])
      oddsOf[number].push_back(edge.probability);
  }
  std::mt19937_64 random(7);
  std::vector<double> visits(16);
  size_t at = 0;
  constexpr int numSteps = 1'000'000;
  for (int step = 0; step < numSteps; ++step) {
    std::discrete_distribution<size_t> draw(oddsOf[at].begin(),
                                            oddsOf[at].end());
    at = numbers.at(edgesOf[at][draw(random)].to);
    visits[at] += 1.0 / numSteps;
  }
  double variation = 0;
  for (size_t i = 0; i < 16; ++i)
    variation += std::abs(visits[i] - stationary[i]) / 2;
  EXPECT_LT(variation, 0.01);
}

TEST(GensorTest, WalksStayInMemoryGoBackAndEnd) {
  int64_t numSteps = 0, numBacktracks = 0, numRefused = 0, numEnded = 0;
  std::mt19937_64 random(11);
  constexpr int numWalks = 100'000;
  GensorFacts shapes[] = {v100Facts(53, 2304, 768), v100Facts(1024, 1024, 1024),
                          v100Facts(65536, 1024, 4), v100Facts(1, 1000, 16384)};
  for (int i = 0; i < numWalks; ++i) {
    GensorModel model(shapes[i % 4], {});
    GensorWalk walk = walkGensor(model, random());
    ASSERT_LE(walk.steps.size(), 100u);
    ASSERT_FALSE(walk.results.empty());
    for (const GensorStep &step : walk.steps)
      ASSERT_FALSE(model.overflows(step.to)) << step.to.str();
    for (const GensorWalk::Result &result : walk.results)
      ASSERT_FALSE(model.overflows(result.state)) << result.state.str();
    numSteps += walk.steps.size();
    numBacktracks += walk.numBacktracks;
    numRefused += walk.numRefused;
    numEnded += walk.steps.back().to.level == 0;
  }
  EXPECT_GE(numBacktracks, numSteps / 20);
  EXPECT_GT(numRefused, 0);
  // The temperature alone ends none of them.
  EXPECT_GT(numEnded, numWalks * 9 / 10);
}

TEST(GensorTest, TheNextLevelIsEverLikelier) {
  GensorModel model(v100Facts(1024, 1024, 1024), {});
  for (const GensorState &state :
       {atBlock(1, 1), atBlock(64, 32), atRegisters(64, 64, 4, 4)}) {
    double before = 0;
    for (int t = 0; t < 100; ++t) {
      double now = probability(model.edges(state, t), GensorAction::Cache);
      EXPECT_GE(now, before);
      before = now;
    }
    EXPECT_GT(before, 0.5);
  }
}

TEST(GensorTest, WithoutGoingBackNothingIsUndone) {
  GensorOptions options;
  options.back = 0;
  GensorModel model(v100Facts(53, 2304, 768), options);
  for (uint64_t seed = 0; seed < 100; ++seed)
    EXPECT_EQ(walkGensor(model, seed).numBacktracks, 0);
}

TEST(GensorTest, GreedyWalksTakeTheLikeliestAction) {
  GensorOptions options;
  options.policy = GensorPolicy::Greedy;
  GensorModel model(v100Facts(1024, 1024, 1024), options);
  GensorWalk walk = walkGensor(model, 3);
  GensorState state;
  for (auto [t, step] : llvm::enumerate(walk.steps)) {
    for (const GensorEdge &edge : model.edges(state, static_cast<int>(t)))
      EXPECT_LE(edge.probability, step.probability);
    state = step.to;
  }
  EXPECT_EQ(state.level, 0);
}

TEST(GensorTest, WalksDoNotDependOnThreads) {
  GensorModel model(v100Facts(77, 2304, 768), {});
  constexpr size_t numWalks = 16;
  std::vector<GensorWalk> one(numWalks), many(numWalks);
  for (size_t i = 0; i < numWalks; ++i)
    one[i] = walkGensor(model, i);
  std::vector<std::thread> threads;
  for (size_t first = 0; first < 8; ++first)
    threads.emplace_back([&, first] {
      for (size_t i = first; i < numWalks; i += 8)
        many[i] = walkGensor(model, i);
    });
  for (std::thread &thread : threads)
    thread.join();
  for (size_t i = 0; i < numWalks; ++i) {
    ASSERT_EQ(one[i].results.size(), many[i].results.size());
    for (size_t j = 0; j < one[i].results.size(); ++j)
      EXPECT_EQ(one[i].results[j].state, many[i].results[j].state);
  }
}

namespace {
class GensorStrategyTest : public DeviceTest {
protected:
  ShapeReport explain(llvm::ArrayRef<int64_t> shape, OptionValues own = {}) {
    SearchOptions options;
    options.topK = 1000;
    options.own = std::move(own);
    SearchProblem p{workload, device, simt, *findCostModel("latency"), options};
    auto reports = findSearchStrategy("gensor")->explain(p, {}, {Shape(shape)});
    EXPECT_TRUE(static_cast<bool>(reports));
    return reports->front();
  }
  int64_t strips(const ReportedProgram &program, llvm::StringRef field) {
    for (auto [index, decl] : llvm::enumerate(simt->scheduleFields()))
      if (decl.name == field)
        return program.family.schedule.fields()[index];
    ADD_FAILURE() << field.str();
    return 0;
  }

  Workload workload = Workload::matmul({1, 2048}, SizeRange::fixed(2304),
                                       SizeRange::fixed(768));
  const CodegenModel *simt = findCodegenModel("simt");
};
} // namespace

TEST_F(GensorStrategyTest, ProgramsHaveTheVirtualThreadsOfTheWalks) {
  ShapeReport report = explain({1024, 2304, 768});
  ASSERT_GT(report.programs.size(), 3u);
  std::set<int64_t> seen;
  for (const ReportedProgram &program : report.programs) {
    UKernel u = program.family.ukernel(0);
    int64_t n = strips(program, "virtual_threads_n");
    // Both the walk's and the path's own compete.
    EXPECT_TRUE(n == 0 || u.registerTile[1] % n == 0);
    EXPECT_LE(u.workers, 1024);
    seen.insert(n);
  }
  EXPECT_GT(seen.size(), 2u);
  EXPECT_TRUE(seen.count(0));
  for (const ReportedProgram &program :
       explain({1024, 2304, 768},
               {{"gensor-strips", std::string("walk")}, {"scale-out", false}})
           .programs) {
    UKernel u = program.family.ukernel(0);
    EXPECT_GE(strips(program, "virtual_threads_n"), 1);
    EXPECT_GE(u.workers, 128);
  }
  for (const ReportedProgram &program :
       explain({1024, 2304, 768}, {{"virtual-threads", false}}).programs)
    EXPECT_EQ(strips(program, "virtual_threads_n"), 0);
}

TEST_F(GensorStrategyTest, ExplainsTheWalkOfTheBestProgram) {
  ShapeReport report = explain({53, 2304, 768});
  ASSERT_FALSE(report.construction.empty());
  int64_t level = 2;
  for (const ConstructionStep &step : report.construction) {
    EXPECT_GT(step.probability, 0);
    EXPECT_LE(step.probability, 1);
    level -= step.action == "cache";
  }
  EXPECT_GE(level, 0);
  // Another seed walks elsewhere.
  ShapeReport other = explain({53, 2304, 768}, {{"gensor-seed", int64_t(5)}});
  EXPECT_NE(other.construction.size() * 1000 + other.programs.size(),
            report.construction.size() * 1000 + report.programs.size());
}

TEST_F(GensorStrategyTest, PricedStripsAreNeverSlowerThanTheWalks) {
  auto best = [&](llvm::StringRef strips) {
    return explain({1024, 2304, 768}, {{"gensor-strips", strips.str()}})
        .programs.front()
        .score.score;
  };
  EXPECT_GE(best("priced"), best("walk"));
}

// One row: blocks of 128 threads and their wide tiles leave most SMs idle.
TEST_F(GensorStrategyTest, ResultsAreScaledOutToAllSms) {
  ShapeReport unscaled = explain({1, 2304, 768}, {{"scale-out", false}});
  ShapeReport scaled = explain({1, 2304, 768});
  EXPECT_GT(scaled.programs.front().score.score,
            unscaled.programs.front().score.score);
}

TEST_F(GensorStrategyTest, RegisterTilesAreAnyOrPowersOfTwo) {
  auto allPowers = [&](OptionValues own) {
    return llvm::all_of(
        explain({1024, 2304, 768}, std::move(own)).programs,
        [](const ReportedProgram &program) {
          return llvm::all_of(
              program.family.ukernel(0).registerTile,
              [](int64_t size) { return llvm::isPowerOf2_64(size); });
        });
  };
  EXPECT_FALSE(allPowers({}));
  EXPECT_TRUE(allPowers({{"register-tiles", std::string("powers")}}));
}

TEST_F(GensorStrategyTest, WalksChooseTheReduceTileWhereItIsAnAxis) {
  auto meanDepth = [&](bool walksReduce) {
    double sum = 0;
    ShapeReport report =
        explain({1024, 2304, 768}, {{"walk-reduce", walksReduce}});
    for (const ReportedProgram &program : report.programs)
      sum += static_cast<double>(program.family.ukernel(0).blockTile[2]);
    return sum / static_cast<double>(report.programs.size());
  };
  // A sector has eight elements, so that k tiles grow no further; the cost
  // model prefers longer ones.
  EXPECT_LT(meanDepth(true), meanDepth(false));
}

TEST_F(GensorStrategyTest, MoreWalksFindNothingWorse) {
  double few = explain({300, 2304, 768}, {{"walks", int64_t(1)}})
                   .programs.front()
                   .score.score;
  EXPECT_GE(explain({300, 2304, 768}, {{"walks", int64_t(64)}})
                .programs.front()
                .score.score,
            few);
}
