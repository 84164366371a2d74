//===- PartitionTest.cpp - Partitions in closed form by brute force -------===//
#include "../../RandomSeed.h"
#include "FTuner/Codegen/Simt/SimtSchedule.h"
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace ftuner;

/// Heights g·h and g·(h + 1), or g·h alone.
static KernelFamily family(int64_t g, int64_t h, bool isPair = true) {
  SimtSchedule schedule;
  schedule.threadsM = g;
  schedule.threadsN = 16;
  if (isPair)
    return simtFamily(schedule, {h, h + 1}, /*columns=*/4, /*depth=*/16);
  return simtFamily(schedule, h, 4, 16);
}

TEST(Partition, PaperExample) {
  Partition partition = partitionExtent(family(1, 7), 53, 1);
  EXPECT_EQ(partition.first, 3);
  EXPECT_EQ(partition.second, 4);
  EXPECT_EQ(partition.padded, 0);
}

TEST(Partition, EmptyExtentHasNoBlocks) {
  for (int64_t extent : {0, -5}) {
    EXPECT_EQ(partitionExtent(family(16, 7), extent, 1).blocks(), 0);
    EXPECT_EQ(partitionExtent(family(16, 7), extent, 1).padded, 0);
  }
}

TEST(Partition, AgreesWithBruteForce) {
  for (int64_t g : {1, 2, 3, 4, 8, 16})
    for (int64_t h = 1; h <= 16; ++h) {
      KernelFamily pair = family(g, h);
      for (int64_t extent = 1; extent <= 4096; ++extent) {
        // The exact partition of whole units with the fewest first blocks.
        int64_t units = (extent + g - 1) / g;
        int64_t first = 0;
        while (first * h <= units && (units - first * h) % (h + 1) != 0)
          ++first;
        bool isExact = first * h <= units;
        Partition partition = partitionExtent(pair, extent, 1);
        int64_t rows = g * (partition.first * h + partition.second * (h + 1));
        ASSERT_EQ(rows, extent + partition.padded);
        if (isExact) {
          ASSERT_EQ(partition.first, first) << g << " " << h << " " << extent;
          ASSERT_LT(partition.padded, g);
          ASSERT_TRUE(extent % g != 0 || partition.padded == 0);
        } else {
          ASSERT_EQ(partition.first, 0) << g << " " << h << " " << extent;
          ASSERT_LT(partition.padded, g * (h + 1));
          // Only possible below h · (h − 1) units.
          ASSERT_LT(units, h * (h - 1));
        }
      }
    }
}

TEST(Partition, OnePartPadsItsLastBlock) {
  for (int64_t extent = 1; extent <= 1000; ++extent) {
    Partition partition =
        partitionExtent(family(4, 7, /*isPair=*/false), extent, 1);
    ASSERT_EQ(partition.second, 0);
    ASSERT_EQ(partition.first, (extent + 27) / 28);
    ASSERT_EQ(partition.padded, partition.first * 28 - extent);
  }
}

TEST(Partition, HoldsForHugeExtents) {
  for (int64_t extent : {10'000'000L, 2'147'483'647L}) {
    Partition partition = partitionExtent(family(16, 7), extent, 1);
    EXPECT_EQ(partition.first * 112 + partition.second * 128,
              extent + partition.padded);
    EXPECT_LT(partition.padded, 16);
    EXPECT_LE(partition.first, 7);
  }
}

TEST(BalancedPartition, CountsTheBlocksBesideOfAShape) {
  KernelFamily pair = family(16, 6);
  for (BlockTile &tile : pair.tiles)
    tile[1] = 128;
  EXPECT_EQ(blocksBeside(pair, {640, 2304, 768}), 18);
  EXPECT_EQ(blocksBeside(pair, {640, 2305, 768}), 19);
  EXPECT_EQ(blocksBeside(pair, {640, 0, 768}), 1);
  EXPECT_EQ(partitionShape(pair, {640, 2304, 768}).blocks(), 6);
  pair.balancedSms = 132;
  EXPECT_EQ(partitionShape(pair, {640, 2304, 768}).first, 7);
  EXPECT_EQ(partitionShape(pair, {640, 2304, 768}).second, 0);
  // Seven rows of 19 blocks would take a second round.
  EXPECT_EQ(partitionShape(pair, {640, 2305, 768}).blocks(), 6);
  EXPECT_EQ(partitionShape(pair, {0, 2304, 768}).blocks(), 0);
  for (BlockTile &tile : pair.tiles)
    tile.append({1, 1});
  EXPECT_EQ(blocksBeside(pair, {640, 130, 768, 3, 5}), 30);
}

TEST(BalancedPartition, CountsTheSlicesOfASplitBeside) {
  KernelFamily pair = family(16, 6);
  EXPECT_EQ(blocksBeside(pair, {640, 64, 768}), 1);
  pair.reduceSplit = 5;
  EXPECT_EQ(blocksBeside(pair, {640, 64, 768}), 5);
  EXPECT_EQ(blocksBeside(pair, {640, 128, 768}), 10);
}

TEST(BalancedPartition, LeavesOutReduceAxes) {
  // Blocks step through the last two axes.
  KernelFamily pair = family(16, 6);
  for (BlockTile &tile : pair.tiles)
    tile.push_back(4);
  EXPECT_EQ(blocksBeside(pair, {640, 128, 768, 12}), 6);
  pair.reduceAxes = 1u << 2 | 1u << 3;
  EXPECT_EQ(blocksBeside(pair, {640, 128, 768, 12}), 2);
}

TEST(UKernel, Prints) {
  EXPECT_EQ(family(16, 7).ukernel(0).str(), "[112,64,16]/[7,4,1]");
  EXPECT_EQ(family(16, 7).str(), "simt [112,64,16]/[7,4,1] + "
                                 "[128,64,16]/[8,4,1] axis 0 stages 2 vector "
                                 "4");
  EXPECT_EQ(family(16, 7).threads(), 256);
  KernelFamily balanced = family(16, 7);
  balanced.balancedSms = 132;
  EXPECT_EQ(balanced.str(), family(16, 7).str() + " balanced over 132");
  balanced.reduceSplit = 3;
  EXPECT_EQ(balanced.ukernel(1).str(), "[128,64,16]/[8,4,1]/split3");
  EXPECT_EQ(KernelFamily().str(), "without a schedule");
}

TEST(RunningParts, LeaveOutThePartWithoutBlocks) {
  KernelFamily pair = family(4, 7);
  ASSERT_EQ(pair.tiles.size(), 2u);
  EXPECT_EQ(runningParts(pair, {3, 4, 0}), pair);
  KernelFamily low = runningParts(pair, {3, 0, 0});
  ASSERT_EQ(low.tiles.size(), 1u);
  EXPECT_EQ(low.tiles[0], pair.tiles[0]);
  KernelFamily high = runningParts(pair, {0, 4, 0});
  ASSERT_EQ(high.tiles.size(), 1u);
  EXPECT_EQ(high.tiles[0], pair.tiles[1]);
  EXPECT_EQ(runningParts(high, {4, 0, 0}), high);

  // A lone part covers every extent in one way: it runs the same program
  // whether its pair was balanced or not.
  KernelFamily balanced = pair;
  balanced.balancedSms = 132;
  EXPECT_FALSE(balanced == pair);
  EXPECT_EQ(runningParts(balanced, {3, 4, 0}), balanced);
  EXPECT_EQ(runningParts(balanced, {3, 0, 0}), low);
  EXPECT_EQ(runningParts(balanced, {0, 4, 0}), high);
}
