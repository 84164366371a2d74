//===- Fallback.h - Predicted time of a fallback kernel ---------*- C++ -*-===//
//
// A fallback kernel has one thread for each element of its result and nothing
// else: no tiles, no shared memory. Its time is predicted by a bound,
//
//   launch + max(bytes / DRAM bandwidth, operations / peak,
//                accesses / (SMs · load/store units · clock),
//                loads of a thread · direct latency / clock)
//
// with `launch` and `direct_latency` of the calibration and all else of the
// data sheet. Caches that accesses miss, more threads than the device holds at
// once, and clocks below the described one make it longer. Like every predicted
// time it says nothing that was measured.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_COSTMODEL_FALLBACK_H
#define FTUNER_COSTMODEL_FALLBACK_H

#include "FTuner/CostModel/Calibration.h"
#include "FTuner/Device/DeviceSpec.h"

namespace ftuner {

/// Work of a launch of a fallback kernel.
struct FallbackWork {
  /// Arithmetic operations on elements.
  double operations = 0;
  /// Bytes of the kernel's operands, each element once.
  double bytes = 0;
  /// Loads and stores of elements by all threads.
  double accesses = 0;
  /// Elements that one thread loads, one after the other.
  double threadLoads = 0;
};

/// Microseconds that a device needs for each unit of such work.
struct FallbackRates {
  double launch = 0;
  /// For each byte, operation and access, and each load of a thread.
  double perByte = 0, perOperation = 0, perAccess = 0, perThreadLoad = 0;
};

FallbackRates fallbackRates(const DeviceSpec &device,
                            const Calibration &calibration);

/// Microseconds of a launch, `launch` of the calibration at least.
double predictFallback(const DeviceSpec &device, const Calibration &calibration,
                       const FallbackWork &work);

} // namespace ftuner

#endif // FTUNER_COSTMODEL_FALLBACK_H
