//===- MetricOptions.h - Options of the metrics -----------------*- C++ -*-===//
#ifndef FTUNER_COSTMODEL_METRICOPTIONS_H
#define FTUNER_COSTMODEL_METRICOPTIONS_H

#include "FTuner/Device/DeviceSpec.h"
#include "FTuner/Support/Options.h"

namespace ftuner {

/// Whose rates equations 6 and 7 divide by.
enum class Bandwidths {
  /// Peaks: `dram_gbps`, SMs · clock · 128 B, `fp32_tflops`.
  Datasheet,
  /// What micro-benchmarks reached: the fields `measured_…` of the device. A
  /// device without `measured_fp32_tflops` keeps its peak.
  Measured,
};

struct MetricOptions {
  Bandwidths bandwidths = Bandwidths::Datasheet;
};

/// bandwidths, for all who compute metrics.
const OptionTable<MetricOptions> &metricOptions();

/// An error that names the device if it lacks what the options ask for.
llvm::Error checkMetricOptions(const MetricOptions &options,
                               const DeviceSpec &device);

} // namespace ftuner

#endif // FTUNER_COSTMODEL_METRICOPTIONS_H
