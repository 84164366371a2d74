//===- Grid.h - Mapping of blocks to tiles ----------------------*- C++ -*-===//
//
// A launch is a row of blocks, and each block computes one tile of the space
// axes in one split-K slice of the reduce axis. From the outside in, blocks are
// counted by
//
//   tile along the batch axes, the last axis fastest, one with two heights
//   slowest
//     split-K slice
//       tile of m and n: groups of `swizzleRows` rows of tiles one after the
//       other, in a group column by column
//
// so that with groups of one row the tiles are counted row by row and
// neighbours share rows of the lhs. Groups of more rows keep the columns of the
// rhs that their blocks read in the L2 cache as well (CUTLASS's swizzle of
// thread blocks, Triton's GROUP_M); the last group may have fewer rows.
//
// E.g. 70 × 100 elements in tiles of 32 × 64 are 3 × 2 tiles. Blocks 0 to 5
// compute the tiles
//
//   (0,0) (0,1) (1,0) (1,1) (2,0) (2,1)    row by row
//   (0,0) (1,0) (0,1) (1,1) (2,0) (2,1)    in groups of two rows
//
// Each tile of each slice and batch has one block. All levels but the groups
// are digits of a mixed radix, since every batch and every slice has equally
// many tiles. With R rows and C columns of tiles and groups of G rows, group g
// has r = min(G, R − g·G) rows, more than 0 for the ⌈R/G⌉ groups that there
// are. Only the last is short, so group g begins with block g·G·C, and within
// it block i ↦ (i mod r, ⌊i/r⌋) maps the r·C blocks to its r·C tiles one to
// one.
//
// Some kernels run in clusters: neighbouring blocks, which share a tile in
// equal parts along rows or columns. Tiles are those of clusters then, all
// counts of tiles are counts of clusters, and a launch has as many blocks for
// each tile as a cluster has.
//
// The blocks of some kernels are persistent: a launch has as many as run at
// once, and block b takes the tiles b, b + blocks, b + 2 · blocks and so on.
//
// Along the combine axis tiles have one or two heights (Partition.h).
// The host counts the blocks (`launchOf`); a block knows the extents, the
// number of blocks of the first part and of the launch, and finds its tile
// (`positionOf`, `isInFirstPart`, `offsetsOf`, `reduceRangeOf`). What it does
// not know, the number of tiles along a combine axis of two heights, follows
// from the number of blocks.
//
// Split-K slices are whole k iterations, so that they begin where k iterations
// without split-K begin (aligned as the operand is), and of equal length but
// for the last ones, which may be short or empty. A block of an empty slice
// still has its sum to write: nothing.
//
// All formulas are templates over a Math (Arithmetic.h): extents, positions and
// counts are its Index. Axes are numbered as in Workload.
//
// Rejected: a grid of two or three dimensions (y and z reach 65535 blocks only,
// and parts of different lengths do not fit in a rectangle); slices of equal
// elements instead of equal k iterations (unaligned).
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_SCHEDULE_GRID_H
#define FTUNER_SCHEDULE_GRID_H

#include "FTuner/Schedule/Partition.h"
#include "FTuner/Workload/Workload.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

namespace ftuner {

/// All that the mapping of blocks to tiles asks of a kernel.
struct Grid {
  /// Elements of a tile along each axis; along the combine axis, those of the
  /// first part.
  llvm::SmallVector<int64_t, 5> tile;
  /// Axis along which two parts lie, a space axis; meaningful also with one
  /// part.
  unsigned combineAxis = 0;
  /// A bit for each axis that blocks step through, and have no tiles along.
  uint32_t reduceAxes = 0;
  /// Elements of a tile of the second part along the combine axis, more than
  /// those of the first; 0 with one part.
  int64_t secondHeight = 0;
  /// SMs over which two parts balance the blocks; 0 for exact partitions.
  int64_t balancedSms = 0;
  /// Slices of the reduce axis that different blocks sum.
  int64_t reduceSplit = 1;
  /// Rows of tiles whose blocks are neighbours; 1: blocks go row by row.
  int64_t swizzleRows = 1;
  /// Blocks that share a tile, and the axis along which they do.
  int64_t clusterBlocks = 1;
  unsigned clusterAxis = 0;
  /// Blocks of a launch at most, which take one tile after the other; 0: as
  /// many as there are tiles.
  int64_t persistentBlocks = 0;

  bool isReduceAxis(unsigned axis) const { return reduceAxes >> axis & 1; }
  /// The space axis of that number, if there are so many: rows are counted
  /// along the first, columns along the second, further ones are batch axes. Of
  /// a contraction these are m and n.
  std::optional<unsigned> spaceAxis(unsigned number) const {
    for (unsigned axis = 0; axis < tile.size(); ++axis)
      if (!isReduceAxis(axis) && number-- == 0)
        return axis;
    return std::nullopt;
  }
  unsigned rowAxis() const { return *spaceAxis(0); }
  std::optional<unsigned> columnAxis() const { return spaceAxis(1); }
  std::optional<unsigned> batchAxis(unsigned number) const {
    return spaceAxis(2 + number);
  }
  /// Number of a batch axis among these; nothing for other axes.
  std::optional<unsigned> batchNumber(unsigned axis) const {
    for (unsigned number = 0; std::optional<unsigned> batch = batchAxis(number);
         ++number)
      if (*batch == axis)
        return number;
    return std::nullopt;
  }
  /// The axis that split-K divides: the first reduce axis; without one the
  /// number of axes.
  unsigned reduceAxis() const {
    unsigned axis = 0;
    while (axis < tile.size() && !isReduceAxis(axis))
      ++axis;
    return axis;
  }
  /// How the combine axis is covered.
  PartitionRule partition() const {
    return {tile[combineAxis], secondHeight, balancedSms};
  }
  /// Returns whether two heights cover the axis.
  bool isPairAlong(unsigned axis) const {
    return axis == combineAxis && secondHeight != 0;
  }
};

//===----------------------------------------------------------------------===//
// Counting
//===----------------------------------------------------------------------===//

/// Blocks for each tile along the combine axis: of all other space axes and
/// slices.
template <typename Math>
typename Math::Index
blocksBeside(Math &math, const Grid &grid,
             llvm::ArrayRef<typename Math::Index> extents) {
  auto blocks = math.constant(grid.reduceSplit * grid.clusterBlocks);
  for (unsigned axis = 0; axis < extents.size(); ++axis)
    if (axis != grid.combineAxis && !grid.isReduceAxis(axis))
      blocks = math.mul(blocks, ceilDiv(math, extents[axis], grid.tile[axis]));
  return blocks;
}

template <typename Math>
struct GridLaunch {
  /// Tiles of the first part along the combine axis, and blocks of the launch.
  typename Math::Index firstBlocks, blocks;
};

/// Returns the launch of a shape, which the host computes. Without a row, a
/// column or a batch there are no blocks.
template <typename Math>
GridLaunch<Math> launchOf(Math &math, const Grid &grid,
                          llvm::ArrayRef<typename Math::Index> extents) {
  auto beside = blocksBeside(math, grid, extents);
  PartitionOf<Math> partition =
      partitionOf(math, grid.partition(), extents[grid.combineAxis], beside);
  auto blocks = math.mul(partition.blocks, beside);
  if (grid.persistentBlocks != 0)
    blocks = minimum(math, blocks, math.constant(grid.persistentBlocks));
  return {partition.first, blocks};
}

/// Tiles of a launch, by the number of those of the first part along the
/// combine axis, which matters only to two parts: what `partitionOf` has of the
/// second covers the rest, and one less would not.
template <typename Math>
typename Math::Index tilesOf(Math &math, const Grid &grid,
                             llvm::ArrayRef<typename Math::Index> extents,
                             typename Math::Index firstTiles) {
  auto extent = extents[grid.combineAxis];
  auto along = ceilDiv(math, extent, grid.tile[grid.combineAxis]);
  if (grid.secondHeight != 0) {
    auto inFirst = math.mul(firstTiles, grid.tile[grid.combineAxis]);
    auto rest = math.sub(extent, minimum(math, inFirst, extent));
    along = math.add(firstTiles, ceilDiv(math, rest, grid.secondHeight));
  }
  auto beside = blocksBeside(math, grid, extents);
  if (grid.clusterBlocks != 1)
    beside = math.div(beside, grid.clusterBlocks);
  return math.mul(along, beside);
}

/// Elements of a split-K slice but for the last ones: as few whole
/// reduce tiles as reach the extent.
template <typename Math>
typename Math::Index sliceLength(Math &math, const Grid &grid,
                                 typename Math::Index reduceExtent) {
  int64_t tile = grid.tile[grid.reduceAxis()];
  auto steps = ceilDiv(math, reduceExtent, tile * grid.reduceSplit);
  return math.mul(steps, tile);
}

//===----------------------------------------------------------------------===//
// The tile of a block
//===----------------------------------------------------------------------===//

/// Position of a tile: its slice, its batch and its coordinates.
template <typename Math>
struct TilePosition {
  using Index = typename Math::Index;
  /// Number of the tile along m and along n.
  Index row, column;
  /// Number of the split-K slice; nothing without split-K.
  std::optional<Index> slice;
  /// Number of the tile along each batch axis; nothing where there is known to
  /// be one.
  llvm::SmallVector<std::optional<Index>, 3> batch;
  /// Number of the block in its cluster; nothing without clusters.
  std::optional<Index> rank;

  /// Number of the tile along a space axis.
  Index along(Math &math, const Grid &grid, unsigned axis) const {
    if (std::optional<unsigned> number = grid.batchNumber(axis))
      return batch[*number] ? *batch[*number] : math.constant(0);
    return axis == grid.rowAxis() ? row : column;
  }
};

/// Tiles of one slice and batch of a grid without pairs along rows or columns.
template <typename Math>
typename Math::Index
tilesOfPlane(Math &math, const Grid &grid,
             llvm::ArrayRef<typename Math::Index> extents) {
  unsigned rowAxis = grid.rowAxis();
  auto tiles = ceilDiv(math, extents[rowAxis], grid.tile[rowAxis]);
  if (std::optional<unsigned> axis = grid.columnAxis()) {
    auto columns = ceilDiv(math, extents[*axis], grid.tile[*axis]);
    tiles = math.mul(tiles, columns);
  }
  return tiles;
}

/// Row and column of a tile, by its number in its slice and batch. `tiles`
/// gives how many these have.
template <typename Math>
void placeTile(Math &math, const Grid &grid,
               llvm::ArrayRef<typename Math::Index> extents,
               typename Math::Index number,
               llvm::function_ref<typename Math::Index()> tiles,
               TilePosition<Math> &position) {
  std::optional<unsigned> columnAxis = grid.columnAxis();
  if (!columnAxis) {
    position.row = number;
    position.column = math.constant(0);
    return;
  }
  unsigned rowAxis = grid.rowAxis();
  // Of the axis with two heights only the other one's tiles can be counted.
  auto count = [&](unsigned axis) {
    if (!grid.isPairAlong(axis))
      return ceilDiv(math, extents[axis], grid.tile[axis]);
    unsigned other = axis == rowAxis ? *columnAxis : rowAxis;
    auto all = tiles();
    return math.div(all, ceilDiv(math, extents[other], grid.tile[other]));
  };
  auto columns = count(*columnAxis);
  if (grid.swizzleRows == 1) {
    position.row = math.div(number, columns);
    position.column = math.rem(number, columns);
    return;
  }
  auto rows = count(rowAxis);
  auto groupTiles = math.mul(columns, grid.swizzleRows);
  auto firstRow = math.mul(math.div(number, groupTiles), grid.swizzleRows);
  auto inGroup = math.rem(number, groupTiles);
  auto swizzleRows =
      minimum(math, math.sub(rows, firstRow), math.constant(grid.swizzleRows));
  position.row = math.add(firstRow, math.rem(inGroup, swizzleRows));
  position.column = math.div(inGroup, swizzleRows);
}

/// A tile, by its number. `tilesOfLaunch` gives how many the launch has.
template <typename Math>
TilePosition<Math>
positionOfTile(Math &math, const Grid &grid,
               llvm::ArrayRef<typename Math::Index> extents,
               typename Math::Index tile,
               llvm::function_ref<typename Math::Index()> tilesOfLaunch) {
  using Index = typename Math::Index;
  TilePosition<Math> position;
  // Tiles along the batch axes. Of one with two heights they are not counted:
  // it comes last, and what the others leave is its position.
  llvm::SmallVector<Index, 3> batches;
  std::optional<unsigned> pair;
  while (std::optional<unsigned> axis = grid.batchAxis(batches.size())) {
    if (grid.isPairAlong(*axis))
      pair = batches.size();
    batches.push_back(grid.tile[*axis] == 1 || pair == batches.size()
                          ? extents[*axis]
                          : ceilDiv(math, extents[*axis], grid.tile[*axis]));
  }
  position.batch.resize(batches.size());

  // What is counted around the tiles, the fastest first: its extent and where
  // its position goes.
  llvm::SmallVector<std::pair<Index, std::optional<Index> *>, 4> outer;
  if (grid.reduceSplit != 1)
    outer.push_back({math.constant(grid.reduceSplit), &position.slice});
  for (size_t axis = batches.size(); axis-- > 0;)
    if (math.known(batches[axis]) != 1 && axis != pair)
      outer.push_back({batches[axis], &position.batch[axis]});
  if (pair)
    outer.push_back({math.constant(0), &position.batch[*pair]});
  if (outer.empty()) {
    placeTile<Math>(math, grid, extents, tile, tilesOfLaunch, position);
    return position;
  }

  Index tiles = [&] {
    if (pair)
      return tilesOfPlane(math, grid, extents);
    Index problems = outer.back().first;
    for (size_t level = outer.size() - 1; level-- > 0;)
      problems = math.mul(problems, outer[level].first);
    return Index(math.div(tilesOfLaunch(), problems));
  }();
  Index problem = math.div(tile, tiles);
  Index number = math.rem(tile, tiles);
  for (auto &[extent, digit] : llvm::ArrayRef(outer).drop_back()) {
    *digit = math.rem(problem, extent);
    problem = math.div(problem, extent);
  }
  *outer.back().second = problem;
  placeTile<Math>(math, grid, extents, number, [&] { return tiles; }, position);
  return position;
}

/// The first, or only, tile of a block, by the block's number. `blocks` gives
/// how many the launch has, each with a tile of its own.
template <typename Math>
TilePosition<Math>
positionOf(Math &math, const Grid &grid,
           llvm::ArrayRef<typename Math::Index> extents,
           typename Math::Index block,
           llvm::function_ref<typename Math::Index()> blocks) {
  if (grid.clusterBlocks == 1)
    return positionOfTile(math, grid, extents, block, blocks);
  TilePosition<Math> position = positionOfTile<Math>(
      math, grid, extents, math.div(block, grid.clusterBlocks),
      [&] { return math.div(blocks(), grid.clusterBlocks); });
  position.rank = math.rem(block, grid.clusterBlocks);
  return position;
}

/// Returns whether the tile belongs to the first of two parts, which has
/// `firstBlocks` tiles along the combine axis.
template <typename Math>
typename Math::Condition isInFirstPart(Math &math, const Grid &grid,
                                       const TilePosition<Math> &position,
                                       typename Math::Index firstBlocks) {
  return math.less(position.along(math, grid, grid.combineAxis), firstBlocks);
}

/// First element of a block along a space axis: in a tile of the first part,
/// or, with that part's `firstBlocks`, of the second, which starts where the
/// first ends.
template <typename Math>
typename Math::Index
offsetAlong(Math &math, const Grid &grid, const TilePosition<Math> &position,
            std::optional<typename Math::Index> firstBlocks, unsigned axis) {
  auto number = position.along(math, grid, axis);
  bool isSecond = axis == grid.combineAxis && firstBlocks;
  int64_t tile = isSecond ? grid.secondHeight : grid.tile[axis];
  auto first = isSecond ? math.sub(number, *firstBlocks) : number;
  first = math.mul(first, tile);
  if (isSecond)
    first = math.add(math.mul(*firstBlocks, grid.tile[axis]), first);
  if (position.rank && axis == grid.clusterAxis)
    first =
        math.add(first, math.mul(*position.rank, tile / grid.clusterBlocks));
  return first;
}

/// First row and column of a block's tile, or of its part of the cluster's.
template <typename Math>
struct TileOffsets {
  typename Math::Index row, column;
};

template <typename Math>
TileOffsets<Math> offsetsOf(Math &math, const Grid &grid,
                            const TilePosition<Math> &position,
                            std::optional<typename Math::Index> firstBlocks) {
  std::optional<unsigned> columnAxis = grid.columnAxis();
  auto column =
      columnAxis ? offsetAlong(math, grid, position, firstBlocks, *columnAxis)
                 : math.constant(0);
  auto row = offsetAlong(math, grid, position, firstBlocks, grid.rowAxis());
  return {row, column};
}

/// Elements of the reduce axis.
template <typename Math>
struct ReduceRange {
  typename Math::Index first, length;
};

/// Returns the range of the reduce axis that a split-K slice sums; empty beyond
/// the extent.
template <typename Math>
ReduceRange<Math> reduceRangeOf(Math &math, const Grid &grid,
                                typename Math::Index slice,
                                typename Math::Index reduceExtent) {
  auto length = sliceLength(math, grid, reduceExtent);
  auto first = minimum(math, math.mul(slice, length), reduceExtent);
  return {first, minimum(math, math.sub(reduceExtent, first), length)};
}

} // namespace ftuner

#endif // FTUNER_SCHEDULE_GRID_H
