//===- Fallback.cpp - Predicted time of a fallback kernel -----------------===//
#include "FTuner/CostModel/Fallback.h"
#include <algorithm>

using namespace ftuner;

double ftuner::predictFallback(const DeviceSpec &device,
                               const Calibration &calibration,
                               const FallbackWork &work) {
  // Per microsecond: 1 GB/s is 1e3 bytes, 1 TFLOP/s 1e6 operations, 1 MHz one
  // cycle.
  double memory = work.bytes / (device.dramGbps * 1e3);
  double compute = work.operations / (device.fp32Tflops * 1e6);
  double lanes =
      static_cast<double>(device.smCount * device.smFacts().loadStoreUnits);
  double access = work.accesses / (lanes * device.clockMhz);
  const LatencyConstants &constants = calibration.constants;
  double latency = work.threadLoads * constants.directLatency / device.clockMhz;
  return constants.launch + std::max({memory, compute, access, latency});
}
