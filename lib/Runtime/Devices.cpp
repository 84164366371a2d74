//===- Devices.cpp - Devices, streams and memory --------------------------===//
#include "Api.h"
#include "CudaDriver.h"
#include "Errors.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

using namespace ftrt;
using namespace ftrt::cuda;

static int32_t failNull(const char *noun) {
  return fail(FTRT_ERROR_INVALID_ARGUMENT,
              format("expected %s, but got null", noun));
}

static int32_t check(CUresult result, const char *call) {
  if (result == CUDA_SUCCESS)
    return FTRT_SUCCESS;
  return fail(FTRT_ERROR_DRIVER, describe(call, result));
}

/// Opens the driver and checks the number of a device.
static int32_t checkDevice(int32_t device) {
  if (int32_t code = openDriver())
    return code;
  if (device >= 0 && device < driver.deviceCount)
    return FTRT_SUCCESS;
  return fail(FTRT_ERROR_INVALID_ARGUMENT,
              format("expected a device from 0 to %d, but got %d",
                     driver.deviceCount - 1, device));
}

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

int32_t ftrt_driver_version(int32_t *version) {
  if (!version)
    return failNull("a place for the version");
  *version = 0;
  if (int32_t code = openDriver())
    return code;
  return check(driver.cuDriverGetVersion(version), "cuDriverGetVersion");
}

int32_t ftrt_device_count(int32_t *count) {
  if (!count)
    return failNull("a place for the number of devices");
  *count = 0;
  if (int32_t code = openDriver())
    return code;
  *count = driver.deviceCount;
  return FTRT_SUCCESS;
}

int32_t ftrt_device_select(int32_t device) {
  if (int32_t code = checkDevice(device))
    return code;
  std::atomic<CUcontext> &primary = driver.devices[device].primaryContext;
  CUcontext context = primary.load(std::memory_order_acquire);
  if (!context) {
    static std::mutex mutex;
    std::lock_guard<std::mutex> lock(mutex);
    context = primary.load(std::memory_order_relaxed);
    if (!context) {
      if (int32_t code =
              check(driver.cuDevicePrimaryCtxRetain(&context, device),
                    "cuDevicePrimaryCtxRetain"))
        return code;
      primary.store(context, std::memory_order_release);
    }
  }
  return check(driver.cuCtxSetCurrent(context), "cuCtxSetCurrent");
}

int32_t ftrt_device_name(int32_t device, char *name, uint64_t capacity) {
  if (!name)
    return failNull("a place for the name");
  if (capacity == 0)
    return fail(FTRT_ERROR_INVALID_ARGUMENT,
                "expected a place of 1 byte or more for the name, but got 0");
  if (int32_t code = checkDevice(device))
    return code;
  std::snprintf(name, capacity, "%s", driver.devices[device].name.c_str());
  return FTRT_SUCCESS;
}

int32_t ftrt_device_memory(int32_t device, uint64_t *bytes) {
  if (!bytes)
    return failNull("a place for the size");
  if (int32_t code = checkDevice(device))
    return code;
  size_t size = 0;
  if (int32_t code =
          check(driver.cuDeviceTotalMem(&size, device), "cuDeviceTotalMem"))
    return code;
  *bytes = size;
  return FTRT_SUCCESS;
}

int32_t ftrt_device_attribute(int32_t device, int32_t attribute,
                              int32_t *value) {
  if (!value)
    return failNull("a place for the value");
  if (int32_t code = checkDevice(device))
    return code;
  return check(driver.cuDeviceGetAttribute(value, attribute, device),
               "cuDeviceGetAttribute");
}

//===----------------------------------------------------------------------===//
// Streams
//===----------------------------------------------------------------------===//

int32_t ftrt_stream_create(void **stream) {
  if (!stream)
    return failNull("a place for the stream");
  *stream = nullptr;
  if (int32_t code = openDriver())
    return code;
  CUstream created = nullptr;
  if (int32_t code =
          check(driver.cuStreamCreate(&created, CU_STREAM_NON_BLOCKING),
                "cuStreamCreate"))
    return code;
  *stream = created;
  return FTRT_SUCCESS;
}

int32_t ftrt_stream_destroy(void *stream) {
  if (stream == ftrt_emulator_stream())
    return FTRT_SUCCESS;
  if (!stream)
    return failNull("a stream that was created");
  if (int32_t code = openDriver())
    return code;
  return check(driver.cuStreamDestroy(static_cast<CUstream>(stream)),
               "cuStreamDestroy");
}

/// Returns whether a kernel failed while it ran, rather than the call.
static bool isKernelFailure(CUresult result) {
  return result == CUDA_ERROR_ILLEGAL_ADDRESS ||
         result == CUDA_ERROR_LAUNCH_TIMEOUT || result == CUDA_ERROR_ASSERT ||
         (result >= CUDA_ERROR_HARDWARE_STACK_ERROR &&
          result <= CUDA_ERROR_LAUNCH_FAILED);
}

/// Converts the result of a call that waits for the device.
static int32_t checkWait(CUresult result, const char *call) {
  if (isKernelFailure(result))
    return fail(FTRT_ERROR_LAUNCH_FAILED,
                "a kernel failed while it ran: " + describe(call, result));
  return check(result, call);
}

int32_t ftrt_stream_synchronize(void *stream) {
  if (stream == ftrt_emulator_stream())
    return FTRT_SUCCESS;
  if (int32_t code = openDriver())
    return code;
  return checkWait(driver.cuStreamSynchronize(static_cast<CUstream>(stream)),
                   "cuStreamSynchronize");
}

//===----------------------------------------------------------------------===//
// Events
//===----------------------------------------------------------------------===//

int32_t ftrt_event_create(void **event) {
  if (!event)
    return failNull("a place for the event");
  *event = nullptr;
  if (int32_t code = openDriver())
    return code;
  CUevent created = nullptr;
  if (int32_t code = check(driver.cuEventCreate(&created, CU_EVENT_DEFAULT),
                           "cuEventCreate"))
    return code;
  *event = created;
  return FTRT_SUCCESS;
}

int32_t ftrt_event_destroy(void *event) {
  if (!event)
    return failNull("an event that was created");
  if (int32_t code = openDriver())
    return code;
  return check(driver.cuEventDestroy(static_cast<CUevent>(event)),
               "cuEventDestroy");
}

int32_t ftrt_event_record(void *event, void *stream) {
  if (!event)
    return failNull("an event that was created");
  if (stream == ftrt_emulator_stream())
    return fail(FTRT_ERROR_INVALID_ARGUMENT,
                "expected a stream of a GPU, but got the emulator's, which has "
                "no time");
  if (int32_t code = openDriver())
    return code;
  return check(driver.cuEventRecord(static_cast<CUevent>(event),
                                    static_cast<CUstream>(stream)),
               "cuEventRecord");
}

int32_t ftrt_event_elapsed(void *start, void *end, double *microseconds) {
  if (!microseconds)
    return failNull("a place for the time");
  *microseconds = 0;
  if (!start || !end)
    return failNull("two events that were recorded");
  if (int32_t code = openDriver())
    return code;
  if (int32_t code =
          checkWait(driver.cuEventSynchronize(static_cast<CUevent>(end)),
                    "cuEventSynchronize"))
    return code;
  float milliseconds = 0;
  if (int32_t code = check(
          driver.cuEventElapsedTime(&milliseconds, static_cast<CUevent>(start),
                                    static_cast<CUevent>(end)),
          "cuEventElapsedTime"))
    return code;
  *microseconds = 1000.0 * milliseconds;
  return FTRT_SUCCESS;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Memory from cuMemAlloc() and from the driver's pools is aligned so, too.
static constexpr uint64_t kAlignment = 256;

int32_t ftrt_memory_allocate(uint64_t bytes, void *stream, void **memory) {
  if (!memory)
    return failNull("a place for the address");
  *memory = nullptr;
  if (bytes == 0)
    return FTRT_SUCCESS;
  if (stream == ftrt_emulator_stream()) {
    if (posix_memalign(memory, kAlignment, bytes) == 0)
      return FTRT_SUCCESS;
    *memory = nullptr;
    return fail(FTRT_ERROR_DRIVER,
                format("the host has no %llu bytes of memory for the emulator",
                       static_cast<unsigned long long>(bytes)));
  }
  CUdevice device = 0;
  if (int32_t code = getCurrentDevice(device))
    return code;
  CUdeviceptr address = 0;
  bool pools = driver.devices[device].memoryPools;
  CUresult result = pools ? driver.cuMemAllocAsync(
                                &address, bytes, static_cast<CUstream>(stream))
                          : driver.cuMemAlloc(&address, bytes);
  if (result != CUDA_SUCCESS)
    return fail(
        FTRT_ERROR_DRIVER,
        format("%llu bytes on device %d (%s): %s",
               static_cast<unsigned long long>(bytes), device,
               driver.devices[device].name.c_str(),
               describe(pools ? "cuMemAllocAsync" : "cuMemAlloc", result)
                   .c_str()));
  *memory = reinterpret_cast<void *>(address);
  return FTRT_SUCCESS;
}

int32_t ftrt_memory_free(void *memory, void *stream) {
  if (!memory)
    return FTRT_SUCCESS;
  if (stream == ftrt_emulator_stream()) {
    std::free(memory);
    return FTRT_SUCCESS;
  }
  CUdevice device = 0;
  if (int32_t code = getCurrentDevice(device))
    return code;
  auto address = reinterpret_cast<CUdeviceptr>(memory);
  if (driver.devices[device].memoryPools)
    return check(driver.cuMemFreeAsync(address, static_cast<CUstream>(stream)),
                 "cuMemFreeAsync");
  return check(driver.cuMemFree(address), "cuMemFree");
}

int32_t ftrt_memory_copy(void *target, const void *source, uint64_t bytes,
                         void *stream) {
  if (bytes == 0)
    return FTRT_SUCCESS;
  if (!target)
    return failNull("an address to copy to");
  if (!source)
    return failNull("an address to copy from");
  if (stream == ftrt_emulator_stream()) {
    std::memcpy(target, source, bytes);
    return FTRT_SUCCESS;
  }
  if (int32_t code = openDriver())
    return code;
  return check(driver.cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(target),
                                    reinterpret_cast<CUdeviceptr>(source),
                                    bytes, static_cast<CUstream>(stream)),
               "cuMemcpyAsync");
}
