//===- SimtSchedule.h - The schedule of the SIMT path -----------*- C++ -*-===//
#ifndef FTUNER_CODEGEN_SIMT_SIMTSCHEDULE_H
#define FTUNER_CODEGEN_SIMT_SIMTSCHEDULE_H

#include "FTuner/Schedule/KernelFamily.h"

namespace ftuner {

/// The model of the path.
const CodegenModel &simtModel();

/// What the fields of a schedule mean to the SIMT path. A thread computes bm /
/// threadsM rows and bn / threadsN columns of a block tile.
struct SimtSchedule {
  /// Threads of a block along m and n.
  int64_t threadsM = 1, threadsN = 32;
  /// Pipeline stages of the copies into shared memory.
  int64_t stages = 2;
  /// Elements that global accesses along contiguous axes move at once: 1, or 4
  /// of aligned operands.
  int64_t vectorWidth = 4;

  /// Reads a schedule of the path.
  static SimtSchedule of(const Schedule &schedule);
  Schedule pack() const;

  int64_t threads() const { return threadsM * threadsN; }
};

/// A family of the SIMT path with one or two tiles: `rows` and `columns` are
/// the elements of a thread, one number of rows for each part, ascending. Axes
/// beyond m, n and k have tile 1.
KernelFamily simtFamily(const SimtSchedule &schedule,
                        llvm::ArrayRef<int64_t> rows, int64_t columns,
                        int64_t depth, unsigned numAxes = 3);

} // namespace ftuner

#endif // FTUNER_CODEGEN_SIMT_SIMTSCHEDULE_H
