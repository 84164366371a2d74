//===- RollerTest.cpp - Roller's construction and model -------------------===//
#include "../../Search/DeviceTest.h"
#include "FTuner/Search/Problem/ShapeReport.h"
#include "FTuner/Search/Setup/StrategyRegistry.h"
#include "RollerTree.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <gtest/gtest.h>
#include <set>

using namespace ftuner;

namespace {
class RollerTest : public DeviceTest {
protected:
  SearchProblem problem() {
    return {workload, device, simt, *findCostModel("sia"), options};
  }
  /// Returns the candidates that the tree constructs for a number of rows.
  std::vector<Candidate> construct(int64_t rows, RollerCounts &counts) {
    SearchProblem p = problem();
    llvm::Expected<CandidateSet> set = enumerateAlignedTiles(p);
    EXPECT_TRUE(static_cast<bool>(set));
    std::vector<Candidate> result;
    for (unsigned index :
         RollerTree(p, *set, *simt)
             .construct(
                 {rows, 2304, 768}, [](unsigned) { return true; }, counts))
      result.push_back(set->candidates[index]);
    return result;
  }

  Workload workload = Workload::matmul({1, 2048}, SizeRange::fixed(2304),
                                       SizeRange::fixed(768));
  SearchOptions options;
  const CodegenModel *simt = findCodegenModel("simt");
};
} // namespace

static UKernel ukernel(int64_t bm, int64_t bn, int64_t bk, int64_t rm,
                       int64_t rn) {
  return {{bm, bn, bk}, {rm, rn, 1}, (bm / rm) * (bn / rn)};
}

// Its own model cannot tell them apart, so it has the choice that others have.
TEST_F(RollerTest, DepthAndStagesAreThoseThatAModelOfTimePrefers) {
  options.topK = 10;
  SearchProblem p{workload, device, simt, *findCostModel("latency"), options};
  llvm::Expected<CandidateSet> set = enumerateAlignedTiles(p);
  ASSERT_TRUE(static_cast<bool>(set));
  std::vector<Shape> shapes = {
      {5, 2304, 768}, {77, 2304, 768}, {2000, 2304, 768}};
  auto reports = findSearchStrategy("roller")->explain(p, {}, shapes);
  ASSERT_TRUE(static_cast<bool>(reports));
  int64_t numVariants = 0;
  for (const ShapeReport &report : *reports)
    for (const ReportedProgram &program : report.programs) {
      UKernel chosen = program.family.ukernel(0);
      double score = p.score(program.family, report.shape);
      for (const Candidate &other : set->candidates) {
        if (RollerTree::tilesOf(matmulAxes, other.ukernel) !=
            RollerTree::tilesOf(matmulAxes, chosen))
          continue;
        ++numVariants;
        EXPECT_GE(score, p.score(other.family, report.shape))
            << program.family.str() << " against " << other.family.str();
      }
    }
  EXPECT_GT(numVariants, 2 * int64_t(shapes.size()));
}

TEST_F(RollerTest, PredictsTimeAsWorkedByHand) {
  SearchProblem p = problem();
  RollerModel model(p, *simt, {2048, 2304, 768});
  // 64 × 64 × 16 of 8 × 4: 32 · 36 = 1152 blocks of 128 threads. Registers of
  // 128 · 128 leave room for 4 blocks on an SM: 320 at once, 4 waves.
  KernelResources resources{128, 128, 16384};
  EXPECT_EQ(model.blocks(64, 64), 1152);
  // A tile: 2 · 64 · 64 · 768 = 6291456 FLOPs at 15.7 TFLOP/s: 400.73 ns;
  // (768 · 4 · 128 + 4 · 4096) B = 409600 B at 900 GB/s: 455.11 ns;
  // 768 · 4 · (128 + 128 · 12) B = 5111808 B at 15667.2 GB/s: 326.27 ns.
  double tile = 409600 / 900e9;
  EXPECT_NEAR(model.seconds(ukernel(64, 64, 16, 8, 4), resources),
              4 * 320 * tile, 1e-12);
  // 128 × 128 of 8 × 8: 16 · 18 = 288 blocks of 256 threads, 2 on an SM, so 160
  // at once and 2 waves; a tile is compute bound: 2 · 128 · 128 · 768 FLOPs.
  resources = {256, 128, 32768};
  EXPECT_NEAR(model.seconds(ukernel(128, 128, 16, 8, 8), resources),
              2 * 160 * 2.0 * 128 * 128 * 768 / 15.7e12, 1e-12);
  // Padded rows cost as much as real ones, and few blocks leave SMs idle.
  RollerModel few(p, *simt, {100, 128, 768});
  EXPECT_NEAR(few.seconds(ukernel(128, 128, 16, 8, 8), resources),
              80 * 2.0 * 128 * 128 * 768 / 15.7e12, 1e-12);
  // 36 blocks of one warp leave three schedulers of each SM without work: the
  // 400.73 ns count for 80 · 4 tiles, device memory for 80.
  RollerModel narrow(p, *simt, {64, 2304, 768});
  EXPECT_NEAR(narrow.seconds(ukernel(64, 64, 16, 16, 8), {32, 200, 16384}),
              320 * 2.0 * 64 * 64 * 768 / 15.7e12, 1e-12);
}

TEST_F(RollerTest, KnowsWhenTilesAreComputeBound) {
  SearchProblem p = problem();
  RollerModel model(p, *simt, {2048, 2304, 768});
  // 15.7 TFLOP/s against 15667 GB/s: rm · rn / (rm + rn) ≥ 2.004.
  EXPECT_FALSE(model.isRegisterTileComputeBound(4, 4));
  EXPECT_TRUE(model.isRegisterTileComputeBound(8, 4));
  // Against 900 GB/s: bm · bn / (bm + bn) ≥ 34.9.
  EXPECT_FALSE(model.isBlockTileComputeBound(64, 64));
  EXPECT_TRUE(model.isBlockTileComputeBound(64, 128));
  // Growing 64 × 64 rows spares |B| · 16 rereads, columns |A| · 18.
  double m = 2048, n = 2304;
  EXPECT_DOUBLE_EQ(model.blockReuse({64, 64}, {128, 64}),
                   4 * n * 16 / (4 * 64));
  EXPECT_DOUBLE_EQ(model.blockReuse({64, 64}, {64, 128}),
                   4 * m * 18 / (4 * 64));
  EXPECT_DOUBLE_EQ(model.registerReuse({4, 4}, {8, 4}),
                   (4.0 / 4 - 4.0 / 8) / (44 - 24));
}

TEST_F(RollerTest, LeavesAreAlignedAndComputeBound) {
  RollerCounts counts;
  std::vector<Candidate> leaves = construct(2048, counts);
  ASSERT_FALSE(leaves.empty());
  EXPECT_LE(leaves.size(), 10u);
  EXPECT_FALSE(counts.relaxedWarps);
  EXPECT_FALSE(counts.relaxedPadding);
  EXPECT_GT(counts.registerTiles, counts.registerTilesKept);
  EXPECT_GT(counts.blockTiles, counts.blockTilesKept);
  SearchProblem p = problem();
  RollerModel model(p, *simt, {2048, 2304, 768});
  for (const Candidate &leaf : leaves) {
    const UKernel &u = leaf.ukernel;
    SCOPED_TRACE(u.str());
    EXPECT_TRUE(llvm::isPowerOf2_64(u.registerTile[0]));
    EXPECT_TRUE(llvm::isPowerOf2_64(u.registerTile[1]));
    EXPECT_EQ(u.blockTile[1] % 8, 0);
    EXPECT_EQ(u.workers % 128, 0);
    EXPECT_LE(u.workers, 512);
    EXPECT_TRUE(
        model.isRegisterTileComputeBound(u.registerTile[0], u.registerTile[1]));
    EXPECT_TRUE(model.isBlockTileComputeBound(u.blockTile[0], u.blockTile[1]));
    EXPECT_GE(model.blocks(u.blockTile[0], u.blockTile[1]), device.smCount);
  }
}

TEST_F(RollerTest, KeepsTilesThatNoLegalOneFollows) {
  // 35.6 TFLOP/s against 800 GB/s: only blocks with bm · bn / (bm + bn) ≥ 89
  // are compute bound, 192 × 192 for one. That is 576 threads of 8 × 8, more
  // than Roller's blocks have, so 192 × 128, with 77, can grow no further.
  llvm::Expected<DeviceSpec> loaded = loadDeviceSpec("rtx3090");
  ASSERT_TRUE(static_cast<bool>(loaded));
  device = *loaded;
  device.dramGbps = 800;
  RollerCounts counts;
  SearchProblem p = problem();
  EXPECT_FALSE(RollerModel(p, *simt, {1424, 2304, 768})
                   .isBlockTileComputeBound(192, 128));
  EXPECT_TRUE(llvm::any_of(construct(1424, counts), [](const Candidate &leaf) {
    return leaf.ukernel.blockTile[0] == 192 &&
           leaf.ukernel.blockTile[1] == 128 &&
           leaf.ukernel.registerTile[0] == 8 &&
           leaf.ukernel.registerTile[1] == 8;
  }));
}

TEST_F(RollerTest, PadsWithinTheThresholdWhereItCan) {
  for (int64_t rows : {3, 5, 53, 97, 127, 1009}) {
    RollerCounts counts;
    std::vector<Candidate> leaves = construct(rows, counts);
    ASSERT_FALSE(leaves.empty());
    if (counts.relaxedPadding)
      continue;
    EXPECT_LE(counts.epsilon, 1.0 + 1e-9);
    for (const Candidate &leaf : leaves) {
      EXPECT_LE(ceilBy(rows, leaf.ukernel.blockTile[0]), 2 * rows);
      EXPECT_LE(ceilBy(2304, leaf.ukernel.blockTile[1]), 2 * 2304);
    }
  }
}

TEST_F(RollerTest, ScalesOutToFillTheDevice) {
  // 64 rows in the largest tiles make fewer blocks than the 80 SMs; halved
  // tiles make enough.
  RollerCounts counts;
  SearchProblem p = problem();
  RollerModel model(p, *simt, {64, 2304, 768});
  for (const Candidate &leaf : construct(64, counts)) {
    const UKernel &u = leaf.ukernel;
    EXPECT_GE(model.blocks(u.blockTile[0], u.blockTile[1]), device.smCount)
        << u.str();
  }
}

TEST_F(RollerTest, ServesShapesWithoutAlignedTiles) {
  workload = Workload::matmul({1, 4}, SizeRange::fixed(1), SizeRange::fixed(1));
  SearchProblem p = problem();
  const SearchStrategy &strategy = *findSearchStrategy("roller");
  llvm::Expected<Plan> plan = solve(p, strategy);
  ASSERT_TRUE(static_cast<bool>(plan)) << llvm::toString(plan.takeError());
  EXPECT_TRUE(llvm::any_of(plan->remarks, [](const std::string &remark) {
    return remark.find("construction relaxed for") != std::string::npos;
  }));
}

TEST_F(RollerTest, PlansOneUKernelForEachFamily) {
  workload =
      Workload::matmul({1, 128}, SizeRange::fixed(2304), SizeRange::fixed(768));
  options.topK = 4;
  SearchProblem p = problem();
  llvm::Expected<Plan> plan = solve(p, *findSearchStrategy("roller"));
  ASSERT_TRUE(static_cast<bool>(plan)) << llvm::toString(plan.takeError());
  for (const KernelFamily &family : plan->families)
    EXPECT_EQ(family.tiles.size(), 1u);
  ASSERT_EQ(plan->rankings.size(), 128u);
  for (const ShapeRanking &ranking : plan->rankings) {
    EXPECT_EQ(ranking.programs.front().score, 1);
    for (unsigned i = 1; i < ranking.programs.size(); ++i) {
      EXPECT_LE(ranking.programs[i].score, ranking.programs[i - 1].score);
      EXPECT_GT(ranking.programs[i].score, 0);
    }
  }
}

TEST_F(RollerTest, WithEnoughKernelsEveryShapeGetsItsBest) {
  workload =
      Workload::matmul({1, 64}, SizeRange::fixed(2304), SizeRange::fixed(768));
  options.maxKernels = 256;
  SearchProblem p = problem();
  const SearchStrategy &strategy = *findSearchStrategy("roller");
  llvm::Expected<Plan> plan = solve(p, strategy);
  ASSERT_TRUE(static_cast<bool>(plan)) << llvm::toString(plan.takeError());
  for (int64_t rows = 1; rows <= 64; ++rows) {
    Shape shape = {rows, 2304, 768};
    auto reports = strategy.explain(p, {}, shape);
    ASSERT_TRUE(static_cast<bool>(reports));
    const KernelFamily &best = reports->front().programs.front().family;
    const KernelFamily &chosen = plan->families[plan->familyFor(shape)];
    RollerModel model(p, *simt, shape);
    auto seconds = [&](const KernelFamily &family) {
      return model.seconds(family.ukernel(0),
                           simt->resources(workload, family));
    };
    EXPECT_NEAR(seconds(chosen) / seconds(best), 1, 1e-3)
        << rows << ": " << chosen.str() << " for " << best.str();
  }
}

TEST_F(RollerTest, ExplainsItsLevels) {
  SearchProblem p = problem();
  auto reports = findSearchStrategy("roller")->explain(
      p, {}, {{53, 2304, 768}, {2048, 2304, 768}});
  ASSERT_TRUE(static_cast<bool>(reports));
  ASSERT_EQ(reports->size(), 2u);
  for (const ShapeReport &report : *reports) {
    ASSERT_EQ(report.stages.size(), 3u);
    EXPECT_EQ(report.stages[0].name, "register_tile");
    EXPECT_EQ(report.stages[1].name, "block_tile");
    EXPECT_EQ(report.stages[2].name, "scale_out");
    for (const StageReport &stage : report.stages) {
      EXPECT_GE(stage.before, stage.kept);
      EXPECT_GT(stage.kept, 0);
      EXPECT_FALSE(stage.requirement.empty());
    }
    EXPECT_EQ(report.pairPrograms, 0);
    EXPECT_EQ(report.singlePrograms, report.stages[2].kept);
    EXPECT_EQ(report.programs.size(), 1u);
  }
}

TEST_F(RollerTest, HonoursRejections) {
  workload = Workload::matmul(SizeRange::fixed(53), SizeRange::fixed(2304),
                              SizeRange::fixed(768));
  SearchProblem p = problem();
  const SearchStrategy &strategy = *findSearchStrategy("roller");
  Shape shape = {53, 2304, 768};
  for (int round = 0; round < 40; ++round) {
    auto reports = strategy.explain(p, {}, shape);
    ASSERT_TRUE(static_cast<bool>(reports));
    const KernelFamily &best = reports->front().programs.front().family;
    EXPECT_FALSE(p.isRejected(best));
    p.rejected.push_back(best);
  }
  llvm::Expected<Plan> plan = solve(p, strategy);
  ASSERT_TRUE(static_cast<bool>(plan)) << llvm::toString(plan.takeError());

  llvm::Expected<CandidateSet> set = enumerateAlignedTiles(p);
  ASSERT_TRUE(static_cast<bool>(set));
  for (const Candidate &candidate : set->candidates)
    p.rejected.push_back(candidate.family);
  plan = solve(p, strategy);
  ASSERT_FALSE(static_cast<bool>(plan));
  EXPECT_EQ(llvm::toString(plan.takeError()),
            "every aligned uKernel of workload '" + workload.name +
                "' was rejected");
}
