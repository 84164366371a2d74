//===- CooperativeSchedule.h - The schedule of the cooperative path -*- C++
//-*-===//
//
// A codegen path for tests: warps reduce rows together. The lanes of a row's
// warps stride through it, merge their states by shuffles within each warp, and
// through shared memory between warps; then they stride through it again for
// the elements that follow from the row's values. It computes any `test.rows`.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_TEST_LIB_CODEGEN_COOPERATIVE_COOPERATIVESCHEDULE_H
#define FTUNER_TEST_LIB_CODEGEN_COOPERATIVE_COOPERATIVESCHEDULE_H

#include "FTuner/Schedule/CodegenModel.h"

namespace ftuner {

const CodegenModel &cooperativeModel();

struct CooperativeSchedule {
  static constexpr int64_t warpSize = 32;

  int64_t blockRows = 1, warps = 1;

  static constexpr auto rows() {
    using S = CooperativeSchedule;
    return std::array{
        ScheduleRow("rows", &S::blockRows, "rows of a block").range(1, 32),
        ScheduleRow("warps", &S::warps, "warps of each row")
            .label("warps")
            .range(1, 32)};
  }
  static CooperativeSchedule of(const Schedule &schedule) {
    return unpackSchedule<CooperativeSchedule>(schedule);
  }
  Schedule pack() const { return packSchedule(cooperativeModel(), *this); }
  /// Threads of a row, which are elements of a step.
  int64_t lanes() const { return warps * warpSize; }
  int64_t threads() const { return blockRows * lanes(); }
};

} // namespace ftuner

#endif // FTUNER_TEST_LIB_CODEGEN_COOPERATIVE_COOPERATIVESCHEDULE_H
