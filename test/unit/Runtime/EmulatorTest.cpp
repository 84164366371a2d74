//===- EmulatorTest.cpp - Launches over the emulator ----------------------===//
#include "../RandomSeed.h"
#include "RuntimeTest.h"
#include <random>
#include <thread>

using namespace fake;

namespace {
/// The table that the image's functions are called through, as compiled code
/// does.
void **table;

/// Adds what function 2 of the emulator returns to *parameters[0].
void addThree(void **parameters) {
  auto function = reinterpret_cast<int (*)()>(table[2]);
  **static_cast<int **>(parameters[0]) += function();
}

void addSeven(void **parameters) { **static_cast<int **>(parameters[0]) += 7; }

class EmulatorStreamTest : public RuntimeTest {
protected:
  void SetUp() override {
    RuntimeTest::SetUp();
    fake_driver_clear_context();
  }

  int32_t launch(ftrt_kernel *kernel, uint32_t block = 32) {
    void *parameters[] = {&pointer};
    return ftrt_launch(kernel, 3, block, 16, ftrt_emulator_stream(),
                       parameters);
  }

  RandomSeed seed;
  int value = static_cast<int>(seed % 1000), start = value;
  int *pointer = &value;
};

TEST_F(EmulatorStreamTest, RunsKernelsWithoutTheDriver) {
  TestModule model;
  model.addHost({addThree, addSeven}, 3);
  table = model.functions.data();
  int before = driver.callCount();
  EXPECT_SUCCESS(launch(model[1]));
  EXPECT_EQ(value, start + 7);
  EXPECT_SUCCESS(launch(model[0]));
  EXPECT_EQ(value, start + 10);
  EXPECT_SUCCESS(
      ftrt_launch(model[0], 0, 32, 0, ftrt_emulator_stream(), nullptr));
  EXPECT_EQ(value, start + 10);
  EXPECT_EQ(driver.callCount(), before);
}

TEST_F(EmulatorStreamTest, PreparesAndReleases) {
  TestModule model;
  model.addHost({addThree, addSeven}, 3);
  table = model.functions.data();
  for (int i = 0; i < 3; ++i) {
    EXPECT_SUCCESS(ftrt_prepare(&model.module, ftrt_emulator_stream()));
    EXPECT_SUCCESS(launch(model[0]));
    EXPECT_SUCCESS(ftrt_release(&model.module));
    EXPECT_EQ(model[0]->handle, nullptr);
  }
  EXPECT_EQ(value, start + 9);
}

TEST_F(EmulatorStreamTest, OneModuleInBothWorlds) {
  TestModule model;
  model.addPTX(80);
  model.addHost({addThree, addSeven}, 3);
  table = model.functions.data();
  for (int i = 0; i < 2; ++i) {
    EXPECT_SUCCESS(launch(model[0]));
    ASSERT_SUCCESS(ftrt_device_select(0));
    EXPECT_SUCCESS(RuntimeTest::launch(model[0]));
    EXPECT_SUCCESS(RuntimeTest::launch(model[1]));
    EXPECT_SUCCESS(launch(model[1]));
  }
  EXPECT_EQ(value, start + 20);
  EXPECT_EQ(launches.size(), 4u);
  EXPECT_EQ(driver.calls[cuLibraryLoadData], 1);
}

int32_t goOn() { return 0; }
int32_t stop() { return 1; }

TEST_F(EmulatorStreamTest, ChecksForInterruptsOfItsOwnThread) {
  TestModule model;
  model.addHost({addThree, addSeven}, 3);
  table = model.functions.data();
  ftrt_set_interrupt_check(goOn);
  EXPECT_SUCCESS(launch(model[1]));
  ftrt_set_interrupt_check(stop);
  EXPECT_FAILURE(launch(model[1]), FTRT_ERROR_INTERRUPTED, "interrupted");
  std::thread([&] { EXPECT_SUCCESS(launch(model[1])); }).join();
  ftrt_set_interrupt_check(nullptr);
  EXPECT_SUCCESS(launch(model[1]));
  EXPECT_EQ(value, start + 28);
}

TEST_F(EmulatorStreamTest, Failures) {
  TestModule model;
  model.addPTX(80);
  EXPECT_FAILURE(launch(model[0]), FTRT_ERROR_NO_IMAGE,
                 "module 'model': expected a host image, for the emulator, but "
                 "the module holds PTX for sm_80");
  EXPECT_FAILURE(ftrt_prepare(&model.module, ftrt_emulator_stream()),
                 FTRT_ERROR_NO_IMAGE, "expected a host image");

  TestModule lacking;
  lacking.addHost({addThree}, 3);
  EXPECT_FAILURE(launch(lacking[1]), FTRT_ERROR_UNKNOWN_KERNEL,
                 "module 'model': its host image has no kernel 'second'");
  EXPECT_FAILURE(launch(lacking[0], 64), FTRT_ERROR_LAUNCH_FAILED,
                 "kernel 'first' (3 blocks of 64 threads, 16 bytes of dynamic "
                 "shared memory) in the emulator: expected a block of 32 "
                 "threads, but got 64");

  TestModule newer;
  newer.addHost({addThree, addSeven}, 4);
  EXPECT_FAILURE(launch(newer[0]), FTRT_ERROR_VERSION,
                 "its host image calls 4 functions of the emulator, but the "
                 "emulator has 3");
  EXPECT_EQ(value, start);
}
} // namespace
