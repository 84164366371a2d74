//===- CombinationTest.cpp - CombinSearch against brute force -------------===//
#include "FTuner/Search/Combination.h"
#include "../RandomSeed.h"
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <set>

using namespace ftuner;

namespace {
/// A program of the pool by heights: layout, heights and numbers of blocks.
using Counted = std::array<int64_t, 5>;
} // namespace

static std::set<Counted> programsOf(llvm::ArrayRef<CombinableUKernel> ukernels,
                                    int64_t extent) {
  std::set<Counted> result;
  for (const PooledProgram &program : combinSearch(ukernels, extent)) {
    const CombinableUKernel &first = ukernels[program.first];
    int64_t second = program.second ? ukernels[*program.second].height : 0;
    result.insert({first.layout, first.height, second, program.partition.first,
                   program.partition.second});
    EXPECT_EQ(program.partition.padded, 0);
    if (program.second) {
      EXPECT_EQ(ukernels[*program.second].layout, first.layout);
    }
  }
  return result;
}

/// Algorithm 2 by trying every number of blocks: from each uKernel whose height
/// does not divide the extent, take away its height until another divides the
/// rest.
static std::set<Counted> bruteForce(llvm::ArrayRef<CombinableUKernel> ukernels,
                                    int64_t extent) {
  std::set<Counted> result;
  for (const CombinableUKernel &low : ukernels) {
    if (extent % low.height == 0) {
      result.insert({low.layout, low.height, 0, extent / low.height, 0});
      continue;
    }
    for (const CombinableUKernel &high : ukernels) {
      if (high.layout != low.layout || high.height <= low.height ||
          extent % high.height == 0)
        continue;
      for (int64_t n1 = 1; n1 * low.height < extent; ++n1) {
        int64_t rest = extent - n1 * low.height;
        if (rest % high.height != 0)
          continue;
        result.insert(
            {low.layout, low.height, high.height, n1, rest / high.height});
        break;
      }
    }
  }
  return result;
}

TEST(CombinSearch, ThePapersExample) {
  // 53 = 3·7 + 4·8.
  std::vector<CombinableUKernel> ukernels = {{7, 0}, {8, 0}};
  std::vector<PooledProgram> pool = combinSearch(ukernels, 53);
  ASSERT_EQ(pool.size(), 1u);
  EXPECT_EQ(pool[0], (PooledProgram{0, 1, {3, 4, 0}}));
  // 56 = 8·7 = 7·8: one uKernel each.
  EXPECT_EQ(programsOf(ukernels, 56),
            (std::set<Counted>{{0, 7, 0, 8, 0}, {0, 8, 0, 7, 0}}));
  // Other layouts do not combine.
  EXPECT_TRUE(combinSearch({{{7, 0}, {8, 1}}}, 53).empty());
  // 17 = 3·3 + 8 is one, 4 is too small for either.
  EXPECT_EQ(programsOf({{{8, 0}, {3, 0}}}, 17),
            (std::set<Counted>{{0, 3, 8, 3, 1}}));
  EXPECT_TRUE(combinSearch({{{8, 0}, {3, 0}}}, 4).empty());
}

TEST(CombinSearch, EqualsBruteForceForEveryExtent) {
  RandomSeed seed;
  std::mt19937 random(seed);
  size_t pairs = 0;
  for (int round = 0; round < 6; ++round) {
    std::vector<CombinableUKernel> ukernels;
    std::set<std::pair<int64_t, unsigned>> seen;
    for (int i = 0, count = 2 + random() % 10; i < count; ++i) {
      int64_t height = 1 + random() % (round % 2 ? 16 : 300);
      unsigned layout = random() % 3;
      if (seen.insert({height, layout}).second)
        ukernels.push_back({height, layout});
    }
    for (int64_t extent = 1; extent <= 4096; ++extent) {
      std::set<Counted> programs = programsOf(ukernels, extent);
      ASSERT_EQ(programs, bruteForce(ukernels, extent)) << extent;
      for (const Counted &program : programs)
        pairs += program[2] != 0;
    }
  }
  EXPECT_GT(pairs, 100u);
}
