//===- LaunchTest.cpp - Launches over the CUDA driver ---------------------===//
#include "../RandomSeed.h"
#include "RuntimeTest.h"
#include <random>

using namespace fake;

std::vector<fake::Launch> RuntimeTest::launches;

namespace {
TEST_F(RuntimeTest, PassesALaunchOn) {
  TestModule model;
  model.addPTX(90);
  RandomSeed seed;
  std::mt19937 random(seed);
  uint32_t grid = 1 + random() % 1000, block = 32 * (1 + random() % 32),
           shared = random() % 49152;
  int value = static_cast<int>(random());
  void *parameters[] = {&value};
  void *stream = nullptr;
  ASSERT_SUCCESS(ftrt_stream_create(&stream));
  ASSERT_SUCCESS(
      ftrt_launch(model[1], grid, block, shared, stream, parameters));
  ASSERT_EQ(launches.size(), 1u);
  EXPECT_STREQ(launches[0].kernel, "second");
  EXPECT_EQ(launches[0].image, model.images[0].data);
  EXPECT_EQ(launches[0].device, 0);
  EXPECT_EQ(launches[0].grid, grid);
  EXPECT_EQ(launches[0].block, block);
  EXPECT_EQ(launches[0].dynamicSharedBytes, shared);
  EXPECT_EQ(launches[0].stream, stream);
  EXPECT_EQ(launches[0].parameters, parameters);
  EXPECT_SUCCESS(ftrt_stream_destroy(stream));
}

TEST_F(RuntimeTest, LoadsAndResolvesOnce) {
  TestModule model;
  model.addPTX(90);
  for (int i = 0; i < 10; ++i) {
    EXPECT_SUCCESS(launch(model[0]));
    EXPECT_SUCCESS(launch(model[1]));
  }
  EXPECT_EQ(launches.size(), 20u);
  EXPECT_EQ(driver.calls[cuLibraryLoadData], 1);
  EXPECT_EQ(driver.calls[cuLibraryGetKernel], 2);
  EXPECT_EQ(driver.calls[cuLaunchKernel], 20);
}

TEST_F(RuntimeTest, LaterLaunchesOnlyAskForTheDevice) {
  TestModule model;
  model.addPTX(90);
  ASSERT_SUCCESS(launch(model[0]));
  int before = driver.callCount();
  for (int i = 0; i < 100; ++i)
    EXPECT_SUCCESS(launch(model[0]));
  EXPECT_EQ(driver.calls[cuLaunchKernel], 101);
  EXPECT_EQ(driver.callCount() - before, 200);
}

TEST_F(RuntimeTest, NoBlocksAreNoLaunch) {
  TestModule model;
  EXPECT_SUCCESS(ftrt_launch(model[0], 0, 128, 0, nullptr, nullptr));
  EXPECT_EQ(driver.calls[cuLaunchKernel], 0);
}

TEST_F(RuntimeTest, SeveralDevices) {
  TestModule model;
  model.addPTX(80);
  model.addCubin(90);
  for (int device : {0, 1, 0, 2, 1}) {
    ASSERT_SUCCESS(ftrt_device_select(device));
    ASSERT_SUCCESS(launch(model[0]));
    EXPECT_EQ(launches.back().device, device);
    EXPECT_EQ(launches.back().image, model.images[device == 0].data);
  }
  // Devices 1 and 2 share the library of the PTX.
  EXPECT_EQ(driver.calls[cuLibraryLoadData], 2);
  EXPECT_EQ(driver.calls[cuLibraryGetKernel], 3);
}

TEST_F(RuntimeTest, SharedMemoryIsRaisedOnceWhereNeeded) {
  TestModule model;
  model.addPTX(80);
  driver.staticSharedBytes = 1024;
  ASSERT_SUCCESS(launch(model[0], 48 * 1024 - 1024));
  EXPECT_EQ(driver.calls[cuKernelSetAttribute], 0);
  for (int i = 0; i < 3; ++i)
    ASSERT_SUCCESS(launch(model[0], 48 * 1024 - 1023));
  EXPECT_EQ(driver.calls[cuKernelSetAttribute], 1);
  for (int i = 0; i < 3; ++i)
    ASSERT_SUCCESS(launch(model[0], 200000));
  ASSERT_SUCCESS(launch(model[0], 100000));
  EXPECT_EQ(driver.calls[cuKernelSetAttribute], 2);
  // Each kernel and each device has its own limit.
  ASSERT_SUCCESS(launch(model[1], 100000));
  EXPECT_EQ(driver.calls[cuKernelSetAttribute], 3);
  ASSERT_SUCCESS(ftrt_device_select(2));
  ASSERT_SUCCESS(launch(model[0], 100000));
  EXPECT_EQ(driver.calls[cuKernelSetAttribute], 4);
  EXPECT_EQ(driver.calls[cuLibraryLoadData], 1);
}

TEST_F(RuntimeTest, SharedMemoryBeyondTheDeviceIsRefused) {
  TestModule model;
  model.addPTX(80);
  driver.staticSharedBytes = 448;
  ASSERT_SUCCESS(launch(model[0], 232000));
  for (int i = 0; i < 2; ++i)
    EXPECT_FAILURE(launch(model[0], 232001), FTRT_ERROR_LAUNCH_FAILED,
                   "kernel 'first' needs 232001 bytes of dynamic and 448 bytes "
                   "of static shared memory, but a block on device 0 (Fake 90) "
                   "has at most 232448 bytes");
  EXPECT_FAILURE(launch(model[0], 4294967295u), FTRT_ERROR_LAUNCH_FAILED,
                 "needs 4294967295 bytes");
  ASSERT_SUCCESS(ftrt_device_select(1));
  EXPECT_FAILURE(launch(model[0], 232000), FTRT_ERROR_LAUNCH_FAILED,
                 "device 1 (Fake 86) has at most 101376 bytes");
  EXPECT_EQ(launches.size(), 1u);
}

TEST_F(RuntimeTest, PrepareResolvesEverything) {
  TestModule model;
  model.addPTX(80);
  ASSERT_SUCCESS(ftrt_prepare(&model.module, nullptr));
  EXPECT_EQ(driver.calls[cuLibraryLoadData], 1);
  EXPECT_EQ(driver.calls[cuLibraryGetKernel], 2);
  EXPECT_EQ(driver.calls[cuKernelGetFunction], 2);
  // Again: only asks that the kernels be in the context.
  int before = driver.callCount();
  ASSERT_SUCCESS(ftrt_prepare(&model.module, nullptr));
  EXPECT_EQ(driver.calls[cuKernelGetFunction], 4);
  EXPECT_EQ(driver.calls[cuLibraryGetKernel], 2);
  EXPECT_LE(driver.callCount() - before, 5);
  before = driver.callCount();
  ASSERT_SUCCESS(launch(model[0]));
  ASSERT_SUCCESS(launch(model[1]));
  EXPECT_EQ(driver.callCount() - before, 4);
  // Another device is prepared by itself.
  ASSERT_SUCCESS(ftrt_device_select(1));
  ASSERT_SUCCESS(ftrt_prepare(&model.module, nullptr));
  EXPECT_EQ(driver.calls[cuLibraryGetKernel], 4);
}

TEST_F(RuntimeTest, ReleaseUnloadsAndTheModuleLoadsAgain) {
  TestModule model;
  model.addPTX(80);
  model.addCubin(90);
  ASSERT_SUCCESS(launch(model[0]));
  ASSERT_SUCCESS(ftrt_device_select(1));
  ASSERT_SUCCESS(launch(model[1]));
  EXPECT_EQ(driver.librariesLoaded, 2);
  ASSERT_SUCCESS(ftrt_release(&model.module));
  EXPECT_EQ(driver.librariesLoaded, 0);
  EXPECT_EQ(model.module.handle, nullptr);
  EXPECT_EQ(model[0]->handle, nullptr);
  EXPECT_EQ(model[1]->handle, nullptr);
  ASSERT_SUCCESS(ftrt_release(&model.module));
  ASSERT_SUCCESS(launch(model[1]));
  EXPECT_EQ(driver.librariesLoaded, 1);
  EXPECT_EQ(launches.size(), 3u);
}

TEST_F(RuntimeTest, FailedUnloads) {
  const std::pair<int, int32_t> results[] = {
      {ftrt::cuda::CUDA_ERROR_INVALID_HANDLE, FTRT_ERROR_DRIVER},
      // The driver ended first, at the end of the process.
      {ftrt::cuda::CUDA_ERROR_DEINITIALIZED, FTRT_SUCCESS}};
  for (auto [result, code] : results) {
    TestModule model;
    model.addPTX(80);
    ASSERT_SUCCESS(launch(model[0]));
    driver.failures[cuLibraryUnload] = result;
    EXPECT_EQ(ftrt_release(&model.module), code);
    driver.failures[cuLibraryUnload] = 0;
    EXPECT_EQ(model.module.handle, nullptr);
    ASSERT_SUCCESS(launch(model[0]));
    // The fake driver has kept the first one.
    --driver.librariesLoaded;
  }
  EXPECT_STREQ(ftrt_last_error(),
               "module 'model': PTX for sm_80: cuLibraryUnload: error 400");
}

TEST_F(RuntimeTest, CaptureLoadsAndRaisesLegally) {
  TestModule model;
  model.addPTX(80);
  fake_driver_begin_capture();
  EXPECT_SUCCESS(launch(model[0]));
  EXPECT_SUCCESS(launch(model[0], 100000));
  EXPECT_SUCCESS(ftrt_prepare(&model.module, nullptr));
  EXPECT_SUCCESS(launch(model[1]));
  EXPECT_FALSE(driver.captureInvalidated);
  EXPECT_SUCCESS(ftrt_release(&model.module));
  EXPECT_FALSE(driver.captureInvalidated);
  // The thread's own mode is back: what the driver prohibits stays prohibited.
  ftrt::cuda::CUdeviceptr memory = 0;
  ASSERT_SUCCESS(ftrt_device_select(3)); // no memory pools
  void *address = &memory;
  EXPECT_FAILURE(ftrt_memory_allocate(16, nullptr, &address), FTRT_ERROR_DRIVER,
                 "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED");
  EXPECT_EQ(address, nullptr);
  EXPECT_TRUE(driver.captureInvalidated);
  fake_driver_end_capture();
}

TEST_F(RuntimeTest, FailedLaunchesSayWhatAndWhere) {
  TestModule model;
  model.addPTX(80);
  EXPECT_FAILURE(ftrt_launch(nullptr, 1, 1, 0, nullptr, nullptr),
                 FTRT_ERROR_INVALID_ARGUMENT,
                 "expected a kernel, but got null");
  EXPECT_FAILURE(
      ftrt_launch(model[0], 7, 2048, 16, nullptr, nullptr),
      FTRT_ERROR_LAUNCH_FAILED,
      "kernel 'first' (7 blocks of 2048 threads, 16 bytes of dynamic shared "
      "memory) on device 0 (Fake 90): cuLaunchKernel: "
      "CUDA_ERROR_INVALID_VALUE (words of the fake driver)");
  ASSERT_SUCCESS(launch(model[0]));
  driver.failures[cuLaunchKernel] = 12345;
  EXPECT_FAILURE(launch(model[0]), FTRT_ERROR_LAUNCH_FAILED,
                 "cuLaunchKernel: error 12345");
  driver.failures[cuLaunchKernel] = 0;
  fake_driver_clear_context();
  EXPECT_FAILURE(launch(model[0]), FTRT_ERROR_DRIVER,
                 "expected a CUDA context that is current to this thread, but "
                 "got none");
  EXPECT_FAILURE(ftrt_prepare(&model.module, nullptr), FTRT_ERROR_DRIVER,
                 "CUDA_ERROR_INVALID_CONTEXT");
}

TEST_F(RuntimeTest, FailedLoadsSayWhatAndWhereAndAreTriedAgain) {
  TestModule model;
  model.addPTX(80);
  const std::pair<Function, const char *> steps[] = {
      {cuLibraryLoadData,
       "module 'model': PTX for sm_80: cuLibraryLoadData: "
       "CUDA_ERROR_OUT_OF_MEMORY (words of the fake driver)"},
      {cuLibraryGetKernel, "module 'model': PTX for sm_80: kernel 'first': "
                           "cuLibraryGetKernel: CUDA_ERROR_OUT_OF_MEMORY"},
      {cuKernelGetFunction, "module 'model': PTX for sm_80: kernel 'first': "
                            "cuKernelGetFunction: CUDA_ERROR_OUT_OF_MEMORY"},
      {cuKernelGetAttribute, "module 'model': PTX for sm_80: kernel 'first': "
                             "cuKernelGetAttribute: CUDA_ERROR_OUT_OF_MEMORY"},
      {cuKernelSetAttribute,
       "kernel 'first': raising its dynamic shared memory to 60000 bytes on "
       "device 0 (Fake 90): cuKernelSetAttribute: CUDA_ERROR_OUT_OF_MEMORY"},
  };
  for (auto [function, words] : steps) {
    driver.failures[function] = ftrt::cuda::CUDA_ERROR_OUT_OF_MEMORY;
    EXPECT_FAILURE(launch(model[0], 60000), FTRT_ERROR_DRIVER, words);
    driver.failures[function] = 0;
  }
  EXPECT_TRUE(launches.empty());
  EXPECT_SUCCESS(launch(model[0], 60000));
}

TEST_F(RuntimeTest, TheCompilersLogIsPartOfTheWords) {
  TestModule model;
  model.addPTX(80, ".entry first INVALID");
  EXPECT_FAILURE(launch(model[0]), FTRT_ERROR_DRIVER,
                 "module 'model': PTX for sm_80: cuLibraryLoadData: "
                 "CUDA_ERROR_INVALID_PTX (words of the fake driver)\n"
                 "ptxas fake.ptx, line 7; error: unexpected 'INVALID'");
}

TEST_F(RuntimeTest, UnknownKernels) {
  TestModule model;
  model.addPTX(80, ".entry first()\n.entry second_one()");
  EXPECT_FAILURE(launch(model[1]), FTRT_ERROR_UNKNOWN_KERNEL,
                 "module 'model': PTX for sm_80: kernel 'second': "
                 "cuLibraryGetKernel: CUDA_ERROR_NOT_FOUND");
  EXPECT_FAILURE(ftrt_prepare(&model.module, nullptr),
                 FTRT_ERROR_UNKNOWN_KERNEL, "kernel 'second'");
  EXPECT_SUCCESS(launch(model[0]));
}

TEST_F(RuntimeTest, TheLastErrorIsTheThreadsOwnAndOutlivesSuccess) {
  EXPECT_EQ(ftrt_fail("sizes of 3 and 4 do not fit"), FTRT_ERROR_HOST);
  TestModule model;
  model.addPTX(80);
  ASSERT_SUCCESS(launch(model[0]));
  EXPECT_STREQ(ftrt_last_error(), "sizes of 3 and 4 do not fit");
  const int64_t sizes[] = {3, -4};
  EXPECT_EQ(ftrt_fail_sizes("{1} and {0}, {1}; {2} {} {x} {", sizes, 2),
            FTRT_ERROR_HOST);
  EXPECT_STREQ(ftrt_last_error(), "-4 and 3, -4; {2} {} {x} {");
  EXPECT_EQ(ftrt_fail_sizes(nullptr, sizes, 2), FTRT_ERROR_HOST);
  EXPECT_EQ(ftrt_fail(nullptr), FTRT_ERROR_HOST);
  EXPECT_STRNE(ftrt_last_error(), "");
}
} // namespace
