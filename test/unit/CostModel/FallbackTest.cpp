//===- FallbackTest.cpp - Predicted times of fallback kernels -------------===//
#include "FTuner/CostModel/Fallback.h"
#include <gtest/gtest.h>

using namespace ftuner;

namespace {

/// Round figures: 100 GB/s, 1 TFLOP/s, 10 SMs of 32 load/store units, 1 GHz.
DeviceSpec device() {
  DeviceSpec device;
  device.computeCapabilityMajor = 8;
  device.smCount = 10;
  device.clockMhz = 1000;
  device.fp32Tflops = 1;
  device.dramGbps = 100;
  device.loadStoreUnitsPerSm = 32;
  return device;
}

Calibration calibration() {
  Calibration calibration;
  calibration.constants.launch = 3;
  calibration.constants.directLatency = 40;
  return calibration;
}

double predict(const FallbackWork &work) {
  return predictFallback(device(), calibration(), work);
}

TEST(Fallback, LaunchAndTheLargestOfFourBounds) {
  EXPECT_DOUBLE_EQ(predict({}), 3);
  // 1e6 bytes at 1e5 bytes per microsecond.
  EXPECT_DOUBLE_EQ(predict({0, 1e6, 0, 0}), 3 + 10);
  // 2e7 operations at 1e6 per microsecond.
  EXPECT_DOUBLE_EQ(predict({2e7, 1e6, 0, 0}), 3 + 20);
  // 9.6e6 accesses at 320 in a cycle, 1000 cycles in a microsecond.
  EXPECT_DOUBLE_EQ(predict({2e7, 1e6, 9.6e6, 0}), 3 + 30);
  // 1000 loads of 40 cycles.
  EXPECT_DOUBLE_EQ(predict({2e7, 1e6, 9.6e6, 1000}), 3 + 40);
}

TEST(Fallback, GrowsWithEveryFigure) {
  FallbackWork work{1e7, 1e6, 3e6, 250};
  double before = predict(work);
  for (double FallbackWork::*field :
       {&FallbackWork::operations, &FallbackWork::bytes,
        &FallbackWork::accesses, &FallbackWork::threadLoads}) {
    FallbackWork more = work;
    more.*field *= 100;
    EXPECT_GT(predict(more), before);
  }
}

} // namespace
