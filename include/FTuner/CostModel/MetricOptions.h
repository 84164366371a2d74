//===- MetricOptions.h - Options of the metrics -----------------*- C++ -*-===//
#ifndef FTUNER_COSTMODEL_METRICOPTIONS_H
#define FTUNER_COSTMODEL_METRICOPTIONS_H

#include "FTuner/Device/DeviceSpec.h"
#include "FTuner/Support/Options.h"

namespace ftuner {

/// Source of the rates by which equations 6 and 7 divide.
enum class Bandwidths {
  /// Peaks: `dram_gbps`, SMs · clock · 128 B, `fp32_tflops`.
  Datasheet,
  /// Rates that micro-benchmarks reached: the fields `measured_…` of the
  /// device.
  /// A device without `measured_fp32_tflops` keeps its peak.
  Measured,
};

struct MetricOptions {
  Bandwidths bandwidths = Bandwidths::Datasheet;
};

/// Table with the option `bandwidths`, for all cost models and strategies that
/// compute metrics.
const OptionTable<MetricOptions> &metricOptions();

/// Returns an error that names the device if it lacks a figure that the options
/// ask for.
llvm::Error checkMetricOptions(const MetricOptions &options,
                               const DeviceSpec &device);

} // namespace ftuner

#endif // FTUNER_COSTMODEL_METRICOPTIONS_H
