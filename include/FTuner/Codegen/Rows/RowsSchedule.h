//===- RowsSchedule.h - The schedule of the rows path -----------*- C++ -*-===//
//
// Rows are reduced by the lanes of one or more warps. A row is walked in chunks
// of the tile's elements along it: in each chunk a lane has some elements, in
// accesses of neighbouring ones, and neighbouring lanes have neighbouring
// accesses. The first chunks stay in registers, so that a row as long as these
// is read once; what lies behind is read again for each pass over the row: one
// for each reduction, and one for the elements that follow from them.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_CODEGEN_ROWS_ROWSSCHEDULE_H
#define FTUNER_CODEGEN_ROWS_ROWSSCHEDULE_H

#include "FTuner/Schedule/CodegenModel.h"
#include "FTuner/Workload/RowReduction.h"

namespace ftuner {

const CodegenModel &rowsModel();

struct RowsSchedule {
  static constexpr int64_t warpSize = 32;

  int64_t blockRows = 1, warps = 1, heldChunks = 0, access = 1;

  static constexpr auto rows() {
    using S = RowsSchedule;
    return std::array{
        ScheduleRow("rows", &S::blockRows, "rows of a block").range(1, 32),
        ScheduleRow("warps", &S::warps, "warps of a row")
            .label("warps")
            .range(1, 32),
        ScheduleRow("held_chunks", &S::heldChunks,
                    "chunks of a row that stay in registers")
            .label("held chunks")
            .range(0, 16),
        ScheduleRow("access", &S::access,
                    "bytes of an access to the widest elements; 1: single "
                    "elements")
            .label("access")
            .range(1, 16)};
  }
  static RowsSchedule of(const Schedule &schedule) {
    return unpackSchedule<RowsSchedule>(schedule);
  }
  Schedule pack() const { return packSchedule(rowsModel(), *this); }
  /// Threads of a row.
  int64_t lanes() const { return warps * warpSize; }
  int64_t threads() const { return blockRows * lanes(); }
};

/// How a row's elements are shared out, of a tile and its schedule.
struct RowsLayout {
  RowsLayout(const Workload &workload, const BlockTile &tile,
             const RowsSchedule &schedule);

  /// The axis along which a row lies.
  unsigned rowAxis;
  /// Elements of a chunk, of a lane in it, and of an access.
  int64_t chunk, elements, vector;
  int64_t accesses() const { return elements / vector; }

private:
  RowsLayout(const RowReductionView &rows, const BlockTile &tile,
             const RowsSchedule &schedule);
};

} // namespace ftuner

#endif // FTUNER_CODEGEN_ROWS_ROWSSCHEDULE_H
