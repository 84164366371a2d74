//===- DevicesTest.cpp - Devices, streams and memory ----------------------===//
#include "../RandomSeed.h"
#include "RuntimeTest.h"
#include <random>

using namespace fake;

namespace {
TEST_F(RuntimeTest, DescribesDevices) {
  int32_t count = -1;
  ASSERT_SUCCESS(ftrt_device_count(&count));
  ASSERT_EQ(count, 5);
  int32_t version = 0;
  ASSERT_SUCCESS(ftrt_driver_version(&version));
  EXPECT_GE(version, 12000);
  for (int32_t i = 0; i < count; ++i) {
    char name[64];
    uint64_t bytes = 0;
    int32_t major = -1;
    ASSERT_SUCCESS(ftrt_device_name(i, name, sizeof(name)));
    EXPECT_STREQ(name, driver.devices[i].name);
    ASSERT_SUCCESS(ftrt_device_memory(i, &bytes));
    EXPECT_EQ(bytes, driver.devices[i].bytes);
    ASSERT_SUCCESS(ftrt_device_attribute(i, 75, &major));
    EXPECT_EQ(major, driver.devices[i].major);
  }
  char shorter[5];
  ASSERT_SUCCESS(ftrt_device_name(2, shorter, sizeof(shorter)));
  EXPECT_STREQ(shorter, "Fake");
}

TEST_F(RuntimeTest, RefusesOtherDevices) {
  char name[8];
  uint64_t bytes = 0;
  int32_t value = 0;
  for (int32_t device : {-1, 5, 1 << 30}) {
    std::string words =
        "expected a device from 0 to 4, but got " + std::to_string(device);
    EXPECT_FAILURE(ftrt_device_select(device), FTRT_ERROR_INVALID_ARGUMENT,
                   words);
    EXPECT_FAILURE(ftrt_device_name(device, name, sizeof(name)),
                   FTRT_ERROR_INVALID_ARGUMENT, words);
    EXPECT_FAILURE(ftrt_device_memory(device, &bytes),
                   FTRT_ERROR_INVALID_ARGUMENT, words);
    EXPECT_FAILURE(ftrt_device_attribute(device, 75, &value),
                   FTRT_ERROR_INVALID_ARGUMENT, words);
  }
  EXPECT_FAILURE(ftrt_device_attribute(0, -3, &value), FTRT_ERROR_DRIVER,
                 "cuDeviceGetAttribute: CUDA_ERROR_INVALID_VALUE");
}

TEST_F(RuntimeTest, RefusesNull) {
  const int32_t code = FTRT_ERROR_INVALID_ARGUMENT;
  char name[8];
  void *emulator = ftrt_emulator_stream();
  EXPECT_FAILURE(ftrt_device_count(nullptr), code, "but got null");
  EXPECT_FAILURE(ftrt_driver_version(nullptr), code, "but got null");
  EXPECT_FAILURE(ftrt_device_name(0, nullptr, 8), code, "but got null");
  EXPECT_FAILURE(ftrt_device_name(0, name, 0), code, "of 1 byte or more");
  EXPECT_FAILURE(ftrt_device_memory(0, nullptr), code, "but got null");
  EXPECT_FAILURE(ftrt_device_attribute(0, 75, nullptr), code, "but got null");
  EXPECT_FAILURE(ftrt_stream_create(nullptr), code, "but got null");
  EXPECT_FAILURE(ftrt_stream_destroy(nullptr), code, "but got null");
  for (void *stream : {static_cast<void *>(nullptr), emulator}) {
    EXPECT_FAILURE(ftrt_memory_allocate(1, stream, nullptr), code,
                   "but got null");
    EXPECT_FAILURE(ftrt_memory_copy(nullptr, name, 1, stream), code,
                   "an address to copy to, but got null");
    EXPECT_FAILURE(ftrt_memory_copy(name, nullptr, 1, stream), code,
                   "an address to copy from, but got null");
  }
}

TEST_F(RuntimeTest, SelectsAPrimaryContextAndRetainsItOnce) {
  int32_t before = driver.calls[cuDevicePrimaryCtxRetain];
  for (int i = 0; i < 3; ++i)
    ASSERT_SUCCESS(ftrt_device_select(4));
  EXPECT_LE(driver.calls[cuDevicePrimaryCtxRetain], before + 1);
  driver.failures[cuCtxSetCurrent] = ftrt::cuda::CUDA_ERROR_INVALID_VALUE;
  EXPECT_FAILURE(ftrt_device_select(0), FTRT_ERROR_DRIVER,
                 "cuCtxSetCurrent: CUDA_ERROR_INVALID_VALUE");
}

TEST_F(RuntimeTest, Streams) {
  void *stream = nullptr;
  ASSERT_SUCCESS(ftrt_stream_create(&stream));
  ASSERT_NE(stream, nullptr);
  EXPECT_SUCCESS(ftrt_stream_synchronize(stream));
  EXPECT_SUCCESS(ftrt_stream_synchronize(nullptr));
  EXPECT_EQ(driver.calls[cuStreamSynchronize], 2);
  driver.failures[cuStreamSynchronize] = ftrt::cuda::CUDA_ERROR_ILLEGAL_ADDRESS;
  EXPECT_FAILURE(ftrt_stream_synchronize(stream), FTRT_ERROR_LAUNCH_FAILED,
                 "a kernel failed while it ran: cuStreamSynchronize: "
                 "CUDA_ERROR_ILLEGAL_ADDRESS (words of the fake driver)");
  driver.failures[cuStreamSynchronize] = ftrt::cuda::CUDA_ERROR_INVALID_CONTEXT;
  EXPECT_FAILURE(ftrt_stream_synchronize(stream), FTRT_ERROR_DRIVER,
                 "cuStreamSynchronize: CUDA_ERROR_INVALID_CONTEXT");
  EXPECT_SUCCESS(ftrt_stream_destroy(stream));
  fake_driver_clear_context();
  EXPECT_FAILURE(ftrt_stream_create(&stream), FTRT_ERROR_DRIVER,
                 "cuStreamCreate: CUDA_ERROR_INVALID_CONTEXT");
  EXPECT_EQ(stream, nullptr);
}

TEST_F(RuntimeTest, Events) {
  void *start = nullptr, *end = nullptr;
  ASSERT_SUCCESS(ftrt_event_create(&start));
  ASSERT_SUCCESS(ftrt_event_create(&end));
  double microseconds = -1;
  EXPECT_FAILURE(ftrt_event_elapsed(start, end, &microseconds),
                 FTRT_ERROR_DRIVER, "cuEventElapsedTime");
  EXPECT_EQ(microseconds, 0);
  ASSERT_SUCCESS(ftrt_event_record(start, nullptr));
  driver.microseconds = 125.5;
  ASSERT_SUCCESS(ftrt_event_record(end, nullptr));
  ASSERT_SUCCESS(ftrt_event_elapsed(start, end, &microseconds));
  EXPECT_NEAR(microseconds, 125.5, 1e-3);
  EXPECT_EQ(driver.calls[cuEventSynchronize], 2);
  driver.failures[cuEventSynchronize] = ftrt::cuda::CUDA_ERROR_ILLEGAL_ADDRESS;
  EXPECT_FAILURE(ftrt_event_elapsed(start, end, &microseconds),
                 FTRT_ERROR_LAUNCH_FAILED,
                 "a kernel failed while it ran: cuEventSynchronize: "
                 "CUDA_ERROR_ILLEGAL_ADDRESS");
  constexpr int32_t code = FTRT_ERROR_INVALID_ARGUMENT;
  EXPECT_FAILURE(ftrt_event_record(start, ftrt_emulator_stream()), code,
                 "expected a stream of a GPU, but got the emulator's");
  EXPECT_FAILURE(ftrt_event_record(nullptr, nullptr), code,
                 "an event that was created, but got null");
  EXPECT_FAILURE(ftrt_event_create(nullptr), code, "but got null");
  EXPECT_FAILURE(ftrt_event_destroy(nullptr), code, "but got null");
  EXPECT_FAILURE(ftrt_event_elapsed(start, nullptr, &microseconds), code,
                 "two events that were recorded, but got null");
  EXPECT_FAILURE(ftrt_event_elapsed(start, end, nullptr), code, "but got null");
  EXPECT_SUCCESS(ftrt_event_destroy(start));
  EXPECT_SUCCESS(ftrt_event_destroy(end));
}

/// Copies random data there and back.
void roundTrip(void *stream) {
  RandomSeed seed;
  std::mt19937 random(seed);
  std::vector<uint32_t> source(1 + random() % 1000), target(source.size(), 7);
  for (uint32_t &value : source)
    value = static_cast<uint32_t>(random());
  uint64_t bytes = source.size() * sizeof(uint32_t);
  void *memory = nullptr;
  ASSERT_SUCCESS(ftrt_memory_allocate(bytes, stream, &memory));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 256, 0u);
  ASSERT_SUCCESS(ftrt_memory_copy(memory, source.data(), bytes, stream));
  ASSERT_SUCCESS(ftrt_memory_copy(target.data(), memory, bytes, stream));
  ASSERT_SUCCESS(ftrt_stream_synchronize(stream));
  EXPECT_EQ(source, target);
  EXPECT_SUCCESS(ftrt_memory_free(memory, stream));
}

TEST_F(RuntimeTest, MemoryFromThePoolsOfTheDriver) {
  roundTrip(nullptr);
  EXPECT_EQ(driver.calls[cuMemAllocAsync], 1);
  EXPECT_EQ(driver.calls[cuMemFreeAsync], 1);
  EXPECT_EQ(driver.calls[cuMemAlloc], 0);
}

TEST_F(RuntimeTest, MemoryOfDevicesWithoutPools) {
  ASSERT_SUCCESS(ftrt_device_select(3));
  roundTrip(nullptr);
  EXPECT_EQ(driver.calls[cuMemAlloc], 1);
  EXPECT_EQ(driver.calls[cuMemFree], 1);
  EXPECT_EQ(driver.calls[cuMemAllocAsync], 0);
}

TEST_F(RuntimeTest, MemoryOfTheEmulator) {
  int before = driver.callCount();
  fake_driver_clear_context();
  roundTrip(ftrt_emulator_stream());
  EXPECT_SUCCESS(ftrt_stream_destroy(ftrt_emulator_stream()));
  EXPECT_EQ(driver.callCount(), before);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  // A sanitizer would end the process.
  void *memory = &before;
  EXPECT_FAILURE(
      ftrt_memory_allocate(uint64_t(1) << 60, ftrt_emulator_stream(), &memory),
      FTRT_ERROR_DRIVER, "the host has no 1152921504606846976 bytes");
  EXPECT_EQ(memory, nullptr);
#endif
}

TEST_F(RuntimeTest, NoBytes) {
  for (void *stream : {static_cast<void *>(nullptr), ftrt_emulator_stream()}) {
    void *memory = &stream;
    EXPECT_SUCCESS(ftrt_memory_allocate(0, stream, &memory));
    EXPECT_EQ(memory, nullptr);
    EXPECT_SUCCESS(ftrt_memory_copy(nullptr, nullptr, 0, stream));
    EXPECT_SUCCESS(ftrt_memory_free(nullptr, stream));
  }
}

TEST_F(RuntimeTest, FailedMemoryCalls) {
  void *memory = &memory;
  driver.failures[cuMemAllocAsync] = ftrt::cuda::CUDA_ERROR_OUT_OF_MEMORY;
  EXPECT_FAILURE(ftrt_memory_allocate(4096, nullptr, &memory),
                 FTRT_ERROR_DRIVER,
                 "4096 bytes on device 0 (Fake 90): cuMemAllocAsync: "
                 "CUDA_ERROR_OUT_OF_MEMORY");
  EXPECT_EQ(memory, nullptr);
  driver.failures[cuMemFreeAsync] = ftrt::cuda::CUDA_ERROR_INVALID_VALUE;
  EXPECT_FAILURE(ftrt_memory_free(&memory, nullptr), FTRT_ERROR_DRIVER,
                 "cuMemFreeAsync: CUDA_ERROR_INVALID_VALUE");
  driver.failures[cuMemcpyAsync] = ftrt::cuda::CUDA_ERROR_INVALID_VALUE;
  EXPECT_FAILURE(ftrt_memory_copy(&memory, &driver, 1, nullptr),
                 FTRT_ERROR_DRIVER, "cuMemcpyAsync: CUDA_ERROR_INVALID_VALUE");
}
} // namespace
