//===- OpeningTest.cpp - Missing drivers and emulators --------------------===//
//
// A program of its own: once libftrt has opened a driver or an emulator, it
// keeps it, so each success runs in a process of its own.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Runtime/EmulatorInterface.h"
#include "RuntimeTest.h"

using namespace fake;

namespace {
class OpeningTest : public ::testing::Test {
protected:
  void SetUp() override {
    fake_driver_reset();
    useDriver(FTUNER_FAKE_DRIVER);
    unsetenv("FTRT_EMULATOR");
  }
  void useDriver(const char *path) { setenv("FTRT_CUDA_DRIVER", path, 1); }

  /// Every function that needs the driver fails so.
  void expectNoDriver(const std::string &words) {
    int32_t count = 9;
    EXPECT_FAILURE(ftrt_device_count(&count), FTRT_ERROR_NO_DRIVER, words);
    EXPECT_EQ(count, 0);
    EXPECT_FAILURE(ftrt_device_select(0), FTRT_ERROR_NO_DRIVER, words);
    TestModule model;
    model.addPTX(80);
    EXPECT_FAILURE(ftrt_launch(model[0], 1, 32, 0, nullptr, nullptr),
                   FTRT_ERROR_NO_DRIVER, words);
    EXPECT_FAILURE(ftrt_prepare(&model.module, nullptr), FTRT_ERROR_NO_DRIVER,
                   words);
    void *made = &count;
    EXPECT_FAILURE(ftrt_stream_create(&made), FTRT_ERROR_NO_DRIVER, words);
    EXPECT_EQ(made, nullptr);
    made = &count;
    EXPECT_FAILURE(ftrt_memory_allocate(8, nullptr, &made),
                   FTRT_ERROR_NO_DRIVER, words);
    EXPECT_EQ(made, nullptr);
    EXPECT_FAILURE(ftrt_stream_synchronize(nullptr), FTRT_ERROR_NO_DRIVER,
                   words);
    EXPECT_FAILURE(ftrt_memory_free(&count, nullptr), FTRT_ERROR_NO_DRIVER,
                   words);
    EXPECT_FAILURE(ftrt_memory_copy(&count, &made, 1, nullptr),
                   FTRT_ERROR_NO_DRIVER, words);
  }

  Control &driver = *fake_driver_control();
};

TEST_F(OpeningTest, NoSuchFile) {
  useDriver("/nowhere/libcuda.so.1");
  expectNoDriver("no CUDA driver: '/nowhere/libcuda.so.1': "
                 "/nowhere/libcuda.so.1: cannot open shared object file: No "
                 "such file or directory");
}

TEST_F(OpeningTest, NoDriver) {
  useDriver(FTUNER_FAKE_EMULATOR);
  expectNoDriver("it has no function 'cuDriverGetVersion'");
}

TEST_F(OpeningTest, OldDriver) {
  driver.version = 11080;
  expectNoDriver(
      "': expected a driver of CUDA 12.0 or newer, but got one of CUDA 11.8");
}

TEST_F(OpeningTest, MissingFunction) {
  useDriver(FTUNER_FAKE_DRIVER_WITHOUT_LIBRARIES);
  expectNoDriver("it has no function 'cuLibraryLoadData'");
}

TEST_F(OpeningTest, NoDevice) {
  driver.devices.clear();
  expectNoDriver("cuInit: CUDA_ERROR_NO_DEVICE (words of the fake driver)");
}

TEST_F(OpeningTest, ZeroDevices) {
  driver.failures[cuDeviceGetCount] = ftrt::cuda::CUDA_ERROR_OUT_OF_MEMORY;
  expectNoDriver("cuDeviceGetCount: CUDA_ERROR_OUT_OF_MEMORY");
}

TEST_F(OpeningTest, UnreadableDevice) {
  for (Function function :
       {cuDeviceGet, cuDeviceGetName, cuDeviceGetAttribute}) {
    driver.failures[function] = ftrt::cuda::CUDA_ERROR_INVALID_VALUE;
    expectNoDriver("device 0: cuDeviceGet");
    driver.failures[function] = 0;
  }
}

/// Ends the process: with 0 if a device could be selected after all.
[[noreturn]] void openAfterFailure(Control &driver) {
  driver.failures[cuInit] = ftrt::cuda::CUDA_ERROR_NO_DEVICE;
  if (ftrt_device_select(0) != FTRT_ERROR_NO_DRIVER)
    std::_Exit(1);
  driver.failures[cuInit] = 0;
  if (ftrt_device_select(0) != FTRT_SUCCESS)
    std::_Exit(2);
  // From now on the driver is open, whatever the variable says.
  setenv("FTRT_CUDA_DRIVER", "/nowhere", 1);
  int32_t count = 0;
  std::_Exit(ftrt_device_count(&count) == FTRT_SUCCESS && count == 5 ? 0 : 3);
}

TEST_F(OpeningTest, FailuresAreNotRemembered) {
  EXPECT_EXIT(openAfterFailure(driver), ::testing::ExitedWithCode(0), "");
}

//===----------------------------------------------------------------------===//
// The emulator
//===----------------------------------------------------------------------===//

void nothing(void **) {}

/// Launches in the emulator.
int32_t launchEmulated() {
  TestModule model({"only"});
  model.addHost({nothing}, 3);
  return ftrt_launch(model[0], 1, 32, 0, ftrt_emulator_stream(), nullptr);
}

TEST_F(OpeningTest, EmulatorNoSuchFile) {
  setenv("FTRT_EMULATOR", "/nowhere/emulator.so", 1);
  EXPECT_FAILURE(launchEmulated(), FTRT_ERROR_NO_EMULATOR,
                 "no emulator: '/nowhere/emulator.so': /nowhere/emulator.so: "
                 "cannot open shared object file");
}

TEST_F(OpeningTest, EmulatorWithoutInterface) {
  setenv("FTRT_EMULATOR", FTUNER_FAKE_DRIVER, 1);
  EXPECT_FAILURE(launchEmulated(), FTRT_ERROR_NO_EMULATOR,
                 "it has no function 'ftrt_emulator_get_interface'");
}

TEST_F(OpeningTest, EmulatorOfAnotherVersion) {
  setenv("FTRT_EMULATOR", FTUNER_FAKE_EMULATOR_OTHER_VERSION, 1);
  EXPECT_FAILURE(launchEmulated(), FTRT_ERROR_NO_EMULATOR,
                 "expected version " + std::to_string(FTRT_EMULATOR_VERSION) +
                     " of the emulator, but got version 99");
}

[[noreturn]] void openEmulatorAfterFailure() {
  setenv("FTRT_EMULATOR", "/nowhere/emulator.so", 1);
  if (launchEmulated() != FTRT_ERROR_NO_EMULATOR)
    std::_Exit(1);
  setenv("FTRT_EMULATOR", FTUNER_FAKE_EMULATOR, 1);
  std::_Exit(launchEmulated() == FTRT_SUCCESS ? 0 : 2);
}

TEST_F(OpeningTest, EmulatorFailuresAreNotRemembered) {
  EXPECT_EXIT(openEmulatorAfterFailure(), ::testing::ExitedWithCode(0), "");
}
} // namespace
