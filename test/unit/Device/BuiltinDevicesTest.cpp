//===- BuiltinDevicesTest.cpp - The embedded device descriptions ----------===//
#include "FTuner/Device/DeviceSpec.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
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
      "a100", "b200", "h100",    "h200",    "k80", "l4",   "orin-nano",
      "p100", "p4",   "rtx3090", "rtx4090", "t4",  "v100", "v100-pcie"};
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
  EXPECT_FALSE(load("p100").f16Tflops.has_value());
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
