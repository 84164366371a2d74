//===- WgmmaLayout.h - Warpgroups and shared memory of wgmma ----*- C++ -*-===//
//
// How one block of the wgmma path computes a tile of out[m, n] += lhs · rhs
// with the instructions of Hopper's tensor cores, free of IR; the model and the
// emitter both read it here. Formats are those of the PTX ISA, "Asynchronous
// Warpgroup Level Matrix Instructions".
//
// Warpgroups. A tile has warpgroupsM × warpgroupsN warpgroups of four warps;
// each owns 64·i rows and 8·j columns, which i instructions of 64 rows, 8·j
// columns and 32 bytes along k cover at each depth. Rows of instructions are
// rows of the output, or, with swapped operands, its columns. Warp w of a
// warpgroup has the rows 16w … 16w + 15 of each 64: fragments of
// FragmentTile.h, 64 rows apart. In ping-pong schedules a block has two sets of
// consumer warpgroups, which compute tiles in turn: those of set 1 stand behind
// those of set 0.
//
// Shared memory. Instructions read both factors from shared memory, in the
// order of "128-byte swizzle": rows of 128 bytes, in which the chunk c of 16
// bytes of row r lies at c xor (r mod 8). A factor that is contiguous along k
// has a row of 128 bytes of k for each element along its space axis. One that
// is contiguous along that axis, of 16 bits, has rows along k, cut into panels
// of 128 bytes. Patterns begin at multiples of 1024 bytes. A packed factor has
// no swizzle: it lies as in global memory (PackedOrder.h), so that one bulk
// copy brings a stage's part of it.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_CODEGEN_WGMMA_WGMMALAYOUT_H
#define FTUNER_CODEGEN_WGMMA_WGMMALAYOUT_H

#include "FTuner/Codegen/FragmentTile.h"
#include "FTuner/Codegen/SharedTile.h"
#include "FTuner/Codegen/Wgmma/WgmmaSchedule.h"
#include "FTuner/Schedule/TensorMap.h"

namespace ftuner {

/// Bytes of a row in shared memory, of a step along k, and of an instruction
/// along k.
constexpr int64_t kWgmmaRowBytes = 128, kWgmmaStepBytes = 128,
                  kWgmmaDepthBytes = 32;
/// To which stages are aligned: eight rows, after which the swizzle repeats.
constexpr int64_t kWgmmaPatternRows = 8,
                  kWgmmaPatternBytes = kWgmmaPatternRows * kWgmmaRowBytes;
/// Barriers of a stage: full and empty.
constexpr int64_t kBarriersOfStage = 2;
/// Fragments of columns in a staging tile of persistent blocks: their rows fill
/// sectors of the output in any type.
constexpr int64_t kPersistentFragments = 4;
/// Most columns of an instruction.
constexpr int64_t kWgmmaMaxColumns = 256;

/// What feeds the rows, or the columns, of instructions.
struct WgmmaSide {
  /// Lhs (0) or rhs (1): they lie along m or n.
  unsigned factor;
  /// The factor in shared memory.
  SharedTile tile;
  /// Elements of a block along the axis, and its warpgroups.
  int64_t extent, warpgroups;
  /// Whether the factor is packed.
  bool isPacked = false;

  int64_t warpgroupExtent() const { return extent / warpgroups; }
};

struct WgmmaLayout {
  /// m and n, or, with swapped operands, n and m.
  WgmmaSide rows, columns;
  int64_t bk, stages;
  /// Of the factors in shared memory.
  int64_t elementBytes;
  /// Producer warpgroups, and whether the TMA unit copies (WgmmaSchedule.h).
  int64_t producerWarpgroups = 0;
  bool usesTma = false;
  /// Blocks of a cluster along m and n. Those along one axis need the same of
  /// the factor of the other.
  int64_t clusterM = 1, clusterN = 1;
  /// Whether blocks take one tile after the other. Staging tiles lie behind the
  /// stages then, which producers fill behind the epilogue.
  bool isPersistent = false;
  /// Sets of consumer warpgroups: two in ping-pong schedules.
  int64_t consumerSets = 1;
  /// True where boxes are fitted to an operand that is smaller than a tile.
  bool fitsBoxes = false;
  /// How a warp's tile comes to the output (FragmentTile).
  int64_t bulkElementBytes = 0;
  bool storesSums = false;
  /// Bytes from a stage of lhs and rhs to the next, and of a warp's staging
  /// tile with the rows that bulk copies store. A persistent block has tiles of
  /// both parts of a family: those of the part that takes the most.
  int64_t stageStrides[2] = {0, 0}, stagingStride = 0;
  /// Where the barriers of stages lie, and those of ping-pong behind them:
  /// behind stages and staging tiles of all parts.
  int64_t barriersOffset = 0;

  /// The side and the tile of lhs (0) or rhs (1).
  const WgmmaSide &sideOf(unsigned factor) const {
    return rows.factor == factor ? rows : columns;
  }
  const SharedTile &tileOf(unsigned factor) const {
    return sideOf(factor).tile;
  }
  const SharedTile &lhs() const { return tileOf(0); }
  const SharedTile &rhs() const { return tileOf(1); }
  bool isSwapped() const { return rows.factor == 1; }
  int64_t clusterBlocks() const { return clusterM * clusterN; }
  /// Blocks of a cluster that need the same tile of lhs (0) or rhs (1), each of
  /// which copies an equal part.
  int64_t sharersOf(unsigned factor) const {
    return factor == 0 ? clusterN : clusterM;
  }
  /// Warpgroups and warps of a set, which multiply a tile together.
  int64_t warpgroupsOfSet() const {
    return rows.warpgroups * columns.warpgroups;
  }
  int64_t warpsOfSet() const { return kWgmmaWarps * warpgroupsOfSet(); }
  /// Of a block; those of producers come behind.
  int64_t consumerWarps() const { return consumerSets * warpsOfSet(); }
  int64_t consumerThreads() const { return 32 * consumerWarps(); }
  /// Of a block.
  int64_t threads() const {
    return consumerThreads() + 32 * kWgmmaWarps * producerWarpgroups;
  }
  /// Those among which copies are dealt where no map copies.
  int64_t copyingThreads() const {
    return producerWarpgroups ? 32 * kWgmmaWarps * producerWarpgroups
                              : threads();
  }
  /// How a factor comes to shared memory: by boxes of a tensor map, by bulk
  /// copies of what is packed, or by threads. Barriers of stages count the
  /// bytes of the first two.
  bool hasTma(unsigned factor) const {
    return usesTma && !sideOf(factor).isPacked;
  }
  bool hasBulkCopies(unsigned factor) const {
    return hasBarriers() && sideOf(factor).isPacked;
  }
  bool copiesByThreads(unsigned factor) const {
    return !hasTma(factor) && !hasBulkCopies(factor);
  }
  /// Steps that copies by producers' threads run ahead of the one that these
  /// publish. A stage is freed when the products of the next step are under
  /// way, whose copies must have been published until then: two stages fewer
  /// than there are, or three, where that leaves enough under way.
  int64_t copiesAhead() const { return stages - (stages > 4 ? 3 : 2); }
  /// Steps from the start of an asynchronous copy to its use. Where barriers of
  /// the block order them, a stage is refilled two steps behind its use; maps
  /// with producers refill it when the next step's products are under way.
  int64_t stepsAhead() const {
    if (producerWarpgroups == 0)
      return stages - 2;
    return usesTma ? stages - 1 : copiesAhead() + 1;
  }

  /// Rows of shared memory that a block copies of a factor's tile: of each
  /// panel, where panels lie along the space axis.
  int64_t copiedRows(unsigned factor) const {
    return tileOf(factor).outer / sharersOf(factor);
  }
  /// Boxes of a map that a block copies of a factor's tile: rows of 128 bytes,
  /// as many in each. Of a tile along the reduce axis they share the space
  /// axis; of another, panels are boxes. Of a packed factor one bulk copy takes
  /// the place of all boxes.
  int64_t boxesOf(unsigned factor) const {
    const SharedTile &tile = tileOf(factor);
    if (sideOf(factor).isPacked)
      return 1;
    return tile.reduceContiguous ? ceilDiv(copiedRows(factor), kMaxTensorMapBox)
                                 : tile.panels;
  }
  int64_t boxRowsOf(unsigned factor) const {
    int64_t rows = copiedRows(factor);
    return tileOf(factor).reduceContiguous ? rows / boxesOf(factor) : rows;
  }

  /// True where one box can bring all that a block's tile of a factor has of an
  /// operand with fewer rows than the tile: with rows along the space axis, and
  /// no more than a box may have. Of blocks that share the factor the first
  /// one copies it then.
  bool fitsRows(unsigned factor) const {
    return fitsBoxes && hasTma(factor) && tileOf(factor).reduceContiguous &&
           tileOf(factor).outer <= kMaxTensorMapBox;
  }
  /// True where panels that lie outside of an operand are left out.
  bool fitsPanels(unsigned factor) const {
    return fitsBoxes && hasTma(factor) && !tileOf(factor).reduceContiguous;
  }

  /// Instructions of a warpgroup at one depth, depths of a step.
  int64_t instructions() const { return rows.warpgroupExtent() / kWgmmaRows; }
  int64_t depths() const { return bk * elementBytes / kWgmmaDepthBytes; }

  /// A warp's tile of the output.
  FragmentTile warpTile() const {
    FragmentTile warp;
    warp.rows = instructions();
    warp.columns = columns.warpgroupExtent() / FragmentTile::kColumns;
    warp.rowDistance = kWgmmaRows;
    warp.isSwapped = isSwapped();
    if (isPersistent && !warp.isSwapped)
      warp.stagingFragments = std::min(warp.columns, kPersistentFragments);
    warp.bulkElementBytes = bulkElementBytes;
    warp.storesSums = storesSums;
    return warp;
  }
  /// Bytes of one stage of a tile, and of all of lhs (0) or rhs (1).
  int64_t stageBytes(const SharedTile &tile) const {
    return tile.elements() * elementBytes;
  }
  int64_t stagesBytes(unsigned factor) const {
    return stages * stageStrides[factor];
  }
  int64_t stageStride(const WgmmaSide &side) const {
    return stageStrides[side.factor];
  }
  /// Where staging tiles lie: in the place of the stages, or behind them.
  int64_t stagingOffset() const {
    return isPersistent ? stagesBytes(0) + stagesBytes(1) : 0;
  }
  /// Whether barriers of stages order copies and products, rather than those
  /// of the block.
  bool hasBarriers() const { return producerWarpgroups > 0 || usesTma; }
  /// Barriers of a block: of stages, and one of each set in ping-pong.
  int64_t barriers() const {
    return kBarriersOfStage * stages + (consumerSets > 1 ? consumerSets : 0);
  }
  /// Bytes of stages and staging tiles.
  int64_t tileBytes() const {
    return std::max(stagesBytes(0) + stagesBytes(1),
                    stagingOffset() + consumerWarps() * stagingStride);
  }
  int64_t sharedMemoryBytes() const {
    if (!hasBarriers())
      return tileBytes();
    return barriersOffset + kBarrierBytes * barriers();
  }

  /// Of a matrix descriptor: bytes from eight rows to the next eight, and from
  /// one panel to the next. Eight rows of packed factors are as far apart, and
  /// their parts of 16 bytes along k a core matrix.
  static constexpr int64_t rowStride() { return kWgmmaPatternBytes; }
  static constexpr int64_t packedStride() {
    return PackedOrder::kGroup * PackedOrder::kRunBytes;
  }
  int64_t panelStride(const SharedTile &tile) const {
    return tile.outer * kWgmmaRowBytes;
  }
  /// Bytes from the beginning of a tile to that of the matrix from an element
  /// along the space axis on, which begins a pattern, and at a depth.
  int64_t offsetOf(const WgmmaSide &side, int64_t space, int64_t depth) const {
    const SharedTile &tile = side.tile;
    if (side.isPacked)
      return space * kWgmmaRowBytes +
             depth * kWgmmaDepthBytes / PackedOrder::kRunBytes * packedStride();
    return tile.reduceContiguous
               ? space * kWgmmaRowBytes + depth * kWgmmaDepthBytes
               : space / tile.pitch * panelStride(tile) +
                     depth * kWgmmaDepthBytes / elementBytes * kWgmmaRowBytes;
  }
};

/// The layout of a part of a family that stands alone, for a workload that the
/// path supports.
WgmmaLayout wgmmaLayout(const Workload &workload, const BlockTile &tile,
                        const WgmmaSchedule &schedule);
/// The layout of a part among all.
WgmmaLayout wgmmaLayout(const Workload &workload, const KernelFamily &family,
                        unsigned part);

} // namespace ftuner

#endif // FTUNER_CODEGEN_WGMMA_WGMMALAYOUT_H
