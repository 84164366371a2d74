//===- DietCodeTest.cpp - DietCode's formulas, space, votes and search ----===//
#include "../../Scale.h"
#include "../../Search/DeviceTest.h"
#include "DietCodeTuner.h"
#include "FTuner/Search/Ranking/Candidates.h"
#include "FTuner/Support/RandomDraws.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <gtest/gtest.h>
#include <set>

using namespace ftuner;

//===----------------------------------------------------------------------===//
// Occupancy
//===----------------------------------------------------------------------===//

// The page's numbers: a T4 has 40 SMs; dense_128x128 at T = 64 and 60 has 144
// blocks.
TEST(DietCodeOccupancyTest, AsWorkedByHand) {
  EXPECT_DOUBLE_EQ(busyShare(144, 40), 0.9);
  OccupancyFactor linear;
  EXPECT_DOUBLE_EQ(linear.valueFor(144, 40), 0.93);
  EXPECT_DOUBLE_EQ(linear.valueFor(36, 40), 0.93);
  EXPECT_DOUBLE_EQ(linear.valueFor(41, 40), 0.65875);
  OccupancyFactor hyperbolic;
  hyperbolic.form = OccupancyForm::Hyperbolic;
  EXPECT_NEAR(hyperbolic.valueFor(144, 40), 0.9506, 5e-5);
  EXPECT_NEAR(hyperbolic.valueFor(36, 40), 0.9280, 5e-5);
  EXPECT_NEAR(hyperbolic.valueFor(41, 40), 0.6923, 5e-5);
  OccupancyFactor share;
  share.form = OccupancyForm::Share;
  EXPECT_DOUBLE_EQ(share.valueFor(41, 40), 41.0 / 80);
  for (OccupancyForm form : {OccupancyForm::Linear, OccupancyForm::Hyperbolic,
                             OccupancyForm::Share, OccupancyForm::Off})
    for (int blocks : {40, 80, 4000})
      EXPECT_DOUBLE_EQ(OccupancyFactor{form}.valueFor(blocks, 40), 1);
}

/// Runs of 1 to 400 blocks on 80 SMs that a k slows down, with an error of 5 %
/// of each time.
static std::vector<RaggedRun> raggedRuns(double k, size_t count,
                                         uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> error(0, 0.05);
  OccupancyFactor truth{OccupancyForm::Linear, k};
  std::vector<RaggedRun> runs;
  while (runs.size() < count) {
    double blocks = 1 + drawBelow(400, random);
    double share = busyShare(blocks, 80);
    if (share < 0.98)
      runs.push_back({share, (1 + error(random)) / truth.valueFor(blocks, 80)});
  }
  return runs;
}

TEST(DietCodeOccupancyTest, RecoversTheCoefficient) {
  for (uint64_t seed = 0; seed < 20; ++seed)
    for (double k : {0.3, 0.7}) {
      FittedK fitted = fitK(raggedRuns(k, 1000, seed));
      EXPECT_NEAR(fitted.k, k, 0.02) << seed;
      EXPECT_LT(fitted.standardError, 0.01);
    }
  // Nothing to learn from: the default.
  EXPECT_EQ(fitK({}).k, 0.7);
  EXPECT_EQ(fitK({{1, 1.3}}).k, 0.7);
  // Impossible slowdowns do not leave [0, 1].
  EXPECT_EQ(fitK({{0.5, 3}}).k, 1);
  EXPECT_EQ(fitK({{0.5, 0.5}}).k, 0);
}

//===----------------------------------------------------------------------===//
// Votes and tree
//===----------------------------------------------------------------------===//

TEST(DietCodeVotesTest, CoversWithFewAndBreaksNothing) {
  // Kernel 0 is nearly best for all, 1 to 3 are best for one shape each.
  VoteMatrix scores = {{9, 10, 1, 1}, {9, 1, 10, 1}, {9, 1, 1, 10}};
  auto three = chooseByVotes(scores, 3);
  EXPECT_EQ(three, (std::vector<std::optional<unsigned>>{1, 2, 3}));
  auto one = chooseByVotes(scores, 1);
  EXPECT_EQ(one, (std::vector<std::optional<unsigned>>{0, 0, 0}));
  // What has failed for a shape does not serve it.
  scores[1] = {0, 0, 0, 0};
  EXPECT_EQ(chooseByVotes(scores, 4)[1], std::nullopt);
}

/// Returns the minimum number of kernels such that each shape has one of its
/// `count` best.
static size_t minCover(const VoteMatrix &scores, size_t count) {
  size_t numKernels = scores.front().size(), minimum = numKernels;
  for (unsigned mask = 1; mask < 1u << numKernels; ++mask) {
    bool covers = llvm::all_of(scores, [&](const std::vector<double> &row) {
      std::vector<double> sorted = row;
      llvm::sort(sorted, std::greater<>());
      for (unsigned kernel = 0; kernel < numKernels; ++kernel)
        if ((mask >> kernel & 1) && row[kernel] >= sorted[count - 1])
          return true;
      return false;
    });
    if (covers)
      minimum = std::min<size_t>(minimum, llvm::popcount(mask));
  }
  return minimum;
}

TEST(DietCodeVotesTest, NeedsNoMoreThanTheMinCover) {
  std::mt19937_64 random(5);
  int numLarger = 0;
  for (int trial = 0; trial < 200; ++trial) {
    VoteMatrix scores(6, std::vector<double>(6));
    for (std::vector<double> &row : scores)
      for (double &score : row)
        score = 1 + drawUnit(random);
    for (size_t maxKernels = 1; maxKernels <= 6; ++maxKernels) {
      std::set<unsigned> used;
      for (std::optional<unsigned> kernel : chooseByVotes(scores, maxKernels))
        used.insert(*kernel);
      EXPECT_LE(used.size(), maxKernels);
    }
    // The greedy cover is compared with the minimum.
    for (size_t count = 1; count <= 6; ++count) {
      std::set<unsigned> used;
      for (std::optional<unsigned> kernel :
           chooseByVotes(scores, minCover(scores, count)))
        used.insert(*kernel);
      numLarger += used.size() > minCover(scores, count);
    }
  }
  EXPECT_EQ(numLarger, 0);
}

// Votes for all nearly best kernels lose little more than the best cover.
TEST(DietCodeVotesTest, NearVotesLoseLittle) {
  std::mt19937_64 random(7);
  double nearLoss = 0, minLoss = 0;
  for (int trial = 0; trial < 200; ++trial) {
    VoteMatrix scores(8, std::vector<double>(8));
    for (std::vector<double> &row : scores)
      for (double &score : row)
        score = 1 + drawUnit(random);
    auto lossOf = [&](unsigned a, unsigned b) {
      double sum = 0;
      for (const std::vector<double> &row : scores) {
        double loss = 1 - std::max(row[a], row[b]) / *llvm::max_element(row);
        sum += loss * loss;
      }
      return sum;
    };
    std::set<unsigned> used;
    for (auto kernel : chooseByVotes(scores, 2, Votes::Near))
      used.insert(*kernel);
    ASSERT_LE(used.size(), 2u);
    nearLoss += lossOf(*used.begin(), *used.rbegin());
    double best = std::numeric_limits<double>::infinity();
    for (unsigned a = 0; a < 8; ++a)
      for (unsigned b = 0; b < a; ++b)
        best = std::min(best, lossOf(a, b));
    minLoss += best;
  }
  EXPECT_LT(nearLoss, 1.15 * minLoss);
  // A shape that no kernel serves gets no kernel.
  VoteMatrix none = {{1, 2}, {0, 0}};
  EXPECT_EQ(chooseByVotes(none, 2, Votes::Near)[1], std::nullopt);
}

TEST(DietCodeTreeTest, BoxesGiveEveryVoteAndFillTheSpace) {
  std::mt19937_64 random(9);
  for (int trial = 0; trial < 100; ++trial) {
    std::vector<VotedShape> votes;
    std::set<Shape> known;
    for (int i = 0; i < 12; ++i) {
      Shape shape = {1 + drawBelow(40, random), 1 + drawBelow(30, random)};
      if (known.insert(shape).second)
        votes.push_back(
            {shape, 1 + drawUnit(random), unsigned(drawBelow(3, random))});
    }
    std::vector<DispatchEntry> boxes =
        boxesOfVotes(votes, {{1, 40}, {1, std::nullopt}});
    EXPECT_LE(boxes.size(), votes.size());
    for (const VotedShape &vote : votes)
      EXPECT_EQ(boxes[*entryFor(boxes, vote.shape)].family, vote.vote);
    for (int64_t m = 1; m <= 40; ++m)
      for (int64_t n : {1, 2, 15, 16, 29, 30, 31, 1000})
        EXPECT_EQ(llvm::count_if(boxes,
                                 [&](const DispatchEntry &box) {
                                   return box.contains({m, n});
                                 }),
                  1);
  }
}

TEST(DietCodeTreeTest, HasFewLeavesAlongOneAxis) {
  // Votes change twice: three leaves.
  std::vector<VotedShape> votes;
  for (int64_t m : {5, 24, 43, 62, 81, 100, 119, 128})
    votes.push_back({{m}, 1, m < 30 ? 0u : m < 90 ? 1u : 0u});
  std::vector<DispatchEntry> boxes = boxesOfVotes(votes, {{1, 128}});
  EXPECT_EQ(boxes.size(), 3u);
  // Splits lie in the middle between two sizes.
  EXPECT_EQ(*entryFor(boxes, {33}), *entryFor(boxes, {5}));
  EXPECT_EQ(*entryFor(boxes, {34}), *entryFor(boxes, {43}));
}

//===----------------------------------------------------------------------===//
// Space and search
//===----------------------------------------------------------------------===//

namespace {
class DietCodeTest : public DeviceTest {
protected:
  DietCodeTest() : DeviceTest("t4") {
    for (int64_t rows : {16, 304, 592, 880, 1168, 1456, 1744, 2048})
      shapes.push_back({{rows, 2304, 768}, 1});
  }

  SearchProblem problem() {
    return {workload, device, paths, *findCostModel("latency"), options};
  }
  DietCodeSpace space(bool perfectTiles = true) {
    return {workload, device, {2048, 2304, 768}, {perfectTiles, false}};
  }

  Workload workload = Workload::matmul({16, 2048, 16}, SizeRange::fixed(2304),
                                       SizeRange::fixed(768), false, true);
  SearchOptions options;
  const CodegenModel *simt = findCodegenModel("simt");
  llvm::ArrayRef<const CodegenModel *> paths = simt;
  std::vector<WeightedShape> shapes;
};
} // namespace

TEST_F(DietCodeTest, DrawsAreLegalAndMutationsStaySo) {
  std::mt19937_64 random(1);
  int64_t count = runsEverything() ? 100'000 : 20'000, numEmittable = 0;
  for (bool isPerfect : {true, false}) {
    DietCodeSpace drawSpace = space(isPerfect);
    for (int64_t i = 0; i < count / 2; ++i) {
      std::optional<MicroKernel> drawn = drawSpace.sample(random);
      if (!drawn)
        continue;
      ASSERT_TRUE(drawSpace.isLegal(*drawn));
      if (isPerfect)
        ASSERT_EQ(768 % (*drawn)[2].inner, 0);
      MicroKernel child = drawSpace.mutate(*drawn, shapes.back().shape, random);
      ASSERT_TRUE(drawSpace.isLegal(child)) << child[0].threads;
      for (unsigned axis = 0; axis < 3; ++axis)
        ASSERT_EQ(child[axis].threads, (*drawn)[axis].threads);
      auto family = simt->threadFamily(workload, *drawn, 16);
      ASSERT_TRUE(family);
      for (unsigned axis = 0; axis < 3; ++axis)
        ASSERT_EQ(family->tiles.front()[axis], (*drawn)[axis].elements());
      numEmittable += i < 1000 && isFeasible(problem(), *family);
    }
  }
  EXPECT_GT(numEmittable, 20);
}

TEST_F(DietCodeTest, DrawsEveryMicroKernelOfASmallSpace) {
  // One warp at most, extents of 4 and 2: counted by hand below.
  Workload small =
      Workload::matmul({1, 4}, SizeRange::fixed(64), SizeRange::fixed(2));
  DeviceSpec oneWarp = device;
  oneWarp.maxThreadsPerBlock = 32;
  DietCodeSpace smallSpace(small, oneWarp, {4, 64, 2}, {});
  std::set<std::vector<int64_t>> seen;
  std::mt19937_64 random(3);
  for (int i = 0; i < 20'000; ++i)
    if (std::optional<MicroKernel> drawn = smallSpace.sample(random)) {
      std::vector<int64_t> key;
      for (const ThreadTile &tile : *drawn)
        key.insert(key.end(), {tile.threads, tile.strips, tile.inner});
      seen.insert(key);
    }
  // Threads m × n = 32 with m in {1, 2, 4}: n is 32, 16, 8; inner m divides 4
  // and is at most ⌈4 / m⌉: 3, 2, 1; strips are at most ⌈64 / n⌉
  // and 8, divisors of 64 where it has four of these, as for n = 8: 2, 4, 4;
  // inner k divides 2: 2.
  EXPECT_EQ(seen.size(), size_t(2 * (3 * 2 + 2 * 4 + 1 * 4)));
}

/// Returns microseconds by a made-up truth: rates fall with the distance of a
/// block from one optimum, by tile, threads and k tile.
static DietCodeTuner::Timer syntheticTimer(const SearchProblem &problem,
                                           int64_t *asked = nullptr) {
  return [&problem, asked](llvm::ArrayRef<MeasurementRequest> requests) {
    std::vector<llvm::Expected<double>> times;
    for (const MeasurementRequest &request : requests) {
      const UKernel u = request.family.ukernel(0);
      auto distanceOf = [](double value, double best) {
        return std::abs(std::log2(value / best));
      };
      double distance =
          distanceOf(u.blockTile[0], 96) + distanceOf(u.blockTile[1], 128) +
          distanceOf(u.blockTile[2], 24) / 2 +
          distanceOf(u.registerTile[0], 6) + distanceOf(u.registerTile[1], 4);
      double rate = 4e12 / (1 + distance * distance / 4);
      double blocks = 1, padded = 2;
      for (auto [axis, extent] : llvm::enumerate(request.shape)) {
        int64_t tile = request.family.tiles.front()[axis];
        padded *= static_cast<double>(ceilBy(extent, tile));
        if (axis < 2)
          blocks *= static_cast<double>(ceilDiv(extent, tile));
      }
      OccupancyFactor occupancy;
      times.push_back(padded / rate /
                      occupancy.valueFor(blocks, problem.device.smCount) * 1e6);
      if (asked)
        ++*asked;
    }
    return times;
  };
}

/// The odds that fair coins fall so unevenly, on either side.
static double signTest(int numWins, int numTrials) {
  int larger = std::max(numWins, numTrials - numWins);
  double odds = 0;
  for (int wins = larger; wins <= numTrials; ++wins)
    odds +=
        std::exp(std::lgamma(numTrials + 1) - std::lgamma(wins + 1) -
                 std::lgamma(numTrials - wins + 1) - numTrials * std::log(2.0));
  return std::min(1.0, 2 * odds);
}

TEST(DietCodeSignTest, AsInTables) {
  EXPECT_NEAR(signTest(15, 20), 0.0414, 1e-4);
  EXPECT_NEAR(signTest(6, 20), 0.1153, 1e-4);
  EXPECT_EQ(signTest(10, 20), 1);
}

// The space has tiles that are not divisors, too: millions of micro-kernels.
TEST_F(DietCodeTest, LearnsAnUnknownTruthFasterThanRandomDraws) {
  SearchProblem p = problem();
  bool isWhole = runsEverything();
  int numSeeds = isWhole ? 20 : 3;
  size_t trials = isWhole ? 1000 : 400;
  DietCodeSpace drawSpace = space(/*perfectTiles=*/false);
  int64_t numPoints = 0;
  for (int64_t threads = 32; threads <= device.maxThreadsPerBlock;
       threads += 32)
    for (int64_t m = 1; m <= threads; ++m)
      if (threads % m == 0) {
        MicroKernel kernel(3);
        kernel[0].threads = m;
        kernel[1].threads = threads / m;
        // Strips, and inner tiles along m and k.
        if (drawSpace.isLegal(kernel))
          numPoints += std::min<int64_t>(8, ceilDiv(2304, threads / m)) *
                       std::min<int64_t>(64, ceilDiv(2048, m)) * 64;
      }
  EXPECT_GT(numPoints, 1'000'000);

  auto truth = syntheticTimer(p);
  // The greatest useful FLOP/s for any shape.
  auto bestOf = [&](llvm::ArrayRef<KernelFamily> families) {
    std::vector<MeasurementRequest> requests;
    for (const KernelFamily &family : families)
      for (const WeightedShape &shape : shapes)
        requests.push_back({&p.workload, family, shape.shape});
    double best = 0;
    for (auto [request, time] : llvm::zip_equal(requests, truth(requests)))
      best =
          std::max(best, workload.flops(*workload.reduction(), request.shape) /
                             llvm::cantFail(std::move(time)));
    return best;
  };
  int numLearned = 0, numWithout = 0;
  for (int seed = 0; seed < numSeeds; ++seed) {
    double found[2];
    for (bool learns : {false, true}) {
      DietCodeOptions own;
      own.trials = static_cast<int64_t>(trials);
      own.perfectTiles = false;
      // As it is judged.
      own.fitness = Fitness::Absolute;
      own.model = learns ? ThroughputModel::Trees : ThroughputModel::None;
      DietCodeTuner tuner(p, *simt, shapes, own, truth, true, seed);
      llvm::Error error = tuner.run();
      ASSERT_FALSE(error) << llvm::toString(std::move(error));
      EXPECT_EQ(tuner.kernels().size(), trials);
      std::vector<KernelFamily> families;
      for (const TunedKernel &kernel : tuner.kernels())
        families.push_back(kernel.family);
      found[learns] = bestOf(families);
    }
    std::mt19937_64 random(1000 + seed);
    std::vector<KernelFamily> drawn;
    while (drawn.size() < trials) {
      std::optional<MicroKernel> tiles = drawSpace.sample(random);
      if (!tiles)
        continue;
      auto family = simt->threadFamily(workload, *tiles, 16);
      if (family && isFeasible(p, *family) &&
          !llvm::is_contained(drawn, *family))
        drawn.push_back(*family);
    }
    double byDraws = bestOf(drawn);
    std::printf("seed %d: learned %.3f, without its model %.3f, draws %.3f "
                "TFLOP/s\n",
                seed, found[1] / 1e6, found[0] / 1e6, byDraws / 1e6);
    std::fflush(stdout);
    numLearned += found[1] > byDraws;
    numWithout += found[0] > byDraws;
  }
  std::printf("%lld points: of %d seeds, better than random draws: %d, without "
              "its model %d (p = %.3f)\n",
              static_cast<long long>(numPoints), numSeeds, numLearned,
              numWithout, signTest(numWithout, numSeeds));
  EXPECT_GE(numLearned, isWhole ? 15 : 2);
  if (isWhole)
    EXPECT_GT(signTest(numWithout, numSeeds), 0.1);
}

TEST_F(DietCodeTest, TheSameSeedFindsTheSame) {
  SearchProblem p = problem();
  std::vector<std::string> first;
  for (int run = 0; run < 2; ++run) {
    DietCodeOptions own;
    own.trials = 192;
    DietCodeTuner tuner(p, *simt, shapes, own, syntheticTimer(p), true, 11);
    llvm::Error error = tuner.run();
    ASSERT_FALSE(error) << llvm::toString(std::move(error));
    std::vector<std::string> families;
    for (const TunedKernel &kernel : tuner.kernels())
      families.push_back(kernel.family.str());
    auto chosen = tuner.choose(4);
    ASSERT_TRUE(static_cast<bool>(chosen));
    std::set<unsigned> used(chosen->begin(), chosen->end());
    EXPECT_LE(used.size(), 4u);
    for (unsigned kernel : *chosen)
      families.push_back(std::to_string(kernel));
    if (run == 0)
      first = families;
    else
      EXPECT_EQ(families, first);
  }
}

TEST_F(DietCodeTest, WhatFailsLosesItsVotes) {
  SearchProblem p = problem();
  auto truth = syntheticTimer(p);
  std::set<std::string> failing;
  auto timer = [&](llvm::ArrayRef<MeasurementRequest> requests) {
    std::vector<llvm::Expected<double>> times = truth(requests);
    for (auto [request, time] : llvm::zip_equal(requests, times))
      if (failing.count(request.family.str())) {
        llvm::consumeError(time.takeError());
        time = llvm::createStringError("it spills");
      }
    return times;
  };
  DietCodeOptions own;
  own.trials = 128;
  // The same search twice; in the second, what the first chose fails.
  for (bool fails : {false, true}) {
    DietCodeTuner tuner(p, *simt, shapes, own, timer, true, 2);
    std::set<std::string> doomed;
    std::swap(doomed, failing);
    llvm::Error error = tuner.run();
    ASSERT_FALSE(error) << llvm::toString(std::move(error));
    std::swap(doomed, failing);
    auto chosen = tuner.choose(3);
    ASSERT_TRUE(static_cast<bool>(chosen));
    for (unsigned kernel : *chosen) {
      std::string name = tuner.kernels()[kernel].family.str();
      EXPECT_FALSE(fails && failing.count(name));
      if (!fails)
        failing.insert(name);
    }
  }
}

/// Voters of all lengths, 16 rows each.
static std::vector<Voter> votersOfRange() {
  std::vector<Voter> voters;
  for (int64_t rows = 16; rows <= 2048; rows += 16)
    voters.push_back({{{rows, 2304, 768}, 1}});
  return voters;
}

// What is searched for eight shapes serves all 128 with few micro-kernels that
// lose little of the best of those measured. Votes of the eight alone lose
// more.
TEST_F(DietCodeTest, SizesThatWereNotSampledLoseLittle) {
  SearchProblem p = problem();
  auto truth = syntheticTimer(p);
  std::vector<Voter> voters = votersOfRange();
  size_t numNoticed[2];
  for (VoteSizes sizes : {VoteSizes::Instances, VoteSizes::Range}) {
    DietCodeOptions own;
    own.trials = 200;
    own.voteSizes = sizes;
    own.votes = sizes == VoteSizes::Range ? Votes::Near : Votes::Best;
    DietCodeTuner tuner(p, *simt, shapes, own, truth, true, 4);
    llvm::Error error = tuner.run();
    ASSERT_FALSE(error) << llvm::toString(std::move(error));
    std::vector<VotedShape> votes;
    std::set<unsigned> used;
    if (sizes == VoteSizes::Range) {
      auto chosen = tuner.choose(voters, 12, /*triesRivals=*/true);
      ASSERT_TRUE(static_cast<bool>(chosen));
      for (auto [voter, choice] : llvm::zip_equal(voters, *chosen)) {
        EXPECT_FALSE(choice.isUnaligned);
        votes.push_back({voter.shape, 1, choice.kernel});
      }
    } else {
      auto chosen = tuner.choose(12);
      ASSERT_TRUE(static_cast<bool>(chosen));
      for (auto [instance, kernel] : llvm::zip_equal(shapes, *chosen))
        votes.push_back({instance.shape, 1, kernel});
    }
    for (const VotedShape &vote : votes)
      used.insert(vote.vote);
    EXPECT_LT(used.size(), shapes.size() + 5);
    // A cover: fewer micro-kernels than shapes.
    EXPECT_LT(used.size(), votes.size());
    std::vector<DispatchEntry> boxes =
        boxesOfVotes(votes, {{16, 2048}, {2304, 2304}, {768, 768}});
    size_t changes = 0;
    for (size_t i = 1; i < votes.size(); ++i)
      changes += votes[i].vote != votes[i - 1].vote;
    EXPECT_LE(boxes.size(), std::max<size_t>(1, 2 * changes));
    auto timeOf = [&](unsigned kernel, const Shape &shape) {
      return llvm::cantFail(std::move(
          truth({{&p.workload, tuner.kernels()[kernel].family, shape}})
              .front()));
    };
    size_t &noticed = numNoticed[sizes == VoteSizes::Range];
    noticed = 0;
    for (const Voter &voter : voters) {
      double best = std::numeric_limits<double>::infinity();
      for (unsigned kernel = 0; kernel < tuner.kernels().size(); ++kernel)
        best = std::min(best, timeOf(kernel, voter.shape));
      unsigned chosen = boxes[*entryFor(boxes, voter.shape)].family;
      noticed += timeOf(chosen, voter.shape) > 1.05 * best;
    }
  }
  EXPECT_LE(numNoticed[1], 6u);
  EXPECT_GT(numNoticed[0], 12u);
}

// Shapes whose rows are not aligned take variants, others the micro-kernels.
TEST_F(DietCodeTest, UnalignedSizesTakeVariants) {
  SearchProblem p = problem();
  DietCodeOptions own;
  own.trials = 128;
  DietCodeTuner tuner(p, *simt, shapes, own, syntheticTimer(p), true, 6);
  llvm::Error error = tuner.run();
  ASSERT_FALSE(error) << llvm::toString(std::move(error));
  std::vector<Voter> voters = votersOfRange();
  for (size_t i = 0; i < voters.size(); i += 2)
    voters[i].isUnaligned = true;
  auto chosen = tuner.choose(voters, 6);
  ASSERT_TRUE(static_cast<bool>(chosen));
  std::set<std::string> families;
  for (auto [voter, choice] : llvm::zip_equal(voters, *chosen)) {
    const KernelFamily &family = tuner.familyOf(choice);
    EXPECT_TRUE(!voter.isUnaligned || family.takesAnyAlignment());
    families.insert(family.str());
  }
  EXPECT_LE(families.size(), 6u);
}

// A variant's k tile may be shorter, and then its steps are more.
TEST_F(DietCodeTest, ProgramsOfVariantsGoByTheirOwnTiles) {
  SizeRange t{1, 128};
  workload =
      Workload::batchMatmul(SizeRange::fixed(12), t, SizeRange::fixed(64), t);
  SearchProblem p = problem();
  shapes = {{{53, 64, 53, 12}, 1}, {{128, 64, 128, 12}, 1}};
  std::vector<MeasurementRequest> requests;
  auto truth = syntheticTimer(p);
  auto timer = [&](llvm::ArrayRef<MeasurementRequest> asked) {
    requests.insert(requests.end(), asked.begin(), asked.end());
    return truth(asked);
  };
  DietCodeOptions own;
  own.trials = 64;
  own.model = ThroughputModel::None;
  DietCodeTuner tuner(p, *simt, shapes, own, timer, true, 6);
  llvm::Error error = tuner.run();
  ASSERT_FALSE(error) << llvm::toString(std::move(error));
  // For example, variants that would spill are rejected.
  for (const TunedKernel &kernel : tuner.kernels())
    p.rejected.push_back(simt->unalignedVariants(kernel.family).front());
  std::vector<Voter> voters;
  for (int64_t size = 1; size <= 128; ++size) {
    voters.push_back({{{size, 64, size, 12}, 1}});
    voters.back().isUnaligned = size % 4 != 0;
  }
  auto chosen = tuner.choose(voters, 4);
  ASSERT_TRUE(static_cast<bool>(chosen));
  size_t numShorter = 0;
  for (size_t i = 0; i < voters.size(); ++i) {
    ProgramChoice choice = (*chosen)[i];
    const Shape &shape = voters[i].shape;
    const KernelFamily &family = tuner.familyOf(choice);
    const BlockTile &tile = family.tiles.front();
    numShorter += tile != tuner.kernels()[choice.kernel].family.tiles.front();
    bool isTimed =
        llvm::any_of(requests, [&](const MeasurementRequest &request) {
          if (!(request.family == family))
            return false;
          for (size_t axis = 0; axis < tile.size(); ++axis)
            if (ceilDiv(request.shape[axis], tile[axis]) !=
                ceilDiv(shape[axis], tile[axis]))
              return false;
          return true;
        });
    EXPECT_TRUE(isTimed) << family.str() << " " << shape[0];
  }
  EXPECT_GT(numShorter, 0u);
}
