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

/// Threads of a block along the first and the second space axis.
struct ScalarSchedule {
  int64_t threadsM = 1, threadsN = 32;
  /// Of `mapped`: whether inputs are read through maps.
  bool hasMaps = false;

  static ScalarSchedule of(const Schedule &schedule) {
    auto fields = schedule.fields();
    return {fields[0], fields[1],
            &schedule.path() == &mappedModel() && fields[2]};
  }
  Schedule pack(const CodegenModel &path) const {
    if (&path == &mappedModel())
      return Schedule(path, {threadsM, threadsN, hasMaps});
    return Schedule(path, {threadsM, threadsN});
  }
  int64_t threads() const { return threadsM * threadsN; }
};

} // namespace ftuner

#endif // FTUNER_TEST_LIB_CODEGEN_SCALAR_SCALARSCHEDULE_H
