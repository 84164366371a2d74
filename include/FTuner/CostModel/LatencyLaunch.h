//===- LatencyLaunch.h - A program as the formulas take it ------*- C++ -*-===//
#ifndef FTUNER_COSTMODEL_LATENCYLAUNCH_H
#define FTUNER_COSTMODEL_LATENCYLAUNCH_H

#include "FTuner/CostModel/LatencyFormulas.h"
#include "FTuner/Schedule/CodegenModel.h"

namespace ftuner {

/// A program's work for one shape: its parts that have blocks, the taller one
/// last.
struct LatencyLaunch {
  LatencyKernel blocks[2];
  double counts[2] = {0, 0};
  double steps[2] = {0, 0};
  unsigned numParts = 0;
  LatencyGrid grid;
};

/// Describes a program that passes the codegen path's check for the device, for
/// a shape (every extent ≥ 1): what the cost model `latency` prices.
LatencyLaunch describeLaunch(const Workload &workload,
                             llvm::ArrayRef<int64_t> shape,
                             const Program &program, const DeviceSpec &device);

} // namespace ftuner

#endif // FTUNER_COSTMODEL_LATENCYLAUNCH_H
