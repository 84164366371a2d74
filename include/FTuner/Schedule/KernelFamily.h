//===- KernelFamily.h - Kernel families and their partitions --------*- C++
//-*-===//
//
// A uKernel is what one thread block computes (paper, section III). Along the
// main axis its height is g·h: g threads with h rows each. Two uKernels with
// the same g and equal tiles on the other axes make a kernel family: one kernel
// with the number of blocks of the first part as a parameter, which covers
// almost every size exactly (FTuner/Schedule/Partition.h).
//
// A family is block tiles and a schedule (Schedule.h). What the schedule makes
// of a tile (threads, tiles in registers, resources) its codegen path says
// (CodegenModel.h); g is the path's granule of heights.
//
// Rejected: a kernel for each size (80 to 116 kernels for 128 sizes); parts of
// different schedules (the paper asks for equal threads and equal tiles on the
// other axes, so g is equal too).
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_SCHEDULE_KERNELFAMILY_H
#define FTUNER_SCHEDULE_KERNELFAMILY_H

#include "FTuner/Schedule/Partition.h"
#include "FTuner/Schedule/Schedule.h"
#include "FTuner/Workload/Contraction.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include <string>

namespace ftuner {

struct Grid;

/// Tile sizes of a thread block along each axis of the workload, in elements;
/// of all blocks of a cluster together where blocks share a tile (Grid.h).
using BlockTile = llvm::SmallVector<int64_t, 5>;

/// Tiles of one block of a family, or of one cluster, at two memory levels
/// (paper, table I): the block's in shared memory, a worker's in registers. A
/// worker is a thread, or a warp of tensor core instructions. Codegen paths
/// derive its tile from the block tile and the schedule.
struct UKernel {
  BlockTile blockTile;
  /// Reduce axes have register tile 1.
  BlockTile registerTile;
  /// Workers of the block, or of the cluster.
  int64_t workers = 1;
  /// Split-K factor: slices of the reduce axis that different blocks sum.
  int64_t reduceSplit = 1;

  /// e.g. "[112,64,16]/[7,4,1]".
  std::string str() const;
};

/// The unit of code: one block tile, or two whose heights on `combineAxis` are
/// g·a and g·b, a < b, in one kernel with one schedule.
struct KernelFamily {
  /// One or two, of ascending heights; equal on the other axes.
  llvm::SmallVector<BlockTile, 2> tiles;
  /// How the codegen path computes the tiles.
  Schedule schedule;
  /// Axis along which the two parts lie; meaningful also with one part.
  unsigned combineAxis = 0;
  /// The workload's reduce axes, a bit for each: blocks step through them.
  /// Those of a product of matrices unless others are set.
  uint32_t reduceAxes = 1u << matmulAxes.k;
  /// Split-K factor: slices of the reduce axis that different blocks sum.
  int64_t reduceSplit = 1;
  /// SMs over which partitions by two parts balance the blocks; 0 for exact
  /// partitions.
  int64_t balancedSms = 0;

  const CodegenModel &path() const { return schedule.path(); }
  bool isReduceAxis(unsigned axis) const { return reduceAxes >> axis & 1; }
  AxisSet reduced() const { return AxisSet::ofMask(reduceAxes); }
  /// Returns the axes of a contraction's family.
  ContractionAxes contractionAxes() const {
    return ContractionAxes::forReduceAxes(reduced());
  }
  /// Rows of a part's blocks: its tile along the combine axis.
  int64_t height(unsigned part) const { return tiles[part][combineAxis]; }
  int64_t lowHeight() const { return tiles.front()[combineAxis]; }
  int64_t highHeight() const { return tiles.back()[combineAxis]; }
  bool operator==(const KernelFamily &other) const {
    return tiles == other.tiles && schedule == other.schedule &&
           combineAxis == other.combineAxis && reduceAxes == other.reduceAxes &&
           reduceSplit == other.reduceSplit && balancedSms == other.balancedSms;
  }
  // What the path derives (CodegenModel.h has the details).
  int64_t threads() const;
  /// Bytes to which every pointer and row must be aligned.
  int64_t alignment() const;
  /// Returns whether the alignment of elements is enough.
  bool takesAnyAlignment() const;
  /// Blocks that share a tile.
  int64_t clusterBlocks() const;
  UKernel ukernel(unsigned part) const;
  /// The path, uKernels, axis and schedule, e.g.
  /// "PATH [112,64,16]/[7,4,1] axis 0 stages 3 vector 4".
  std::string str() const;
};

/// e.g. "[112,64,16]".
std::string tileText(llvm::ArrayRef<int64_t> tile);

/// Checks the rules of all paths for a family and a workload: one or two tiles
/// of as many axes, of ascending heights on a space axis and equal elsewhere;
/// sizes whose products fit in 64 bits; a positive split; balanced partitions
/// only of two tiles.
llvm::Error checkTiles(const Workload &workload, const KernelFamily &family);

/// Returns the facts of the family that the mapping of blocks to tiles (Grid.h)
/// needs.
Grid gridOf(const KernelFamily &family);

/// Covers `extent` of the combine axis with the family, which has
/// `blocksBeside` ≥ 1 blocks for each one along it. A family with one part has
/// all its blocks in `first`.
Partition partitionExtent(const KernelFamily &family, int64_t extent,
                          int64_t blocksBeside);
/// Partitions a shape: the extents of all axes.
Partition partitionShape(const KernelFamily &family,
                         llvm::ArrayRef<int64_t> shape);
/// Blocks of the family for each one along the combine axis, at least 1.
int64_t blocksBeside(const KernelFamily &family, llvm::ArrayRef<int64_t> shape);

/// The family without the part that has no blocks in the partition: families
/// with equal running parts run the same program.
KernelFamily runningParts(const KernelFamily &family,
                          const Partition &partition);

/// A family together with its partition of one shape.
struct Program {
  const KernelFamily *family = nullptr;
  Partition partition;
};

/// Numbers that are equal for two programs of one workload and shape if they
/// run the same blocks: path, tiles and numbers of blocks of the parts that
/// have some, axis, slices, schedule.
llvm::SmallVector<int64_t, 40> programNumbers(const Program &program);

/// Hashes such numbers, with or without a shape behind them.
struct ProgramNumbersHash {
  size_t operator()(const llvm::SmallVector<int64_t, 40> &numbers) const;
};

} // namespace ftuner

#endif // FTUNER_SCHEDULE_KERNELFAMILY_H
