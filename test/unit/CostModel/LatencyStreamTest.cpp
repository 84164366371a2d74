//===- LatencyStreamTest.cpp - Memory-bound kernels -----------------------===//
//
// Each resource by itself, where nothing else matters, and that terms add up.
//
//===----------------------------------------------------------------------===//
#include "../RandomSeed.h"
#include "LatencyLaunch.h"

using namespace ftuner;

namespace {

/// Round figures: 100 SMs at 1 GHz, 1000 GB/s, 40 MB of L2.
LatencyDevice roundDevice() {
  LatencyDevice device = deviceOfSms(100, 1000);
  device.dramGbps = 1000;
  device.l2Bytes = 40e6;
  device.sharedMemoryPerSmBytes = 160 << 10;
  return device;
}

/// A block of 4 warps that reads and writes 4096 bytes.
LatencyBlock rowBlock() {
  LatencyBlock block;
  block.isStreaming = true;
  block.warps = 4;
  block.otherInstructions = 100;
  block.l2Bytes = 4096;
  block.storedBytes = 4096;
  return block;
}

LatencyConstants plainConstants() {
  LatencyConstants constants;
  constants.launch = 0;
  constants.streamDramShare = 1;
  constants.streamL2BytesPerCycle = 64;
  constants.streamLatency = 300;
  constants.streamDramLatency = 2;
  constants.streamL2Share = 0.5;
  return constants;
}

/// Also checks that the terms are the time.
LatencyPrediction explain(const LatencyBlock &block, double count,
                          const LatencyConstants &constants,
                          double touched = 0) {
  LatencyLaunch launch;
  launch.device = roundDevice();
  launch.constants = constants;
  launch.grid.outputBytes = count * (block.l2Bytes + block.storedBytes);
  launch.grid.touchedBytes = touched;
  launch.add(block, count, 1);
  expectSumOfTerms(launch);
  return launch.terms();
}

TEST(LatencyStream, LongLaunchesTakeTheirBytesFromDram) {
  // 8.2 GB at 1000 bytes per nanosecond; SMs could do with 1.3 ms.
  LatencyPrediction time = explain(rowBlock(), 1e6, plainConstants());
  EXPECT_NEAR(time.total, 8192, 82);
  EXPECT_NEAR(time.dramTime, 8192, 1);
}

TEST(LatencyStream, L2ServesWhatItHolds) {
  // 1.6 MB of the 20 that are held, by 2 blocks of each SM.
  LatencyPrediction time = explain(rowBlock(), 200, plainConstants());
  EXPECT_LT(time.dramBytes, 0.01 * 1.6384e6);
  // A load from L2 and the start of a block.
  EXPECT_NEAR(time.smTime, 0.8, 0.02);
  // In place a launch touches half as much: at the knee a half of the bytes
  // come from DRAM, and a fifth at half of it.
  double atKnee = 20e6 / 8192;
  LatencyPrediction whole = explain(rowBlock(), atKnee, plainConstants());
  LatencyPrediction inPlace =
      explain(rowBlock(), atKnee, plainConstants(), 10e6);
  EXPECT_NEAR(whole.dramBytes, 10e6, 1e3);
  EXPECT_NEAR(inPlace.dramBytes, 4e6, 1e3);
}

TEST(LatencyStream, BytesInFlightBoundTheBandwidth) {
  // One block of 32 warps on an SM, 16 loads one after the other, each from
  // DRAM: 16 · 900 + 500 cycles for 8192 bytes.
  LatencyBlock block = rowBlock();
  block.warps = 32;
  block.registersPerThread = 64;
  block.exposedLoads = 16;
  LatencyPrediction time = explain(block, 1e6, plainConstants());
  EXPECT_EQ(time.residentBlocks, 1);
  EXPECT_NEAR(time.smTime, 1e4 * 14.9, 1e4 * 0.1);
  // Half as many registers: two blocks, half of the time.
  block.registersPerThread = 32;
  EXPECT_NEAR(explain(block, 1e6, plainConstants()).smTime, 1e4 * 14.9 / 2,
              1e4 * 0.1);
}

TEST(LatencyStream, LaterPassesAreServedWhereL2HoldsTheRows) {
  LatencyBlock block = rowBlock();
  double once = explain(block, 1e6, plainConstants()).dramBytes;
  // 16 blocks of each SM read 6.6 MB: L2 holds them.
  block.laterPasses = 2;
  double again = explain(block, 1e6, plainConstants()).dramBytes;
  EXPECT_GT(again, once);
  EXPECT_LT(again, 1.05 * once);
  // 16 times as long rows: it does not hold them.
  block.l2Bytes = block.storedBytes = 65536;
  double longOnce = 1e6 * 131072;
  EXPECT_GT(explain(block, 1e6, plainConstants()).dramBytes, 1.7 * longOnce);
  // What stays in registers is not read again.
  block.heldSteps = 1;
  EXPECT_NEAR(explain(block, 1e6, plainConstants()).dramBytes, longOnce,
              1e-6 * longOnce);
}

TEST(LatencyStream, SpecialFunctionsAreSixteenInACycle) {
  LatencyBlock block = rowBlock();
  block.specialOperations = 1 << 20;
  // 65536 cycles of an SM for each of 96 blocks, in six rounds of 16.
  EXPECT_NEAR(explain(block, 9600, plainConstants()).smTime, 96 * 65.536, 1);
}

TEST(LatencyStream, ReductionsOverlapLess) {
  LatencyBlock block = rowBlock();
  double elementwise = explain(block, 1e5, plainConstants()).total;
  block.syncCycles = 1e-6;
  EXPECT_GT(explain(block, 1e5, plainConstants()).total, elementwise);
}

TEST(LatencyStream, RowsOneAfterTheOtherAreLoadedAhead) {
  // Eight rows of few bytes, which L2 holds.
  LatencyBlock block = rowBlock();
  block.l2Bytes = block.storedBytes = 512;
  block.syncCycles = 200;
  block.rowLoop = 8;
  // Rows that are not held wait for their loads in turn: 8 · (300 + 200) + 500
  // cycles, and those that are held only for the first: 300 + 200 + 7 · 300.
  LatencyConstants constants = plainConstants();
  constants.overlap = 10;
  EXPECT_NEAR(explain(block, 1600, constants).smTime, 4.5, 0.1);
  block.heldSteps = 1;
  EXPECT_NEAR(explain(block, 1600, constants).smTime, 3.1, 0.1);
  block.l2Bytes = block.storedBytes = 8 * 4096;
  // What they share is loaded once.
  double alone = explain(block, 1600, plainConstants()).smTime;
  block.commonBytes = block.l2Bytes;
  EXPECT_LT(explain(block, 1600, plainConstants()).smTime, 0.8 * alone);
  block.heldSteps = 0;
  double streamed = explain(block, 1600, plainConstants()).smTime;
  block.commonBytes = 0;
  EXPECT_DOUBLE_EQ(explain(block, 1600, plainConstants()).smTime, streamed);
  // SMs and DRAM overlap as in kernels that do not reduce, but for the first.
  LatencyConstants both = plainConstants();
  both.streamOverlap = 2;
  both.overlap = 6;
  auto expectOverlap = [&](double p) {
    LatencyPrediction time = explain(block, 1e5, both);
    EXPECT_NEAR(
        time.total,
        std::pow(std::pow(time.smTime, p) + std::pow(time.dramTime, p), 1 / p),
        1e-9 * time.total);
  };
  expectOverlap(2);
  block.heldSteps = 1;
  expectOverlap(2 + 4 * 7 / 8.0);
}

TEST(LatencyStream, TermsAddUpAndMoreIsNeverFaster) {
  RandomSeed seed;
  std::mt19937 random(seed);
  auto draw = [&](double low, double high) {
    return drawLogarithmic(random, low, high);
  };
  for (int i = 0; i < 2000; ++i) {
    LatencyBlock block;
    block.isStreaming = true;
    block.warps = std::floor(draw(1, 33));
    block.registersPerThread = std::floor(draw(16, 128));
    block.fma = draw(1, 1e4);
    block.otherInstructions = draw(1, 1e4);
    block.specialOperations = draw(1, 1e4);
    block.l2Bytes = draw(32, 1e5);
    block.storedBytes = draw(32, 1e5);
    block.exposedLoads = draw(0.1, 20);
    block.laterPasses = std::floor(draw(1, 4)) - 1;
    block.syncCycles = draw(1, 1000);
    double count = std::floor(draw(1, 1e6));
    LatencyConstants constants;
    LatencyPrediction terms = explain(block, count, constants);
    EXPECT_GE(explain(block, count + 1, constants).total,
              terms.total * (1 - 1e-12));
    for (double LatencyBlock::*field :
         {&LatencyBlock::fma, &LatencyBlock::otherInstructions,
          &LatencyBlock::specialOperations, &LatencyBlock::l2Bytes,
          &LatencyBlock::storedBytes, &LatencyBlock::exposedLoads,
          &LatencyBlock::laterPasses, &LatencyBlock::syncCycles}) {
      LatencyBlock more = block;
      more.*field *= 1.5;
      EXPECT_GE(explain(more, count, constants).total,
                terms.total * (1 - 1e-12));
    }
  }
}

} // namespace
