//===- Fallback.cpp - Predicted time of a fallback kernel -----------------===//
#include "FTuner/CostModel/Fallback.h"
#include <algorithm>

using namespace ftuner;

FallbackRates ftuner::fallbackRates(const DeviceSpec &device,
                                    const Calibration &calibration) {
  // Per microsecond: 1 GB/s is 1e3 bytes, 1 TFLOP/s 1e6 operations, 1 MHz one
  // cycle.
  double lanes =
      static_cast<double>(device.smCount * device.smFacts().loadStoreUnits);
  const LatencyConstants &constants = calibration.constants;
  return {constants.launch, 1 / (device.dramGbps * 1e3),
          1 / (device.fp32Tflops * 1e6), 1 / (lanes * device.clockMhz),
          constants.directLatency / device.clockMhz};
}

double ftuner::predictFallback(const DeviceSpec &device,
                               const Calibration &calibration,
                               const FallbackWork &work) {
  FallbackRates rates = fallbackRates(device, calibration);
  return rates.launch + std::max({work.bytes * rates.perByte,
                                  work.operations * rates.perOperation,
                                  work.accesses * rates.perAccess,
                                  work.threadLoads * rates.perThreadLoad});
}
