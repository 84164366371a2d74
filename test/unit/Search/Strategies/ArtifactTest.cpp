//===- ArtifactTest.cpp - The filter and the ranking of the artifact ------===//
//
// Hand-made candidates for 2048 × 2304 × 768 on V100: 80 SMs, 65536 registers
// and 96 KiB of shared memory each.
//
//===----------------------------------------------------------------------===//
#include "../DeviceTest.h"
#include "../StubModel.h"
#include "FTuner/Search/Planning/RangePlanner.h"
#include "FTuner/Search/Setup/StrategyRegistry.h"
#include "FTuner/Search/Strategies/Filter.h"
#include "llvm/ADT/STLExtras.h"
#include <gtest/gtest.h>

using namespace ftuner;

namespace {
class ArtifactTest : public DeviceTest {
protected:
  ArtifactTest() { options.own["filter"] = std::string("artifact"); }

  SearchProblem problem(llvm::StringRef costModel = "latency") {
    return {workload, device, path, *findCostModel(costModel), options};
  }
  /// A block of bm × bn × depth, rm × rn for each thread.
  void add(int64_t bm, int64_t bn, int64_t rm, int64_t rn, int64_t depth = 16,
           int64_t sharedMemoryBytes = 16384) {
    StubSchedule schedule;
    schedule.workersM = bm / rm;
    schedule.workersN = bn / rn;
    KernelFamily family = stubFamily(stub, schedule, rm, rn, depth);
    // Every candidate has 16 registers, whatever the path says.
    set.candidates.push_back(
        {family, family.ukernel(0), {family.threads(), 16, sharedMemoryBytes}});
  }
  /// Returns the candidates that are left for so many rows, and records how
  /// many candidates each stage kept.
  std::vector<unsigned> run(int64_t rows = 2048) {
    SearchProblem p = problem();
    CandidateFilter filter(p, set);
    std::vector<StageReport> reports;
    FilterResult result = filter.run({rows, 2304, 768}, reports);
    counts = filter.counts;
    kept.clear();
    llvm::ArrayRef<FilterStage> stages = filterStages(FilterReading::Artifact);
    EXPECT_EQ(reports.size(), stages.size());
    for (auto [stage, report] : llvm::zip(stages, reports)) {
      EXPECT_EQ(report.name, filterStageName(stage));
      EXPECT_EQ(report.kept, counts.kept[stage]);
      EXPECT_EQ(report.dropped.has_value(), report.kept < report.before);
      kept.push_back(report.kept);
    }
    std::vector<unsigned> candidates;
    for (const Survivor &survivor : result.survivors)
      candidates.push_back(survivor.candidate);
    return candidates;
  }

  Workload workload = Workload::matmul({1, 2048}, SizeRange::fixed(2304),
                                       SizeRange::fixed(768));
  StubModel stub;
  const CodegenModel *path = &stub;
  SearchOptions options;
  CandidateSet set;
  FilterCounts counts;
  std::vector<int64_t> kept;
};
} // namespace

TEST_F(ArtifactTest, EachStageDropsWhatItShouldInOrder) {
  // 32 · 36 = 1152 blocks: Occ 0.96. Passes all.
  add(64, 64, 4, 4);
  // Threads: 32; then 1024.
  add(32, 64, 8, 8);
  add(64, 64, 2, 2);
  // Occupancy: 16 · 18 = 288 blocks, 0.9.
  add(128, 128, 8, 8);
  // Registers: 16 · (1 + 256 / 16) = 272 of a thread; 16 · (1 + 128 / 16) = 144
  // of a thread, 2 · 256 · 144 = 73728 of an SM.
  add(64, 64, 4, 4, 256);
  add(64, 64, 4, 4, 128);
  // Shared memory: two blocks of 48 KiB are all of it; one byte less fits.
  add(64, 64, 4, 4, 16, 49152);
  add(64, 64, 4, 4, 16, 49151);
  // Padding: 11 · 224 = 2464 columns, 0.935; Occ is 704 / 720.
  add(32, 224, 2, 7);
  EXPECT_EQ(run(), (std::vector<unsigned>{0, 7}));
  EXPECT_EQ(kept, (std::vector<int64_t>{7, 6, 4, 3, 2, 2, 2}));
  for (FilterStage stage : filterStages(FilterReading::Artifact))
    EXPECT_EQ(counts.relaxed[stage], 0) << filterStageName(stage).str();
}

TEST_F(ArtifactTest, SharesAreLoweredUntilSomethingIsLeft) {
  // 0.9, which 0.85 lets pass, and 21 · 18 = 378 blocks of 400: 0.945 > 0.9.
  add(128, 128, 8, 8);
  add(100, 128, 25, 4);
  EXPECT_EQ(run(), (std::vector<unsigned>{1}));
  EXPECT_EQ(kept[1], 1);
  EXPECT_EQ(counts.relaxed[Occupancy], 1);
  // The same for padding: 0.935 > 0.9 passes before 2304 / 2688 = 0.857, of
  // which there are 64 · 6 = 384 blocks of 400.
  set.candidates.clear();
  add(32, 448, 4, 14);
  add(32, 224, 2, 7);
  EXPECT_EQ(run(), (std::vector<unsigned>{1}));
  EXPECT_EQ(counts.relaxed[Occupancy], 0);
  EXPECT_EQ(counts.relaxed[Padding], 1);
}

TEST_F(ArtifactTest, TooFewBlocksKeepTheMax) {
  // 64 rows: no second block for any SM, though 72 of 80 are busy.
  add(16, 128, 2, 8);
  add(32, 128, 4, 8);
  add(64, 64, 4, 4);
  EXPECT_EQ(run(64), (std::vector<unsigned>{0}));
  EXPECT_EQ(counts.relaxed[Occupancy], 1);
}

TEST_F(ArtifactTest, PsiIsACountByTwoRatios) {
  // By bm · bn / (bm + bn): 32, 21.3, 25.6. By rm · rn / (1 + rm + rn): 1.78,
  // 1.14, 2.46.
  add(64, 64, 4, 4);
  add(32, 64, 2, 4);
  add(32, 128, 8, 4);
  EXPECT_EQ(run(), (std::vector<unsigned>{0, 1, 2}));
  options.own["psi-count-shared"] = int64_t(2);
  EXPECT_EQ(run(), (std::vector<unsigned>{0, 2}));
  // Shared memory first: the other way round 0 would be left.
  options.own["psi-count"] = int64_t(1);
  EXPECT_EQ(run(), (std::vector<unsigned>{2}));
  EXPECT_EQ(kept, (std::vector<int64_t>{3, 3, 3, 3, 3, 2, 1}));
  // As the artifact has it.
  EXPECT_EQ(FilterOptions().psiCountShared, 20);
  EXPECT_EQ(FilterOptions().psiCount, 10);
}

TEST_F(ArtifactTest, ThePapersReadingHasFourStages) {
  options.own["filter"] = std::string("paper");
  for (int64_t rows : {1, 2})
    for (int i = 0; i < 300; ++i) // More than max-candidates.
      add(64, 64, 4 * rows, 4);
  SearchProblem p = problem();
  CandidateFilter filter(p, set);
  std::vector<StageReport> reports;
  EXPECT_GE(filter.run({2048, 2304, 768}, reports).survivors.size(), 300u);
  std::string names;
  for (const StageReport &report : reports)
    names += report.name + " ";
  EXPECT_EQ(names, "cross_pick set_bound space_axis reduce_axis ");
}

/// The rating by hand: the time of the shape with the greatest Pad · Occ, of
/// equals the last, scaled to another shape.
static double ratingOf(const SearchProblem &problem, const KernelFamily &family,
                       const Shape &shape) {
  auto share = [&](const Shape &at) {
    Metrics m =
        programMetrics(problem.workload, at,
                       {&family, partitionShape(family, at)}, problem.device);
    return m.pad * m.occ;
  };
  auto flops = [](const Shape &at) { return 2.0 * at[0] * at[1] * at[2]; };
  const Shape *best = nullptr;
  RangeSamples samples(problem.workload);
  for (const Shape &sample : samples.shapes)
    if (!best || share(sample) >= share(*best))
      best = &sample;
  double throughput =
      flops(*best) / -problem.score(family, *best) / share(*best);
  return -flops(shape) / (throughput * share(shape));
}

TEST_F(ArtifactTest, ProgramsRankByThroughputPadAndOcc) {
  workload =
      Workload::matmul({1, 128}, SizeRange::fixed(640), SizeRange::fixed(64));
  options.pool = ProgramPool::Single;
  options.topK = 1 << 20;
  for (const char *model : {"latency", "sia"}) {
    SearchProblem p = problem(model);
    size_t numOthers = 0;
    for (int64_t rows : {5, 53, 128}) {
      Shape shape = {rows, 640, 64};
      auto reports = findSearchStrategy("ftuner")->explain(p, {}, shape);
      ASSERT_TRUE(static_cast<bool>(reports));
      const ShapeReport &report = reports->front();
      EXPECT_EQ(report.pairPrograms, 0);
      ASSERT_GT(report.programs.size(), 2u);
      double last = report.programs.front().rating;
      double lastScore = report.programs.front().score.score;
      for (const ReportedProgram &program : report.programs) {
        const Metrics &m = program.metrics;
        double expected = p.costModel.predictsTime()
                              ? ratingOf(p, program.family, shape)
                              : program.score.score * m.pad * m.occ;
        EXPECT_NEAR(program.rating, expected, 1e-9 * std::abs(expected));
        EXPECT_LE(program.rating, last);
        last = program.rating;
        numOthers += program.score.score > lastScore;
        lastScore = program.score.score;
      }
    }
    // The order differs from the cost model's.
    EXPECT_GT(numOthers, 0u) << model;
  }
}

TEST_F(ArtifactTest, PlansARange) {
  workload =
      Workload::matmul({1, 128}, SizeRange::fixed(640), SizeRange::fixed(64));
  for (ProgramPool pool :
       {ProgramPool::Single, ProgramPool::Exact, ProgramPool::Tight}) {
    options.pool = pool;
    llvm::Expected<Plan> plan = solve(problem(), *findSearchStrategy("ftuner"));
    ASSERT_TRUE(static_cast<bool>(plan)) << llvm::toString(plan.takeError());
    auto count = [&](llvm::StringRef name) {
      for (const SearchStatistic &statistic : plan->statistics)
        if (statistic.name == name)
          return statistic.value;
      return -1.0;
    };
    EXPECT_GT(count("after_register_cmr"), 0);
    EXPECT_GE(count("after_padding"), count("after_shared_memory_cmr"));
    EXPECT_EQ(count("after_pareto"), -1);
    if (pool == ProgramPool::Single) {
      EXPECT_TRUE(llvm::all_of(plan->families, [](const KernelFamily &family) {
        return family.tiles.size() == 1;
      }));
    }
  }
}
