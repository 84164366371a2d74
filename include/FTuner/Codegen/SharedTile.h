//===- SharedTile.h - Tiles of operands in shared memory --------*- C++ -*-===//
//
// How an operand's tile lies in shared memory, and which of its vectors each
// thread copies there: formulas over a `Math` of the operations of IndexMath,
// so that emitters build IR from them and models count with numbers, by one
// text.
//
// Swizzle. A row is a run of chunks that stay together. Chunk c of row r lies
// at c xor ((r / patternRows) mod patterns); patterns is a power of two that
// divides the chunks of a row, so chunks stay within their row.
//
// Panels. Rows may be cut into panels of equal width, which lie one behind the
// other: all rows of the first, then all of the second. What holds of rows in
// shared memory, their distance, their chunks and their swizzle, then holds of
// rows of panels.
//
// Matrices. The tile of an operand that blocks read for several elements of
// batch axes is as many matrices one behind the other. What holds of rows holds
// of those of each matrix.
//
// Alternating pairs. Row 4q + 2h + i of sixteen rows, h and i below 2, lies at
// row 8h + 2q + i of them: of four neighbouring rows the second pair lies eight
// rows behind the first. Vectors are copied in the order of shared memory.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_CODEGEN_SHAREDTILE_H
#define FTUNER_CODEGEN_SHAREDTILE_H

#include "FTuner/Workload/Workload.h"
#include <algorithm>
#include <numeric>
#include <optional>

namespace ftuner {

/// Bytes of a barrier in shared memory (mbarrier).
constexpr int64_t kBarrierBytes = 8;

/// One operand's tile in shared memory. Sizes in elements.
struct SharedTile {
  /// Contiguous along the reduce axis, in global and in shared memory.
  bool reduceContiguous = false;
  int64_t outer = 0; ///< rows of the tile
  int64_t inner = 0; ///< contiguous elements of a row
  int64_t pitch = 0; ///< distance of two rows
  /// Panels of a row, which divide `inner`.
  int64_t panels = 1;
  /// Rows reach beyond the block's tile: panels are whole.
  bool isPadded = false;
  /// Elements of a chunk, which swizzles move as a whole.
  int64_t chunk = 4;
  /// Number of swizzle patterns; 1 means none.
  int64_t swizzle = 1;
  /// Neighbouring rows with one pattern.
  int64_t patternRows = 8;
  /// Pairs of rows lie by turns in the two halves of sixteen, which divide
  /// `outer`.
  bool alternatesPairs = false;
  /// Matrices of the tile, and elements from one to the next beside those of
  /// its rows.
  int64_t matrices = 1, matrixPadding = 0;

  /// Rows of a matrix in shared memory.
  int64_t sharedRows() const { return outer * panels; }
  /// Distance of two matrices.
  int64_t matrixPitch() const { return sharedRows() * pitch + matrixPadding; }
  int64_t elements() const { return matrices * matrixPitch(); }
  /// Vectors of `vectorWidth` elements in a row of shared memory, in a matrix,
  /// and in all.
  int64_t vectorsPerRow(int64_t vectorWidth) const {
    return ceilDiv(inner / panels, vectorWidth);
  }
  int64_t vectorsOfMatrix(int64_t vectorWidth) const {
    return sharedRows() * vectorsPerRow(vectorWidth);
  }
  int64_t vectors(int64_t vectorWidth) const {
    return matrices * vectorsOfMatrix(vectorWidth);
  }
  /// Those that each of `threads` threads copies.
  int64_t copySlots(int64_t threads, int64_t vectorWidth) const {
    return ceilDiv(vectors(vectorWidth), threads);
  }
  /// Rows after which the patterns, and the order of rows, repeat themselves.
  int64_t patternPeriod() const {
    int64_t ofSwizzle = swizzle == 1 ? 1 : patternRows * swizzle;
    return alternatesPairs ? std::max(ofSwizzle, kPairRows) : ofSwizzle;
  }

  /// Rows among which pairs alternate.
  static constexpr int64_t kPairRows = 16;
};

/// IndexMath on numbers. All of a block's fit 32 bits, where division is fast.
struct NumberMath {
  using Index = uint32_t;
  static Index constant(int64_t value) { return value; }
  static Index add(Index lhs, Index rhs) { return lhs + rhs; }
  static Index mul(Index lhs, int64_t rhs) { return lhs * Index(rhs); }
  static Index div(Index lhs, int64_t rhs) { return lhs / Index(rhs); }
  static Index rem(Index lhs, int64_t rhs) { return lhs % Index(rhs); }
  static Index bitXor(Index lhs, Index rhs) { return lhs ^ rhs; }
};

/// The row of the tile that lies at a row of shared memory.
template <typename Math>
typename Math::Index rowAt(Math &math, const SharedTile &tile,
                           typename Math::Index sharedRow) {
  if (!tile.alternatesPairs)
    return sharedRow;
  constexpr int64_t rows = SharedTile::kPairRows, half = rows / 2;
  auto first = math.mul(math.div(sharedRow, rows), rows);
  auto second = math.rem(math.div(sharedRow, half), 2);
  auto pair = math.rem(math.div(sharedRow, 2), half / 2);
  auto inFour = math.add(math.mul(second, 2), math.rem(sharedRow, 2));
  return math.add(first, math.add(math.mul(pair, 4), inFour));
}

/// Swizzle pattern of a row in shared memory, of a tile with more than one.
template <typename Math>
typename Math::Index swizzlePattern(Math &math, const SharedTile &tile,
                                    typename Math::Index row) {
  return math.rem(math.div(row, tile.patternRows), tile.swizzle);
}

/// A vector of the tile that one thread copies.
template <typename Math>
struct CopiedVector {
  /// Row of the tile and element of the row, in global and in shared memory.
  typename Math::Index outer, inner, sharedOuter, sharedInner;
  /// Number of the matrix; nothing where there is one.
  std::optional<typename Math::Index> matrix;
};

/// Whether each slot copies whole rows of one matrix, so that the addresses of
/// a thread's slots differ by constants.
inline bool copiesWholeRows(const SharedTile &tile, int64_t threads,
                            int64_t vectorWidth) {
  return tile.matrices == 1 && threads % tile.vectorsPerRow(vectorWidth) == 0;
}

/// Rows from one to the next slot of a thread, if slots copy whole rows in
/// order.
inline std::optional<int64_t> rowsApart(const SharedTile &tile, int64_t threads,
                                        int64_t vectorWidth) {
  if (tile.panels > 1 || tile.alternatesPairs ||
      !copiesWholeRows(tile, threads, vectorWidth))
    return std::nullopt;
  return threads / tile.vectorsPerRow(vectorWidth);
}

/// Slots of whole rows after which a thread's rows are whole periods of the
/// patterns further, so that places in shared memory are a constant apart.
inline int64_t slotsOfPeriod(const SharedTile &tile, int64_t threads,
                             int64_t vectorWidth) {
  int64_t rows = threads / tile.vectorsPerRow(vectorWidth);
  return tile.patternPeriod() / std::gcd(tile.patternPeriod(), rows);
}

/// Where the vectors of a thread lie in one column of a tile across the reduce
/// axis: rows from each to the next.
inline std::optional<int64_t> rowsOfSlot(const SharedTile &tile,
                                         int64_t threads, int64_t vectorWidth) {
  int64_t rows = threads / tile.vectorsPerRow(vectorWidth);
  bool isInColumn =
      !tile.reduceContiguous && tile.panels == 1 &&
      copiesWholeRows(tile, threads, vectorWidth) &&
      (!tile.alternatesPairs || rows % SharedTile::kPairRows == 0);
  return isInColumn ? std::optional(rows) : std::nullopt;
}

/// Most pointers into global memory that a thread keeps of such vectors.
constexpr int64_t kMostSlotPointers = 8;

/// Of so many such vectors, those that have the pointer of the first of them in
/// common.
inline int64_t slotsOfPointer(int64_t slots) {
  return ceilDiv(slots, kMostSlotPointers);
}

/// The vector that `thread` copies in the slot that starts with vector `first`
/// of the tile, a multiple of `threads`; vectors are counted row by row, as
/// they lie in shared memory.
template <typename Math>
CopiedVector<Math> copiedVector(Math &math, const SharedTile &tile,
                                typename Math::Index thread, int64_t first,
                                int64_t threads, int64_t vectorWidth) {
  int64_t vectorsPerRow = tile.vectorsPerRow(vectorWidth);
  CopiedVector<Math> result;
  if (tile.matrices > 1) {
    int64_t ofMatrix = tile.vectorsOfMatrix(vectorWidth);
    auto linear = math.add(thread, math.constant(first));
    result.matrix = math.div(linear, ofMatrix);
    thread = math.rem(linear, ofMatrix);
    first = 0;
  }
  if (copiesWholeRows(tile, threads, vectorWidth)) {
    result.sharedOuter = math.add(math.div(thread, vectorsPerRow),
                                  math.constant(first / vectorsPerRow));
    result.inner = math.rem(thread, vectorsPerRow);
  } else {
    auto linear = math.add(thread, math.constant(first));
    result.sharedOuter = math.div(linear, vectorsPerRow);
    result.inner = math.rem(linear, vectorsPerRow);
  }
  result.outer = rowAt(math, tile, result.sharedOuter);
  result.inner = math.mul(result.inner, vectorWidth);
  result.sharedInner = result.inner;
  if (tile.panels > 1) {
    auto panel = math.div(result.outer, tile.outer);
    result.outer = math.rem(result.outer, tile.outer);
    result.inner =
        math.add(result.inner, math.mul(panel, tile.inner / tile.panels));
  }
  if (tile.swizzle > 1) {
    auto chunk = math.bitXor(math.div(result.sharedInner, tile.chunk),
                             swizzlePattern(math, tile, result.sharedOuter));
    result.sharedInner = math.add(math.mul(chunk, tile.chunk),
                                  math.rem(result.sharedInner, tile.chunk));
  }
  return result;
}

/// Where the vector lies in shared memory, in elements from the tile's first.
template <typename Math>
typename Math::Index sharedElement(Math &math, const SharedTile &tile,
                                   const CopiedVector<Math> &vector) {
  auto element =
      math.add(math.mul(vector.sharedOuter, tile.pitch), vector.sharedInner);
  if (vector.matrix)
    element = math.add(math.mul(*vector.matrix, tile.matrixPitch()), element);
  return element;
}

} // namespace ftuner

#endif // FTUNER_CODEGEN_SHAREDTILE_H
