//===- ScalarSchedule.h - The schedule of the scalar path -------*- C++ -*-===//
//
// A codegen path for tests: each thread computes one element of the output from
// global memory, whatever the operator is. And a second one, `exact`, of the
// same kernels, which says that they need an exact architecture: sm_90a. No
// search finds it; plans that name it are written by hand.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_TEST_LIB_CODEGEN_SCALAR_SCALARSCHEDULE_H
#define FTUNER_TEST_LIB_CODEGEN_SCALAR_SCALARSCHEDULE_H

#include "FTuner/Schedule/CodegenModel.h"

namespace ftuner {

const CodegenModel &scalarModel();
const CodegenModel &exactModel();

/// Threads of a block along the first and the second space axis.
struct ScalarSchedule {
  int64_t threadsM = 1, threadsN = 32;

  static ScalarSchedule of(const Schedule &schedule) {
    return {schedule.fields()[0], schedule.fields()[1]};
  }
  Schedule pack(const CodegenModel &path) const {
    return Schedule(path, {threadsM, threadsN});
  }
  int64_t threads() const { return threadsM * threadsN; }
};

} // namespace ftuner

#endif // FTUNER_TEST_LIB_CODEGEN_SCALAR_SCALARSCHEDULE_H
