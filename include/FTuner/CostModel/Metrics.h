//===- Metrics.h - The paper's metrics of a uKernel -------------*- C++ -*-===//
//
// Equations 2, 3, 6 and 7 of the paper, for one uKernel over a whole shape, and
// for the real cover of a two-uKernel program.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_COSTMODEL_METRICS_H
#define FTUNER_COSTMODEL_METRICS_H

#include "FTuner/Device/DeviceSpec.h"
#include "FTuner/Search/UKernel.h"
#include "FTuner/Workload/Workload.h"

namespace ftuner {

struct Metrics {
  /// useful / (padded + useful) iteration points (equation 2), in (0, 1].
  double pad = 0;
  /// blocks / ceil_by(blocks, SMs) (equation 3), in (0, 1].
  double occ = 0;
  /// compute time at peak over memory time (equations 6 and 7).
  double cmr = 0;
  int64_t blocks = 0;
};

/// Metrics of `ukernel` covering the whole shape by itself.
Metrics ukernelMetrics(const Workload &workload, llvm::ArrayRef<int64_t> shape,
                       const UKernel &ukernel, const DeviceSpec &device);

/// Metrics of the program's real cover: each part over its own rows.
Metrics programMetrics(const Workload &workload, llvm::ArrayRef<int64_t> shape,
                       const Program &program, const DeviceSpec &device);

} // namespace ftuner

#endif // FTUNER_COSTMODEL_METRICS_H
