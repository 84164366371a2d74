//===- Launch.cpp - Launches of kernels -----------------------------------===//
#include "Api.h"
#include "CudaDriver.h"
#include "EmulatorLibrary.h"
#include "Errors.h"
#include "Module.h"

using namespace ftrt;
using namespace ftrt::cuda;

/// Its address is the stream of the emulator.
static char emulatorStream;

void *ftrt_emulator_stream() { return &emulatorStream; }

static thread_local int32_t (*interruptCheck)() = nullptr;

void ftrt_set_interrupt_check(int32_t (*check)()) { interruptCheck = check; }

namespace {
struct Launch {
  uint32_t gridX, blockX, dynamicSharedBytes;
  void **parameters;
};
} // namespace

// The paths of failure are functions of their own, so that the path of success
// stays small.

__attribute__((noinline, cold)) static int32_t
failLaunch(const ftrt_kernel &kernel, const Launch &launch, CUdevice device,
           CUresult result) {
  return fail(FTRT_ERROR_LAUNCH_FAILED,
              format("kernel '%s' (%u blocks of %u threads, %u bytes of "
                     "dynamic shared memory) on device %d (%s): %s",
                     kernel.name, launch.gridX, launch.blockX,
                     launch.dynamicSharedBytes, device,
                     driver.devices[device].name.c_str(),
                     describe("cuLaunchKernel", result).c_str()));
}

static int32_t launchResolved(const ftrt_kernel &kernel, const Launch &launch,
                              CUkernel resolved, CUdevice device,
                              void *stream) {
  CUresult result = driver.cuLaunchKernel(
      reinterpret_cast<CUfunction>(resolved), launch.gridX, 1, 1, launch.blockX,
      1, 1, launch.dynamicSharedBytes, static_cast<CUstream>(stream),
      launch.parameters, nullptr);
  if (__builtin_expect(result == CUDA_SUCCESS, 1))
    return FTRT_SUCCESS;
  return failLaunch(kernel, launch, device, result);
}

/// The first launch on a device, or one that needs more shared memory.
__attribute__((noinline, cold)) static int32_t
launchFirst(ftrt_kernel &kernel, const Launch &launch, void *stream) {
  CUdevice device = 0;
  if (int32_t code = getCurrentDevice(device))
    return code;
  if (int32_t code = resolveOnDevice(kernel, device, launch.dynamicSharedBytes))
    return code;
  DeviceKernel &entry =
      getRecord(kernel)->devices.load(std::memory_order_acquire)[device];
  return launchResolved(kernel, launch,
                        entry.kernel.load(std::memory_order_acquire), device,
                        stream);
}

static int32_t launchEmulated(ftrt_kernel &kernel, const Launch &launch) {
  KernelRecord *record = getRecord(kernel);
  const ftrt_host_kernel *host =
      record ? record->host.load(std::memory_order_acquire) : nullptr;
  if (!host) {
    if (int32_t code = resolveOnEmulator(kernel))
      return code;
    host = getRecord(kernel)->host.load(std::memory_order_acquire);
  }
  char message[4096] = "";
  int32_t code =
      emulator.load(std::memory_order_acquire)
          ->launch(host, launch.gridX, launch.blockX, launch.dynamicSharedBytes,
                   launch.parameters, interruptCheck, message, sizeof(message));
  if (code == FTRT_SUCCESS)
    return FTRT_SUCCESS;
  message[sizeof(message) - 1] = '\0';
  return fail(code, format("kernel '%s' (%u blocks of %u threads, %u bytes of "
                           "dynamic shared memory) in the emulator: %s",
                           kernel.name, launch.gridX, launch.blockX,
                           launch.dynamicSharedBytes, message));
}

int32_t ftrt_launch(ftrt_kernel *kernel, uint32_t gridX, uint32_t blockX,
                    uint32_t dynamicSharedBytes, void *stream,
                    void **parameters) {
  if (__builtin_expect(!kernel, 0))
    return fail(FTRT_ERROR_INVALID_ARGUMENT, "expected a kernel, but got null");
  if (gridX == 0)
    return FTRT_SUCCESS;
  const Launch launch = {gridX, blockX, dynamicSharedBytes, parameters};
  if (stream == &emulatorStream)
    return launchEmulated(*kernel, launch);
  // A record with devices says that the driver is open.
  KernelRecord *record = getRecord(*kernel);
  DeviceKernel *devices =
      record ? record->devices.load(std::memory_order_acquire) : nullptr;
  CUdevice device = 0;
  if (__builtin_expect(devices &&
                           driver.cuCtxGetDevice(&device) == CUDA_SUCCESS &&
                           static_cast<unsigned>(device) <
                               static_cast<unsigned>(driver.deviceCount),
                       1)) {
    DeviceKernel &entry = devices[device];
    CUkernel resolved = entry.kernel.load(std::memory_order_acquire);
    if (__builtin_expect(resolved && dynamicSharedBytes <=
                                         entry.dynamicSharedBytes.load(
                                             std::memory_order_relaxed),
                         1))
      return launchResolved(*kernel, launch, resolved, device, stream);
  }
  return launchFirst(*kernel, launch, stream);
}
