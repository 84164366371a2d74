//===- MetricOptions.cpp - Options of the metrics -------------------------===//
#include "FTuner/CostModel/MetricOptions.h"

using namespace ftuner;

const OptionTable<MetricOptions> &ftuner::metricOptions() {
  static const OptionTable<MetricOptions> table = {
      option("bandwidths", &MetricOptions::bandwidths,
             "The compute-to-memory ratio uses the 'datasheet' rates of the "
             "device, or the rates that were 'measured' on it",
             {{"datasheet", Bandwidths::Datasheet},
              {"measured", Bandwidths::Measured}}),
  };
  return table;
}

llvm::Error ftuner::checkMetricOptions(const MetricOptions &options,
                                       const DeviceSpec &device) {
  if (options.bandwidths == Bandwidths::Datasheet ||
      device.hasMeasuredBandwidths())
    return llvm::Error::success();
  return optionError(
      "bandwidths",
      "expected a device with the fields "
      "'measured_dram_gbps' and 'measured_shared_memory_gbps' for 'measured', "
      "but device '" +
          device.name + "' has none");
}
