//===- FakeDriver.cpp - A CUDA driver without a device --------------------===//
#include "FakeDriver.h"
#include "FTuner/Runtime/EmulatedTensorMap.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <string>

using namespace ftrt::cuda;

namespace {
struct Library;
struct Kernel {
  std::string name;
  Library *library;
  int staticSharedBytes;
  std::atomic<int> dynamicSharedBytes[8];
  std::atomic<bool> isLoaded[8]; ///< into the context of the device
};
struct Library {
  const char *text;
  const void *data;
  std::atomic<bool> isAlive;
  std::deque<Kernel> kernels;
};

std::mutex mutex;
std::deque<Library> libraries;
bool isInitialized = false;
std::atomic<int> captures{0};
thread_local bool threadCaptures = false;
thread_local int captureMode = CU_STREAM_CAPTURE_MODE_GLOBAL;
thread_local int currentDevice = -1;
int contexts[8], streams;

fake::Control theControl;
fake::Control &control() { return theControl; }

void reset() {
  theControl.version = 12040;
  theControl.devices = {
      {"Fake 90", 9, 0, 232448, true, size_t(141) << 30},
      {"Fake 86", 8, 6, 101376, true, size_t(24) << 30},
      {"Fake 100", 10, 0, 232448, true, size_t(180) << 30},
      {"Fake 80", 8, 0, 166912, false, size_t(40) << 30},
      {"Fake 75", 7, 5, 65536, false, size_t(16) << 30},
  };
  theControl.staticSharedBytes = 0;
  theControl.onLaunch = nullptr;
  for (std::atomic<int> &count : theControl.calls)
    count = 0;
  for (std::atomic<int> &failure : theControl.failures)
    failure = 0;
  theControl.captureInvalidated = false;
  theControl.lastMemcpyBytes = -1;
  theControl.microseconds = 0;
}
const bool isReset = (reset(), true);

/// Counts the call; what it must return at once, or 0.
CUresult begin(fake::Function function) {
  control().calls[function].fetch_add(1, std::memory_order_relaxed);
  return control().failures[function].load(std::memory_order_relaxed);
}

CUresult refuseDuringCapture() {
  bool prohibited = captureMode != CU_STREAM_CAPTURE_MODE_RELAXED &&
                    (threadCaptures || captures > 0);
  if (!prohibited)
    return CUDA_SUCCESS;
  control().captureInvalidated = true;
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

bool isDevice(int device) {
  return device >= 0 && device < static_cast<int>(control().devices.size());
}

bool holdsKernel(const char *text, const char *name) {
  std::string entry = std::string(".entry ") + name;
  const char *found = std::strstr(text, entry.c_str());
  return found && !std::isalnum(found[entry.size()]) &&
         found[entry.size()] != '_';
}
} // namespace

extern "C" {

fake::Control *fake::fake_driver_control() { return &theControl; }

void fake::fake_driver_reset() { reset(); }

void fake::fake_driver_begin_capture() {
  threadCaptures = true;
  ++captures;
}

void fake::fake_driver_end_capture() {
  threadCaptures = false;
  --captures;
}

void fake::fake_driver_clear_context() { currentDevice = -1; }

// BEGIN counts the call and fails it where the test says so.
#define BEGIN(function)                                                        \
  if (CUresult failure = begin(fake::function))                                \
    return failure;

CUresult cuDriverGetVersion(int *version) {
  BEGIN(cuDriverGetVersion);
  *version = control().version;
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char **name) {
  BEGIN(cuGetErrorName);
  *name = nullptr;
  switch (error) {
  case CUDA_ERROR_INVALID_VALUE:
    *name = "CUDA_ERROR_INVALID_VALUE";
    break;
  case CUDA_ERROR_OUT_OF_MEMORY:
    *name = "CUDA_ERROR_OUT_OF_MEMORY";
    break;
  case CUDA_ERROR_NO_DEVICE:
    *name = "CUDA_ERROR_NO_DEVICE";
    break;
  case CUDA_ERROR_INVALID_CONTEXT:
    *name = "CUDA_ERROR_INVALID_CONTEXT";
    break;
  case CUDA_ERROR_INVALID_PTX:
    *name = "CUDA_ERROR_INVALID_PTX";
    break;
  case CUDA_ERROR_NOT_FOUND:
    *name = "CUDA_ERROR_NOT_FOUND";
    break;
  case CUDA_ERROR_ILLEGAL_ADDRESS:
    *name = "CUDA_ERROR_ILLEGAL_ADDRESS";
    break;
  case CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED:
    *name = "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED";
    break;
  }
  return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **text) {
  BEGIN(cuGetErrorString);
  if (CUresult result = cuGetErrorName(error, text))
    return result;
  *text = "words of the fake driver";
  return CUDA_SUCCESS;
}

CUresult cuInit(unsigned) {
  BEGIN(cuInit);
  isInitialized = true;
  return control().devices.empty() ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count) {
  BEGIN(cuDeviceGetCount);
  if (!isInitialized)
    return CUDA_ERROR_NOT_INITIALIZED;
  *count = static_cast<int>(control().devices.size());
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  BEGIN(cuDeviceGet);
  if (!isDevice(ordinal))
    return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int capacity, CUdevice device) {
  BEGIN(cuDeviceGetName);
  if (!isDevice(device))
    return CUDA_ERROR_INVALID_DEVICE;
  std::snprintf(name, capacity, "%s", control().devices[device].name);
  return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
  BEGIN(cuDeviceTotalMem);
  if (!isDevice(device))
    return CUDA_ERROR_INVALID_DEVICE;
  *bytes = control().devices[device].bytes;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
  BEGIN(cuDeviceGetAttribute);
  if (!isDevice(device))
    return CUDA_ERROR_INVALID_DEVICE;
  const fake::Device &info = control().devices[device];
  switch (attribute) {
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
    *value = 49152;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
    *value = info.major;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
    *value = info.minor;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
    *value = info.sharedBytes;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
    *value = info.memoryPools;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  BEGIN(cuDevicePrimaryCtxRetain);
  if (!isDevice(device))
    return CUDA_ERROR_INVALID_DEVICE;
  *context = reinterpret_cast<CUcontext>(&contexts[device]);
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context) {
  BEGIN(cuCtxSetCurrent);
  currentDevice =
      context ? static_cast<int>(reinterpret_cast<int *>(context) - contexts)
              : -1;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device) {
  BEGIN(cuCtxGetDevice);
  if (currentDevice < 0)
    return CUDA_ERROR_INVALID_CONTEXT;
  *device = currentDevice;
  return CUDA_SUCCESS;
}

CUresult cuThreadExchangeStreamCaptureMode(int *mode) {
  BEGIN(cuThreadExchangeStreamCaptureMode);
  std::swap(*mode, captureMode);
  return CUDA_SUCCESS;
}

#ifndef FAKE_DRIVER_WITHOUT_LIBRARIES
static void writeLog(const char *words, int *options, void **values,
                     unsigned count) {
  char *buffer = nullptr;
  size_t capacity = 0;
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER)
      buffer = static_cast<char *>(values[i]);
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
      capacity = reinterpret_cast<size_t>(values[i]);
  }
  if (buffer && capacity)
    std::snprintf(buffer, capacity, "%s", words);
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *code,
                           int *jitOptions, void **jitValues, unsigned jitCount,
                           int *, void **, unsigned) {
  BEGIN(cuLibraryLoadData);
  if (CUresult result = refuseDuringCapture())
    return result;
  bool isElf = std::memcmp(code, "\177ELF", 4) == 0;
  const char *text = static_cast<const char *>(code) + (isElf ? 64 : 0);
  if (!isElf && std::strstr(text, "INVALID")) {
    writeLog("ptxas fake.ptx, line 7; error: unexpected 'INVALID'", jitOptions,
             jitValues, jitCount);
    return CUDA_ERROR_INVALID_PTX;
  }
  std::lock_guard<std::mutex> lock(mutex);
  Library &made = libraries.emplace_back();
  made.text = text;
  made.data = code;
  made.isAlive = true;
  ++control().librariesLoaded;
  *library = reinterpret_cast<CUlibrary>(&made);
  return CUDA_SUCCESS;
}

#endif

CUresult cuLibraryUnload(CUlibrary library) {
  BEGIN(cuLibraryUnload);
  if (CUresult result = refuseDuringCapture())
    return result;
  auto *found = reinterpret_cast<Library *>(library);
  if (!found || !found->isAlive.exchange(false))
    return CUDA_ERROR_INVALID_HANDLE;
  --control().librariesLoaded;
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library,
                            const char *name) {
  BEGIN(cuLibraryGetKernel);
  auto *from = reinterpret_cast<Library *>(library);
  if (!from || !from->isAlive)
    return CUDA_ERROR_INVALID_HANDLE;
  if (!holdsKernel(from->text, name))
    return CUDA_ERROR_NOT_FOUND;
  std::lock_guard<std::mutex> lock(mutex);
  Kernel *found = nullptr;
  for (Kernel &candidate : from->kernels)
    if (candidate.name == name)
      found = &candidate;
  if (!found) {
    found = &from->kernels.emplace_back();
    found->name = name;
    found->library = from;
    found->staticSharedBytes = control().staticSharedBytes;
    for (std::atomic<int> &bytes : found->dynamicSharedBytes)
      bytes = 49152 - found->staticSharedBytes;
    for (std::atomic<bool> &isLoaded : found->isLoaded)
      isLoaded = false;
  }
  *kernel = reinterpret_cast<CUkernel>(found);
  return CUDA_SUCCESS;
}

CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel) {
  BEGIN(cuKernelGetFunction);
  if (CUresult result = refuseDuringCapture())
    return result;
  auto *found = reinterpret_cast<Kernel *>(kernel);
  if (currentDevice < 0)
    return CUDA_ERROR_INVALID_CONTEXT;
  if (!found || !found->library->isAlive)
    return CUDA_ERROR_INVALID_HANDLE;
  found->isLoaded[currentDevice] = true;
  *function = reinterpret_cast<CUfunction>(kernel);
  return CUDA_SUCCESS;
}

CUresult cuKernelGetAttribute(int *value, int attribute, CUkernel kernel,
                              CUdevice device) {
  BEGIN(cuKernelGetAttribute);
  auto *found = reinterpret_cast<Kernel *>(kernel);
  if (!isDevice(device))
    return CUDA_ERROR_INVALID_DEVICE;
  if (attribute == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)
    *value = found->staticSharedBytes;
  else if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
    *value = found->dynamicSharedBytes[device];
  else
    return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

CUresult cuKernelSetAttribute(int attribute, int value, CUkernel kernel,
                              CUdevice device) {
  BEGIN(cuKernelSetAttribute);
  if (CUresult result = refuseDuringCapture())
    return result;
  auto *found = reinterpret_cast<Kernel *>(kernel);
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ||
      !isDevice(device) ||
      value + found->staticSharedBytes > control().devices[device].sharedBytes)
    return CUDA_ERROR_INVALID_VALUE;
  found->dynamicSharedBytes[device] = value;
  return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned gridX, unsigned gridY,
                        unsigned gridZ, unsigned blockX, unsigned blockY,
                        unsigned blockZ, unsigned dynamicSharedBytes,
                        CUstream stream, void **parameters, void **extra) {
  BEGIN(cuLaunchKernel);
  auto *kernel = reinterpret_cast<Kernel *>(function);
  if (currentDevice < 0)
    return CUDA_ERROR_INVALID_CONTEXT;
  if (!kernel || !kernel->library->isAlive)
    return CUDA_ERROR_INVALID_HANDLE;
  if (gridX == 0 || gridY != 1 || gridZ != 1 || blockX == 0 || blockX > 1024 ||
      blockY != 1 || blockZ != 1 || extra ||
      dynamicSharedBytes >
          static_cast<unsigned>(kernel->dynamicSharedBytes[currentDevice]))
    return CUDA_ERROR_INVALID_VALUE;
  if (!kernel->isLoaded[currentDevice]) {
    if (CUresult result = refuseDuringCapture())
      return result;
    kernel->isLoaded[currentDevice] = true;
  }
  if (control().onLaunch)
    control().onLaunch({kernel->name.c_str(), function, kernel->library->data,
                        currentDevice, gridX, blockX, dynamicSharedBytes,
                        stream, parameters});
  return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
  BEGIN(cuStreamCreate);
  if (currentDevice < 0)
    return CUDA_ERROR_INVALID_CONTEXT;
  if (flags != CU_STREAM_NON_BLOCKING)
    return CUDA_ERROR_INVALID_VALUE;
  *stream = reinterpret_cast<CUstream>(&streams);
  return CUDA_SUCCESS;
}

CUresult cuStreamDestroy_v2(CUstream stream) {
  BEGIN(cuStreamDestroy);
  return stream == reinterpret_cast<CUstream>(&streams)
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuStreamSynchronize(CUstream) {
  BEGIN(cuStreamSynchronize);
  return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *event, unsigned flags) {
  BEGIN(cuEventCreate);
  if (currentDevice < 0)
    return CUDA_ERROR_INVALID_CONTEXT;
  if (flags != CU_EVENT_DEFAULT)
    return CUDA_ERROR_INVALID_VALUE;
  *event = reinterpret_cast<CUevent>(new double(-1));
  return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent event) {
  BEGIN(cuEventDestroy);
  delete reinterpret_cast<double *>(event);
  return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream) {
  BEGIN(cuEventRecord);
  *reinterpret_cast<double *>(event) = control().microseconds;
  return CUDA_SUCCESS;
}

CUresult cuEventSynchronize(CUevent) {
  BEGIN(cuEventSynchronize);
  return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
  BEGIN(cuEventElapsedTime);
  double from = *reinterpret_cast<double *>(start),
         to = *reinterpret_cast<double *>(end);
  if (from < 0 || to < 0)
    return CUDA_ERROR_INVALID_HANDLE;
  *milliseconds = static_cast<float>((to - from) / 1000);
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr *memory, size_t bytes) {
  BEGIN(cuMemAlloc);
  if (CUresult result = refuseDuringCapture())
    return result;
  *memory = reinterpret_cast<CUdeviceptr>(
      std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  return *memory ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemFree_v2(CUdeviceptr memory) {
  BEGIN(cuMemFree);
  std::free(reinterpret_cast<void *>(memory));
  return CUDA_SUCCESS;
}

CUresult cuMemAllocAsync(CUdeviceptr *memory, size_t bytes, CUstream) {
  BEGIN(cuMemAllocAsync);
  *memory = reinterpret_cast<CUdeviceptr>(
      std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  return *memory ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemFreeAsync(CUdeviceptr memory, CUstream) {
  BEGIN(cuMemFreeAsync);
  std::free(reinterpret_cast<void *>(memory));
  return CUDA_SUCCESS;
}

CUresult cuMemcpyAsync(CUdeviceptr target, CUdeviceptr source, size_t bytes,
                       CUstream) {
  BEGIN(cuMemcpyAsync);
  std::memcpy(reinterpret_cast<void *>(target),
              reinterpret_cast<void *>(source), bytes);
  control().lastMemcpyBytes = static_cast<int>(bytes);
  return CUDA_SUCCESS;
}

#ifndef FAKE_DRIVER_WITHOUT_TENSOR_MAPS
CUresult cuTensorMapEncodeTiled(void *map, int type, uint32_t rank,
                                void *address, const uint64_t *sizes,
                                const uint64_t *strides, const uint32_t *box,
                                const uint32_t *elementStrides, int interleave,
                                int swizzle, int l2Promotion, int fill) {
  BEGIN(cuTensorMapEncodeTiled);
  std::string error = ftuner::emulator::encodeTensorMap(
      map, {static_cast<uint32_t>(type), rank, address, sizes, strides, box,
            elementStrides, static_cast<uint32_t>(interleave),
            static_cast<uint32_t>(swizzle), static_cast<uint32_t>(l2Promotion),
            static_cast<uint32_t>(fill)});
  if (!error.empty())
    return CUDA_ERROR_INVALID_VALUE;
  static_cast<char *>(map)[127] = static_cast<char>(currentDevice);
  return CUDA_SUCCESS;
}
#endif
}
