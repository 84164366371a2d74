//===- ContractionSpace.h - The base of contractions' spaces ----*- C++ -*-===//
#ifndef FTUNER_CODEGEN_CONTRACTIONSPACE_H
#define FTUNER_CODEGEN_CONTRACTIONSPACE_H

#include "FTuner/Schedule/CodegenModel.h"
#include "FTuner/Workload/Contraction.h"
#include "FTuner/Workload/Sampling.h"

namespace ftuner {

/// What every space of a path that computes contractions knows of a workload
/// and a device, which outlive it.
class ContractionSpace : public ScheduleSpace {
protected:
  ContractionSpace(const Workload &workload, const DeviceSpec &device)
      : workload(workload), device(device),
        axes(ContractionAxes::of(workload.reduceAxes())),
        extents{largestSize(workload.axes[axes.m]),
                largestSize(workload.axes[axes.n])} {}

  const Workload &workload;
  const DeviceSpec &device;
  ContractionAxes axes;
  /// Largest extents of m and n.
  int64_t extents[2];
  /// Most points of the output that a thread has: the registers that a path
  /// leaves for accumulators hold those of as many (`pointsHeld`).
  int64_t mostPoints = 1;
};

} // namespace ftuner

#endif // FTUNER_CODEGEN_CONTRACTIONSPACE_H
