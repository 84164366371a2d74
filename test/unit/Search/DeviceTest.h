//===- DeviceTest.h - Tests on a built-in device ----------------*- C++ -*-===//
#ifndef FTUNER_TEST_UNIT_SEARCH_DEVICETEST_H
#define FTUNER_TEST_UNIT_SEARCH_DEVICETEST_H

#include "FTuner/Device/DeviceSpec.h"
#include <gtest/gtest.h>

namespace ftuner {

/// A fixture with a copy of a built-in device, which tests may change.
class DeviceTest : public ::testing::Test {
protected:
  explicit DeviceTest(llvm::StringRef name = "v100") : name(name) {}

  void SetUp() override {
    llvm::Expected<DeviceSpec> loaded = loadDeviceSpec(name);
    ASSERT_TRUE(static_cast<bool>(loaded))
        << llvm::toString(loaded.takeError());
    device = *loaded;
  }

  DeviceSpec device;

private:
  std::string name;
};

} // namespace ftuner

#endif // FTUNER_TEST_UNIT_SEARCH_DEVICETEST_H
