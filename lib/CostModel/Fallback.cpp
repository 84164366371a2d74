//===- Fallback.cpp - Predicted time of a fallback kernel -----------------===//
#include "FTuner/CostModel/Fallback.h"
#include <algorithm>

using namespace ftuner;

double ftuner::predictFallback(const DeviceSpec &device,
                               const Calibration &calibration,
                               const FallbackWork &work) {
  // GB/s and elements per microsecond; TFLOP/s are 1e6 per microsecond.
  double memory = work.bytes / (device.dramGbps * 1e3);
  double compute = work.operations / (device.fp32Tflops * 1e6);
  double lanes =
      static_cast<double>(device.smCount * device.smFacts().loadStoreUnits);
  double access = work.accesses / (lanes * device.clockMhz);
  const LatencyConstants &constants = calibration.constants;
  double latency = work.threadLoads * constants.directLatency / device.clockMhz;
  return constants.launch + std::max({memory, compute, access, latency});
}
