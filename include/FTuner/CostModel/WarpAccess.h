//===- WarpAccess.h - Cycles of memory accesses of a warp -------*- C++ -*-===//
//
// An access is the word address of each lane and the words that a lane moves.
// Negative addresses are idle lanes.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_COSTMODEL_WARPACCESS_H
#define FTUNER_COSTMODEL_WARPACCESS_H

#include <array>
#include <cstdint>

namespace ftuner {

/// Returns the data cycles of an access of shared memory. Accesses of 2 and 4
/// words per lane are done by half and quarter warps; neighbouring ones
/// together if every lane has the address of its neighbour (lane xor 1). Each
/// of these takes as many cycles as its busiest bank has different words.
int wavefronts(const std::array<int64_t, 32> &address, int64_t width);
/// Like `wavefronts` for lanes whose words lie in different banks: one cycle
/// for each half or quarter of the warp with a lane that is not idle.
int minWavefronts(const std::array<int64_t, 32> &address, int64_t width);
/// Returns the number of different 128-byte lines that a global access touches.
int globalLines(const std::array<int64_t, 32> &address, int64_t width);

} // namespace ftuner

#endif // FTUNER_COSTMODEL_WARPACCESS_H
