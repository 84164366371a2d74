//===- LatencyLaunch.h - Launches of the latency formulas -------*- C++ -*-===//
//
// What the tests of the latency formulas begin with.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_TEST_UNIT_COSTMODEL_LATENCYLAUNCH_H
#define FTUNER_TEST_UNIT_COSTMODEL_LATENCYLAUNCH_H

#include "FTuner/CostModel/LatencyFormulas.h"

#include <cassert>
#include <cmath>
#include <gtest/gtest.h>
#include <initializer_list>
#include <random>

namespace ftuner {

/// SMs that hold 2048 threads, 32 blocks and 65536 registers.
inline LatencyDevice deviceOfSms(double smCount, double clockMhz) {
  LatencyDevice device;
  device.smCount = smCount;
  device.clockMhz = clockMhz;
  device.maxThreadsPerSm = 2048;
  device.maxBlocksPerSm = 32;
  device.registersPerSm = 65536;
  return device;
}

/// A launch of one or two kinds of blocks.
struct LatencyLaunch {
  LatencyDevice device = {};
  LatencyConstants constants = {};
  LatencyGrid grid = {};
  LatencyTable tables[2] = {};
  LatencyPart parts[2] = {};
  unsigned numParts = 0;

  void add(const LatencyKernel &block, double count, double steps) {
    assert(numParts < 2);
    tables[numParts] = tabulate(device, block, constants);
    parts[numParts] = {&tables[numParts], count, steps};
    ++numParts;
  }
  double time() const {
    return predictLatency(device, parts, numParts, grid, constants);
  }
  LatencyPrediction terms() const {
    return explainLatency(device, parts, numParts, grid, constants);
  }
};

/// No term is below 0, and together they are the time of the launch.
inline void expectSumOfTerms(const LatencyLaunch &launch) {
  LatencyPrediction terms = launch.terms();
  double sum = 0;
  for (double term : {terms.launch, terms.issue, terms.sharedMemory, terms.l2,
                      terms.latency, terms.blockStart, terms.tail, terms.dram,
                      terms.power, terms.secondKernel, terms.boxes}) {
    EXPECT_GE(term, 0);
    sum += term;
  }
  EXPECT_GT(launch.time(), 0);
  EXPECT_DOUBLE_EQ(terms.total, launch.time());
  EXPECT_NEAR(sum, terms.total, 1e-9 * terms.total);
}

/// A number from `low` to `high`, each order of magnitude as likely.
template <typename Random>
double drawLogarithmic(Random &random, double low, double high) {
  return std::exp(std::uniform_real_distribution<double>(
      std::log(low), std::log(high))(random));
}

} // namespace ftuner

#endif // FTUNER_TEST_UNIT_COSTMODEL_LATENCYLAUNCH_H
