//===- SimtLayout.h - Thread and shared memory layout of SIMT ---*- C++ -*-===//
//
// How one block of the SIMT path computes a tile of out[m, n] += lhs · rhs,
// free of IR; the model (resources) and the emitter (addresses) both read it
// here.
//
// Threads. A block has gm × gn threads; thread (tm, tn) owns rm rows and rn
// columns of the tile, so the tile is gm·rm × gn·rn. A warp covers wm × wn
// threads (wm · wn = 32), 4 × 8 where the block allows.
//
// Batches. A block may compute several elements of batch axes (BatchTile.h),
// which gb groups of such threads share equally: group tb owns the elements
// tb, tb + gb, …, rb of them. A warp covers wg groups where one has less than a
// warp.
//
// Slices. gk groups of such threads may share the elements of a step along k:
// group s multiplies the s-th of gk equal runs of them. Behind the main loop
// the groups but the first write their sums to shared memory, and the first one
// adds them up in the order of the groups. A block has several elements of a
// batch or several slices, not both.
//
// Rows and columns of a thread. Along an axis that is contiguous in shared
// memory, a thread owns strips of up to four neighbours, read by one vector
// load; strip c of width w starts at base(c) + t·w (`LaneChunk`). Rows of an
// lhs that is contiguous along the reduce axis are interleaved instead: row i
// of thread tm is i·gm + tm, which keeps lanes of a warp in different banks.
//
// Virtual threads say otherwise: v strips of w = r / v neighbours, strip s from
// s·g·w + t·w on. What one vector load reads of a strip is a chunk: of the
// largest power of two up to four that divides w.
//
// Shared memory holds factors in the accumulator's type, f32 or i32: narrower
// ones are cast on the way there, once for all threads that multiply them, and
// pass through registers in two stages. An operand that is contiguous along its
// space axis is kept as [bk][space tile]; one contiguous along the reduce axis
// as [space tile][bk] with a pitch of an odd number of quads, bk + 4 where bk
// is a multiple of eight, so that rows start in different banks, and, for
// columns, which come in chunks of four, quads of four elements are swizzled:
// quad q of row r lies at q xor ((r / 8) mod s), s the largest power of two up
// to 4 that divides bk / 4. With bk = 16, the eight lanes of a 128-bit phase
// then touch all 32 banks once.
//
// Rejected: a transposing copy through registers, which cp.async cannot do; and
// a pitch alone, which leaves four-way conflicts on chunks of four columns.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_CODEGEN_SIMT_SIMTLAYOUT_H
#define FTUNER_CODEGEN_SIMT_SIMTLAYOUT_H

#include "FTuner/Codegen/BatchTile.h"
#include "FTuner/Codegen/SharedTile.h"
#include "FTuner/Codegen/Simt/SimtSchedule.h"
#include "FTuner/Device/DeviceSpec.h"
#include "FTuner/Workload/Workload.h"
#include "llvm/ADT/SmallVector.h"
#include <algorithm>

namespace ftuner {

/// Neighbours that a thread owns along one axis and reads at once: elements
/// base + t · stride … + width − 1 for the thread coordinate t. All are
/// multiples of the width.
struct LaneChunk {
  int64_t base;
  int64_t width;
  int64_t stride;
};

/// Bytes of an element in shared memory.
constexpr int64_t kSharedElementBytes = 4;

struct SimtLayout {
  int64_t gm, gn, rm, rn, bm, bn, bk;
  int64_t gb = 1, rb = 1;
  int64_t gk = 1;
  int64_t stages;
  /// Elements of a copy of lhs and of rhs.
  int64_t copyWidths[2] = {1, 1};
  /// Strips of a thread along m and n; 0: as many as suit.
  int64_t virtualM = 0, virtualN = 0;
  /// Threads of a warp along m and n, and groups of these, along batches or k;
  /// 0 where a warp is a run of linear threads.
  int64_t wm = 0, wn = 0, wg = 1;
  BatchTile batch;
  SharedTile lhs, rhs;

  /// Threads of a group, groups, and threads.
  int64_t groupThreads() const { return gm * gn; }
  int64_t groups() const { return gb * gk; }
  int64_t threads() const { return groups() * groupThreads(); }
  /// Elements of a step along k that a thread multiplies.
  int64_t sliceDepth() const { return bk / gk; }
  /// Elements of the output whose sums a thread keeps.
  int64_t points() const { return rb * rm * rn; }
  const SharedTile &factor(unsigned number) const {
    return number == 0 ? lhs : rhs;
  }
  /// Elements of one pipeline stage.
  int64_t stageElements() const { return lhs.elements() + rhs.elements(); }
  /// Bytes of the sums of a slice. Those of all slices but the first take the
  /// place of stages in the end.
  int64_t bytesOfSlice() const {
    return kSharedElementBytes * points() * groupThreads();
  }
  int64_t sharedMemoryBytes() const {
    return std::max(kSharedElementBytes * stages * stageElements(),
                    (gk - 1) * bytesOfSlice());
  }

  /// Rows of a thread; interleaved ones are chunks of width 1.
  llvm::SmallVector<LaneChunk> rowChunks() const;
  llvm::SmallVector<LaneChunk> columnChunks() const;
  /// Vectors that a thread copies in a step, of one factor and of both.
  int64_t copySlots(unsigned number) const {
    return factor(number).copySlots(threads(), copyWidths[number]);
  }
  int64_t copySlots() const { return copySlots(0) + copySlots(1); }
  /// Elements of a slice of a step whose products are one run of code; a loop
  /// goes over the runs. Code of more than some 40 KiB does not stay in the
  /// instruction cache of an SM, nor does that of two blocks of different
  /// height if both are long.
  int64_t unrolledDepth(const DeviceSpec &device) const;
};

/// The layout of a block tile for a matrix product workload.
SimtLayout simtLayout(const Workload &workload, const BlockTile &tile,
                      const SimtSchedule &schedule);
/// The same of one product, from facts instead of a workload.
SimtLayout simtLayout(const ContractionAxes &axes, bool lhsReduceContiguous,
                      bool rhsReduceContiguous, const BlockTile &tile,
                      const SimtSchedule &schedule);

/// Whether copies into shared memory bypass registers on the device: those of
/// factors of the accumulator's type do where the device has such copies.
bool simtCopiesAsynchronously(const Workload &workload,
                              const DeviceSpec &device);

} // namespace ftuner

#endif // FTUNER_CODEGEN_SIMT_SIMTLAYOUT_H
