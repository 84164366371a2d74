//===- ContractionSpace.h - The base of contractions' spaces ----*- C++ -*-===//
#ifndef FTUNER_CODEGEN_CONTRACTIONSPACE_H
#define FTUNER_CODEGEN_CONTRACTIONSPACE_H

#include "FTuner/Schedule/CodegenModel.h"
#include "FTuner/Workload/Contraction.h"
#include "FTuner/Workload/Sampling.h"
#include <algorithm>

namespace ftuner {

/// What every space of a path that computes contractions knows of a workload
/// and a device, which outlive it.
class ContractionSpace : public ScheduleSpace {
protected:
  ContractionSpace(const Workload &workload, const DeviceSpec &device)
      : workload(workload), device(device),
        axes(ContractionAxes::forReduceAxes(workload.reduceAxes())),
        extents{largestSize(workload.axes[axes.m]),
                largestSize(workload.axes[axes.n])} {
    for (unsigned axis : ContractionView(workload).batchAxes().list())
      if (largestSize(workload.axes[axis]) > 1)
        batchAxes.push_back(axis);
  }

  /// Of a path whose blocks may compute several elements of batch axes: lets
  /// them have so many, where there are any.
  void takeBatchElements(int64_t most) {
    if (!batchAxes.empty())
      mostBatchElements = most;
  }
  /// The most that a block may have along one of the axes.
  int64_t mostBatchElementsAlong(unsigned axis) const {
    return std::min(mostBatchElements, largestSize(workload.axes[axis]));
  }

  const Workload &workload;
  const DeviceSpec &device;
  ContractionAxes axes;
  /// Batch axes that have more than one element.
  llvm::SmallVector<unsigned, 3> batchAxes;
  /// Largest extents of m and n.
  int64_t extents[2];
  /// Most points of the output that a thread has: the registers that a path
  /// leaves for accumulators hold those of as many (`pointsHeld`).
  int64_t mostPoints = 1;
};

} // namespace ftuner

#endif // FTUNER_CODEGEN_CONTRACTIONSPACE_H
