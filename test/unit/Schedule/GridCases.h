//===- GridCases.h - Mappings of blocks to tiles, and their proof -*- C++
//-*-===//
//
// What the tests of the grid's instantiations (numbers, IR on the host, IR on
// the device) share: cases, and the check that blocks write each element of
// each slice exactly once.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_TEST_UNIT_SCHEDULE_GRIDCASES_H
#define FTUNER_TEST_UNIT_SCHEDULE_GRIDCASES_H

#include "FTuner/Schedule/Grid.h"
#include "FTuner/Workload/Contraction.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <functional>
#include <gtest/gtest.h>
#include <ostream>
#include <random>
#include <vector>

/// Without tiles yet, of a product of matrices.
inline ftuner::Grid productGrid() {
  ftuner::Grid grid;
  grid.reduceAxes = 1u << ftuner::matmulAxes.k;
  return grid;
}

/// A grid and the extents of its axes: m, n, k, then batch axes.
struct GridCase {
  ftuner::Grid grid = productGrid();
  ftuner::Shape shape;
};

/// What the host launches.
struct LaunchFacts {
  int64_t firstBlocks, blocks;
  bool operator==(const LaunchFacts &other) const {
    return firstBlocks == other.firstBlocks && blocks == other.blocks;
  }
};

/// What a block finds out.
struct TileFacts {
  bool isInSecondPart;
  /// First row and column.
  int64_t row, column;
  /// Elements along the batch axes.
  llvm::SmallVector<int64_t, 3> batch;
  int64_t slice;
  /// First element and number of elements along the reduce axis.
  int64_t reduceFirst, reduceLength;

  bool operator==(const TileFacts &other) const {
    return isInSecondPart == other.isInSecondPart && row == other.row &&
           column == other.column && batch == other.batch &&
           slice == other.slice && reduceFirst == other.reduceFirst &&
           reduceLength == other.reduceLength;
  }
};

/// Both in numbers.
inline LaunchFacts launchInNumbers(const GridCase &c) {
  ftuner::NumberArithmetic math;
  auto [firstBlocks, blocks] = launchOf(math, c.grid, c.shape);
  return {firstBlocks, blocks};
}

inline TileFacts tileInNumbers(const GridCase &c, const LaunchFacts &launch,
                               int64_t block) {
  ftuner::NumberArithmetic math;
  const auto &[grid, shape] = c;
  auto position = positionOf(math, grid, llvm::ArrayRef(shape), block,
                             [&] { return launch.blocks; });
  TileFacts facts;
  facts.isInSecondPart =
      grid.secondHeight != 0 &&
      !isInFirstPart(math, grid, position, launch.firstBlocks);
  std::optional<int64_t> firstBlocks;
  if (facts.isInSecondPart)
    firstBlocks = launch.firstBlocks;
  auto [row, column] = offsetsOf(math, grid, position, firstBlocks);
  facts.row = row;
  facts.column = column;
  for (std::optional<int64_t> element : position.batch)
    facts.batch.push_back(element.value_or(0));
  facts.slice = position.slice.value_or(0);
  auto [first, length] =
      reduceRangeOf(math, grid, facts.slice, shape[ftuner::matmulAxes.k]);
  facts.reduceFirst = first;
  facts.reduceLength = length;
  return facts;
}

/// The mapping of one case.
struct Mapping {
  LaunchFacts launch;
  std::function<TileFacts(int64_t block)> tileOf;
};

inline std::ostream &operator<<(std::ostream &os, const GridCase &c) {
  auto list = [&](llvm::ArrayRef<int64_t> values) {
    for (auto [index, value] : llvm::enumerate(values))
      os << (index ? " × " : "") << value;
  };
  list(c.shape);
  os << " in tiles of ";
  list(c.grid.tile);
  return os << ", combine axis " << c.grid.combineAxis << ", second height "
            << c.grid.secondHeight << ", balanced over " << c.grid.balancedSms
            << ", split " << c.grid.reduceSplit << ", groups of "
            << c.grid.swizzleRows << ", clusters of " << c.grid.clusterBlocks
            << " along " << c.grid.clusterAxis;
}

inline std::ostream &operator<<(std::ostream &os, const LaunchFacts &facts) {
  return os << facts.firstBlocks << " first of " << facts.blocks << " blocks";
}

inline std::ostream &operator<<(std::ostream &os, const TileFacts &facts) {
  os << "part " << facts.isInSecondPart << ", row " << facts.row << ", column "
     << facts.column << ", slice " << facts.slice << " from "
     << facts.reduceFirst << " with " << facts.reduceLength << ", batch";
  for (int64_t element : facts.batch)
    os << " " << element;
  return os;
}

/// Blocks write each element of the output exactly once for each slice, sum
/// each element of the reduce axis exactly once, and none is idle.
inline void expectEachElementOnce(const GridCase &c, const Mapping &mapping) {
  const auto &[grid, shape] = c;
  SCOPED_TRACE(testing::Message() << c);
  int64_t m = shape[0], n = shape[1], k = shape[2];
  llvm::ArrayRef<int64_t> batches = llvm::ArrayRef(shape).drop_front(3);
  int64_t problems = grid.reduceSplit;
  for (int64_t extent : batches)
    problems *= extent;
  ASSERT_GE(mapping.launch.blocks, 0);

  std::vector<int> writes(problems * m * n);
  // What a slice sums, as its first block says.
  std::vector<std::optional<std::pair<int64_t, int64_t>>> slices(
      grid.reduceSplit);
  for (int64_t block = 0; block < mapping.launch.blocks; ++block) {
    TileFacts tile = mapping.tileOf(block);
    SCOPED_TRACE(testing::Message() << "block " << block << ": " << tile);
    ASSERT_EQ(tile.batch.size(), batches.size());
    ASSERT_GE(tile.slice, 0);
    ASSERT_LT(tile.slice, grid.reduceSplit);
    int64_t problem = tile.slice;
    for (auto [extent, element] : llvm::zip_equal(batches, tile.batch)) {
      ASSERT_GE(element, 0);
      ASSERT_LT(element, extent);
      problem = problem * extent + element;
    }
    int64_t height = grid.tile[0], width = grid.tile[1];
    if (tile.isInSecondPart)
      (grid.combineAxis == 0 ? height : width) = grid.secondHeight;
    ASSERT_GE(tile.row, 0);
    ASSERT_GE(tile.column, 0);
    // Shares of a cluster beyond the extent have nothing to write.
    if (grid.clusterBlocks > 1)
      (grid.clusterAxis == 0 ? height : width) /= grid.clusterBlocks;
    else
      ASSERT_TRUE(tile.row < m && tile.column < n);
    for (int64_t i = tile.row; i < std::min(tile.row + height, m); ++i)
      for (int64_t j = tile.column; j < std::min(tile.column + width, n); ++j)
        ASSERT_EQ(++writes[(problem * m + i) * n + j], 1) << i << " " << j;

    std::pair<int64_t, int64_t> sums{tile.reduceFirst, tile.reduceLength};
    if (!slices[tile.slice])
      slices[tile.slice] = sums;
    ASSERT_EQ(*slices[tile.slice], sums);
  }
  ASSERT_EQ(std::count(writes.begin(), writes.end(), 1),
            static_cast<int64_t>(writes.size()));
  if (writes.empty()) {
    ASSERT_EQ(mapping.launch.blocks, 0);
    return;
  }

  // Slices lie one after the other, of whole steps and of equal length but for
  // the last ones.
  int64_t end = 0, length = slices.front()->second;
  for (const auto &slice : slices) {
    ASSERT_TRUE(slice);
    ASSERT_EQ(slice->first, end);
    ASSERT_GE(slice->second, 0);
    ASSERT_LE(slice->second, length);
    end += slice->second;
    if (end < k) {
      ASSERT_EQ(slice->second, length);
      ASSERT_EQ(end % grid.tile[2], 0);
    }
  }
  ASSERT_EQ(end, k);
}

/// Cases of few elements: all of parts along m or n, exact and balanced
/// partitions, splits, batch axes and orders, with sizes around multiples of
/// the tiles, primes, 1 and 0.
class GridCases {
public:
  explicit GridCases(unsigned seed) : random(seed) {}

  GridCase next() {
    ftuner::Grid grid = productGrid();
    grid.tile = {upTo(9), upTo(9), 4 * upTo(4)};
    grid.combineAxis = upTo(2) - 1;
    if (upTo(4) > 1) {
      grid.secondHeight = grid.tile[grid.combineAxis] + upTo(7);
      if (upTo(2) == 1)
        grid.balancedSms = upTo(2) == 1 ? upTo(8) : upTo(300);
    }
    if (upTo(2) == 1)
      grid.reduceSplit = upTo(5);
    if (upTo(2) == 1)
      grid.swizzleRows = upTo(6);
    if (upTo(3) == 1) {
      grid.clusterBlocks = 2;
      grid.clusterAxis = upTo(2) - 1;
      grid.tile[grid.clusterAxis] *= 2;
      if (grid.clusterAxis == grid.combineAxis)
        grid.secondHeight *= 2;
    }
    grid.tile.append(upTo(4) - 1, 1);
    return {grid, shapeOf(grid)};
  }

  ftuner::Shape shapeOf(const ftuner::Grid &grid) {
    ftuner::Shape shape = {size(grid, 0), size(grid, 1), size(grid, 2)};
    while (shape.size() < grid.tile.size())
      shape.push_back(upTo(12) == 1 ? 0 : upTo(3));
    return shape;
  }

  /// Tiles, extents and orders of any size that a kernel may have, and at least
  /// one block.
  GridCase nextLarge() {
    GridCase c = next();
    for (unsigned axis = 0; axis < 3; ++axis) {
      c.grid.tile[axis] *= upTo(32);
      c.shape[axis] = std::uniform_int_distribution<int64_t>(
          1, int64_t(1) << upTo(31))(random);
      c.shape[axis] = std::min(c.shape[axis], ftuner::maxExtent);
    }
    for (unsigned axis = 3; axis < c.shape.size(); ++axis)
      c.shape[axis] = upTo(1000);
    // No memory holds more elements.
    auto elements = [&] {
      double product = 1;
      for (unsigned axis = 0; axis < c.shape.size(); ++axis)
        product *= axis == 2 ? 1 : static_cast<double>(c.shape[axis]);
      return product;
    };
    while (elements() > 1e14)
      for (int64_t &extent : c.shape)
        extent = (extent + 1) / 2;
    if (c.grid.secondHeight != 0)
      c.grid.secondHeight = c.grid.tile[c.grid.combineAxis] + 2 * upTo(100);
    c.grid.swizzleRows = upTo(2) == 1 ? 1 : upTo(64);
    return c;
  }

private:
  int64_t upTo(int64_t most) {
    return std::uniform_int_distribution<int64_t>(1, most)(random);
  }
  int64_t size(const ftuner::Grid &grid, unsigned axis) {
    static constexpr int64_t primes[] = {2, 3, 7, 13, 31, 47, 61};
    int64_t tile = grid.tile[axis];
    if (axis == grid.combineAxis && upTo(2) == 1)
      tile += grid.secondHeight;
    switch (upTo(20)) {
    case 1:
      return 0;
    case 2:
    case 3:
      return 1;
    case 4:
    case 5:
    case 6:
      return primes[upTo(std::size(primes)) - 1];
    case 7:
    case 8:
    case 9:
    case 10:
    case 11:
      return std::max<int64_t>(tile * upTo(4) + upTo(3) - 2, 0);
    default:
      return upTo(70);
    }
  }

  std::mt19937_64 random;
};

#endif // FTUNER_TEST_UNIT_SCHEDULE_GRIDCASES_H
