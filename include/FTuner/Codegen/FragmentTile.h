//===- FragmentTile.h - Sums in a warp's registers --------------*- C++ -*-===//
//
// Fragments. Instructions of the tensor cores leave their sums in fragments of
// 16 rows and 8 columns: lane l has columns 2 · (l mod 4) and the next of rows
// l / 4 and l / 4 + 8, four numbers in this order. Rows of instructions are
// rows of the output, or, with swapped operands, its columns.
//
// Epilogue. Each warp writes 8 or 16 rows of its tile of the output at a time
// to a staging tile of shared memory and reads them back as runs of columns, so
// that stores fill sectors. Rows of a staging tile are 8 or 24 banks apart
// modulo 32: the pairs of accumulators of four rows touch all banks once. With
// swapped operands the pairs lie in neighbouring rows and are written one by
// one, every second row by one instruction: rows 4 or 20 banks apart do the
// same. Where even and odd columns come from different fragments or halves of
// them, a lane writes four neighbouring columns at once, to rows 16 banks apart
// modulo 32, or with swapped operands two. Where even and odd rows do, rows
// keep the order of the instructions in a staging tile.
//
// Bulk stores. A warp writes all rows of its tile of the output to shared
// memory of its own. Bulk copies store them while the warp computes its next
// tile.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_CODEGEN_FRAGMENTTILE_H
#define FTUNER_CODEGEN_FRAGMENTTILE_H

#include "FTuner/Workload/Workload.h"
#include <algorithm>

namespace ftuner {

/// How the lanes of a warp share the runs of a staging tile, one for each in a
/// trip.
struct StagingRuns {
  static constexpr int64_t kLanes = 32;
  /// Rows and columns of the staging tile, and columns of a run.
  int64_t rows, columns, width;

  int64_t perRow() const { return columns / width; }
  /// Whether all runs of a lane have the same columns: trips are whole rows.
  bool haveColumnOfLane() const {
    return kLanes % perRow() == 0 && rows % rowsOfTrip() == 0;
  }
  /// Then: rows of a trip.
  int64_t rowsOfTrip() const { return kLanes / perRow(); }
  /// Trips of all lanes, and the lanes of one that comes behind them.
  int64_t wholeTrips() const { return rows * perRow() / kLanes; }
  int64_t lanesOfRest() const { return rows * perRow() % kLanes; }
};

/// A warp's tile of the output, in fragments, and its staging tile for the
/// epilogue.
struct FragmentTile {
  /// Rows and columns of a fragment.
  static constexpr int64_t kRows = 16, kColumns = 8;
  /// Lanes along them: each has elements of every eighth row, and pairs of
  /// columns.
  static constexpr int64_t kLaneRows = 8, kLaneColumns = 4;
  /// Bytes of an accumulator, f32 or i32.
  static constexpr int64_t kAccumulatorBytes = 4;
  /// Bytes to which bulk copies are aligned (PTX ISA, cp.async.bulk).
  static constexpr int64_t kBulkAlignment = 16;

  /// Fragments along the rows and along the columns of instructions.
  int64_t rows = 1, columns = 1;
  /// Elements from the first row of a fragment to that of the next.
  int64_t rowDistance = kRows;
  /// Rows of instructions are columns of the output.
  bool isSwapped = false;
  /// Of 16 rows, or columns, of the output that lie in the order of
  /// instructions the even ones come first.
  bool hasEvenRowsFirst = false, hasEvenColumnsFirst = false;
  /// Fragments of columns that a staging tile holds at once, where rows of
  /// instructions are rows of the output; 0: all.
  int64_t stagingFragments = 0;
  /// Bytes of an element of the output where bulk copies store a warp's tile
  /// from shared memory; 0 where lanes store it.
  int64_t bulkElementBytes = 0;
  /// True where the warp writes rounded sums there, without a staging tile.
  bool storesSums = false;

  /// Accumulators of a lane.
  int64_t accumulators() const { return 4 * rows * columns; }
  /// Rows and columns of the output.
  int64_t outputRows() const {
    return isSwapped ? columns * kColumns : rows * kRows;
  }
  int64_t outputColumns() const {
    return isSwapped ? rows * kRows : columns * kColumns;
  }

  /// Rows of the output in the staging tile: of one fragment, or of two of
  /// eight where a warp has pairs of them.
  int64_t stagingRows() const {
    return isSwapped && columns % 2 != 0 ? kColumns : kRows;
  }
  /// Columns of the output in the staging tile.
  int64_t stagingColumns() const {
    return stagingFragments ? stagingFragments * kColumns : outputColumns();
  }
  /// Fillings of the staging tile with the same columns, and with all.
  int64_t fillingsOfColumns() const { return outputRows() / stagingRows(); }
  int64_t fillings() const {
    return fillingsOfColumns() * ceilDiv(outputColumns(), stagingColumns());
  }
  /// Distance of a staging tile's rows, in accumulators.
  int64_t stagingPitch() const {
    int64_t width = stagingColumns();
    if (isSwapped)
      return width + 4;
    int64_t apart = hasEvenColumnsFirst ? 2 * kColumns : kColumns;
    return ceilBy(width - apart, 2 * apart) + apart;
  }
  /// Whether sums of 16 bits may lie in the staging tile in pairs, as a lane
  /// holds them.
  bool canBeNarrow() const { return !isSwapped && !hasEvenColumnsFirst; }
  /// Distance of a staging tile's rows of 16 bits, in elements: rows are 4 or
  /// 12 banks apart modulo 16, so that the pairs of eight rows touch all banks
  /// once, and runs of 16 bytes are aligned.
  int64_t narrowStagingPitch() const {
    return ceilBy(stagingColumns() - 8, 16) + 8;
  }
  int64_t stagingBytes() const {
    return storesSums ? 0 : kAccumulatorBytes * stagingRows() * stagingPitch();
  }
  /// Distance of the rows from which bulk copies store, in elements: an odd
  /// number of 16 bytes, so that the pairs of eight rows touch all banks.
  int64_t bulkPitch() const {
    return outputColumns() + kBulkAlignment / bulkElementBytes;
  }
  /// Bytes of shared memory that hold these rows.
  int64_t bulkBytes() const {
    return bulkElementBytes ? bulkElementBytes * outputRows() * bulkPitch() : 0;
  }
  /// Columns that a lane finishes at once, where the narrowest elements of
  /// tensors along n have so many bytes.
  static int64_t runColumns(int64_t accessBytes, int64_t leastBytes) {
    return std::clamp<int64_t>(accessBytes / std::max<int64_t>(leastBytes, 1),
                               1, kColumns);
  }
  /// The row of the output, in the order of a staging tile's, that a row of it
  /// holds.
  template <typename Math>
  typename Math::Index stagingRow(Math &math, typename Math::Index row) const {
    if (!hasEvenRowsFirst)
      return row;
    return math.add(math.mul(math.rem(row, 8), 2), math.div(row, 8));
  }
};

} // namespace ftuner

#endif // FTUNER_CODEGEN_FRAGMENTTILE_H
