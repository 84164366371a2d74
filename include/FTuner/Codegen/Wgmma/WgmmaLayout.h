//===- WgmmaLayout.h - Groups and shared memory of wgmma --------*- C++ -*-===//
//
// How one block of the wgmma path computes a tile of out[m, n] += lhs · rhs
// with the instructions of Hopper's tensor cores, free of IR; the model and the
// emitter both read it here. Formats are those of the PTX ISA, "Asynchronous
// Warpgroup Level Matrix Instructions".
//
// Groups. A block has groupsM × groupsN groups of four warps; each owns 64·i
// rows and 8·j columns, which i instructions of 64 rows, 8·j columns and 32
// bytes along k cover at each depth. Rows of instructions are rows of the
// output, or, with swapped operands, its columns. Warp w of a group has the
// rows 16w … 16w + 15 of each 64: fragments of FragmentTile.h, 64 rows apart.
//
// Shared memory. Instructions read both factors from shared memory, in the
// order of "128-byte swizzle": rows of 128 bytes, in which the chunk c of 16
// bytes of row r lies at c xor (r mod 8). A factor that is contiguous along k
// has a row of 128 bytes of k for each element along its space axis. One that
// is contiguous along that axis, of 16 bits, has rows along k, cut into panels
// of 128 bytes. Patterns begin at multiples of 1024 bytes.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_CODEGEN_WGMMA_WGMMALAYOUT_H
#define FTUNER_CODEGEN_WGMMA_WGMMALAYOUT_H

#include "FTuner/Codegen/FragmentTile.h"
#include "FTuner/Codegen/SharedTile.h"
#include "FTuner/Codegen/Wgmma/WgmmaSchedule.h"

namespace ftuner {

/// Bytes of a row in shared memory, of a step along k, and of an instruction
/// along k.
constexpr int64_t kWgmmaRowBytes = 128, kWgmmaStepBytes = 128,
                  kWgmmaDepthBytes = 32;
/// To which stages are aligned: eight rows, after which the swizzle repeats.
constexpr int64_t kWgmmaPatternBytes = 8 * kWgmmaRowBytes;
/// Most columns of an instruction.
constexpr int64_t kWgmmaMaxColumns = 256;

/// What feeds the rows, or the columns, of instructions.
struct WgmmaSide {
  /// The axis along which they lie, m for the lhs and n for the rhs.
  unsigned axis;
  /// The factor in shared memory.
  SharedTile tile;
  /// Elements of a block along the axis, and its groups.
  int64_t extent, groups;

  int64_t groupExtent() const { return extent / groups; }
};

struct WgmmaLayout {
  /// m and n, or, with swapped operands, n and m.
  WgmmaSide rows, columns;
  int64_t bk, stages;
  /// Of the factors in shared memory.
  int64_t elementBytes;

  const WgmmaSide &along(unsigned axis) const {
    return rows.axis == axis ? rows : columns;
  }
  const SharedTile &lhs() const { return along(Workload::kM).tile; }
  const SharedTile &rhs() const { return along(Workload::kN).tile; }
  /// The tile of lhs (0) or rhs (1).
  const SharedTile &tileOf(unsigned factor) const {
    return factor == 0 ? lhs() : rhs();
  }
  bool isSwapped() const { return rows.axis == Workload::kN; }
  int64_t groups() const { return rows.groups * columns.groups; }
  int64_t warps() const { return kWgmmaWarps * groups(); }
  int64_t threads() const { return 32 * warps(); }
  /// Instructions of a group at one depth, depths of a step.
  int64_t instructions() const { return rows.groupExtent() / kWgmmaRows; }
  int64_t depths() const { return bk * elementBytes / kWgmmaDepthBytes; }

  /// A warp's tile of the output.
  FragmentTile warpTile() const {
    FragmentTile warp;
    warp.rows = instructions();
    warp.columns = columns.groupExtent() / FragmentTile::kColumns;
    warp.rowDistance = kWgmmaRows;
    warp.isSwapped = isSwapped();
    return warp;
  }
  /// Bytes of one stage of a tile, and of all.
  int64_t stageBytes(const SharedTile &tile) const {
    return tile.elements() * elementBytes;
  }
  int64_t bytesOf(const SharedTile &tile) const {
    return stages * stageBytes(tile);
  }
  /// Slabs take the place of the stages.
  int64_t sharedMemoryBytes() const {
    return std::max(bytesOf(lhs()) + bytesOf(rhs()),
                    warps() * warpTile().slabBytes());
  }

  /// Of a matrix descriptor: bytes from eight rows to the next eight, and from
  /// one panel to the next.
  static constexpr int64_t rowStride() { return kWgmmaPatternBytes; }
  int64_t panelStride(const SharedTile &tile) const {
    return tile.outer * kWgmmaRowBytes;
  }
  /// Bytes from the beginning of a tile to that of the matrix from an element
  /// along the space axis on, which begins a pattern, and at a depth.
  int64_t offsetOf(const SharedTile &tile, int64_t space, int64_t depth) const {
    return tile.reduceContiguous
               ? space * kWgmmaRowBytes + depth * kWgmmaDepthBytes
               : space / tile.pitch * panelStride(tile) +
                     depth * kWgmmaDepthBytes / elementBytes * kWgmmaRowBytes;
  }
};

WgmmaLayout wgmmaLayout(bool lhsReduceContiguous, bool rhsReduceContiguous,
                        int64_t elementBytes, const BlockTile &tile,
                        const WgmmaSchedule &schedule);
/// The layout of a block tile for a workload that the path supports.
WgmmaLayout wgmmaLayout(const Workload &workload, const BlockTile &tile,
                        const WgmmaSchedule &schedule);

} // namespace ftuner

#endif // FTUNER_CODEGEN_WGMMA_WGMMALAYOUT_H
