//===- CudaDriver.cpp - The CUDA driver, opened at run time ---------------===//
#include "CudaDriver.h"
#include "Api.h"
#include "DynamicLibrary.h"
#include "Errors.h"
#include <cstdlib>
#include <memory>
#include <mutex>

using namespace ftrt;
using namespace ftrt::cuda;

Driver ftrt::cuda::driver;

namespace {
/// Set at the end of a successful opening; `driver` is constant from then on.
std::atomic<bool> isOpen{false};
std::mutex openMutex;

int32_t noDriver(const char *path, const std::string &why) {
  return fail(FTRT_ERROR_NO_DRIVER,
              format("no CUDA driver: '%s': %s", path, why.c_str()));
}

std::string describe(const Driver &from, const char *call, CUresult result) {
  const char *name = nullptr, *text = nullptr;
  if (from.cuGetErrorName(result, &name) != CUDA_SUCCESS || !name)
    return format("%s: error %d", call, result);
  if (from.cuGetErrorString(result, &text) != CUDA_SUCCESS || !text)
    return format("%s: %s", call, name);
  return format("%s: %s (%s)", call, name, text);
}

/// Finds all functions in the library, those of every version first, so that a
/// driver that is too old is told by its version.
int32_t findFunctions(const DynamicLibrary &library, const char *path,
                      Driver &found) {
  const char *missing = nullptr;
#define FTRT_FIND(name, symbol, parameters)                                    \
  found.name =                                                                 \
      reinterpret_cast<CUresult(*) parameters>(library.find(#symbol));         \
  if (!found.name && !missing)                                                 \
    missing = #symbol;
  FTRT_DRIVER_FUNCTIONS(FTRT_FIND)
#undef FTRT_FIND
#define FTRT_FIND(name, symbol, parameters)                                    \
  found.name = reinterpret_cast<CUresult(*) parameters>(library.find(#symbol));
  FTRT_OPTIONAL_DRIVER_FUNCTIONS(FTRT_FIND)
#undef FTRT_FIND
  int version = 0;
  if (found.cuDriverGetVersion &&
      found.cuDriverGetVersion(&version) == CUDA_SUCCESS &&
      version < kMinimumVersion)
    return noDriver(path,
                    format("expected a driver of CUDA %d.%d or newer, "
                           "but got one of CUDA %d.%d",
                           kMinimumVersion / 1000, kMinimumVersion % 1000 / 10,
                           version / 1000, version % 1000 / 10));
  if (missing)
    return noDriver(path, format("it has no function '%s'", missing));
  return FTRT_SUCCESS;
}

CUresult readDevice(const Driver &from, int ordinal, DeviceInfo &info,
                    const char *&call) {
  CUdevice device = 0;
  call = "cuDeviceGet";
  CUresult result = from.cuDeviceGet(&device, ordinal);
  if (result != CUDA_SUCCESS)
    return result;
  char name[256] = "";
  call = "cuDeviceGetName";
  result = from.cuDeviceGetName(name, sizeof(name), device);
  if (result != CUDA_SUCCESS)
    return result;
  info.name = name;
  int pools = 0;
  const std::pair<int, int *> attributes[] = {
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &info.major},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &info.minor},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
       &info.sharedBytes},
      {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, &pools}};
  call = "cuDeviceGetAttribute";
  for (auto [attribute, value] : attributes) {
    result = from.cuDeviceGetAttribute(value, attribute, device);
    if (result != CUDA_SUCCESS)
      return result;
  }
  info.memoryPools = pools != 0;
  return CUDA_SUCCESS;
}

/// Fills in `opened`, all but the library.
int32_t initialize(const DynamicLibrary &library, const char *path,
                   Driver &opened, std::unique_ptr<DeviceInfo[]> &devices) {
  if (int32_t code = findFunctions(library, path, opened))
    return code;
  CUresult result = opened.cuInit(0);
  if (result != CUDA_SUCCESS)
    return noDriver(path, ::describe(opened, "cuInit", result));
  result = opened.cuDeviceGetCount(&opened.deviceCount);
  if (result != CUDA_SUCCESS)
    return noDriver(path, ::describe(opened, "cuDeviceGetCount", result));
  if (opened.deviceCount <= 0)
    return noDriver(path, "it has no device");
  devices = std::make_unique<DeviceInfo[]>(opened.deviceCount);
  for (int i = 0; i < opened.deviceCount; ++i) {
    const char *call = nullptr;
    result = readDevice(opened, i, devices[i], call);
    if (result != CUDA_SUCCESS)
      return noDriver(path, format("device %d: %s", i,
                                   ::describe(opened, call, result).c_str()));
  }
  return FTRT_SUCCESS;
}
} // namespace

int32_t ftrt::cuda::openDriver() {
  if (isOpen.load(std::memory_order_acquire))
    return FTRT_SUCCESS;
  std::lock_guard<std::mutex> lock(openMutex);
  if (isOpen.load(std::memory_order_relaxed))
    return FTRT_SUCCESS;
  const char *path = std::getenv("FTRT_CUDA_DRIVER");
  if (!path || !*path)
    path = "libcuda.so.1";
  DynamicLibrary library(path);
  if (!library)
    return noDriver(path, library.error());
  Driver opened;
  std::unique_ptr<DeviceInfo[]> devices;
  if (int32_t code = initialize(library, path, opened, devices))
    return code;
  // All of this stays until the process ends.
  opened.devices = devices.release();
  library.keep();
  driver = opened;
  isOpen.store(true, std::memory_order_release);
  return FTRT_SUCCESS;
}

std::string ftrt::cuda::describe(const char *call, CUresult result) {
  return ::describe(driver, call, result);
}

RelaxedCapture::RelaxedCapture()
    : exchanged(driver.cuThreadExchangeStreamCaptureMode(&mode) ==
                CUDA_SUCCESS) {}

RelaxedCapture::~RelaxedCapture() {
  if (exchanged)
    driver.cuThreadExchangeStreamCaptureMode(&mode);
}

int32_t ftrt::cuda::getCurrentDevice(CUdevice &device) {
  if (int32_t code = openDriver())
    return code;
  CUresult result = driver.cuCtxGetDevice(&device);
  if (result == CUDA_ERROR_INVALID_CONTEXT)
    return fail(FTRT_ERROR_DRIVER,
                "expected a CUDA context that is current to this thread, but "
                "got none: " +
                    describe("cuCtxGetDevice", result));
  if (result != CUDA_SUCCESS)
    return fail(FTRT_ERROR_DRIVER, describe("cuCtxGetDevice", result));
  if (device < 0 || device >= driver.deviceCount)
    return fail(FTRT_ERROR_DRIVER,
                format("expected a device from 0 to %d, but the current "
                       "context is of device %d",
                       driver.deviceCount - 1, device));
  return FTRT_SUCCESS;
}
