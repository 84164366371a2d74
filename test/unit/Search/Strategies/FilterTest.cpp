//===- FilterTest.cpp - The stages of algorithm 1 -------------------------===//
#include "FTuner/Search/Strategies/Filter.h"
#include "../../RandomSeed.h"
#include "../DeviceTest.h"
#include "../StubModel.h"
#include "FTuner/Search/Setup/StrategyRegistry.h"
#include "llvm/ADT/STLExtras.h"
#include <gtest/gtest.h>
#include <limits>
#include <random>

using namespace ftuner;

/// CrossPick as the paper words it: step both thresholds, keep what passes at
/// some step.
static bool walkCrossPick(const FilterOptions &options, double pad,
                          double occ) {
  for (int i = 0;; ++i) {
    double epsilon = options.epsilonMin + i * options.epsilonStep;
    double lambda = options.lambdaMax - i * options.lambdaStep;
    if (epsilon > options.epsilonMax + 1e-9 ||
        lambda < options.lambdaMin - 1e-9)
      return false;
    if (pad >= epsilon - 1e-9 && occ >= lambda - 1e-9)
      return true;
  }
}

TEST(CrossPick, ClosedFormEqualsTheWalk) {
  RandomSeed seed;
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> share(0, 1);
  FilterOptions published, steep;
  steep.lambdaStep = 0.02;
  steep.epsilonStep = 0.03;
  for (const FilterOptions &options : {published, steep}) {
    int accepted = 0;
    for (int round = 0; round < 50000; ++round) {
      double pad = 0.4 + 0.6 * share(random), occ = 0.85 + 0.15 * share(random);
      bool expected = walkCrossPick(options, pad, occ);
      accepted += expected;
      ASSERT_EQ(crossPickAccepts(options, pad, occ), expected)
          << pad << " " << occ;
      ASSERT_EQ(crossPickDeficit(options, pad, occ) == 0, expected)
          << pad << " " << occ;
    }
    EXPECT_GT(accepted, 1000);
    EXPECT_LT(accepted, 49000);
  }
}

TEST(CrossPick, ThresholdsOfTheV100) {
  FilterOptions options;
  EXPECT_TRUE(crossPickAccepts(options, 0.50, 0.95));
  EXPECT_FALSE(crossPickAccepts(options, 0.50, 0.949));
  EXPECT_TRUE(crossPickAccepts(options, 0.95, 0.905));
  EXPECT_FALSE(crossPickAccepts(options, 1.00, 0.904));
  EXPECT_FALSE(crossPickAccepts(options, 0.49, 1.00));
  EXPECT_TRUE(crossPickAccepts(options, 0.60, 0.94));
  EXPECT_FALSE(crossPickAccepts(options, 0.60, 0.9395));
}

static std::vector<unsigned> candidatesOf(const FilterResult &result) {
  std::vector<unsigned> candidates;
  for (const Survivor &survivor : result.survivors)
    candidates.push_back(survivor.candidate);
  return candidates;
}

class FilterTest : public DeviceTest {
protected:
  SearchProblem problem() {
    return {workload, device, path, *findCostModel("sia"), options};
  }

  Workload workload = Workload::matmul({16, 2048, 16}, SizeRange::fixed(2304),
                                       SizeRange::fixed(768));
  StubModel stub;
  const CodegenModel *path = &stub;
  SearchOptions options;
};

TEST_F(FilterTest, CandidatesAreFeasibleAndWholeWarps) {
  SearchProblem p = problem();
  llvm::Expected<CandidateSet> set = enumerateCandidates(p, /*alignment=*/16);
  ASSERT_TRUE(static_cast<bool>(set)) << llvm::toString(set.takeError());
  EXPECT_GT(set->candidates.size(), 100u);
  EXPECT_EQ(set->numEmittable + set->numAdded,
            static_cast<int64_t>(set->candidates.size()));
  EXPECT_GT(set->numWholeWarps, set->numEmittable);
  EXPECT_GT(set->numByRules, set->numWholeWarps);
  for (const Candidate &candidate : set->candidates) {
    EXPECT_EQ(candidate.resources.threads % 32, 0);
    EXPECT_EQ(candidate.ukernel.blockTile[2] % 8, 0);
    EXPECT_EQ(candidate.ukernel.str(), candidate.family.ukernel(0).str());
    llvm::Error error = checkFamily(p, candidate.family);
    EXPECT_FALSE(static_cast<bool>(error)) << candidate.family.str();
    llvm::consumeError(std::move(error));
  }
}

TEST_F(FilterTest, SurvivorsMeetEveryThreshold) {
  SearchProblem p = problem();
  llvm::Expected<CandidateSet> set = enumerateCandidates(p, /*alignment=*/16);
  ASSERT_TRUE(static_cast<bool>(set));
  CandidateFilter filter(p, *set);
  const FilterCounts &counts = filter.counts;
  FilterResult result = filter.run({2048, 2304, 768});
  ASSERT_FALSE(result.survivors.empty());
  EXPECT_EQ(counts.kept[Pareto], static_cast<int64_t>(result.survivors.size()));
  double best = 0;
  for (const Survivor &survivor : result.survivors)
    best = std::max(best, survivor.metrics.cmr);
  for (const Survivor &survivor : result.survivors) {
    const Candidate &candidate = set->candidates[survivor.candidate];
    const Metrics &m = survivor.metrics;
    EXPECT_TRUE(walkCrossPick(filter.options, m.pad, m.occ));
    EXPECT_GE(m.blocks, 2 * 80);
    EXPECT_GE(m.cmr, 0.5 * best);
    EXPECT_GE(candidate.resources.threads, 128);
    EXPECT_LE(2 * candidate.resources.registersPerThread *
                  candidate.resources.threads,
              device.registersPerSm);
    EXPECT_EQ(filter.violation(result.demandsOf(stub), m, candidate.resources),
              0);
  }
  for (int stage = 0; stage < NumFilterStages; ++stage)
    EXPECT_EQ(counts.relaxed[stage], 0);
  // Stages only remove.
  for (int stage = 1; stage <= Pareto; ++stage)
    EXPECT_LE(counts.kept[stage], counts.kept[stage - 1]);
}

TEST_F(FilterTest, NoShapeIsLeftWithoutCandidates) {
  SearchProblem p = problem();
  llvm::Expected<CandidateSet> set = enumerateCandidates(p, /*alignment=*/16);
  ASSERT_TRUE(static_cast<bool>(set));
  // One row cannot fill 80 SMs twice.
  CandidateFilter filter(p, *set);
  FilterResult result = filter.run({1, 2304, 768});
  EXPECT_FALSE(result.survivors.empty());
  EXPECT_EQ(filter.counts.relaxed[CrossPick], 1);
  EXPECT_EQ(filter.counts.relaxed[SpaceAxis], 1);
}

TEST_F(FilterTest, ReportsSayWhatEachStageThrewOut) {
  SearchProblem p = problem();
  llvm::Expected<CandidateSet> set = enumerateCandidates(p, /*alignment=*/16);
  ASSERT_TRUE(static_cast<bool>(set));
  for (int64_t rows : {1, 64, 512, 2048}) {
    CandidateFilter filter(p, *set);
    std::vector<StageReport> reports;
    FilterResult result = filter.run({rows, 2304, 768}, reports);
    ASSERT_EQ(reports.size(), filterStages(FilterReading::Pareto).size());
    int64_t before = set->candidates.size();
    for (FilterStage stage : filterStages(FilterReading::Pareto)) {
      const StageReport &report = reports[stage];
      EXPECT_EQ(report.name, filterStageName(stage));
      EXPECT_EQ(report.before, before);
      EXPECT_EQ(report.kept, filter.counts.kept[stage]);
      EXPECT_EQ(report.relaxed, filter.counts.relaxed[stage] == 1);
      EXPECT_FALSE(report.requirement.empty());
      if (stage != Pareto) {
        EXPECT_EQ(report.dropped.has_value(), report.kept < report.before);
      }
      before = report.kept;
    }
    // What it dropped does not meet what it asked for.
    const StageReport &space = reports[SpaceAxis];
    if (space.dropped && !space.relaxed) {
      EXPECT_LT(space.dropped->value, 160);
      EXPECT_EQ(space.dropped->value, space.dropped->metrics.blocks);
    }
    // A report changes nothing.
    CandidateFilter other(p, *set);
    EXPECT_EQ(candidatesOf(other.run({rows, 2304, 768})), candidatesOf(result));
  }
}

TEST_F(FilterTest, KeepsAtMostMaxCandidates) {
  SearchProblem p = problem();
  llvm::Expected<CandidateSet> set = enumerateCandidates(p, /*alignment=*/16);
  ASSERT_TRUE(static_cast<bool>(set));
  CandidateFilter open(p, *set);
  std::vector<Survivor> all = open.run({2048, 2304, 768}).survivors;
  ASSERT_GT(all.size(), 3u);
  p.options.own["max-candidates"] = int64_t(3);
  CandidateFilter filter(p, *set);
  std::vector<Survivor> kept = filter.run({2048, 2304, 768}).survivors;
  ASSERT_EQ(kept.size(), 3u);
  // The three with the greatest sums, in the order of the candidates.
  auto sum = [](const Survivor &survivor) {
    const Metrics &m = survivor.metrics;
    return m.cmr + m.pad + m.occ;
  };
  double minSum = std::min({sum(kept[0]), sum(kept[1]), sum(kept[2])});
  EXPECT_LT(kept[0].candidate, kept[1].candidate);
  EXPECT_LT(kept[1].candidate, kept[2].candidate);
  EXPECT_LE(
      llvm::count_if(all, [&](const Survivor &s) { return sum(s) > minSum; }),
      2);
}

TEST_F(FilterTest, ReportsDevicesThatHoldNoTile) {
  device.sharedMemoryPerBlockBytes = 256;
  SearchProblem p = problem();
  llvm::Expected<CandidateSet> set = enumerateCandidates(p, /*alignment=*/16);
  ASSERT_FALSE(static_cast<bool>(set));
  std::string message = llvm::toString(set.takeError());
  EXPECT_EQ(message.find("found no feasible uKernel for workload 'matmul' on "
                         "device 'v100' with operands aligned to 16 bytes; the "
                         "nearest: stub ["),
            0u)
      << message;
  EXPECT_NE(message.find("expected at most 256 bytes of shared memory"),
            std::string::npos)
      << message;
}

TEST_F(FilterTest, SolveChecksItsOptions) {
  const std::pair<const char *, double> wrong[] = {
      {"epsilon-min", 1.5},
      {"epsilon-max", 0.4},
      {"lambda-step", 0},
      {"psi", std::numeric_limits<double>::quiet_NaN()}};
  for (const auto &[name, value] : wrong) {
    options.own = {{name, value}};
    llvm::Expected<Plan> plan = solve(problem(), *findSearchStrategy("ftuner"));
    std::string error = llvm::toString(plan.takeError());
    EXPECT_TRUE(llvm::StringRef(error).starts_with(
        "option --" + std::string(name) + ": expected"))
        << error;
  }
}
