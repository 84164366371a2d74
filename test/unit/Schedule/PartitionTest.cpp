//===- PartitionTest.cpp - Partitions in closed form against brute force
//----------===//
#include "FTuner/Schedule/Partition.h"
#include "../RandomSeed.h"
#include "FTuner/Workload/Workload.h"
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace ftuner;

/// Each row below the extent lies in one block, and each block has a row.
static void expectEachRowOnce(const Partition &partition, int64_t low,
                              int64_t high, int64_t extent) {
  ASSERT_GE(partition.first, 0);
  ASSERT_GE(partition.second, 0);
  ASSERT_GE(partition.blocks(), 1);
  int64_t end = 0, lastStart = 0;
  for (int64_t block = 0; block < partition.blocks(); ++block) {
    lastStart = end;
    end += block < partition.first ? low : high;
  }
  ASSERT_LT(lastStart, extent);
  ASSERT_GE(end, extent);
  ASSERT_EQ(partition.padded, end - extent);
}

TEST(Partition, WritesEachRowOnceWithAnyTwoHeights) {
  for (int64_t low = 1; low <= 24; ++low)
    for (int64_t high = low + 1; high <= 40; ++high) {
      PartitionConstants constants = partitionConstants(low, high);
      for (int64_t extent = 1; extent <= low * high + 2 * high; ++extent) {
        SCOPED_TRACE(testing::Message() << low << " " << high << " " << extent);
        Partition partition = partitionWithPair(constants, extent);
        ASSERT_NO_FATAL_FAILURE(
            expectEachRowOnce(partition, low, high, extent));
        // Less than a unit is padded wherever some partition pads less.
        bool hasExact = false;
        int64_t covered = ceilBy(extent, constants.unit);
        for (int64_t rest = covered; rest >= 0; rest -= low)
          hasExact |= rest % high == 0;
        ASSERT_EQ(partition.padded < constants.unit, hasExact);
      }
    }
}

/// A balanced partition in full: as many blocks as fit the rounds of the
/// fewest, and of those as few high ones as reach the extent.
static void expectBalanced(int64_t low, int64_t high, int64_t sms,
                           int64_t beside, int64_t extent) {
  SCOPED_TRACE(testing::Message()
               << low << " " << high << " over " << sms << " SMs, " << beside
               << " beside, extent " << extent);
  auto rounds = [&](int64_t blocks) { return ceilDiv(blocks * beside, sms); };
  int64_t fewest = ceilDiv(extent, high), most = ceilDiv(extent, low);
  // Between two counts of blocks rounds only grow.
  int64_t blocks = fewest, end = most;
  while (blocks < end) {
    int64_t middle = blocks + (end - blocks + 1) / 2;
    if (rounds(middle) <= rounds(fewest))
      blocks = middle;
    else
      end = middle - 1;
  }
  Partition partition = balancedPartition(low, high, sms, beside, extent);
  ASSERT_EQ(partition.blocks(), blocks);
  ASSERT_GE(partition.first, 0);
  ASSERT_GE(partition.second, 0);
  auto rowsWith = [&](int64_t second) {
    return (blocks - second) * low + second * high;
  };
  ASSERT_GE(rowsWith(partition.second), extent);
  if (partition.second > 0) {
    ASSERT_LT(rowsWith(partition.second - 1), extent);
  }
  ASSERT_EQ(partition.padded, rowsWith(partition.second) - extent);
  // Every row in one block, every block with a row.
  ASSERT_LT(partition.padded, partition.second > 0 ? high - low : low);
  Partition exact = partitionWithPair(partitionConstants(low, high), extent);
  ASSERT_LE(rounds(partition.blocks()), rounds(exact.blocks()));
}

TEST(BalancedPartition, Example) {
  // 18 blocks beside each: 126 of 132 SMs have a block, not 108.
  Partition partition = balancedPartition(96, 112, 132, 18, 640);
  EXPECT_EQ(partition.first, 7);
  EXPECT_EQ(partition.second, 0);
  EXPECT_EQ(partition.padded, 32);
  Partition exact = partitionWithPair(partitionConstants(96, 112), 640);
  EXPECT_EQ(exact.first, 2);
  EXPECT_EQ(exact.second, 4);
}

TEST(BalancedPartition, AgreesWithBruteForce) {
  for (int64_t low = 1; low <= 6; ++low)
    for (int64_t high = low + 1; high <= 14; ++high)
      for (int64_t sms : {1, 2, 7, 16, 132})
        for (int64_t beside : {1, 2, 6, 15, 40, 500})
          for (int64_t extent = 1; extent <= 120; ++extent) {
            expectBalanced(low, high, sms, beside, extent);
            if (testing::Test::HasFatalFailure())
              return;
          }
}

TEST(BalancedPartition, WritesEachRowOnceWithAnyNumberOfBlocks) {
  for (int64_t low = 1; low <= 16; ++low)
    for (int64_t high = low + 1; high <= 24; ++high)
      for (int64_t extent = 1; extent <= 200; ++extent)
        // As many SMs as blocks, of which one is enough of a round.
        for (int64_t blocks = ceilDiv(extent, high);
             blocks <= ceilDiv(extent, low); ++blocks) {
          SCOPED_TRACE(testing::Message() << low << " " << high << " " << extent
                                          << " in " << blocks);
          Partition partition = balancedPartition(low, high, blocks, 1, extent);
          ASSERT_EQ(partition.blocks(), blocks);
          ASSERT_NO_FATAL_FAILURE(
              expectEachRowOnce(partition, low, high, extent));
        }
}

/// What is said to be never padded is not, by any number of blocks beside.
TEST(Partition, KnowsWhichExtentsSecondBlocksNeverPad) {
  int64_t numNever = 0, numPadded = 0;
  for (int64_t low = 1; low <= 12; ++low)
    for (int64_t high = low + 1; high <= 20; ++high)
      for (int64_t extent = 1; extent <= 96; ++extent)
        for (int64_t sms : {0, 5, 24}) {
          PartitionRule rule{low, high, sms};
          bool isPadded = false;
          for (int64_t beside = 1; beside <= 24; ++beside) {
            Partition partition = partitionExtent(rule, extent, beside);
            isPadded |= partition.second > 0 && partition.padded > 0;
          }
          bool isNever = isSecondNeverPadded(rule, extent);
          EXPECT_FALSE(isNever && isPadded)
              << low << " " << high << " " << extent << " " << sms;
          numNever += isNever;
          numPadded += isPadded;
        }
  EXPECT_GT(numNever, 1000);
  EXPECT_GT(numPadded, 1000);
}

TEST(BalancedPartition, HoldsForRandomPairs) {
  RandomSeed seed;
  std::mt19937_64 random(seed);
  auto upTo = [&](int64_t most) {
    // Small and large alike.
    double exponent = std::uniform_real_distribution<>(
        0, std::log2(static_cast<double>(most) + 1))(random);
    return std::clamp<int64_t>(static_cast<int64_t>(std::exp2(exponent)), 1,
                               most);
  };
  for (int round = 0; round < 200'000; ++round) {
    int64_t low = upTo(512), high = low + upTo(512);
    expectBalanced(low, high, upTo(4096), upTo(1 << 24), upTo(2147483647));
    if (testing::Test::HasFatalFailure())
      return;
  }
}
