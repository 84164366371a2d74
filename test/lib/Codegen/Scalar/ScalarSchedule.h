//===- ScalarSchedule.h - The schedule of the scalar path -------*- C++ -*-===//
//
// A codegen path for tests: each thread computes one element of the output from
// global memory, whatever the operator is.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_TEST_LIB_CODEGEN_SCALAR_SCALARSCHEDULE_H
#define FTUNER_TEST_LIB_CODEGEN_SCALAR_SCALARSCHEDULE_H

#include "FTuner/Schedule/CodegenModel.h"

namespace ftuner {

const CodegenModel &scalarModel();

/// Threads of a block along the first and the second space axis.
struct ScalarSchedule {
  int64_t threadsM = 1, threadsN = 32;

  static ScalarSchedule of(const Schedule &schedule) {
    return {schedule.fields()[0], schedule.fields()[1]};
  }
  Schedule pack() const { return Schedule(scalarModel(), {threadsM, threadsN}); }
  int64_t threads() const { return threadsM * threadsN; }
};

} // namespace ftuner

#endif // FTUNER_TEST_LIB_CODEGEN_SCALAR_SCALARSCHEDULE_H
