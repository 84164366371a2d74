//===- BuiltinDevicesTest.cpp - The embedded device descriptions ----------===//
#include "FTuner/Device/DeviceSpec.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace ftuner;

static DeviceSpec load(llvm::StringRef name) {
  llvm::Expected<DeviceSpec> device = loadDeviceSpec(name);
  if (device)
    return *device;
  ADD_FAILURE() << llvm::toString(device.takeError());
  return {};
}

TEST(BuiltinDevices, AreListedSorted) {
  std::vector<std::string> names = builtinDeviceNames();
  std::vector<std::string> expected = {
      "a100",         "a100-80gb", "a100-pcie", "a40",       "a6000",
      "b200",         "h100",      "h200",      "k80",       "l4",
      "l40s",         "orin-nano", "p100",      "p100-pcie", "p4",
      "rtx-pro-6000", "rtx3090",   "rtx4090",   "rtx5090",   "t4",
      "v100",         "v100-pcie"};
  EXPECT_EQ(names, expected);
}

TEST(BuiltinDevices, LoadUnderTheirNames) {
  for (const std::string &name : builtinDeviceNames()) {
    DeviceSpec device = load(name);
    EXPECT_EQ(device.name, name);
    // Peaks follow from clocks: 128 to 384 operations per SM and cycle.
    double perCycle =
        device.fp32Tflops * 1e6 / (device.smCount * device.clockMhz);
    EXPECT_GE(perCycle, 126) << name; // v100-pcie rounds its peak down
    EXPECT_LE(perCycle, 385) << name;
    EXPECT_LE(device.sharedMemoryPerBlockBytes, device.sharedMemoryPerSmBytes);
  }
}

TEST(BuiltinDevices, HoldVendorFigures) {
  DeviceSpec h200 = load("h200");
  EXPECT_EQ(h200.chip(), "sm_90");
  EXPECT_EQ(h200.smCount, 132);
  EXPECT_EQ(h200.sharedMemoryPerBlockBytes, 227 * 1024);
  EXPECT_DOUBLE_EQ(h200.dramGbps, 4800);
  EXPECT_TRUE(h200.hasAsyncCopy());
  EXPECT_NEAR(h200.sharedMemoryGbps(), 33454, 1);

  DeviceSpec k80 = load("k80");
  EXPECT_EQ(k80.chip(), "sm_37");
  EXPECT_EQ(k80.registersPerSm, 131072);
  EXPECT_EQ(k80.registersPerBlock, 65536);
  EXPECT_EQ(k80.sharedMemoryPerBlockBytes, 48 * 1024);
  EXPECT_FALSE(k80.hasAsyncCopy());
  EXPECT_FALSE(k80.tf32Tflops.has_value());

  EXPECT_EQ(load("b200").chip(), "sm_100");
  // Both are GB202, but boards for workstations accumulate in f32 at full rate.
  DeviceSpec geForce = load("rtx5090"), workstation = load("rtx-pro-6000");
  for (const DeviceSpec *device : {&geForce, &workstation}) {
    EXPECT_EQ(device->chip(), "sm_120");
    EXPECT_EQ(device->die, "GB202");
    EXPECT_EQ(device->sharedMemoryPerSmBytes, 100 * 1024);
    EXPECT_DOUBLE_EQ(device->dramGbps, 1792);
  }
  EXPECT_EQ(geForce.smCount, 170);
  EXPECT_EQ(workstation.smCount, 188);
  EXPECT_FALSE(load("p100").f16Tflops.has_value());
}

TEST(BuiltinDevices, HoldWhatWasMeasured) {
  // As in the artifact of the paper's authors.
  DeviceSpec v100 = load("v100");
  EXPECT_TRUE(v100.hasMeasuredBandwidths());
  EXPECT_DOUBLE_EQ(*v100.measuredDramGbps, 648);
  EXPECT_DOUBLE_EQ(*v100.measuredSharedMemoryGbps, 15381);
  EXPECT_DOUBLE_EQ(*v100.measuredFp32Tflops, 11.967);
  // Its peak is from the data sheet there.
  EXPECT_TRUE(load("k80").hasMeasuredBandwidths());
  EXPECT_FALSE(load("k80").measuredFp32Tflops.has_value());
  EXPECT_FALSE(load("a100").hasMeasuredBandwidths());
}

TEST(BuiltinDevices, StateWhatTheirCapabilityTells) {
  for (const std::string &name : builtinDeviceNames()) {
    DeviceSpec device = load(name);
    // The rule of docs/devices.md holds for every GPU that is known.
    SmFacts rule =
        smFactsOf(device.computeCapabilityMajor, device.computeCapabilityMinor);
    EXPECT_EQ(device.warpSchedulersPerSm, rule.warpSchedulers) << name;
    EXPECT_EQ(device.issueSlotsPerSm, rule.issueSlots) << name;
    EXPECT_EQ(device.loadStoreUnitsPerSm, rule.loadStoreUnits) << name;
    EXPECT_EQ(device.processNm, rule.processNm) << name;
    EXPECT_TRUE(device.boardPowerWatts.has_value()) << name;
    // Every scheduler issues an FMA of its lanes in each cycle.
    double lanes = device.fp32LanesPerSm();
    EXPECT_EQ(lanes, 32 * std::round(lanes / 32)) << name;
    EXPECT_LE(lanes / 32, static_cast<double>(rule.issueSlots)) << name;
  }
}

TEST(BuiltinDevices, DifferAsTheirBoardsDo) {
  for (auto [name, watts] : {std::pair("p100", 300.),
                             {"p100-pcie", 250.},
                             {"v100", 300.},
                             {"v100-pcie", 250.},
                             {"a100", 400.},
                             {"a100-80gb", 400.},
                             {"a100-pcie", 250.},
                             {"a40", 300.},
                             {"t4", 70.},
                             {"p4", 75.},
                             {"k80", 150.}})
    EXPECT_EQ(load(name).boardPowerWatts, watts) << name;
  EXPECT_EQ(load("p100-pcie").clockMhz, 1328);
  EXPECT_EQ(load("p100").warpSchedulersPerSm, 2);
  EXPECT_EQ(load("t4").loadStoreUnitsPerSm, 16);
  EXPECT_EQ(load("k80").issueSlotsPerSm, 8);
  EXPECT_EQ(load("v100-pcie").fp32LanesPerSm(), 64);
}

TEST(BuiltinDevices, StateThePeaksOfTheirTensorCores) {
  // Of an SM and cycle; 0: the type is not theirs.
  struct Row {
    const char *name;
    double tf32, f16, i8;
    bool hasBf16;
  };
  const Row rows[] = {
      {"k80", 0, 0, 0, false},
      {"p4", 0, 0, 0, false},
      {"p100", 0, 0, 0, false},
      {"p100-pcie", 0, 0, 0, false},
      {"v100", 0, 1024, 0, false},
      {"v100-pcie", 0, 1024, 0, false},
      {"t4", 0, 1024, 2048, false},
      {"a100", 1024, 2048, 4096, true},
      {"a100-80gb", 1024, 2048, 4096, true},
      {"a100-pcie", 1024, 2048, 4096, true},
      {"orin-nano", 1024, 2048, 4096, true},
      {"a40", 512, 1024, 2048, true},
      {"a6000", 512, 1024, 2048, true},
      // GeForce boards accumulate in f32 at half the rate.
      {"rtx3090", 256, 512, 2048, true},
      {"rtx4090", 256, 512, 2048, true},
      {"rtx5090", 256, 512, 2048, true},
      {"rtx-pro-6000", 512, 1024, 2048, true},
      {"l4", 512, 1024, 2048, true},
      {"l40s", 512, 1024, 2048, true},
      {"h100", 2048, 4096, 8192, true},
      {"h200", 2048, 4096, 8192, true},
      {"b200", 4096, 8192, 16384, true},
  };
  std::vector<std::string> names;
  for (const Row &row : rows) {
    names.push_back(row.name);
    DeviceSpec device = load(row.name);
    EXPECT_EQ(device.tensorOperationsPerCycle(TensorPipe::TF32), row.tf32)
        << row.name;
    EXPECT_EQ(device.tensorOperationsPerCycle(TensorPipe::F16), row.f16)
        << row.name;
    EXPECT_EQ(device.tensorOperationsPerCycle(TensorPipe::I8), row.i8)
        << row.name;
    EXPECT_EQ(device.bf16Tflops.has_value(), row.hasBf16) << row.name;
    if (row.hasBf16) {
      EXPECT_EQ(device.bf16Tflops, device.f16Tflops) << row.name;
    }
  }
  llvm::sort(names);
  EXPECT_EQ(names, builtinDeviceNames());
}

TEST(BuiltinDevices, ReachTheirPeaksByWarpsUpToAda) {
  for (auto [name, share] : {std::pair("v100", 1.),
                             {"t4", 1.},
                             {"a100", 1.},
                             {"a40", 1.},
                             {"l4", 1.},
                             {"h100", 0.63},
                             {"h200", 0.63},
                             {"b200", 0.25}})
    EXPECT_EQ(load(name).smFacts().warpTensorShare, share) << name;
  EXPECT_EQ(smFactsOf(12, 0).warpTensorShare, 1);
}

TEST(BuiltinDevices, HaveTheRatesOfF64OfTheirCapabilities) {
  for (auto [name, lanes] : {std::pair("k80", 64),
                             {"p100", 32},
                             {"p4", 4},
                             {"v100", 32},
                             {"t4", 2},
                             {"a100", 32},
                             {"a40", 2},
                             {"l4", 2},
                             {"h100", 64}})
    EXPECT_EQ(load(name).smFacts().doubleLanes, lanes) << name;
  EXPECT_EQ(smFactsOf(12, 0).doubleLanes, 2);
}

TEST(DeviceSpec, TensorRatesArePowersOfTwoWherePeaksAreStatedForALowerClock) {
  DeviceSpec device;
  device.smCount = 100;
  device.clockMhz = 1000;
  auto rate = [&](double tflops) {
    device.f16Tflops = tflops;
    return device.tensorOperationsPerCycle(TensorPipe::F16);
  };
  EXPECT_EQ(rate(102.4), 1024);
  EXPECT_EQ(rate(95), 1024);  // 7 % below
  EXPECT_EQ(rate(110), 1024); // 7 % above
  EXPECT_DOUBLE_EQ(rate(140), 1400);
  device.f16Tflops = std::nullopt;
  EXPECT_EQ(device.tensorOperationsPerCycle(TensorPipe::F16), 0);
}

TEST(BuiltinDevices, NameTheSourceOfWhatTheyState) {
  // The compiler keeps no sources: the files are what holds them.
  for (const std::string &name : builtinDeviceNames()) {
    auto buffer =
        llvm::MemoryBuffer::getFile(FTUNER_DEVICE_FOLDER "/" + name + ".json");
    ASSERT_TRUE(static_cast<bool>(buffer)) << name;
    llvm::Expected<llvm::json::Value> value =
        llvm::json::parse((*buffer)->getBuffer());
    ASSERT_TRUE(static_cast<bool>(value)) << name;
    const llvm::json::Object *source =
        value->getAsObject()->getObject("source");
    ASSERT_NE(source, nullptr) << name;
    for (const char *key :
         {"warp_schedulers_per_sm", "issue_slots_per_sm",
          "load_store_units_per_sm", "process_nm", "board_power_watts"})
      EXPECT_TRUE(source->getString(key).has_value()) << name << " " << key;
    for (const char *key :
         {"tf32_tflops", "f16_tflops", "bf16_tflops", "i8_tops",
          "measured_dram_gbps", "measured_shared_memory_gbps",
          "measured_fp32_tflops", "load_clock_mhz"})
      EXPECT_EQ(source->getString(key).has_value(),
                value->getAsObject()->get(key) != nullptr)
          << name << " " << key;
  }
}

TEST(DeviceSpec, ASilentFileGetsTheFactsOfItsCapability) {
  struct Row {
    int major, minor;
    int64_t schedulers, slots, units;
    double nm;
  };
  const Row rows[] = {
      {3, 0, 4, 8, 32, 28}, {3, 7, 4, 8, 32, 28}, {5, 2, 4, 8, 32, 28},
      {5, 3, 4, 8, 32, 20}, {6, 0, 2, 4, 16, 16}, {6, 2, 4, 8, 32, 16},
      {7, 2, 4, 4, 32, 12}, {7, 5, 4, 4, 16, 12}, {8, 0, 4, 4, 32, 7},
      {8, 7, 4, 4, 16, 8},  {8, 9, 4, 4, 16, 4},  {9, 0, 4, 4, 32, 4},
      {10, 3, 4, 4, 32, 4}, {12, 0, 4, 4, 16, 4}, {13, 0, 4, 4, 16, 4}};
  for (const Row &row : rows) {
    DeviceSpec device;
    device.computeCapabilityMajor = row.major;
    device.computeCapabilityMinor = row.minor;
    SmFacts facts = device.smFacts();
    EXPECT_EQ(facts.warpSchedulers, row.schedulers) << device.chip();
    EXPECT_EQ(facts.issueSlots, row.slots) << device.chip();
    EXPECT_EQ(facts.loadStoreUnits, row.units) << device.chip();
    EXPECT_EQ(facts.processNm, row.nm) << device.chip();
  }
}

TEST(DeviceSpec, AStatedFactReplacesTheRule) {
  DeviceSpec device = load("k80");
  device.warpSchedulersPerSm = 2;
  device.issueSlotsPerSm = std::nullopt;
  // Two dispatch units for each scheduler, as the rule has it.
  EXPECT_EQ(device.smFacts().issueSlots, 4);
  device.issueSlotsPerSm = 2;
  device.loadStoreUnitsPerSm = 8;
  device.processNm = 3;
  EXPECT_EQ(device.smFacts().issueSlots, 2);
  EXPECT_EQ(device.smFacts().loadStoreUnits, 8);
  EXPECT_EQ(device.smFacts().processNm, 3);
}

TEST(DeviceSpec, LanesAreWholeWhereAPeakIsRounded) {
  DeviceSpec device;
  device.smCount = 100;
  device.clockMhz = 1000;
  auto lanes = [&](double tflops) {
    device.fp32Tflops = tflops;
    return device.fp32LanesPerSm();
  };
  EXPECT_EQ(lanes(12.8), 64);
  EXPECT_EQ(lanes(13), 64);    // 1.6 % above
  EXPECT_EQ(lanes(25.2), 128); // 1.6 % below
  EXPECT_DOUBLE_EQ(lanes(14), 70);
  // A higher peak never means fewer lanes.
  double last = 0;
  for (double tflops = 0.5; tflops < 100; tflops *= 1.001) {
    EXPECT_GE(lanes(tflops), last) << tflops;
    last = lanes(tflops);
  }
}

TEST(BuiltinDevices, RoundTripThroughJson) {
  for (const std::string &name : builtinDeviceNames()) {
    DeviceSpec device = load(name);
    std::string text =
        llvm::formatv("{0:2}", llvm::json::Value(toJson(device)));
    llvm::Expected<DeviceSpec> again = parseDeviceSpec(text, "again.json");
    ASSERT_TRUE(static_cast<bool>(again)) << llvm::toString(again.takeError());
    EXPECT_EQ(toJson(device), toJson(*again)) << name;
    EXPECT_EQ(again->smVersion(), device.smVersion());
    EXPECT_EQ(again->f16Tflops, device.f16Tflops);
    EXPECT_EQ(again->bf16Tflops, device.bf16Tflops);
    EXPECT_EQ(again->i8Tops, device.i8Tops);
    EXPECT_EQ(again->boardPowerWatts, device.boardPowerWatts);
    EXPECT_EQ(again->loadStoreUnitsPerSm, device.loadStoreUnitsPerSm);
  }
}

TEST(LoadDeviceSpec, ReadsAFile) {
  llvm::SmallString<128> path;
  int descriptor = -1;
  ASSERT_FALSE(
      llvm::sys::fs::createTemporaryFile("device", "json", descriptor, path));
  DeviceSpec device = load("t4");
  device.name = "my card";
  device.smCount = 41;
  {
    llvm::raw_fd_ostream stream(descriptor, /*shouldClose=*/true);
    stream << llvm::json::Value(toJson(device));
  }
  DeviceSpec read = load(path);
  EXPECT_EQ(read.name, "my card");
  EXPECT_EQ(read.smCount, 41);
  llvm::sys::fs::remove(path);
}

TEST(DeviceSpec, GivesEverySchedulerAsManyWarps) {
  DeviceSpec device = load("h200");
  EXPECT_EQ(device.registersPerThreadOf(256), 255);
  // 10 warps take the room of 12.
  EXPECT_EQ(device.registersPerThreadOf(320), 168);
  EXPECT_EQ(device.registersPerThreadOf(384), 168);
  EXPECT_EQ(device.registersPerThreadOf(1024), 64);
  EXPECT_EQ(device.registersPerThreadOf(1), 255);
  // Two blocks of 6 warps, three of 5: 12 and 15 warps, the room of 12 and 16.
  EXPECT_EQ(device.registersPerThreadOf(192, 2), 168);
  EXPECT_EQ(device.registersPerThreadOf(160, 3), 128);
}

TEST(DeviceSpec, CountsBlocksOfAnSm) {
  DeviceSpec device = load("h200");
  EXPECT_EQ(device.blocksPerSm(192, 168, 0), 2);
  EXPECT_EQ(device.blocksPerSm(192, 169, 0), 1);
  // A kilobyte of each block's shared memory is CUDA's.
  EXPECT_EQ(device.blocksPerSm(192, 80, 76 << 10), 2);
  EXPECT_EQ(device.blocksPerSm(192, 80, 75 << 10), 3);
  // Threads, and blocks however small.
  EXPECT_EQ(device.blocksPerSm(1024, 32, 0), 2);
  EXPECT_EQ(device.blocksPerSm(32, 16, 0), 32);
  // One, even if it has no room.
  EXPECT_EQ(device.blocksPerSm(1024, 255, 1 << 20), 1);
}
