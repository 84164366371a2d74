//===- ChainsSchedule.h - The schedule of the chains path -*- C++ -*-===//
//
// A block has a tile of points that are neighbours along the one axis. Its
// threads take them in vectors: with accesses of 16 bytes a vector is as many
// points as have 16 bytes of the widest element, and neighbouring threads have
// neighbouring vectors. A thread has several vectors, a row of threads apart,
// and loads all inputs of all its vectors before it computes: these are the
// bytes that are under way at once.
//
//   point of element e of vector v of thread t:
//     first point of the block + (v · threads + t) · vector + e
//
// With accesses of one element (`access` 1) a vector is one point, and a thread
// has as many more of them.
//
// The block at the end, whose tile reaches beyond the last point, takes one
// vector after the other, and the points of a vector that the end divides one
// by one.
//
// Operands that do not lie in the order of the points ask for the position of a
// point in the loops: one chain of divisions for each vector, which lies in one
// trip of the last loop, so that its points follow each other there. Loops that
// are adjacent in all such operands are one.
//
// A thread reduces the windows of a vector's points together, tap by tap. It
// reads an element that several of the points have in their windows once. A
// read of a padded input takes the nearest element inside, and a selection
// replaces this by the padding: there are no branches. The inner loops over a
// window are unrolled, up to 64 taps.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_CODEGEN_CHAINS_CHAINSSCHEDULE_H
#define FTUNER_CODEGEN_CHAINS_CHAINSSCHEDULE_H

#include "FTuner/Schedule/CodegenModel.h"
#include "FTuner/Workload/Pointwise.h"

namespace ftuner {

const CodegenModel &chainsModel();

struct ChainsSchedule {
  static constexpr int64_t warpSize = 32;

  int64_t threads = 256, vectors = 1, access = 1;

  static constexpr auto rows() {
    using S = ChainsSchedule;
    return std::array{
        ScheduleRow("threads", &S::threads, "threads of a block")
            .label("threads")
            .among({64, 128, 256, 512}),
        ScheduleRow("vectors", &S::vectors, "vectors of a thread")
            .label("vectors")
            .among({1, 2, 4, 8}),
        ScheduleRow("access", &S::access,
                    "bytes of an access to the widest elements; 1: single "
                    "elements")
            .label("access")
            .among({1, 2, 4, 8, 16})};
  }
  static ChainsSchedule of(const Schedule &schedule) {
    return unpackSchedule<ChainsSchedule>(schedule);
  }
  Schedule pack() const { return packSchedule(chainsModel(), *this); }
};

/// Distribution of a workload's points over threads.
struct ChainsLayout {
  ChainsLayout(const Workload &workload, const ChainsSchedule &schedule);

  const ChainsSchedule schedule;
  /// Points of a vector, and vectors of a thread.
  int64_t vector, vectors;

  /// Points of a thread.
  int64_t points() const { return vector * vectors; }
  /// Points of a block.
  int64_t tile() const { return schedule.threads * points(); }
  /// Tile of a block along the axes of a workload: points, and all taps.
  BlockTile tiles(const Workload &workload) const;

  static constexpr int64_t kMaxUnrolledTaps = 64;
  /// Returns true if the loops over a window from `loop` on are unrolled.
  static bool hasUnrolledTaps(llvm::ArrayRef<int64_t> taps, unsigned loop);

  /// Returns the maximum number of points in a vector if the widest element has
  /// so many bytes.
  static int64_t widestVector(int64_t widestBytes) {
    return std::max<int64_t>(16 / widestBytes, 1);
  }
};

} // namespace ftuner

#endif // FTUNER_CODEGEN_CHAINS_CHAINSSCHEDULE_H
