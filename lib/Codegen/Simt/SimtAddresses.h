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
  auto quad =
      math.bitXor(swizzlePattern(math, tile, first), math.div(reduce, kQuad));
  return math.mul(quad, kQuad);
}

} // namespace ftuner

#endif // FTUNER_LIB_CODEGEN_SIMT_SIMTADDRESSES_H
