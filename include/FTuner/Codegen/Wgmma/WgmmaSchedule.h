//===- WgmmaSchedule.h - The schedule of the wgmma path ---------*- C++ -*-===//
#ifndef FTUNER_CODEGEN_WGMMA_WGMMASCHEDULE_H
#define FTUNER_CODEGEN_WGMMA_WGMMASCHEDULE_H

#include "FTuner/Codegen/TensorFactors.h"
#include "FTuner/Schedule/KernelFamily.h"

namespace ftuner {

/// The model of the path.
const CodegenModel &wgmmaModel();

/// Rows of an instruction, and what its columns are a multiple of.
constexpr int64_t kWgmmaRows = 64, kWgmmaColumns = 8;
/// Warps of a group, which execute instructions together.
constexpr int64_t kWgmmaWarps = 4;
/// Most blocks of a cluster.
constexpr int64_t kWgmmaMaxCluster = 2;
/// Most sets of groups that take turns on tiles.
constexpr int64_t kWgmmaMaxTurns = 2;

/// What the fields of a schedule mean to the wgmma path. A group of four warps
/// computes bm / groupsM rows and bn / groupsN columns of what its block has of
/// a tile.
struct WgmmaSchedule {
  /// Groups along m and n that compute a tile together.
  int64_t groupsM = 1, groupsN = 1;
  /// Pipeline stages of the copies into shared memory.
  int64_t stages = 4;
  /// TensorFactors.h.
  int64_t accessBytes = 16;
  /// Instructions compute the transposed product: the rhs feeds their 64 rows
  /// and the lhs their columns, so that m goes in eights and n in 64s.
  bool swapOperands = false;
  /// Groups of a block, 0 or 1, beside those that multiply: they copy the
  /// operands, and do nothing else.
  int64_t producers = 0;
  /// One thread copies boxes by tensor maps (TensorMap.h) in place of all
  /// threads, or all producers, single accesses. Accesses are of 16 bytes then,
  /// which is what maps align rows to.
  bool tensorMaps = false;
  /// Blocks of a cluster along m and n, 1 or 2 together. They share a tile, and
  /// each copies its share of the factor that both need into the shared memory
  /// of both.
  int64_t clusterM = 1, clusterN = 1;
  /// Blocks of a launch at most, which take one tile after the other; 0: each
  /// block has one. Copies for the next tile go on behind the epilogue of the
  /// one before.
  int64_t persistentBlocks = 0;
  /// Sets of groups of a persistent block, 1 or 2. Two take turns on tiles: one
  /// multiplies while the other stores.
  int64_t turns = 1;

  /// Reads a schedule of the path.
  static WgmmaSchedule of(const Schedule &schedule);
  Schedule pack() const;

  int64_t clusterBlocks() const { return clusterM * clusterN; }
  /// Along m (0) or n (1), the space axis of lhs (0) or rhs (1).
  int64_t clusterAlong(unsigned factor) const {
    return factor == 0 ? clusterM : clusterN;
  }
  /// Groups of a set, and all that multiply.
  int64_t groups() const { return groupsM * groupsN; }
  int64_t multiplyingGroups() const { return turns * groups(); }
  /// Of a block.
  int64_t threads() const {
    return 32 * kWgmmaWarps * (multiplyingGroups() + producers);
  }
  /// What feeds the rows of instructions, lhs (0) or rhs (1): they lie along
  /// its space axis.
  unsigned rowFactor() const { return swapOperands ? 1 : 0; }
  unsigned columnFactor() const { return 1 - rowFactor(); }
  /// Of m (0) or n (1): groups of a block along it, and the granule of a
  /// group's elements.
  int64_t groupsAlong(unsigned factor) const {
    return factor == 0 ? groupsM : groupsN;
  }
  int64_t granuleAlong(unsigned factor) const {
    return factor == rowFactor() ? kWgmmaRows : kWgmmaColumns;
  }
  /// Of what a tile along m (0) or n (1) is a multiple.
  int64_t tileGranuleAlong(unsigned factor) const {
    return clusterAlong(factor) * groupsAlong(factor) * granuleAlong(factor);
  }
};

/// A family of the wgmma path with one or two tiles: `rows` and `columns` are
/// the elements of a group along m and n, one number of rows for each part,
/// ascending. Axes beyond m, n and k have tile 1.
KernelFamily wgmmaFamily(const WgmmaSchedule &schedule,
                         llvm::ArrayRef<int64_t> rows, int64_t columns,
                         int64_t depth, unsigned numAxes = 3);

} // namespace ftuner

#endif // FTUNER_CODEGEN_WGMMA_WGMMASCHEDULE_H
