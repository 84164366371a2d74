//===- TileCopyWork.h - What copies of tiles execute ------------*- C++ -*-===//
#ifndef FTUNER_CODEGEN_TILECOPYWORK_H
#define FTUNER_CODEGEN_TILECOPYWORK_H

#include "FTuner/Codegen/SharedTile.h"
#include "FTuner/Schedule/BlockWork.h"

namespace ftuner {

/// Adds accesses to the work: to those of the same pattern, if there are any.
/// A shift of all lanes by one number of words changes neither banks that
/// collide nor lines of rows that start at a line, so accesses that differ by
/// one are one entry.
void addAccess(BlockWork &work, WarpAccess::Kind kind, int64_t width,
               const std::array<int64_t, 32> &address, double count);

/// Adds a step's copies of a tile by a block of `threads` threads: loads from
/// global memory and stores to shared memory, of vectors of `vectorWidth`
/// elements. Returns the number of copies, in warp instructions.
double addTileCopies(BlockWork &work, const SharedTile &tile, int64_t threads,
                     int64_t vectorWidth, int64_t elementBytes);

} // namespace ftuner

#endif // FTUNER_CODEGEN_TILECOPYWORK_H
