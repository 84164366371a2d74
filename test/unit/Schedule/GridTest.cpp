//===- GridTest.cpp - The mapping of blocks to tiles in numbers -----------===//
#include "../RandomSeed.h"
#include "GridCases.h"

using namespace ftuner;

static Mapping inNumbers(const GridCase &c) {
  LaunchFacts launch = launchInNumbers(c);
  return {launch, [&c, launch](int64_t block) {
            return tileInNumbers(c, launch, block);
          }};
}

TEST(Grid, WritesEachElementOnce) {
  RandomSeed seed;
  GridCases cases(seed);
  for (int round = 0; round < 20'000; ++round) {
    GridCase c = cases.next();
    ASSERT_NO_FATAL_FAILURE(expectEachElementOnce(c, inNumbers(c)));
  }
}

/// Rows and columns of the tiles, block by block.
static std::vector<std::pair<int64_t, int64_t>> orderOf(const GridCase &c) {
  NumberArithmetic math;
  int64_t blocks = launchOf(math, c.grid, c.shape).blocks;
  std::vector<std::pair<int64_t, int64_t>> tiles;
  for (int64_t block = 0; block < blocks; ++block) {
    TilePosition<NumberArithmetic> position =
        positionOf(math, c.grid, c.shape, block, [&] { return blocks; });
    tiles.push_back({position.row, position.column});
  }
  return tiles;
}

TEST(Grid, OrdersOfBlocks) {
  using Tiles = std::vector<std::pair<int64_t, int64_t>>;
  GridCase c;
  c.grid.tile = {32, 64, 8};
  c.shape = {70, 100, 16};
  EXPECT_EQ(orderOf(c),
            (Tiles{{0, 0}, {0, 1}, {1, 0}, {1, 1}, {2, 0}, {2, 1}}));
  c.grid.swizzleRows = 2;
  EXPECT_EQ(orderOf(c),
            (Tiles{{0, 0}, {1, 0}, {0, 1}, {1, 1}, {2, 0}, {2, 1}}));
  c.grid.swizzleRows = 8;
  EXPECT_EQ(orderOf(c),
            (Tiles{{0, 0}, {1, 0}, {2, 0}, {0, 1}, {1, 1}, {2, 1}}));
}

TEST(Grid, BatchesAroundSlicesAroundTiles) {
  GridCase c;
  c.grid.tile = {16, 16, 8, 1, 1};
  c.grid.reduceSplit = 3;
  c.shape = {17, 16, 50, 2, 5};
  Mapping mapping = inNumbers(c);
  ASSERT_EQ(mapping.launch.blocks, 2 * 3 * 2 * 5);
  // Batch (1, 3) is the ninth, and this is the second tile of its last slice.
  TileFacts tile = mapping.tileOf((8 * 3 + 2) * 2 + 1);
  EXPECT_EQ(tile.batch, (llvm::SmallVector<int64_t, 3>{1, 3}));
  EXPECT_EQ(tile.slice, 2);
  EXPECT_EQ(tile.row, 16);
  EXPECT_EQ(tile.column, 0);
  // Seven steps: three, three and the rest of 50 elements.
  EXPECT_EQ(tile.reduceFirst, 48);
  EXPECT_EQ(tile.reduceLength, 2);
}

TEST(Grid, SlicesBeyondTheExtentAreEmpty) {
  NumberArithmetic math;
  Grid grid = productGrid();
  grid.tile = {16, 16, 16};
  grid.reduceSplit = 4;
  auto range = [&](int64_t slice, int64_t extent) {
    auto [first, length] = reduceRangeOf(math, grid, slice, extent);
    return std::make_pair(first, length);
  };
  // Five steps in slices of two.
  EXPECT_EQ(range(1, 70), std::make_pair(int64_t(32), int64_t(32)));
  EXPECT_EQ(range(2, 70), std::make_pair(int64_t(64), int64_t(6)));
  EXPECT_EQ(range(3, 70), std::make_pair(int64_t(70), int64_t(0)));
  EXPECT_EQ(range(0, 0), std::make_pair(int64_t(0), int64_t(0)));
}

TEST(Grid, CountsTheBlocksBeside) {
  NumberArithmetic math;
  Grid grid = productGrid();
  grid.tile = {96, 128, 16, 1, 1};
  auto beside = [&](const Shape &shape) {
    return blocksBeside(math, grid, shape);
  };
  EXPECT_EQ(beside({640, 2304, 768, 1, 1}), 18);
  EXPECT_EQ(beside({640, 2305, 768, 3, 5}), 19 * 15);
  EXPECT_EQ(beside({640, 2305, 768, 3, 0}), 0);
  grid.reduceSplit = 4;
  EXPECT_EQ(beside({640, 2304, 768, 1, 1}), 72);
  grid.combineAxis = matmulAxes.n;
  EXPECT_EQ(beside({640, 2304, 768, 1, 1}), 28);
}

TEST(Grid, TilesFollowFromTheFirstOnes) {
  RandomSeed seed;
  GridCases cases(seed);
  NumberArithmetic math;
  for (int round = 0; round < 20'000; ++round) {
    GridCase c = round % 2 ? cases.next() : cases.nextLarge();
    LaunchFacts launch = launchInNumbers(c);
    int64_t tiles = launch.blocks / c.grid.clusterBlocks;
    ASSERT_EQ(
        tilesOf(math, c.grid, llvm::ArrayRef(c.shape), launch.firstBlocks),
        tiles)
        << c;
    c.grid.persistentBlocks = 6;
    ASSERT_EQ(launchInNumbers(c).blocks, std::min<int64_t>(launch.blocks, 6));
  }
}

TEST(Grid, ClustersShareATile) {
  GridCase c;
  c.grid.tile = {64, 32, 8};
  c.grid.clusterBlocks = 2;
  c.shape = {70, 60, 16};
  Mapping mapping = inNumbers(c);
  ASSERT_EQ(mapping.launch.blocks, 8);
  auto first = [&](int64_t block) {
    TileFacts tile = mapping.tileOf(block);
    return std::make_pair(tile.row, tile.column);
  };
  EXPECT_EQ(first(2), std::make_pair(int64_t(0), int64_t(32)));
  EXPECT_EQ(first(3), std::make_pair(int64_t(32), int64_t(32)));
  // Beyond the extent.
  EXPECT_EQ(first(5), std::make_pair(int64_t(96), int64_t(0)));
}
