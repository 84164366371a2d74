//===- MmaLayout.h - Warp and shared memory layout of mma -------*- C++ -*-===//
//
// How one block of the mma path computes a tile of out[m, n] += lhs · rhs with
// the tensor cores, free of IR; the model and the emitter both read it here.
//
// Warps. A block has warpsM × warpsN warps; each owns a warp tile of 16·i × 8·j
// elements, which instructions of 16 rows, 8 columns and 32 bytes along k cover
// (or two or four smaller ones each, where the device has no others). Rows of
// instructions are rows of the output, or, with swapped operands, its columns:
// then instructions compute the transposed product, rhsᵀ · lhsᵀ. Warps are
// numbered row by row of the instructions.
//
// Batches. A block may compute several elements of batch axes (BatchTile.h):
// as many groups of such warps, one behind the other, have one each.
//
// Fragments. An instruction's operands are 8 × 8 matrices of 16 bits, or rows
// of 16 bytes: two along k and two along the space axis of what feeds its rows,
// two along k of what feeds its columns.
// `ldmatrix` loads four of them, the rows of matrix i from the addresses that
// lanes 8i … 8i + 7 give. An operand of 16 bits that is contiguous along its
// space axis is loaded transposed; one of 32 bits is loaded element by element
// (ldmatrix transposes 16 bits alone).
//
// Bytes. Those that are contiguous along their space axis are transposed in two
// steps. ldmatrix transposes pairs of them: of 8 rows along k with 16 bytes
// each lane 4g + q gets the bytes 2g and 2g + 1 of rows 2q and 2q + 1. Two byte
// permutations (prmt) of the registers of two matrices make of these the byte
// 2g of four rows and the byte 2g + 1 of the same rows. Pairs of rows alternate
// between the two matrices (SharedTile.h), so that the four are neighbours
// along k, as in the other factor. Of 16 elements along the space axis the even
// ones are thus the first 8 rows, or columns, of instructions, and the odd ones
// the next 8, until the epilogue puts them in order. To transpose on the way to
// shared memory would take as many permutations where two warps read a tile,
// but copies could not bypass registers.
//
// Shared memory. Tiles are kept as they lie in global memory, [space][bk] or
// [bk][space], in chunks of 16 bytes, without padding. Eight consecutive rows
// are read at once at one chunk; they lie in different banks since chunks are
// swizzled (SharedTile.h): with C chunks in a row, s = the largest power of two
// up to 8 that divides C patterns, each for 8 / s neighbouring rows. Those rows
// begin in different groups of s chunks of 128 bytes, and the patterns permute
// chunks within these groups. Tiles that are loaded element by element are
// padded instead: 4 rows of 8 elements lie in different banks since rows are 8
// or 24 banks apart modulo 32.
//
// Sums of a warp lie in fragments as FragmentTile.h has them.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_CODEGEN_MMA_MMALAYOUT_H
#define FTUNER_CODEGEN_MMA_MMALAYOUT_H

#include "FTuner/Codegen/BatchTile.h"
#include "FTuner/Codegen/FragmentTile.h"
#include "FTuner/Codegen/Mma/MmaSchedule.h"
#include "FTuner/Codegen/SharedTile.h"
#include "FTuner/Workload/Workload.h"
#include <algorithm>

namespace ftuner {

/// Bytes that swizzles keep together: a row of a matrix that ldmatrix loads.
constexpr int64_t kMmaChunkBytes = 16;
/// Bytes along k of a fragment: two matrices.
constexpr int64_t kMmaFragmentBytes = 2 * kMmaChunkBytes;

/// What feeds the rows, or the columns, of instructions.
struct MmaSide {
  /// Lhs (0) or rhs (1): they lie along m or n.
  unsigned factor;
  /// The factor in shared memory.
  SharedTile tile;
  /// Elements of a block along the axis, its warps, and elements of a fragment.
  int64_t extent, warps, fragment;

  /// Elements of a warp, and its fragments.
  int64_t warpExtent() const { return extent / warps; }
  int64_t fragments() const { return warpExtent() / fragment; }
};

struct MmaLayout {
  /// m and n, or, with swapped operands, n and m. All that differs between
  /// these lies here, but for the order of elements in the epilogue.
  MmaSide rows, columns;
  int64_t bk, stages;
  /// Of the factors in shared memory.
  int64_t elementBytes;
  /// Groups of warps, and the elements that they have.
  int64_t groups = 1;
  BatchTile batch = {};

  /// The tile of lhs (0) or rhs (1).
  const SharedTile &tileOf(unsigned factor) const {
    return rows.factor == factor ? rows.tile : columns.tile;
  }
  const SharedTile &lhs() const { return tileOf(0); }
  const SharedTile &rhs() const { return tileOf(1); }
  bool isSwapped() const { return rows.factor == 1; }
  int64_t warpsOfGroup() const { return rows.warps * columns.warps; }
  int64_t warps() const { return groups * warpsOfGroup(); }
  int64_t threads() const { return 32 * warps(); }
  /// Reduce elements of a fragment, and fragments of a step.
  int64_t fragmentDepth() const { return kMmaFragmentBytes / elementBytes; }
  int64_t fragmentsOfStep() const { return bk / fragmentDepth(); }
  /// Whether fragments of a tile come by ldmatrix, or else element by element.
  bool loadsMatrices(const SharedTile &tile) const {
    return tile.reduceContiguous || elementBytes <= 2;
  }
  /// Whether fragments of a tile are transposed byte by byte: of 16 elements
  /// along the space axis the even ones come first.
  bool transposesBytes(const SharedTile &tile) const {
    return !tile.reduceContiguous && elementBytes == 1;
  }
  /// Vectors of a factor that a thread copies in a step.
  int64_t copySlots(unsigned factor, int64_t vectorWidth) const {
    return tileOf(factor).copySlots(threads(), vectorWidth);
  }
  /// Accumulators of a lane.
  int64_t accumulators() const { return warpTile().accumulators(); }
  /// Bytes of all stages of a tile.
  int64_t bytesOf(const SharedTile &tile) const {
    return stages * tile.elements() * elementBytes;
  }
  /// A warp's tile of the output.
  FragmentTile warpTile() const {
    FragmentTile warp;
    warp.rows = rows.fragments();
    warp.columns = columns.fragments();
    warp.isSwapped = isSwapped();
    warp.hasEvenRowsFirst = transposesBytes(lhs());
    warp.hasEvenColumnsFirst = transposesBytes(rhs());
    return warp;
  }
  /// Staging tiles take the place of the stages.
  int64_t sharedMemoryBytes() const {
    return std::max(bytesOf(lhs()) + bytesOf(rhs()),
                    warps() * warpTile().stagingBytes());
  }
};

/// The layout of a block tile for a workload that the path supports.
MmaLayout mmaLayout(const Workload &workload, const BlockTile &tile,
                    const MmaSchedule &schedule);

/// Fragments of instructions' columns that a warp has a multiple of: bytes of
/// two are transposed together.
int64_t mmaColumnStep(const Workload &workload, const MmaSchedule &schedule);

/// Where a lane's row of a matrix lies in a tile: the row at lane's offset in
/// matrices of 8 rows, and the chunk of 16 bytes within the row.
template <typename Math>
struct MatrixRow {
  typename Math::Index row, chunk;
};

/// The row that a lane gives to ldmatrix for a fragment of instructions' rows
/// (two matrices along the space axis and two along k, or, of bytes that are
/// transposed, four along k) whose first row or chunk is 0.
template <typename Math>
MatrixRow<Math> rowsMatrixRow(Math &math, const MmaLayout &layout,
                              typename Math::Index lane) {
  if (layout.transposesBytes(layout.rows.tile))
    return {lane, math.constant(0)};
  if (layout.rows.tile.reduceContiguous)
    return {math.rem(lane, 16), math.div(lane, 16)};
  // Rows are along k; the second and fourth matrix are 8 further along
  // the space axis.
  return {math.add(math.mul(math.div(lane, 16), 8), math.rem(lane, 8)),
          math.rem(math.div(lane, 8), 2)};
}

/// The same for two neighbouring fragments of instructions' columns (two
/// matrices along k each).
template <typename Math>
MatrixRow<Math> columnsMatrixRow(Math &math, const MmaLayout &layout,
                                 typename Math::Index lane) {
  if (layout.transposesBytes(layout.columns.tile))
    return {lane, math.constant(0)};
  if (layout.columns.tile.reduceContiguous)
    return {math.add(math.mul(math.div(lane, 16), 8), math.rem(lane, 8)),
            math.rem(math.div(lane, 8), 2)};
  return {math.rem(lane, 16), math.div(lane, 16)};
}

/// The element of a fragment of four-byte elements that a lane holds in its
/// first register: along k and along the space axis. Of instructions' rows
/// every second register is 8 elements further; the second half of the
/// registers is four elements further along k.
template <typename Math>
struct LaneElement {
  typename Math::Index reduce, space;
};

template <typename Math>
LaneElement<Math> laneElement(Math &math, typename Math::Index lane) {
  return {math.rem(lane, 4), math.div(lane, 4)};
}

} // namespace ftuner

#endif // FTUNER_CODEGEN_MMA_MMALAYOUT_H
