//===- RowsSchedule.h - The schedule of the rows path -----------*- C++ -*-===//
//
// A row is reduced in an order that its length and the types of its elements
// alone decide. So its results have the same bits whichever family computes it,
// however many rows there are.
//
// Where rows lie along memory:
//
//   chunk   32 places of V neighbouring elements, V the elements in the widest
//           access (16 bytes, at most 8). A place is reduced element by
//           element, and the 32 places of a chunk by a tree.
//   segment a row of up to 512 chunks is one segment; a longer one has up to
//           32, of as many times 32 chunks each as that takes, two at least.
//   slot    chunk c belongs to slot c mod 32, which reduces its chunks of each
//           segment in turn, and the segments' numbers in turn; a tree makes
//           one number of the 32 slots.
//
// Where rows lie across memory, and neighbouring lanes have neighbouring rows:
//
//   slot    element r belongs to slot r mod 8, which reduces its elements in
//           turn; a tree makes one number of the 8 slots.
//
// A tree joins neighbours at half of their number first, then at a quarter, and
// so on. Places and slots beyond the end of a row hold the neutral element.
//
// The schedule says who computes what. Along memory the places of a chunk are
// shared out among the lanes of a row, a power of two up to 32: place p is lane
// p mod `lanes`'s. With several warps, chunk c is warp c mod `warps`'s. Across
// memory a lane has rows of its own, and slot s is warp s mod `warps`'s.
//
// What a warp has of a row in one *round*, a lane has in *units*: a unit is one
// place, or one element of each of the lane's rows. A row that ends within the
// units that a lane holds in registers is read once. A longer one is read again
// for each pass over it: one for each reduction, and one for the elements that
// follow from them, from the last one to the first, as the likeliest to be in a
// cache are those that were read last.
//
// Accesses of single elements along memory belong to lanes side by side, from
// the last sector boundary before the row on: one access more than a unit has
// elements. Lanes exchange what they loaded, or store, in shared memory.
//
// Few long rows are shared out among blocks, as slices
// (KernelFamily::reduceSplit). Up to 32 warps share out slots: slot s is slice
// s mod `slices`'s, of each of which the trees make one number first. Warp w of
// slice s is then warp w · slices + s of a row, of warps · slices in all. More
// warps have a slot each and share out segments, too: each slice leaves the
// numbers of its slots of each segment. Each phase (`ukernel.row_reduction`) is
// a launch, and reads rows again; held units are those that a lane loads at
// once.
//
// A group of lanes has one row after the other where the schedule says so. Of
// rows that it holds, the operands that are the same for all rows (scale and
// shift of a norm) stay in registers, too, and the next row's elements are
// loaded before this one's are reduced and stored. Without a loop, operands
// that would take the row's place in registers are loaded behind the reductions
// that do not read them.
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

  int64_t blockRows = 1, laneRows = 1, lanes = 32, warps = 1, heldUnits = 0,
          access = 1, rowLoop = 1;

  static constexpr auto rows() {
    using S = RowsSchedule;
    return std::array{
        ScheduleRow("rows", &S::blockRows, "rows of a block").range(1, 4096),
        ScheduleRow("lane_rows", &S::laneRows,
                    "rows of a lane, side by side; 1 where they lie along "
                    "memory")
            .label("rows of a lane")
            .among({1, 2, 4, 8}),
        ScheduleRow("lanes", &S::lanes,
                    "lanes of a warp that have a row; 1 where rows lie across "
                    "memory")
            .label("lanes")
            .among({1, 2, 4, 8, 16, 32}),
        ScheduleRow("warps", &S::warps,
                    "warps that have a row; more than one of 32 lanes each, or "
                    "across memory")
            .label("warps")
            .among({1, 2, 4, 8, 16, 32}),
        ScheduleRow("held_units", &S::heldUnits,
                    "units of a row that stay in a lane's registers: a unit is "
                    "as many neighbours as fit in 16 bytes of the widest "
                    "element, at most 8, or across memory one element of each "
                    "row")
            .label("held units")
            .range(0, 64),
        ScheduleRow("access", &S::access,
                    "bytes of an access to the widest elements; 1: single "
                    "elements")
            .label("access")
            .range(1, 16),
        ScheduleRow("row_loop", &S::rowLoop,
                    "rows that the same lanes have one after the other; where "
                    "they hold them, the next one is loaded meanwhile, and "
                    "operands that all rows share stay in registers")
            .label("row loop")
            .among({1, 2, 4, 8, 16, 32})
            .optional()};
  }
  static RowsSchedule of(const Schedule &schedule) {
    return unpackSchedule<RowsSchedule>(schedule);
  }
  Schedule pack() const { return packSchedule(rowsModel(), *this); }
  /// Rows that a block has at once: one of each group of lanes.
  int64_t rowsAtOnce() const { return blockRows / rowLoop; }
  /// Lanes that have these rows, in each of the warps of a row.
  int64_t rowLanes() const { return rowsAtOnce() / laneRows * lanes; }
  int64_t threads() const { return rowLanes() * warps; }
};

/// How rows are shared out, of a workload and a schedule.
struct RowsLayout {
  /// Places of a chunk, and slots of a row along memory.
  static constexpr int64_t numPlaces = 32;
  /// Slots of a row across memory.
  static constexpr int64_t numSlotsAcross = 8;
  /// The most segments of a row along memory. Chunks of each slot in a row that
  /// is one segment at most, and in a segment of a longer one at least.
  static constexpr int64_t numSegments = 32, wholeChunks = 16, minChunks = 2;
  /// Bytes of memory that the L2 cache moves at once: where single elements are
  /// loaded side by side, accesses begin at a multiple of them.
  static constexpr int64_t sectorBytes = 32;
  /// Units whose loads are under way at once where a row is read again; a whole
  /// round at least.
  static constexpr int64_t unitsAtOnce = 4;

  RowsLayout(const Workload &workload, const RowsSchedule &schedule,
             int64_t slices = 1);

  /// Elements of a place, and of the widest access, by the types alone.
  static int64_t placeElements(const RowReductionView &rows);

  const RowsSchedule schedule;
  /// Blocks that have parts of the same rows.
  const int64_t slices;
  /// The axis along which a row lies, and that of neighbouring lanes.
  unsigned rowAxis, laneAxis;
  /// Elements of an access along the lane axis.
  int64_t vector;
  /// Elements of a unit along the row.
  int64_t unit;
  /// Bytes of the widest element along the row.
  int64_t widestBytes;
  /// Bytes of a number that warps exchange, that of the widest accumulator.
  int64_t accumulatorBytes;
  /// Is true if operands that all rows share, and that no reduction reads, are
  /// loaded when elements are stored: held beside the row, they would take too
  /// many registers.
  bool sharesLate = false;

  bool isAcross() const { return rowAxis != laneAxis; }
  /// Accesses of a unit, one behind the other along the row.
  int64_t accesses() const { return isAcross() ? 1 : unit / vector; }
  /// Returns true if lanes load and store single elements side by side, and
  /// hand those of their places to each other in shared memory.
  bool isExchanged() const {
    return unit > 1 && vector == 1 && schedule.lanes >= unit;
  }
  /// Elements in shared memory from those of one row's lanes to those of the
  /// next: a unit of each lane, and some that keep rows apart in the banks.
  int64_t stagedElements() const {
    return schedule.lanes * unit + std::max(schedule.lanes, unit);
  }
  /// Bytes in which all warps exchange a unit of each lane.
  int64_t stagingBytes() const {
    return isExchanged() ? schedule.rowLanes() * schedule.warps /
                               schedule.lanes * stagedElements() * widestBytes
                         : 0;
  }
  /// Units of a lane in a round.
  int64_t roundUnits() const {
    return isAcross() ? numSlotsAcross / schedule.warps
                      : numPlaces / schedule.lanes;
  }
  /// Slices that share out the slots of a segment, and those that share out
  /// segments.
  int64_t slotSlices() const {
    return std::min(slices, slots() / schedule.warps);
  }
  int64_t segmentSlices() const { return slices / slotSlices(); }
  /// Numbers that so many slices, each of so many warps, leave of each
  /// reduction of a row: more than one for each slot share out segments, which
  /// rows across memory do not have.
  static int64_t numStates(int64_t slices, int64_t warps) {
    return slices * warps > numPlaces ? numSegments * numPlaces : slices;
  }
  int64_t numStates() const { return numStates(slices, schedule.warps); }
  /// Warps that have a segment, in all its slices.
  int64_t allWarps() const { return schedule.warps * slotSlices(); }
  /// Elements of one chunk of each slot.
  int64_t slotElements() const { return numPlaces * numPlaces * unit; }
  /// Returns true if a row of this length, or of a length that is not known,
  /// may have several segments.
  bool hasSegments(std::optional<int64_t> length) const {
    return !isAcross() && (!length || *length > wholeChunks * slotElements());
  }
  /// Elements of the row in a round of all its warps of a slice: the tile along
  /// the row.
  int64_t round() const {
    return isAcross() ? numSlotsAcross : numPlaces * unit * schedule.warps;
  }
  /// The same of all slices of a segment.
  int64_t roundOfAll() const { return round() * slotSlices(); }
  /// Slots of a row, and of one of its warps.
  int64_t slots() const { return isAcross() ? numSlotsAcross : numPlaces; }
  int64_t warpSlots() const { return slots() / allWarps(); }
  /// Units whose loads are under way at once where a row is read again.
  int64_t streamedUnits() const {
    return slices == 1 ? unitsAtOnce
                       : std::max(unitsAtOnce, schedule.heldUnits);
  }
  /// The axis along which a block has several rows.
  unsigned blockAxis(const RowReductionView &rows) const {
    return isAcross() ? laneAxis : rows.firstSpace();
  }
  /// Elements of a row that stay in registers.
  int64_t heldElements() const;
  /// Bytes that each reduction needs to exchange the numbers of warps.
  int64_t exchangeBytes() const {
    if (schedule.warps == 1)
      return 0;
    int64_t numbers = isAcross() ? schedule.warps : slots();
    return accumulatorBytes * schedule.rowsAtOnce() * numbers;
  }
  /// So many times are these bytes there: once for each reduction. With one
  /// reduction rows one after the other take turns, for between what a warp
  /// reads of one row and what another writes of the next but one there is a
  /// barrier.
  int64_t exchangeBuffers(int64_t reductions) const {
    return reductions == 1 && schedule.rowLoop > 1 ? 2 : reductions;
  }

private:
  RowsLayout(const RowReductionView &rows, const RowsSchedule &schedule,
             int64_t slices);
};

} // namespace ftuner

#endif // FTUNER_CODEGEN_ROWS_ROWSSCHEDULE_H
