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

/// Coordinates of a thread among the layout's gm × gn, and the group of these,
/// along batches or k; nothing where there is one.
template <typename Math>
struct ThreadCoordinates {
  typename Math::Index m, n;
  std::optional<typename Math::Index> batch, slice;
};

template <typename Math>
ThreadCoordinates<Math> threadCoordinates(Math &math, const SimtLayout &layout,
                                          typename Math::Index thread) {
  if (layout.wn == 0)
    return {math.div(thread, layout.gn), math.rem(thread, layout.gn), {}, {}};
  auto warp = math.div(thread, 32);
  auto lane = math.rem(thread, 32);
  int64_t warpsAlongN = layout.gn / layout.wn;
  std::optional<typename Math::Index> group;
  if (layout.groups() > 1) {
    int64_t warpsOfGroup = layout.gm / layout.wm * warpsAlongN;
    group = math.mul(math.div(warp, warpsOfGroup), layout.wg);
    warp = math.rem(warp, warpsOfGroup);
    if (layout.wg > 1) {
      int64_t lanes = layout.wm * layout.wn;
      group = math.add(*group, math.div(lane, lanes));
      lane = math.rem(lane, lanes);
    }
  }
  std::optional<typename Math::Index> none;
  return {math.add(math.mul(math.div(warp, warpsAlongN), layout.wm),
                   math.div(lane, layout.wn)),
          math.add(math.mul(math.rem(warp, warpsAlongN), layout.wn),
                   math.rem(lane, layout.wn)),
          layout.gk > 1 ? none : group, layout.gk > 1 ? group : none};
}

/// Number of the `number`th element of the batch tile that a thread owns.
template <typename Math>
typename Math::Index batchElement(Math &math, const SimtLayout &layout,
                                  const ThreadCoordinates<Math> &thread,
                                  int64_t number) {
  auto element = math.constant(number * layout.gb);
  return thread.batch ? math.add(*thread.batch, element) : element;
}

/// First element in a step of the run along k that a thread multiplies.
template <typename Math>
typename Math::Index firstOfSlice(Math &math, const SimtLayout &layout,
                                  const ThreadCoordinates<Math> &thread) {
  return thread.slice ? math.mul(*thread.slice, layout.sliceDepth())
                      : math.constant(0);
}

/// First of the neighbours that the thread with coordinate `lane` owns.
template <typename Math>
typename Math::Index firstOfChunk(Math &math, const LaneChunk &chunk,
                                  typename Math::Index lane) {
  return math.add(math.mul(lane, chunk.stride), math.constant(chunk.base));
}

/// Where reduce element `reduce`, a multiple of four, lies within a row that
/// belongs to a chunk starting at row `first`: rows of a chunk share a pattern,
/// since chunks start at multiples of their width, up to four, and patterns
/// change at multiples of eight. A pattern is below the swizzle, a power of
/// two, so it changes no higher bit of the number of the quad.
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
