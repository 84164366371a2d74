//===- CudaDriver.h - The CUDA driver, opened at run time -------*- C++ -*-===//
//
// The types, values and functions of the CUDA driver API that libftrt uses,
// declared here so that neither CUDA's headers nor its libraries are needed to
// build or to load libftrt. Source: cuda.h of CUDA 12 and 13.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_RUNTIME_CUDADRIVER_H
#define FTUNER_LIB_RUNTIME_CUDADRIVER_H

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace ftrt::cuda {

using CUresult = int; // enum in cuda.h, and so are the other ints below
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st *;
using CUstream = struct CUstream_st *;
using CUevent = struct CUevent_st *;
using CUfunction = struct CUfunc_st *;
using CUkernel = struct CUkern_st *;
using CUlibrary = struct CUlib_st *;

enum : int {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NOT_INITIALIZED = 3,
  CUDA_ERROR_DEINITIALIZED = 4,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_INVALID_DEVICE = 101,
  CUDA_ERROR_INVALID_CONTEXT = 201,
  CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
  CUDA_ERROR_INVALID_PTX = 218,
  CUDA_ERROR_INVALID_HANDLE = 400,
  CUDA_ERROR_NOT_FOUND = 500,
  CUDA_ERROR_ILLEGAL_ADDRESS = 700,
  CUDA_ERROR_LAUNCH_TIMEOUT = 702,
  CUDA_ERROR_ASSERT = 710,
  CUDA_ERROR_HARDWARE_STACK_ERROR = 714,
  CUDA_ERROR_LAUNCH_FAILED = 719,
  CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900
};

enum : int { // CUdevice_attribute
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK = 8,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
  CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED = 115
};

enum : int { // CUfunction_attribute
  CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
  CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8
};

enum : int { // CUjit_option
  CU_JIT_ERROR_LOG_BUFFER = 5,
  CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6
};

enum : int { // CUstreamCaptureMode
  CU_STREAM_CAPTURE_MODE_GLOBAL = 0,
  CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
  CU_STREAM_CAPTURE_MODE_RELAXED = 2
};

enum : unsigned { CU_STREAM_NON_BLOCKING = 1 };
enum : unsigned { CU_EVENT_DEFAULT = 0 };

/// The oldest driver with context-independent libraries (cuLibraryLoadData).
enum : int { kMinimumVersion = 12000 };

// FUNCTION(name, symbol, parameters): the function, the symbol that holds the
// version of it that cuda.h means by the name, and its parameters. All return
// a CUresult.
#define FTRT_DRIVER_FUNCTIONS(FUNCTION)                                        \
  FUNCTION(cuDriverGetVersion, cuDriverGetVersion, (int *version))             \
  FUNCTION(cuGetErrorName, cuGetErrorName,                                     \
           (CUresult error, const char **name))                                \
  FUNCTION(cuGetErrorString, cuGetErrorString,                                 \
           (CUresult error, const char **text))                                \
  FUNCTION(cuInit, cuInit, (unsigned flags))                                   \
  FUNCTION(cuDeviceGetCount, cuDeviceGetCount, (int *count))                   \
  FUNCTION(cuDeviceGet, cuDeviceGet, (CUdevice * device, int ordinal))         \
  FUNCTION(cuDeviceGetName, cuDeviceGetName,                                   \
           (char *name, int capacity, CUdevice device))                        \
  FUNCTION(cuDeviceTotalMem, cuDeviceTotalMem_v2,                              \
           (size_t *bytes, CUdevice device))                                   \
  FUNCTION(cuDeviceGetAttribute, cuDeviceGetAttribute,                         \
           (int *value, int attribute, CUdevice device))                       \
  FUNCTION(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain,                 \
           (CUcontext * context, CUdevice device))                             \
  FUNCTION(cuCtxSetCurrent, cuCtxSetCurrent, (CUcontext context))              \
  FUNCTION(cuCtxGetDevice, cuCtxGetDevice, (CUdevice * device))                \
  FUNCTION(cuThreadExchangeStreamCaptureMode,                                  \
           cuThreadExchangeStreamCaptureMode, (int *mode))                     \
  FUNCTION(cuLibraryLoadData, cuLibraryLoadData,                               \
           (CUlibrary * library, const void *code, int *jitOptions,            \
            void **jitValues, unsigned jitCount, int *libraryOptions,          \
            void **libraryValues, unsigned libraryCount))                      \
  FUNCTION(cuLibraryUnload, cuLibraryUnload, (CUlibrary library))              \
  FUNCTION(cuLibraryGetKernel, cuLibraryGetKernel,                             \
           (CUkernel * kernel, CUlibrary library, const char *name))           \
  FUNCTION(cuKernelGetFunction, cuKernelGetFunction,                           \
           (CUfunction * function, CUkernel kernel))                           \
  FUNCTION(cuKernelGetAttribute, cuKernelGetAttribute,                         \
           (int *value, int attribute, CUkernel kernel, CUdevice device))      \
  FUNCTION(cuKernelSetAttribute, cuKernelSetAttribute,                         \
           (int attribute, int value, CUkernel kernel, CUdevice device))       \
  FUNCTION(cuLaunchKernel, cuLaunchKernel,                                     \
           (CUfunction function, unsigned gridX, unsigned gridY,               \
            unsigned gridZ, unsigned blockX, unsigned blockY, unsigned blockZ, \
            unsigned dynamicSharedBytes, CUstream stream, void **parameters,   \
            void **extra))                                                     \
  FUNCTION(cuStreamCreate, cuStreamCreate,                                     \
           (CUstream * stream, unsigned flags))                                \
  FUNCTION(cuStreamDestroy, cuStreamDestroy_v2, (CUstream stream))             \
  FUNCTION(cuStreamSynchronize, cuStreamSynchronize, (CUstream stream))        \
  FUNCTION(cuEventCreate, cuEventCreate, (CUevent * event, unsigned flags))    \
  FUNCTION(cuEventDestroy, cuEventDestroy_v2, (CUevent event))                 \
  FUNCTION(cuEventRecord, cuEventRecord, (CUevent event, CUstream stream))     \
  FUNCTION(cuEventSynchronize, cuEventSynchronize, (CUevent event))            \
  FUNCTION(cuEventElapsedTime, cuEventElapsedTime,                             \
           (float *milliseconds, CUevent start, CUevent end))                  \
  FUNCTION(cuMemAlloc, cuMemAlloc_v2, (CUdeviceptr * memory, size_t bytes))    \
  FUNCTION(cuMemFree, cuMemFree_v2, (CUdeviceptr memory))                      \
  FUNCTION(cuMemAllocAsync, cuMemAllocAsync,                                   \
           (CUdeviceptr * memory, size_t bytes, CUstream stream))              \
  FUNCTION(cuMemFreeAsync, cuMemFreeAsync,                                     \
           (CUdeviceptr memory, CUstream stream))                              \
  FUNCTION(                                                                    \
      cuMemcpyAsync, cuMemcpyAsync,                                            \
      (CUdeviceptr target, CUdeviceptr source, size_t bytes, CUstream stream))

// Those that need not be there: drivers of CUDA 12.0 and above have them, but
// nothing else depends on them.
#define FTRT_OPTIONAL_DRIVER_FUNCTIONS(FUNCTION)                               \
  FUNCTION(cuTensorMapEncodeTiled, cuTensorMapEncodeTiled,                     \
           (void *map, int elementType, uint32_t rank, void *address,          \
            const uint64_t *sizes, const uint64_t *strides,                    \
            const uint32_t *box, const uint32_t *elementStrides,               \
            int interleave, int swizzle, int l2Promotion, int fill))

/// Properties of a device that libftrt reads, once.
struct DeviceInfo {
  std::string name;
  int major = 0; ///< compute capability
  int minor = 0;
  int sharedBytes = 0; ///< most shared memory of a block, static and dynamic
  bool memoryPools = false;
  /// Retained by the first ftrt_device_select().
  std::atomic<CUcontext> primaryContext{nullptr};

  int architecture() const { return 10 * major + minor; }
};

struct Driver {
#define FTRT_DECLARE(name, symbol, parameters) CUresult(*name) parameters;
  FTRT_DRIVER_FUNCTIONS(FTRT_DECLARE)
  /// Null where the driver has none.
  FTRT_OPTIONAL_DRIVER_FUNCTIONS(FTRT_DECLARE)
#undef FTRT_DECLARE
  /// By device number, which is also the CUdevice.
  DeviceInfo *devices = nullptr;
  int deviceCount = 0;
};

/// The driver once openDriver() has succeeded; before that its functions are
/// null.
extern Driver driver;

/// Opens the driver, unless it is open, and reads its devices. Fails with
/// FTRT_ERROR_NO_DRIVER; a failure is not remembered.
int32_t openDriver();

/// "cuInit: CUDA_ERROR_NO_DEVICE (no CUDA-capable device is detected)".
std::string describe(const char *call, CUresult result);

/// Lets the calling thread load modules and allocate while it, or another
/// thread, captures a stream into a graph; restores its mode at the end.
class RelaxedCapture {
public:
  RelaxedCapture();
  ~RelaxedCapture();
  RelaxedCapture(const RelaxedCapture &) = delete;

private:
  int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  bool exchanged;
};

/// Finds the device of the current context; fails with FTRT_ERROR_NO_DRIVER or
/// FTRT_ERROR_DRIVER.
int32_t getCurrentDevice(CUdevice &device);

} // namespace ftrt::cuda

#endif // FTUNER_LIB_RUNTIME_CUDADRIVER_H
