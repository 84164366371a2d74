//===- SimtSchedule.h - The schedule of the SIMT path -----------*- C++ -*-===//
#ifndef FTUNER_CODEGEN_SIMT_SIMTSCHEDULE_H
#define FTUNER_CODEGEN_SIMT_SIMTSCHEDULE_H

#include "FTuner/Codegen/ContractionModel.h"

namespace ftuner {

/// The model of the path.
const CodegenModel &simtModel();

/// What a schedule means to the SIMT path. A thread computes bm / threadsM rows
/// and bn / threadsN columns of a block tile, of each of the tile's elements
/// along batch axes / threadsBatch, from bk / threadsK elements of a step.
struct SimtSchedule {
  int64_t threadsM = 1, threadsN = 32;
  int64_t stages = 2;
  int64_t vectorWidth = 4;
  int64_t threadsBatch = 1;
  int64_t virtualThreadsM = 0, virtualThreadsN = 0;
  int64_t threadsK = 1;

  static constexpr auto rows() {
    using S = SimtSchedule;
    return std::array{
        ScheduleRow("threads_m", &S::threadsM, "threads of a block along m")
            .key("threads")
            .range(1, kMaxThreads),
        ScheduleRow("threads_n", &S::threadsN, "threads of a block along n")
            .key("threads")
            .range(1, kMaxThreads),
        stagesRow(&S::stages),
        ScheduleRow("vector_width", &S::vectorWidth,
                    "elements that a global access along a contiguous axis "
                    "moves at once: 4 of aligned operands, 1 of any")
            .key("vector")
            .label("vector")
            .among({1, 4}),
        ScheduleRow("threads_batch", &S::threadsBatch,
                    "threads of a block along batch axes")
            .label("batch")
            .range(1, kMaxThreads)
            .optional(),
        virtualThreadsRow("virtual_threads_m", &S::virtualThreadsM,
                          "strips of neighbouring rows that a thread computes, "
                          "a row of threads apart (TVM: virtual threads); 0: "
                          "strips of 4, 2 and 1 rows, or of 1 where the lhs is "
                          "contiguous along k")
            .label("vm"),
        virtualThreadsRow("virtual_threads_n", &S::virtualThreadsN,
                          "the same of columns; 0: strips of 4, 2 and 1")
            .label("vn"),
        ScheduleRow("threads_k", &S::threadsK,
                    "threads of a block along k, whose sums the block adds up "
                    "in shared memory (CUTLASS: sliced-K)")
            .label("slices")
            .range(1, kMaxThreads)
            .optional()};
  }
  static SimtSchedule of(const Schedule &schedule) {
    return unpackSchedule<SimtSchedule>(schedule);
  }
  Schedule pack() const { return packSchedule(simtModel(), *this); }

  int64_t threads() const {
    return threadsM * threadsN * threadsBatch * threadsK;
  }
  /// Whatever the elements, for vectors of the widest.
  int64_t alignment() const {
    constexpr int64_t widestElementBytes = 4;
    return vectorWidth == 1 ? 1 : widestElementBytes * vectorWidth;
  }
  /// Along m (0) or n (1).
  int64_t workersAlong(unsigned factor) const {
    return factor == 0 ? threadsM : threadsN;
  }
  int64_t workersAlongBatch() const { return threadsBatch; }
  int64_t tileGranuleAlong(unsigned factor) const {
    return workersAlong(factor);
  }
  /// Strips of a thread along m (0) or n (1); 0: as many as suit.
  int64_t virtualThreadsAlong(unsigned factor) const {
    return factor == 0 ? virtualThreadsM : virtualThreadsN;
  }

private:
  static constexpr ScheduleRow<SimtSchedule>
  virtualThreadsRow(llvm::StringLiteral name, int64_t SimtSchedule::*member,
                    llvm::StringLiteral text) {
    return ScheduleRow(name, member, text).range(0, kMaxThreads).optional();
  }
};

/// A family of the SIMT path with one or two tiles: `rows` and `columns` are
/// the elements of a thread, one number of rows for each part, ascending. Axes
/// beyond m, n and k have tile 1.
inline KernelFamily simtFamily(const SimtSchedule &schedule,
                               llvm::ArrayRef<int64_t> rows, int64_t columns,
                               int64_t depth, unsigned numAxes = 3) {
  return contractionFamily(schedule, rows, columns, depth, numAxes);
}

} // namespace ftuner

#endif // FTUNER_CODEGEN_SIMT_SIMTSCHEDULE_H
