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
LatencyStream rowBlock() {
  LatencyStream block;
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
  constants.streamBestShare = 1;
  constants.streamWarpRate = 0.5;
  constants.line = 1;
  return constants;
}

/// Also checks that the terms are the time.
LatencyPrediction explain(const LatencyStream &block, double count,
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
  // A load from L2, the start of a block, and 25 instructions of a warp, which
  // issues in every other cycle.
  EXPECT_NEAR(time.smTime, 0.85, 0.02);
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
  LatencyStream block = rowBlock();
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
  LatencyStream block = rowBlock();
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
  LatencyStream block = rowBlock();
  block.specialOperations = 1 << 20;
  // 65536 cycles of an SM for each of 96 blocks, in six rounds of 16.
  EXPECT_NEAR(explain(block, 9600, plainConstants()).smTime, 96 * 65.536, 1);
}

/// SMs and DRAM of kernels that read rows again overlap by the blocks of an SM;
/// of all others all but the first load and the last row's work does.
TEST(LatencyStream, BlocksThatReadAgainWaitForEachOther) {
  LatencyConstants constants = plainConstants();
  constants.overlap = 6;
  constants.streamOverlapByBlocks = 0.25;
  LatencyStream block = rowBlock();
  block.syncCycles = 200;
  block.l2Bytes = block.storedBytes = 8 * 4096;
  // 500 cycles of start, 900 of a load from DRAM, 50 of instructions, 200 of
  // shuffles and barriers.
  double bare = 1.65;
  auto expectOverlap = [&](double p) {
    LatencyPrediction time = explain(block, 1e5, constants);
    EXPECT_NEAR(time.total,
                bare + std::pow(std::pow(time.smTime - bare, p) +
                                    std::pow(time.dramTime, p),
                                1 / p),
                1e-3);
  };
  expectOverlap(6);
  block.laterPasses = 1;
  // 16 blocks of 4 warps with 32 registers.
  expectOverlap(1 + 0.25 * 16);
  block.registersPerThread = 128;
  expectOverlap(1 + 0.25 * 4);
  block.heldSteps = 1;
  expectOverlap(6);
}

TEST(LatencyStream, AWarpIssuesNoFasterThanItsInstructionsAllow) {
  LatencyStream block = rowBlock();
  block.l2Bytes = block.storedBytes = 64;
  // A block of 4 warps on an SM: each has a scheduler, and issues 10000
  // instructions in 20000 cycles, behind 800 of start and load.
  block.otherInstructions = 40000;
  LatencyConstants constants = plainConstants();
  constants.overlap = 10;
  EXPECT_NEAR(explain(block, 100, constants).smTime, 20.8, 0.1);
  // Eight blocks share the schedulers, which issue in each cycle.
  EXPECT_NEAR(explain(block, 800, constants).smTime, 80, 0.2);
  // 64 f32 lanes take two cycles for a warp, one after the other.
  block.fma = block.otherInstructions;
  block.otherInstructions = 0;
  EXPECT_NEAR(explain(block, 800, constants).smTime, 160, 0.2);
}

/// Registers for 16 steps of a row, of which it has one: the others'
/// instructions are executed for nothing.
TEST(LatencyStream, HeldStepsBeyondTheRowTakeInstructions) {
  LatencyStream block = rowBlock();
  block.otherInstructions = 4000;
  block.heldSteps = 1;
  double fitting = explain(block, 1600, plainConstants()).smTime;
  block.heldSteps = 16;
  EXPECT_NEAR(explain(block, 1600, plainConstants()).smTime, 16 * fitting,
              0.5 * fitting);
  // A longer row is read again, by a loop that has its steps alone.
  block.heldSteps = 0.5;
  EXPECT_NEAR(explain(block, 1600, plainConstants()).smTime, fitting,
              0.1 * fitting);
}

TEST(LatencyStream, L1ServesWhatRowsShare) {
  // Two rows of a norm whose scale and shift have as many bytes.
  LatencyStream block = rowBlock();
  block.commonBytes = 32768;
  block.distinctCommonBytes = 16384;
  block.l2Bytes = 4096 + block.commonBytes;
  LatencyLaunch launch;
  launch.device = roundDevice();
  launch.constants = plainConstants();
  launch.constants.streamL2BytesPerCycle = 8;
  launch.add(block, 16000, 1);
  // 16 blocks at once, ten times, without an L1 and with one that holds all.
  EXPECT_NEAR(launch.terms().smTime, 160 * (8192 + 32768) / 8e3, 10);
  launch.device.l1Bytes = 1e9;
  EXPECT_NEAR(launch.terms().smTime, (160 * 8192 + 16384) / 8e3, 5);
  // Rows of 16 blocks take half of it.
  launch.device.l1Bytes = 16384 + 16 * 4096;
  double half = launch.terms().smTime;
  EXPECT_NEAR(half, 160 * (8192 + 0.5 * 32768) / 8e3, 15);
}

TEST(LatencyStream, LinesOfAccessesTakeTurns) {
  LatencyStream block = rowBlock();
  block.globalLines = 1000;
  EXPECT_NEAR(explain(block, 1600, plainConstants()).smTime, 16, 0.1);
}

TEST(LatencyStream, RowsBreakSectorsWhereTheyBegin) {
  LatencyLaunch launch;
  launch.device = roundDevice();
  launch.constants = plainConstants();
  launch.constants.streamUnaligned = 0.8;
  LatencyStream block = rowBlock();
  block.runBytes = 128;
  launch.add(block, 1e6, 1);
  launch.grid.outputBytes = 1e6 * 8192;
  auto dramBytes = [&](double rowBytes) {
    launch.grid.rowBytes = rowBytes;
    return launch.terms().dramBytes / 8192e6;
  };
  EXPECT_NEAR(dramBytes(0), 1, 1e-3);
  EXPECT_NEAR(dramBytes(4096), 1, 1e-3);
  // Every other row begins within a sector, and its accesses take five of them.
  EXPECT_NEAR(dramBytes(4096 + 16), 1 + 0.8 / 2 / 4, 1e-3);
  EXPECT_NEAR(dramBytes(4096 + 4), 1 + 0.8 * 7 / 8 / 4, 1e-3);
}

TEST(LatencyStream, NoneExceedsTheBestShareOfTheBandwidth) {
  LatencyConstants constants = plainConstants();
  constants.streamBestShare = 0.75;
  LatencyPrediction time = explain(rowBlock(), 1e6, constants);
  EXPECT_NEAR(time.total, time.dramBytes / 1e6 / 0.75, 1e-6 * time.total);
}

TEST(LatencyStream, RowsOneAfterTheOtherAreLoadedAhead) {
  // Eight rows of few bytes, which L2 holds.
  LatencyStream block = rowBlock();
  block.l2Bytes = block.storedBytes = 512;
  block.syncCycles = 200;
  block.rowLoop = 8;
  // Rows that are not held wait for their loads in turn: 8 · (300 + 200 + 6) +
  // 500 cycles. Held rows wait only for the first: 300 + 206 + 7 · 300.
  LatencyConstants constants = plainConstants();
  constants.overlap = 10;
  EXPECT_NEAR(explain(block, 1600, constants).smTime, 4.55, 0.1);
  block.heldSteps = 1;
  EXPECT_NEAR(explain(block, 1600, constants).smTime, 3.1, 0.1);
  block.l2Bytes = block.storedBytes = 8 * 4096;
  // Bytes that all blocks share are loaded once.
  double unshared = explain(block, 1600, plainConstants()).smTime;
  block.commonBytes = block.l2Bytes;
  EXPECT_LT(explain(block, 1600, plainConstants()).smTime, 0.8 * unshared);
  block.heldSteps = 0;
  double streamed = explain(block, 1600, plainConstants()).smTime;
  block.commonBytes = 0;
  EXPECT_DOUBLE_EQ(explain(block, 1600, plainConstants()).smTime, streamed);
}

TEST(LatencyStream, TermsAddUpAndMoreIsNeverFaster) {
  RandomSeed seed;
  std::mt19937 random(seed);
  auto draw = [&](double low, double high) {
    return drawLogarithmic(random, low, high);
  };
  for (int i = 0; i < 2000; ++i) {
    LatencyStream block;
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
    using Field = double LatencyStream::*;
    for (Field field :
         {Field(&LatencyStream::fma), Field(&LatencyStream::otherInstructions),
          Field(&LatencyStream::specialOperations),
          Field(&LatencyStream::l2Bytes), Field(&LatencyStream::storedBytes),
          Field(&LatencyStream::exposedLoads),
          Field(&LatencyStream::laterPasses),
          Field(&LatencyStream::syncCycles)}) {
      LatencyStream more = block;
      more.*field *= 1.5;
      EXPECT_GE(explain(more, count, constants).total,
                terms.total * (1 - 1e-12));
    }
  }
}

} // namespace
