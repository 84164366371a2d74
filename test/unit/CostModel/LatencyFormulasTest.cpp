//===- LatencyFormulasTest.cpp - The formulas by themselves ---------------===//
//
// Expected times come from the study that the formulas come from
// (docs/latency.md), which computed them in another language.
//
//===----------------------------------------------------------------------===//
#include "../RandomSeed.h"
#include "LatencyLaunch.h"
#include <algorithm>
#include <string>

using namespace ftuner;

namespace {

/// A Tesla V100 of 250 W.
LatencyDevice largeDevice() {
  LatencyDevice device = deviceOfSms(80, 1380);
  device.fp32Lanes = 64;
  device.dramGbps = 900;
  device.l2Bytes = 6 << 20;
  device.sharedMemoryPerSmBytes = 96 << 10;
  device.boardPowerWatts = 250;
  return device;
}

/// One of 70 W.
LatencyDevice smallDevice() {
  LatencyDevice device = largeDevice();
  device.smCount = 40;
  device.clockMhz = 1590;
  device.loadStoreLanes = 16;
  device.dramGbps = 320;
  device.l2Bytes = 4 << 20;
  device.sharedMemoryPerSmBytes = 64 << 10;
  device.maxThreadsPerSm = 1024;
  device.maxBlocksPerSm = 16;
  device.boardPowerWatts = 70;
  return device;
}

/// A block tile of 128 × 128 by 256 threads in steps of 16.
LatencyLoop tallBlock() {
  LatencyLoop block;
  block.warps = 8;
  block.registersPerThread = 128;
  block.sharedMemoryBytes = 16384;
  block.kTile = 16;
  block.fma = 8192;
  block.otherInstructions = 900;
  block.loadedRegisters = 2048;
  block.sharedCycles = 1100;
  block.globalLines = 128;
  block.l2Bytes = 16384;
  return block;
}

LatencyLoop shortBlock() {
  LatencyLoop block = tallBlock();
  block.fma = 4096;
  block.otherInstructions = 600;
  block.loadedRegisters = 1500;
  block.sharedCycles = 800;
  block.globalLines = 96;
  block.l2Bytes = 12288;
  return block;
}

/// One that loads, waits and multiplies, and spills.
LatencyLoop plainBlock() {
  LatencyLoop block = tallBlock();
  block.warps = 4;
  block.isPipelined = false;
  block.exposedLoads = 2;
  block.directRegisters = 64;
  block.spilledRegisters = 10;
  return block;
}

/// 2048 × 2304 × 1536.
LatencyGrid gridOfProduct() {
  LatencyGrid grid;
  grid.blocksX = 18;
  grid.blocksY = 16;
  grid.tileX = grid.tileY = 128;
  grid.lhsBytes = 4.0 * 2048 * 1536;
  grid.rhsBytes = 4.0 * 2304 * 1536;
  grid.outputBytes = 4.0 * 2048 * 2304;
  grid.lhsRunBytes = 64;
  grid.rhsRunBytes = 512;
  grid.reduceLength = 1536;
  return grid;
}

LatencyConstants studyConstants() {
  LatencyConstants constants;
  constants.fma = 1.05;
  constants.other = 1;
  constants.loadedRegister = 1.67;
  constants.line = 0.926;
  constants.spill = 4.94;
  constants.overlapByWarps = 0.304;
  constants.overlap = 4;
  constants.globalLatency = 1460;
  constants.directLatency = 35.7;
  constants.blockStart = 3000;
  constants.l2BytesPerCycle = 9.8;
  constants.l2Share = 0.15;
  constants.dramShare = 0.927;
  constants.unalignedStore = 0.69;
  constants.narrowRun = 3.8;
  constants.narrowRunDepth = 356;
  constants.drift = 96;
  constants.driftRows = 4000;
  constants.flopEnergy = 11.4;
  constants.l2Energy = 73;
  constants.dramEnergy = 33;
  constants.idleShare = 0.08;
  constants.dramStart = 0;
  constants.lastRound = 1;
  constants.powerDelay = 485;
  constants.launch = 2;
  constants.secondKernel = 3;
  return constants;
}

struct Launch : LatencyLaunch {
  Launch() {
    device = largeDevice();
    constants = studyConstants();
    grid = gridOfProduct();
  }
};

void expectTime(const Launch &launch, double expected) {
  EXPECT_NEAR(launch.time(), expected, 1e-12 * expected);
}

//===----------------------------------------------------------------------===//
// Schedulers
//===----------------------------------------------------------------------===//

/// A device on which nothing takes time but the issue of instructions: an SM
/// whose schedulers have the registers of 16 warps of 128 each.
LatencyDevice issueOnlyDevice() {
  LatencyDevice device = deviceOfSms(1, 1);
  device.dramGbps = 1e30;
  device.l2Bytes = 1e30;
  device.sharedMemoryPerSmBytes = 1e30;
  device.registersPerSm = 4 * 65536;
  return device;
}

LatencyConstants issueOnlyConstants() {
  LatencyConstants constants;
  constants.blockStart = constants.globalLatency = constants.launch = 0;
  constants.l2BytesPerCycle = 1e30;
  return constants;
}

LatencyLoop issueOnlyBlock(double warps, double fmaOfWarp) {
  LatencyLoop block;
  block.warps = warps;
  block.registersPerThread = 128;
  block.fma = warps * fmaOfWarp;
  return block;
}

// What the busiest of 4 schedulers gets of 1 to 4 blocks of 1 to 12 warps.
TEST(Schedulers, WarpsOfTheBusiest) {
  const int expected[12][4] = {{1, 1, 1, 1},  {1, 1, 2, 2},  {1, 2, 3, 3},
                               {1, 2, 3, 4},  {2, 3, 4, 5},  {2, 3, 5, 6},
                               {2, 4, 6, 7},  {2, 4, 6, 8},  {3, 5, 7, 9},
                               {3, 5, 8, 10}, {3, 6, 9, 11}, {3, 6, 9, 12}};
  LatencyDevice device = issueOnlyDevice();
  for (int warps = 1; warps <= 12; ++warps)
    for (int blocks = 1; blocks <= 4; ++blocks) {
      SCOPED_TRACE(std::to_string(blocks) + " blocks of " +
                   std::to_string(warps) + " warps");
      int busiest = expected[warps - 1][blocks - 1];
      EXPECT_EQ(busiestScheduler(device, warps, blocks), busiest);
      // A warp's FMAs of a step take 1000 slots of its scheduler, which sets
      // the pace of the SM.
      LatencyLoopTable table =
          tabulate(device, issueOnlyBlock(warps, 1000), issueOnlyConstants());
      ASSERT_GE(table.resident, 4u);
      EXPECT_NEAR(table.step[blocks - 1] * blocks,
                  busiest * 1000 * 2 * issueOnlyConstants().fma,
                  1e-6 * busiest);
    }
}

// Rows of a V100 (volta_sgemm_64x64_nn, 2 warps): 1 to 8 blocks on an SM take
// 178, 267, 278, 284, 404, 534, 564 and 563 cycles per reduce element, where a
// warp takes 128 of its scheduler.
TEST(Schedulers, HalfBlocksInARow) {
  LatencyDevice device = issueOnlyDevice();
  device.halfBlockRun = 2;
  const int expected[] = {1, 2, 2, 2, 3, 4, 4, 4, 5};
  for (int blocks = 1; blocks <= 9; ++blocks)
    EXPECT_EQ(busiestScheduler(device, 2, blocks), expected[blocks - 1]);
  EXPECT_EQ(busiestScheduler(device, 4, 3), 3);
  EXPECT_EQ(busiestScheduler(device, 3, 3), 3);
  device.halfBlockRun = 1;
  for (int blocks = 1; blocks <= 9; ++blocks)
    EXPECT_EQ(busiestScheduler(device, 2, blocks), (blocks + 1) / 2);
}

// Taller blocks are dealt first; the busiest scheduler is found by dealing.
TEST(Schedulers, BlocksOfTwoHeights) {
  std::mt19937 random(7);
  for (int i = 0; i < 500; ++i) {
    int warps = 1 + static_cast<int>(random() % 12);
    int tall = 1 + static_cast<int>(random() % 4);
    int low = 1 + static_cast<int>(random() % 4);
    double lowFma = 1 + static_cast<double>(random() % 100);
    double tallFma = lowFma + static_cast<double>(random() % 100);
    LatencyDevice device = issueOnlyDevice();
    LatencyConstants constants = issueOnlyConstants();
    LatencyTable tables[] = {
        tabulate(device, issueOnlyBlock(warps, lowFma), constants),
        tabulate(device, issueOnlyBlock(warps, tallFma), constants)};
    auto resident = std::get<LatencyLoopTable>(tables[0]).resident;
    if (tall + low > static_cast<int>(resident))
      continue;
    LatencyPart parts[] = {{&tables[0], double(low), 10},
                           {&tables[1], double(tall), 10}};
    double load[4] = {};
    int next = 0;
    for (int block = 0; block < tall + low; ++block)
      for (int warp = 0; warp < warps; ++warp, next = (next + 1) % 4)
        load[next] += block < tall ? tallFma : lowFma;
    double busiest = *std::max_element(load, load + 4);
    double cycles = predictLatency(device, parts, 2, LatencyGrid(), constants);
    EXPECT_NEAR(cycles, 10 * busiest * 2 * constants.fma, 1e-6 * cycles)
        << low << " low and " << tall << " tall blocks of " << warps;
  }
}

// Each scheduler has a quarter of the registers: 184 for each thread are 5888
// for a warp, and 16384 hold 2 warps.
TEST(Schedulers, HaveRegistersOfTheirOwn) {
  auto resident = [](double warps, double registers) {
    LatencyDevice device = issueOnlyDevice();
    device.registersPerSm = 65536;
    LatencyLoop block = issueOnlyBlock(warps, 1);
    block.registersPerThread = registers;
    return tabulate(device, block, issueOnlyConstants()).resident;
  };
  EXPECT_EQ(resident(1, 184), 8u);
  EXPECT_EQ(resident(4, 184), 2u);
  EXPECT_EQ(resident(8, 128), 2u);
  EXPECT_EQ(resident(3, 128), 5u);
  EXPECT_EQ(resident(5, 128), 3u);
  EXPECT_EQ(resident(8, 255), 1u);
  // One that does not fit runs nevertheless, spilling.
  EXPECT_EQ(resident(12, 255), 1u);
}

TEST(Schedulers, UnevenBlocksAreTold) {
  Launch launch;
  LatencyLoop five = tallBlock();
  five.warps = 5;
  launch.add(five, 80, 96);
  EXPECT_DOUBLE_EQ(launch.terms().schedulerImbalance, 1.6);
  Launch even;
  even.add(tallBlock(), 80, 96);
  EXPECT_DOUBLE_EQ(even.terms().schedulerImbalance, 1);
}

TEST(LatencyFormulas, OnePart) {
  Launch launch;
  launch.add(tallBlock(), 288, 96);
  expectTime(launch, 1212.045565021593);
}

TEST(LatencyFormulas, FewBlocks) {
  Launch launch;
  launch.grid.blocksY = 1;
  launch.grid.lhsBytes = 4.0 * 128 * 1536;
  launch.add(tallBlock(), 18, 96);
  expectTime(launch, 304.86991412502073);
  // A single wave has no tail: the bound of its blocks takes all of its time.
  EXPECT_EQ(launch.terms().tail, 0);
  EXPECT_GT(launch.terms().latency, 0);
}

TEST(LatencyFormulas, TwoParts) {
  Launch launch;
  launch.grid.blocksY = 17;
  launch.grid.tileY = 120;
  launch.add(shortBlock(), 54, 96);
  launch.add(tallBlock(), 252, 96);
  expectTime(launch, 1212.0497453301286);
}

// 80 SMs hold 160 blocks; one more needs another wave.
TEST(LatencyFormulas, Tail) {
  auto tail = [](double blocks) {
    Launch launch;
    launch.device.boardPowerWatts = std::numeric_limits<double>::infinity();
    launch.add(tallBlock(), blocks, 96);
    LatencyPrediction terms = launch.terms();
    return terms.tail / terms.total;
  };
  EXPECT_EQ(tail(40), 0);
  EXPECT_NEAR(tail(160), 0, 1e-9);
  EXPECT_GT(tail(161), 0.2);
  EXPECT_NEAR(tail(320), 0, 1e-9);
}

// 80 SMs hold 160 blocks. 80 more go to 40 SMs, two each, as their slots become
// free: as long as a full round. Behind many rounds blocks have drifted apart.
TEST(LatencyFormulas, LastRound) {
  auto cycles = [](double blocks, bool isPersistent = false) {
    Launch launch;
    launch.device.boardPowerWatts = std::numeric_limits<double>::infinity();
    LatencyLoop block = tallBlock();
    block.isPersistent = isPersistent;
    launch.add(block, blocks, 96);
    return launch.terms().smTime;
  };
  double round = cycles(160);
  EXPECT_LT(cycles(80), 0.9 * round);
  EXPECT_NEAR(cycles(240), 2 * round, 1e-9 * round);
  EXPECT_LT(cycles(400), 2.98 * round);
  EXPECT_GT(cycles(400), 2 * round + cycles(80));
  EXPECT_LT(cycles(240, /*isPersistent=*/true), 1.9 * round);
}

// The constant goes in proportion from an even deal to a full round.
TEST(LatencyFormulas, LastRoundIsAShare) {
  auto cycles = [](double share) {
    Launch launch;
    launch.device.boardPowerWatts = std::numeric_limits<double>::infinity();
    launch.constants.lastRound = share;
    launch.add(tallBlock(), 240, 96);
    return launch.terms().smTime;
  };
  double even = cycles(0), full = cycles(1);
  EXPECT_GT(full, 1.05 * even);
  EXPECT_NEAR(cycles(0.3), even + 0.3 * (full - even), 1e-9 * full);
}

// Idle power is a share of the board's: half the board at half the energy takes
// as long, however few watts it has.
TEST(LatencyFormulas, IdlePowerIsAShare) {
  auto powerTime = [](double watts, double scale) {
    Launch launch;
    launch.device.boardPowerWatts = watts;
    launch.constants.idleShare = 0.2;
    for (double LatencyConstants::*energy :
         {&LatencyConstants::flopEnergy, &LatencyConstants::l2Energy,
          &LatencyConstants::dramEnergy})
      launch.constants.*energy *= scale;
    launch.add(tallBlock(), 288, 96);
    return launch.terms().powerTime;
  };
  EXPECT_NEAR(powerTime(15, 0.05), powerTime(300, 1), 1e-9 * powerTime(300, 1));
  EXPECT_NEAR(powerTime(150, 1), 2 * powerTime(300, 1),
              1e-9 * powerTime(150, 1));
}

// DRAM needs its start once, and not for what L2 holds.
TEST(LatencyFormulas, DramStarts) {
  auto dramTime = [](double start, double l2Bytes) {
    Launch launch;
    launch.constants.dramStart = start;
    launch.device.l2Bytes = l2Bytes;
    launch.add(tallBlock(), 288, 96);
    return launch.terms().dramTime;
  };
  EXPECT_NEAR(dramTime(3, 1) - dramTime(0, 1), 3, 1e-6);
  EXPECT_LT(dramTime(3, 1e12) - dramTime(0, 1e12), 1e-3);
}

// TMA units that copy rows outside of operands bound a launch.
TEST(LatencyFormulas, BoxesBound) {
  Launch launch;
  launch.add(tallBlock(), 288, 96);
  double before = launch.time();
  launch.grid.boxCycles = 1e3;
  EXPECT_EQ(launch.time(), before);
  launch.grid.boxCycles = 2 * before * launch.device.clockMhz;
  EXPECT_NEAR(launch.time(), 2 * before + launch.constants.launch, 1e-6);
  expectSumOfTerms(launch);
}

// Blocks whose operands come from L2: SMs that are idle leave the others what
// L2 delivers, up to the port of an SM.
TEST(LatencyFormulas, IdleSms) {
  auto stepCycles = [](double blocks) {
    Launch launch;
    launch.device.boardPowerWatts = std::numeric_limits<double>::infinity();
    LatencyLoop block = tallBlock();
    block.l2Bytes = 1e6;
    launch.add(block, blocks, 1000);
    return launch.terms().smTime * launch.device.clockMhz / 1000;
  };
  double delivered = studyConstants().l2BytesPerCycle;
  EXPECT_NEAR(stepCycles(80), 1e6 / delivered, 0.01 * stepCycles(80));
  EXPECT_NEAR(stepCycles(40), 1e6 / (2 * delivered), 0.01 * stepCycles(40));
  EXPECT_NEAR(stepCycles(1), 1e6 / 80, 0.01 * stepCycles(1));
}

// A scheduler's only warp loses the whole of what the constant says, two of
// them half each.
TEST(LatencyFormulas, LoneWarps) {
  auto issue = [](double loneWarp, double warps) {
    Launch launch;
    launch.device = issueOnlyDevice();
    launch.constants = issueOnlyConstants();
    launch.constants.loneWarp = loneWarp;
    LatencyLoop block;
    block.warps = warps;
    block.fma = 1000 * warps;
    launch.add(block, 1, 1000);
    return launch.terms().smTime;
  };
  EXPECT_NEAR(issue(0.6, 4), 1.6 * issue(0, 4), 0.01 * issue(0, 4));
  EXPECT_NEAR(issue(0.6, 8), 1.3 * issue(0, 8), 0.01 * issue(0, 8));
}

// Two blocks on an SM, one of each part: between two short and two tall ones,
// and near the mean of them.
TEST(LatencyFormulas, MixedRound) {
  auto time = [](double low, double high) {
    Launch launch;
    launch.device.boardPowerWatts = std::numeric_limits<double>::infinity();
    launch.grid.blocksX = 16;
    launch.grid.blocksY = 10;
    if (low > 0)
      launch.add(shortBlock(), low, 96);
    if (high > 0)
      launch.add(tallBlock(), high, 96);
    return launch.time();
  };
  double low = time(160, 0), mixed = time(80, 80), high = time(0, 160);
  EXPECT_GT(mixed, 1.1 * low);
  EXPECT_LT(1.1 * mixed, high);
  EXPECT_NEAR(mixed, (low + high) / 2, 0.05 * mixed);
}

TEST(LatencyFormulas, SwizzledBatchesOfUnalignedRows) {
  Launch launch;
  launch.grid.isSwizzled = true;
  launch.grid.isOutputAligned = false;
  launch.grid.problems = 12;
  launch.grid.outputBytes *= 12;
  launch.add(tallBlock(), 288 * 12, 96);
  expectTime(launch, 13313.263899657522);
}

TEST(LatencyFormulas, NotPipelined) {
  Launch launch;
  launch.add(plainBlock(), 288, 128);
  expectTime(launch, 1817.6816221097818);
}

TEST(LatencyFormulas, PowerLimit) {
  Launch launch;
  launch.device = smallDevice();
  launch.constants.idleShare = 20.0 / 70;
  launch.grid.blocksX = 100;
  launch.grid.blocksY = 40;
  launch.add(tallBlock(), 4000, 96);
  expectTime(launch, 55160.34989543918);
  EXPECT_GT(launch.terms().power, 0.2 * launch.time());
  launch.device.boardPowerWatts = std::numeric_limits<double>::infinity();
  EXPECT_EQ(launch.terms().power, 0);
}

TEST(LatencyFormulas, Slices) {
  Launch launch;
  launch.device = smallDevice();
  launch.constants.idleShare = 20.0 / 70;
  launch.grid.secondKernels = 1;
  launch.grid.reduceLength = 384;
  launch.add(tallBlock(), 288 * 4, 96);
  expectTime(launch, 15447.180632755777);
  EXPECT_EQ(launch.terms().secondKernel, 3);
}

TEST(LatencyFormulas, SumsOfSlicesAreReadAfterTheKernel) {
  Launch launch;
  launch.device.smCount = 100;
  launch.device.clockMhz = 1000;
  launch.device.dramGbps = 1000;
  launch.device.l2Bytes = 1e6;
  launch.constants.l2Share = 0.5;
  launch.constants.dramShare = 0.5;
  launch.constants.l2BytesPerCycle = 20;
  launch.grid.secondKernels = 1;
  launch.add(tallBlock(), 288, 96);
  double before = launch.terms().dramBytes;
  // As many bytes as L2 holds: half of them are there. 500 bytes of DRAM and
  // 2000 of L2 in a microsecond.
  launch.grid.sumBytes = 5e5;
  EXPECT_NEAR(launch.terms().secondKernel,
              launch.constants.secondKernel + 250e3 / 500e3 + 250e3 / 2000e3,
              1e-9);
  EXPECT_GE(launch.terms().dramBytes, before + 5e5);
  EXPECT_NEAR(launch.terms().total, launch.time(), 1e-9 * launch.time());
}

// The roots without a logarithm are the same function as those with one.
TEST(LatencyFormulas, OverlapIsContinuous) {
  Launch exact, nearlyExact;
  nearlyExact.constants.overlap = 4 + 1e-9;
  exact.add(tallBlock(), 288, 96);
  nearlyExact.add(tallBlock(), 288, 96);
  EXPECT_NEAR(exact.time(), nearlyExact.time(), 1e-6 * exact.time());
  EXPECT_NE(exact.time(), nearlyExact.time());
}

TEST(LatencyFormulas, TermsAddUp) {
  RandomSeed seed;
  std::mt19937_64 random(seed);
  auto real = [&](double low, double high) {
    return drawLogarithmic(random, low, high);
  };
  for (int i = 0; i < 2000; ++i) {
    Launch launch;
    if (random() % 2)
      launch.device = smallDevice();
    launch.constants.idleShare = 20.0 / 70;
    LatencyLoop first = random() % 2 ? shortBlock() : plainBlock();
    LatencyLoop second = tallBlock();
    second.isPipelined = first.isPipelined;
    second.warps = first.warps;
    first.exposedLoads = real(0.1, 4);
    second.l2Bytes = real(1e2, 1e6);
    launch.grid.blocksX = std::floor(real(1, 200));
    launch.grid.blocksY = std::floor(real(1, 200));
    launch.grid.reduceLength = real(1, 1e5);
    launch.grid.secondKernels = random() % 2;
    launch.grid.sumBytes = launch.grid.secondKernels * real(1, 1e8);
    double steps = std::ceil(launch.grid.reduceLength / 16);
    double blocks = launch.grid.blocksX * launch.grid.blocksY;
    double low = std::floor(blocks / 3);
    if (low > 0)
      launch.add(first, low, steps);
    launch.add(second, blocks - low, steps);
    expectSumOfTerms(launch);
  }
}

TEST(LatencyFormulas, Residency) {
  LatencyDevice device = largeDevice();
  LatencyConstants constants;
  LatencyLoop block = tallBlock();
  // 65536 / (128 · 32 · 8)
  EXPECT_EQ(tabulate(device, block, constants).resident, 2u);
  block.registersPerThread = 65; // in units of 256 for a warp: 72
  EXPECT_EQ(tabulate(device, block, constants).resident, 3u);
  block.registersPerThread = 32;
  EXPECT_EQ(tabulate(device, block, constants).resident, 6u); // shared memory
  block.sharedMemoryBytes = 0;
  EXPECT_EQ(tabulate(device, block, constants).resident, 8u);
  block.warps = 1;
  EXPECT_EQ(tabulate(device, block, constants).resident, 32u);
  block.sharedMemoryBytes = 1 << 20; // more than there is: still one
  EXPECT_EQ(tabulate(device, block, constants).resident, 1u);
}

} // namespace
