//===- SimtAddresses.h - Who touches what in a block of SIMT ----*- C++ -*-===//
//
// Which elements a thread multiplies and copies, and where they lie in shared
// memory: formulas over a `Math` of the operations of IndexMath, so that the
// emitter builds IR from them and the model counts with numbers, by one text.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_CODEGEN_SIMT_SIMTADDRESSES_H
#define FTUNER_LIB_CODEGEN_SIMT_SIMTADDRESSES_H

#include "FTuner/Codegen/Simt/SimtLayout.h"

namespace ftuner {

/// Reduce elements that a thread reads at once where they are contiguous.
constexpr int64_t kQuad = 4;

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

/// Coordinates of a thread among the layout's gm × gn.
template <typename Math>
struct ThreadCoordinates {
  typename Math::Index m, n;
};

template <typename Math>
ThreadCoordinates<Math> threadCoordinates(Math &math, const SimtLayout &layout,
                                          typename Math::Index thread) {
  if (layout.wn == 0)
    return {math.div(thread, layout.gn), math.rem(thread, layout.gn)};
  auto warp = math.div(thread, 32);
  auto lane = math.rem(thread, 32);
  int64_t warpsAlongN = layout.gn / layout.wn;
  return {math.add(math.mul(math.div(warp, warpsAlongN), layout.wm),
                   math.div(lane, layout.wn)),
          math.add(math.mul(math.rem(warp, warpsAlongN), layout.wn),
                   math.rem(lane, layout.wn))};
}

/// First of the neighbours that the thread with coordinate `lane` owns.
template <typename Math>
typename Math::Index firstOfChunk(Math &math, const LaneChunk &chunk,
                                  typename Math::Index lane) {
  return math.add(math.mul(lane, chunk.width), math.constant(chunk.base));
}

/// Swizzle pattern of a row of a tile with more than one.
template <typename Math>
typename Math::Index swizzlePattern(Math &math, const SharedTile &tile,
                                    typename Math::Index row) {
  return math.rem(math.div(row, 8), tile.swizzle);
}

/// Where reduce element `reduce`, a multiple of four, lies within a row that
/// belongs to a chunk starting at row `first`: rows of a chunk share a pattern,
/// since chunks start at multiples of four and patterns change at multiples of
/// eight. A pattern is below the swizzle, a power of two, so it changes no
/// higher bit of the number of the quad.
template <typename Math>
typename Math::Index reduceElementInRow(Math &math, const SharedTile &tile,
                                        typename Math::Index first,
                                        typename Math::Index reduce) {
  if (tile.swizzle == 1)
    return reduce;
  auto quad = math.bitXor(swizzlePattern(math, tile, first),
                          math.div(reduce, kQuad));
  return math.mul(quad, kQuad);
}

/// A vector of the tile that one thread copies.
template <typename Math>
struct CopiedVector {
  /// Row of the tile, and element of the row in global and in shared memory.
  typename Math::Index outer, inner, sharedInner;
};

/// Whether each slot copies whole rows, so that the addresses of a thread's
/// slots differ by constants.
inline bool copiesWholeRows(const SharedTile &tile, int64_t threads,
                            int64_t vectorWidth) {
  return threads % tile.vectorsPerRow(vectorWidth) == 0;
}

/// The vector that `thread` copies in the slot that starts with vector `first`
/// of the tile, a multiple of `threads`; vectors are counted row by row.
template <typename Math>
CopiedVector<Math> copiedVector(Math &math, const SharedTile &tile,
                                typename Math::Index thread, int64_t first,
                                int64_t threads, int64_t vectorWidth) {
  int64_t vectorsPerRow = tile.vectorsPerRow(vectorWidth);
  CopiedVector<Math> result;
  if (copiesWholeRows(tile, threads, vectorWidth)) {
    result.outer = math.add(math.div(thread, vectorsPerRow),
                            math.constant(first / vectorsPerRow));
    result.inner = math.rem(thread, vectorsPerRow);
  } else {
    auto linear = math.add(thread, math.constant(first));
    result.outer = math.div(linear, vectorsPerRow);
    result.inner = math.rem(linear, vectorsPerRow);
  }
  result.inner = math.mul(result.inner, vectorWidth);
  result.sharedInner = result.inner;
  if (tile.swizzle > 1) {
    auto quad = math.bitXor(math.div(result.inner, 4),
                            swizzlePattern(math, tile, result.outer));
    result.sharedInner = math.add(math.mul(quad, 4), math.rem(result.inner, 4));
  }
  return result;
}

} // namespace ftuner

#endif // FTUNER_LIB_CODEGEN_SIMT_SIMTADDRESSES_H
