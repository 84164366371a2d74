//===- MmaSchedule.h - The schedule of the mma path -------------*- C++ -*-===//
#ifndef FTUNER_CODEGEN_MMA_MMASCHEDULE_H
#define FTUNER_CODEGEN_MMA_MMASCHEDULE_H

#include "FTuner/Codegen/FragmentTile.h"
#include "FTuner/Codegen/TensorFactors.h"

namespace ftuner {

/// The model of the path.
const CodegenModel &mmaModel();

/// Rows and columns of an instruction's result.
constexpr int64_t kMmaRows = FragmentTile::kRows,
                  kMmaColumns = FragmentTile::kColumns;

/// What a schedule means to the mma path. A warp computes bm / warpsM rows and
/// bn / warpsN columns of a block tile, of one of the tile's warpsBatch
/// elements along batch axes.
struct MmaSchedule {
  int64_t warpsM = 1, warpsN = 1;
  int64_t stages = 2;
  int64_t accessBytes = 16;
  bool swapOperands = false;
  int64_t warpsBatch = 1;

  static constexpr auto rows() {
    using S = MmaSchedule;
    return std::array{
        ScheduleRow("warps_m", &S::warpsM, "warps of a block along m")
            .key("warps")
            .range(1, kMaxThreads / 32),
        ScheduleRow("warps_n", &S::warpsN, "warps of a block along n")
            .key("warps")
            .range(1, kMaxThreads / 32),
        stagesRow(&S::stages),
        accessRow(&S::accessBytes),
        ScheduleRow("swap_operands", &S::swapOperands,
                    "instructions compute the transposed product: the rhs "
                    "feeds their 16 rows and the lhs their 8 columns, so that "
                    "m goes in eights and n in sixteens")
            .label("swapped")
            .optional(),
        ScheduleRow("warps_batch", &S::warpsBatch,
                    "groups of such warps in a block, each with an element of "
                    "batch axes")
            .label("batch")
            .range(1, kMaxThreads / 32)
            .optional()};
  }
  static MmaSchedule of(const Schedule &schedule) {
    return unpackSchedule<MmaSchedule>(schedule);
  }
  Schedule pack() const { return packSchedule(mmaModel(), *this); }

  /// Elements of a copy, of `elementBytes` bytes in shared memory.
  int64_t vectorWidth(int64_t elementBytes) const {
    return elementsOfAccess(accessBytes, elementBytes);
  }
  /// The same of elements that have `globalBytes` bytes where they come from.
  int64_t copyWidth(int64_t globalBytes, int64_t sharedBytes) const {
    return elementsOfCopy(accessBytes, globalBytes, sharedBytes);
  }
  int64_t warps() const { return warpsM * warpsN * warpsBatch; }
  int64_t threads() const { return 32 * warps(); }
  int64_t alignment() const { return accessBytes; }
  /// What feeds the rows of instructions, lhs (0) or rhs (1): they lie along
  /// its space axis.
  unsigned rowFactor() const { return swapOperands ? 1 : 0; }
  unsigned columnFactor() const { return 1 - rowFactor(); }
  /// Of m (0) or n (1), the space axis of lhs (0) or rhs (1): warps along it,
  /// and elements of an instruction.
  int64_t warpsAlong(unsigned factor) const {
    return factor == 0 ? warpsM : warpsN;
  }
  int64_t workersAlongBatch() const { return warpsBatch; }
  int64_t workersAlong(unsigned factor) const { return warpsAlong(factor); }
  int64_t fragmentAlong(unsigned factor) const {
    return factor == rowFactor() ? kMmaRows : kMmaColumns;
  }
  /// Of what a tile along m (0) or n (1) is a multiple.
  int64_t tileGranuleAlong(unsigned factor) const {
    return warpsAlong(factor) * fragmentAlong(factor);
  }
};

/// A family of the mma path with one or two tiles: `rows` and `columns` are the
/// elements of a warp along m and n, one number of rows for each part,
/// ascending. Axes beyond m, n and k have tile 1.
inline KernelFamily mmaFamily(const MmaSchedule &schedule,
                              llvm::ArrayRef<int64_t> rows, int64_t columns,
                              int64_t depth, unsigned numAxes = 3) {
  return contractionFamily(schedule, rows, columns, depth, numAxes);
}

} // namespace ftuner

#endif // FTUNER_CODEGEN_MMA_MMASCHEDULE_H
