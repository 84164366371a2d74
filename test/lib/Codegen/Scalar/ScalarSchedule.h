//===- ScalarSchedule.h - The schedule of the scalar path -------*- C++ -*-===//
//
// A codegen path for tests: each thread computes one element of the output from
// global memory, whatever the operator is. And two more:
//
//   exact   the same kernels, which say that they need an exact architecture:
//           sm_90a. No search finds it; plans that name it are written by hand.
//   mapped  takes a tensor map for each input, and reads its elements through
//           the address, the sizes and the strides in the map, as the emulator
//           encodes it. Such kernels run nowhere else. Searches that name it
//           find it.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_TEST_LIB_CODEGEN_SCALAR_SCALARSCHEDULE_H
#define FTUNER_TEST_LIB_CODEGEN_SCALAR_SCALARSCHEDULE_H

#include "FTuner/Schedule/CodegenModel.h"

namespace ftuner {

const CodegenModel &scalarModel();
const CodegenModel &exactModel();
const CodegenModel &mappedModel();

struct ScalarSchedule {
  int64_t threadsM = 1, threadsN = 32;
  bool hasMaps = false;

  static constexpr auto rows() {
    using S = ScalarSchedule;
    return std::array{
        ScheduleRow("threads_m", &S::threadsM,
                    "threads of a block along the first space axis")
            .key("threads")
            .label("threads")
            .range(1, 1024),
        ScheduleRow("threads_n", &S::threadsN,
                    "threads of a block along the second space axis")
            .key("threads")
            .label("threads")
            .range(1, 1024),
        ScheduleRow("maps", &S::hasMaps, "inputs are read through tensor maps")
            .label("maps")
            .optional()};
  }
  static ScalarSchedule of(const Schedule &schedule) {
    return unpackSchedule<ScalarSchedule>(schedule);
  }
  Schedule pack(const CodegenModel &path) const {
    return packSchedule(path, *this);
  }
  int64_t threads() const { return threadsM * threadsN; }
};

} // namespace ftuner

#endif // FTUNER_TEST_LIB_CODEGEN_SCALAR_SCALARSCHEDULE_H
