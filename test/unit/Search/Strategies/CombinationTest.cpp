//===- CombinationTest.cpp - CombinSearch against brute force -------------===//
#include "FTuner/Search/Strategies/Combination.h"
#include "../../RandomSeed.h"
#include <algorithm>
#include <array>
#include <gtest/gtest.h>
#include <random>
#include <set>

using namespace ftuner;

namespace {
/// A program of the pool by heights: layout, heights and numbers of blocks.
using Counted = std::array<int64_t, 5>;
} // namespace

static std::set<Counted> programsOf(llvm::ArrayRef<CombinableUKernel> ukernels,
                                    int64_t extent,
                                    Pairing pairing = Pairing::Printed) {
  std::set<Counted> result;
  for (const PooledProgram &program : combinSearch(ukernels, extent, pairing)) {
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

/// Algorithm 2 by trying every number of blocks: each uKernel whose height
/// divides the extent alone; each that does not, with every second one, until
/// the lower one's blocks leave a multiple of the higher one.
static std::set<Counted> bruteForce(llvm::ArrayRef<CombinableUKernel> ukernels,
                                    int64_t extent, Pairing pairing) {
  std::set<Counted> result;
  auto divides = [&](const CombinableUKernel &k) {
    return extent % k.height == 0;
  };
  for (const CombinableUKernel &k : ukernels) {
    if (divides(k)) {
      result.insert({k.layout, k.height, 0, extent / k.height, 0});
      continue;
    }
    for (const CombinableUKernel &second : ukernels) {
      if (second.layout != k.layout || second.height == k.height ||
          (pairing == Pairing::NoDivisors && divides(second)))
        continue;
      auto [low, high] = std::minmax(k.height, second.height);
      for (int64_t n1 = 0; n1 * low < extent; ++n1) {
        int64_t rest = extent - n1 * low;
        if (rest % high != 0)
          continue;
        if (n1 > 0) // Else it is the program of the higher one alone.
          result.insert({k.layout, low, high, n1, rest / high});
        break;
      }
    }
  }
  return result;
}

TEST(CombinSearch, ThePapersExample) {
  // 53 = 3·7 + 4·8.
  std::vector<CombinableUKernel> ukernels = {{7, 0}, {8, 0}};
  std::vector<PooledProgram> pool =
      combinSearch(ukernels, 53, Pairing::Printed);
  ASSERT_EQ(pool.size(), 1u);
  EXPECT_EQ(pool[0], (PooledProgram{0, 1, {3, 4, 0}}));
  // 56 = 8·7 = 7·8: one uKernel each.
  EXPECT_EQ(programsOf(ukernels, 56),
            (std::set<Counted>{{0, 7, 0, 8, 0}, {0, 8, 0, 7, 0}}));
  // Other layouts do not combine.
  EXPECT_TRUE(programsOf({{{7, 0}, {8, 1}}}, 53).empty());
  // 17 = 3·3 + 8 is one, 4 is too small for either.
  EXPECT_EQ(programsOf({{{8, 0}, {3, 0}}}, 17),
            (std::set<Counted>{{0, 3, 8, 3, 1}}));
  EXPECT_TRUE(programsOf({{{8, 0}, {3, 0}}}, 4).empty());
}

TEST(CombinSearch, PairsWhatDoesNotDivideWithWhatDoes) {
  // 34 does not divide 51, so it is paired with every second one: 17 too.
  std::vector<CombinableUKernel> ukernels = {{17, 0}, {34, 0}};
  EXPECT_EQ(programsOf(ukernels, 51),
            (std::set<Counted>{{0, 17, 0, 3, 0}, {0, 17, 34, 1, 1}}));
  EXPECT_EQ(programsOf(ukernels, 51, Pairing::NoDivisors),
            (std::set<Counted>{{0, 17, 0, 3, 0}}));
  // Two uKernels that divide the extent are not a pair.
  EXPECT_EQ(programsOf({{{17, 0}, {51, 0}}}, 51),
            (std::set<Counted>{{0, 17, 0, 3, 0}, {0, 51, 0, 1, 0}}));
  // 128 = 4·24 + 1·32, but the minimum number of blocks of 24 is 0.
  EXPECT_EQ(programsOf({{{24, 0}, {32, 0}}}, 128),
            (std::set<Counted>{{0, 32, 0, 4, 0}}));
}

TEST(CombinSearch, EqualsBruteForceForEveryExtent) {
  RandomSeed seed;
  std::mt19937 random(seed);
  size_t pairs = 0, withDivisors = 0;
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
      ASSERT_EQ(programs, bruteForce(ukernels, extent, Pairing::Printed))
          << extent;
      ASSERT_EQ(programsOf(ukernels, extent, Pairing::NoDivisors),
                bruteForce(ukernels, extent, Pairing::NoDivisors))
          << extent;
      for (const Counted &program : programs) {
        pairs += program[2] != 0;
        withDivisors += program[2] != 0 && extent % program[1] == 0;
      }
    }
  }
  EXPECT_GT(pairs, 100u);
  EXPECT_GT(withDivisors, 10u);
}
