//===- LatencyTensorTest.cpp - Kernels of the tensor cores ----------------===//
//
// Each price of such kernels by itself, where nothing else matters; what they
// share with others does not depend on constants of theirs.
//
//===----------------------------------------------------------------------===//
#include "../RandomSeed.h"
#include "LatencyLaunch.h"

using namespace ftuner;

namespace {

LatencyDevice deviceOfRates(double f16) {
  LatencyDevice device = deviceOfSms(100, 1000);
  device.tf32Rate = f16 / 2;
  device.f16Rate = f16;
  device.i8Rate = 2 * f16;
  device.warpTensorShare = 0.5;
  device.dramGbps = 2000;
  device.l2Bytes = 40 << 20;
  device.sharedMemoryPerSmBytes = 160 << 10;
  return device;
}

/// 128 × 128 in steps of 64 by 4 warps.
LatencyLoop blockOf(double LatencyLoop::*operations) {
  LatencyLoop block;
  block.warps = 4;
  block.registersPerThread = 200;
  block.sharedMemoryBytes = 100 << 10;
  block.kTile = 64;
  block.tensorInstructions = 512;
  block.*operations = 2.0 * 128 * 128 * 64;
  block.otherInstructions = 400;
  block.sharedCycles = 256;
  block.globalLines = 128;
  block.l2Bytes = 32768;
  block.exposedLoads = 0.25;
  return block;
}

/// Returns constants by which only the tensor cores take time.
LatencyConstants freeMemory() {
  LatencyConstants constants;
  constants.launch = 0;
  constants.tensor = 1;
  constants.tensorStart = 1e-9;
  constants.tensorL2BytesPerCycle = 1e12;
  constants.line = 1e-9;
  constants.globalLatency = constants.tensorLatency = 1e-9;
  constants.overlap = 40;
  return constants;
}

/// One block on each SM.
double timeOf(const LatencyDevice &device, const LatencyLoop &block,
              const LatencyConstants &constants, double blocks = 100,
              double steps = 1000, double lhsBytes = 0) {
  LatencyLaunch launch{device, constants};
  launch.grid.blocksX = blocks;
  launch.grid.lhsBytes = lhsBytes;
  launch.add(block, blocks, steps);
  return launch.time();
}

TEST(LatencyTensor, TakesTheRateOfTheType) {
  RandomSeed seed;
  std::mt19937 random(seed);
  // With more, issue slots take as long as i8.
  double rate = std::uniform_real_distribution<double>(500, 3000)(random);
  LatencyDevice device = deviceOfRates(rate);
  LatencyConstants constants = freeMemory();
  double operations = 2.0 * 128 * 128 * 64 * 1000;
  for (auto [member, ofType] :
       {std::pair(&LatencyLoop::tf32Operations, rate / 2),
        {&LatencyLoop::f16Operations, rate},
        {&LatencyLoop::i8Operations, 2 * rate}}) {
    LatencyLoop block = blockOf(member);
    // Instructions of single warps reach half of it.
    double cycles = std::max(operations / ofType / 0.5, 1000 * 256.0);
    EXPECT_NEAR(timeOf(device, block, constants), cycles / 1000,
                0.05 * cycles / 1000);
    block.hasPeakRate = true;
    block.sharedCycles = 0;
    double atPeak = timeOf(device, block, constants);
    EXPECT_NEAR(atPeak, operations / ofType / 1000, 0.001 * atPeak);
    constants.tensor = 1.25;
    EXPECT_NEAR(timeOf(device, block, constants), 1.25 * atPeak,
                0.002 * atPeak);
    constants.tensor = 1;
  }
}

TEST(LatencyTensor, TheBusiestSchedulerSetsThePace) {
  // 5 warps on 4 schedulers take as long as 8.
  LatencyDevice device = deviceOfRates(2048);
  LatencyConstants constants = freeMemory();
  LatencyLoop block = blockOf(&LatencyLoop::f16Operations);
  block.sharedCycles = 0;
  double even = timeOf(device, block, constants);
  block.warps = 5;
  EXPECT_NEAR(timeOf(device, block, constants), 1.6 * even, 0.001 * even);
}

TEST(LatencyTensor, InstructionsTakeIssueSlots) {
  LatencyDevice device = deviceOfRates(1e9);
  LatencyConstants constants = freeMemory();
  LatencyLoop block = blockOf(&LatencyLoop::f16Operations);
  block.sharedCycles = 0;
  // 512 + 400 in 4 slots.
  double cycles = (512 + 400) / 4.0 * 1000;
  EXPECT_NEAR(timeOf(device, block, constants), cycles / 1000,
              0.01 * cycles / 1000);
}

/// Kernels of one kind do not depend on the other kind's constants.
TEST(LatencyTensor, HasConstantsOfItsOwn) {
  LatencyDevice device = deviceOfRates(2048);
  device.boardPowerWatts = 100;
  LatencyLoop tensor = blockOf(&LatencyLoop::f16Operations);
  LatencyLoop plain = tensor;
  plain.tensorInstructions = plain.f16Operations = 0;
  plain.fma = 8192;
  LatencyConstants constants;
  auto time = [&](const LatencyLoop &block, const LatencyConstants &priced) {
    return timeOf(device, block, priced, 100, 1000, /*lhsBytes=*/1e9);
  };
  for (double LatencyConstants::*ofTensor :
       {&LatencyConstants::tensor, &LatencyConstants::tensorStart,
        &LatencyConstants::tensorL2BytesPerCycle,
        &LatencyConstants::tensorDramShare, &LatencyConstants::f16Energy}) {
    LatencyConstants changed = constants;
    changed.*ofTensor *= 1.5;
    EXPECT_EQ(time(plain, changed), time(plain, constants));
    EXPECT_NE(time(tensor, changed), time(tensor, constants));
  }
  for (double LatencyConstants::*ofOthers :
       {&LatencyConstants::fma, &LatencyConstants::blockStart,
        &LatencyConstants::l2BytesPerCycle, &LatencyConstants::dramShare,
        &LatencyConstants::narrowRun, &LatencyConstants::flopEnergy}) {
    LatencyConstants changed = constants;
    changed.*ofOthers *= 1.5;
    EXPECT_EQ(time(tensor, changed), time(tensor, constants));
  }
}

// A block stores its part of the output behind its main loop, by the rate of
// L2.
TEST(LatencyTensor, BlocksStoreTheirOutput) {
  LatencyDevice device = deviceOfRates(1e9);
  LatencyConstants constants = freeMemory();
  constants.tensorL2BytesPerCycle = 32;
  LatencyLoop block = blockOf(&LatencyLoop::f16Operations);
  block.l2Bytes = 0;
  auto cycles = [&](double outputBytes, double sumBytes) {
    LatencyLaunch launch{device, constants};
    launch.grid.outputBytes = outputBytes;
    launch.grid.sumBytes = sumBytes;
    launch.add(block, 100, 1000);
    return launch.terms().smTime * device.clockMhz;
  };
  double stored = cycles(100 * 32768.0, 0) - cycles(0, 0);
  EXPECT_NEAR(stored, 1024, 1e-3);
  // Slices store sums instead.
  EXPECT_NEAR(cycles(100 * 32768.0, 100 * 65536.0) - cycles(0, 0), 2048, 1e-3);
}

TEST(LatencyTensor, EnergyIsThatOfTheType) {
  LatencyDevice device = deviceOfRates(1e9);
  device.boardPowerWatts = 50;
  LatencyConstants constants = freeMemory();
  constants.idleShare = 0;
  constants.l2Energy = 1e-9;
  constants.dramEnergy = 1e-9;
  constants.powerDelay = 1e-9;
  constants.tf32Energy = 4;
  constants.f16Energy = 2;
  constants.i8Energy = 1;
  for (auto [member, picojoules] : {std::pair(&LatencyLoop::tf32Operations, 4.),
                                    {&LatencyLoop::f16Operations, 2.},
                                    {&LatencyLoop::i8Operations, 1.}}) {
    // 100 blocks of 1000 steps at 50 W.
    double expected = 2.0 * 128 * 128 * 64 * 1e5 * picojoules * 1e-6 / 50;
    EXPECT_NEAR(timeOf(device, blockOf(member), constants), expected,
                1e-6 * expected);
  }
}

// Exposed copies wait for the cluster, too.
TEST(LatencyTensor, StagesWaitForTheCluster) {
  LatencyDevice device = deviceOfRates(2048);
  LatencyConstants constants = freeMemory();
  constants.tensorStart = 1e-9;
  constants.tensorLatency = 1e6;
  LatencyLoop block = blockOf(&LatencyLoop::f16Operations);
  block.exposedLoads = 0.25;
  double unclustered = timeOf(device, block, constants);
  block.clusterCycles = 1e6;
  EXPECT_NEAR(timeOf(device, block, constants), 2 * unclustered,
              0.01 * unclustered);
}

TEST(LatencyTensor, PersistentBlocksStartAfterOthers) {
  LatencyDevice device = deviceOfRates(2048);
  LatencyConstants constants = freeMemory();
  constants.tensorStart = 5000;
  LatencyLoop block = blockOf(&LatencyLoop::f16Operations);
  double step = timeOf(device, block, constants) - 5;
  EXPECT_NEAR(timeOf(device, block, constants, 300), 3 * step + 15, 0.01);
  block.isPersistent = true;
  constants.tensorLatency = 2000;
  double next = timeOf(device, block, constants) - 5;
  EXPECT_NEAR(timeOf(device, block, constants, 300), 3 * next + 11, 0.01);
  // The wait for the cluster, once, and with each exposed copy.
  block.clusterCycles = 500;
  double together = timeOf(device, block, constants) - 5.5;
  EXPECT_NEAR(timeOf(device, block, constants, 300), 3 * together + 11.5, 0.01);
  block.clusterCycles = 0;
  block.hidesStores = true;
  double fast = timeOf(device, block, constants) - 5;
  EXPECT_NEAR(timeOf(device, block, constants, 300), 3 * fast + 5, 0.01);
  EXPECT_NEAR(timeOf(device, block, constants, 250), 3 * fast + 5, 0.01);
}

/// Two tiles are under way: stores take time if main loops are short.
TEST(LatencyTensor, StoresRunDuringProductsThatTakeAsLong) {
  LatencyDevice device = deviceOfRates(2048);
  LatencyConstants constants = freeMemory();
  LatencyLoop block = blockOf(&LatencyLoop::f16Operations);
  double loops = timeOf(device, block, constants);
  block.isPersistent = block.hidesStores = true;
  // Each round except the first takes its main loops, or half of everything.
  for (double start : {0.5 * loops, loops, 2 * loops, 5 * loops}) {
    constants.tensorStart = start * 1000;
    double round = std::max(loops, (loops + start) / 2);
    EXPECT_NEAR(timeOf(device, block, constants, 300),
                loops + start + 2 * round, 0.01);
  }
}

TEST(LatencyTensor, TermsAddUp) {
  RandomSeed seed;
  std::mt19937 random(seed);
  auto real = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  for (int i = 0; i < 500; ++i) {
    LatencyDevice device = deviceOfRates(real(200, 9000));
    device.boardPowerWatts = real(30, 900);
    LatencyLoop tall = blockOf(&LatencyLoop::f16Operations);
    tall.hasPeakRate = random() % 2;
    tall.isPersistent = random() % 2;
    tall.hidesStores = random() % 2;
    tall.clusterCycles = random() % 2 ? 360 : 0;
    tall.sharedMemoryBytes = real(1000, 160000);
    tall.warps = 1 + random() % 8;
    LatencyLoop low = tall;
    low.f16Operations /= 2;
    low.l2Bytes *= 0.75;
    LatencyLaunch launch{device};
    auto upTo = [&](unsigned maximum) {
      return double(1 + random() % maximum);
    };
    if (random() % 2)
      launch.add(low, upTo(3000), upTo(100));
    launch.add(tall, upTo(3000), upTo(100));
    launch.grid.blocksX = 0;
    for (unsigned part = 0; part < launch.numParts; ++part)
      launch.grid.blocksX += launch.parts[part].count;
    launch.grid.elementBytes = 2;
    launch.grid.lhsBytes = launch.grid.rhsBytes = real(1e4, 1e9);
    SCOPED_TRACE("case " + std::to_string(i));
    expectSumOfTerms(launch);
  }
}

} // namespace
