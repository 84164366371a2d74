//===- Driver.cpp - The CUDA driver over the emulator ---------------------===//
//
// A libcuda.so.1 for machines without a GPU: programs that use the CUDA driver,
// such as IREE's runtime, run FTuner's kernels in the emulator. A kernel of an
// image is the one of that name in the libraries of EmulatedLibraries.h. Other
// kernels load, and fail when they are launched.
//
// There is one device, whose memory is the host's, of the compute capability
// that Capability.h reads; it refuses images for others. Everything is done
// when a function returns, whatever the stream, but for what is captured into a
// graph (Capture.h). Streams, events and graphs are in Streams.cpp. Functions
// that are not here return CUDA_ERROR_NOT_SUPPORTED (`cuGetProcAddress`).
//
// Source of names and parameters: cuda.h of CUDA 12.
//
//===----------------------------------------------------------------------===//
#include "Capability.h"
#include "Capture.h"
#include "FTuner/Runtime/EmulatedLibraries.h"
#include "FTuner/Runtime/EmulatedTensorMap.h"
#include "Faults.h"
#include "Parameters.h"
#include "Results.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <dlfcn.h>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unistd.h>
#include <vector>

using namespace ftuner;

namespace {

using Pointer = void *; // CUdeviceptr has its size.

/// Limits of the device that is shown: those that kernels for sm_90 ask for.
constexpr int kSharedBytes = 232448, kStaticSharedBytes = 49152;
constexpr size_t kMemoryBytes = size_t(16) << 30, kMemoryAlignment = 256;
constexpr int kDriverVersion = 12040;

/// CUfunction_attribute
constexpr int kMaxDynamicSharedBytes = 8;

/// CUdevice_attribute; 0 for all others.
const std::map<int, int> attributes = {
    {1, 1024}, // threads of a block
    {2, 1024},
    {3, 1024}, // block
    {4, 64},
    {5, INT32_MAX}, // block, grid
    {6, 65535},
    {7, 65535},              // grid
    {8, kStaticSharedBytes}, // shared memory of a block
    {10, 32},                // threads of a warp
    {12, 65536},             // registers of a block
    {13, 1980000},           // kHz
    {16, 132},               // SMs
    {36, 2619000},           // kHz of the memory
    {37, 5120},              // bits of its bus
    {38, 52428800},          // L2
    {39, 2048},              // threads of an SM
    {41, 1},                 // unified addresses
    {81, 233472},            // shared memory of an SM
    {82, 65536},             // registers of an SM
    {83, 1},                 // managed memory
    {89, 1},                 // the same, from both sides at once
    {97, kSharedBytes},      // shared memory of a block, asked for
    {106, 32},               // blocks of an SM
    {120, 1},                // clusters
};

struct Function {
  std::string name;
  /// Null where no library has it.
  ftrt_kernel *kernel;
  /// Bytes of each parameter; none where the image does not tell.
  std::optional<std::vector<size_t>> parameters;
  std::atomic<int> sharedLimit{kStaticSharedBytes};
};

class Driver {
public:
  static Driver &get() {
    static Driver driver;
    return driver;
  }
  /// A function of an image, which is PTX or a cubin.
  Function *addFunction(const char *name, const char *image);
  /// Keeps words about an error, for its description, and prints them.
  CUresult fail(CUresult error, const std::string &words);
  const char *words() const { return lastWords.c_str(); }

private:
  std::mutex mutex;
  std::deque<Function> functions;
  std::string lastWords = "no error";
};

CUresult Driver::fail(CUresult error, const std::string &words) {
  std::lock_guard lock(mutex);
  lastWords = words;
  std::fprintf(stderr, "emulated CUDA driver: %s\n", words.c_str());
  return error;
}

bool isCubin(const char *image) {
  return std::memcmp(image, "\177ELF", 4) == 0;
}

Function *Driver::addFunction(const char *name, const char *image) {
  std::lock_guard lock(mutex);
  Function &function = functions.emplace_back();
  function.name = name;
  function.kernel = findEmulatedKernel(name);
  if (!isCubin(image))
    function.parameters = readParameters(image, name);
  return &function;
}

CUresult allocate(Pointer *memory, size_t bytes) {
  if (!memory || bytes == 0)
    return kInvalidValue;
  size_t whole = (bytes + kMemoryAlignment - 1) / kMemoryAlignment;
  *memory = std::aligned_alloc(kMemoryAlignment, whole * kMemoryAlignment);
  return *memory ? kSuccess : kOutOfMemory;
}

/// For what a program does at once.
CUresult allocateNow(Pointer *memory, size_t bytes, const char *call) {
  if (CUresult error = refuseUnsafe(call))
    return error;
  return allocate(memory, bytes);
}

/// Memory that the nodes of graphs allocate: it is theirs as long as they are,
/// and has one address for all launches.
class GraphMemory {
public:
  static GraphMemory &get() {
    // Outlives the graphs that a program leaves behind.
    static auto *memory = new GraphMemory;
    return *memory;
  }
  CUresult allocate(Pointer *memory, size_t bytes, Work &work);
  bool holds(Pointer memory) {
    std::lock_guard lock(mutex);
    return addresses.count(memory) != 0;
  }

private:
  std::mutex mutex;
  std::set<Pointer> addresses;
};

CUresult GraphMemory::allocate(Pointer *memory, size_t bytes, Work &work) {
  if (CUresult error = ::allocate(memory, bytes))
    return error;
  {
    std::lock_guard lock(mutex);
    addresses.insert(*memory);
  }
  std::shared_ptr<void> owner(*memory, [this](Pointer address) {
    std::lock_guard lock(mutex);
    addresses.erase(address);
    std::free(address);
  });
  work = [owner] { return kSuccess; };
  return kSuccess;
}

CUresult freeNow(Pointer memory, const char *call) {
  if (CUresult error = refuseUnsafe(call))
    return error;
  if (!GraphMemory::get().holds(memory))
    std::free(memory);
  return kSuccess;
}

CUresult copy(Pointer target, const void *source, size_t bytes, void *stream) {
  return push(stream, NodeType::Copy, [=] {
    std::memcpy(target, source, bytes);
    return kSuccess;
  });
}

template <typename T>
CUresult fill(Pointer target, T value, size_t count, void *stream) {
  return push(stream, NodeType::Set, [=] {
    auto *elements = static_cast<T *>(target);
    std::fill(elements, elements + count, value);
    return kSuccess;
  });
}

/// The handle of the only context, which has no state.
int context;

bool holdsEntry(const char *ptx, const char *name) {
  std::string entry = std::string(".entry ") + name;
  for (const char *at = ptx; (at = std::strstr(at, entry.c_str())); ++at) {
    char next = at[entry.size()];
    if (!std::isalnum(static_cast<unsigned char>(next)) && next != '_' &&
        next != '$')
      return true;
  }
  return false;
}

struct Module {
  /// PTX up to its zero, or a cubin.
  const char *image;

  /// Whether it may have the kernel: cubins are not looked into.
  bool mayHold(const char *name) const {
    return isCubin(image) || holdsEntry(image, name);
  }
};

/// What a launch does, with its parameters as for cuLaunchKernel.
CUresult runKernel(const Function &function, unsigned blocks, unsigned threads,
                   unsigned sharedBytes, void **parameters) {
  Driver &driver = Driver::get();
  switch (faultOf(function.name)) {
  case Fault::None:
    break;
  case Fault::Lost:
    return kSuccess;
  case Fault::Fail:
    return driver.fail(kLaunchFailed, function.name + " was made to fail");
  case Fault::Hang:
    for (;;)
      ::pause();
  }
  if (launchEmulatedKernel(function.kernel, blocks, threads, sharedBytes,
                           parameters) != FTRT_SUCCESS)
    return driver.fail(kLaunchFailed, ftrt_last_error());
  return kSuccess;
}

CUresult notSupported() { return kNotSupported; }

} // namespace

CUresult ftuner::fail(CUresult error, const std::string &words) {
  return Driver::get().fail(error, words);
}

extern "C" {

//===----------------------------------------------------------------------===//
// Driver, device, contexts
//===----------------------------------------------------------------------===//

CUresult cuInit(unsigned) {
  if (const std::string &error = loadEmulatedLibraries(); !error.empty())
    return Driver::get().fail(kNotFound, error);
  for (const std::string &error : {givenCapability().error, errorOfFaults()})
    if (!error.empty())
      return Driver::get().fail(kInvalidValue, error);
  return kSuccess;
}
CUresult cuDriverGetVersion(int *version) {
  *version = kDriverVersion;
  return kSuccess;
}
CUresult cuGetErrorName(CUresult error, const char **name) {
  switch (error) {
#define FTUNER_NAME(name_, number, text)                                       \
  case number:                                                                 \
    *name = text;                                                              \
    return kSuccess;
    FTUNER_CUDA_RESULTS(FTUNER_NAME)
#undef FTUNER_NAME
  default:
    *name = "CUDA_ERROR_UNKNOWN";
    return kSuccess;
  }
}
CUresult cuGetErrorString(CUresult error, const char **text) {
  *text = error == kSuccess ? "no error" : Driver::get().words();
  return kSuccess;
}
CUresult cuDeviceGetCount(int *count) {
  *count = 1;
  return kSuccess;
}
CUresult cuDeviceGet(int *device, int ordinal) {
  *device = 0;
  return ordinal == 0 ? kSuccess : kInvalidDevice;
}
CUresult cuDeviceGetName(char *name, int capacity, int) {
  std::snprintf(name, capacity, "FTuner emulator");
  return kSuccess;
}
CUresult cuDeviceGetUuid(void *uuid, int) {
  constexpr char bytes[17] = "FTuner emulator.";
  std::memcpy(uuid, bytes, 16);
  return kSuccess;
}
CUresult cuDeviceGetPCIBusId(char *text, int capacity, int) {
  std::snprintf(text, capacity, "0000:00:00.0");
  return kSuccess;
}
CUresult cuDeviceTotalMem(size_t *bytes, int) {
  *bytes = kMemoryBytes;
  return kSuccess;
}
CUresult cuDeviceTotalMem_v2(size_t *bytes, int device) {
  return cuDeviceTotalMem(bytes, device);
}
CUresult cuDeviceGetAttribute(int *value, int attribute, int) {
  constexpr int kMajor = 75, kMinor = 76; // of the compute capability
  if (attribute == kMajor || attribute == kMinor) {
    const Capability &capability = givenCapability();
    *value = attribute == kMajor ? capability.major : capability.minor;
    return kSuccess;
  }
  auto found = attributes.find(attribute);
  *value = found == attributes.end() ? 0 : found->second;
  return kSuccess;
}
CUresult cuDevicePrimaryCtxRetain(void **result, int) {
  *result = &context;
  return kSuccess;
}
CUresult cuDevicePrimaryCtxRelease(int) { return kSuccess; }
CUresult cuDevicePrimaryCtxSetFlags(int, unsigned) { return kSuccess; }
CUresult cuDevicePrimaryCtxGetState(int, unsigned *flags, int *isActive) {
  *flags = 0;
  *isActive = 1;
  return kSuccess;
}
CUresult cuCtxSetCurrent(void *) { return kSuccess; }
CUresult cuCtxGetCurrent(void **result) {
  *result = &context;
  return kSuccess;
}
CUresult cuCtxPushCurrent(void *) { return kSuccess; }
CUresult cuCtxPopCurrent(void **result) { return cuCtxGetCurrent(result); }
CUresult cuCtxGetDevice(int *device) {
  *device = 0;
  return kSuccess;
}
CUresult cuCtxSynchronize() { return refuseWait("cuCtxSynchronize"); }

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

CUresult cuMemAlloc(Pointer *memory, size_t bytes) {
  return allocateNow(memory, bytes, "cuMemAlloc");
}
CUresult cuMemAlloc_v2(Pointer *memory, size_t bytes) {
  return cuMemAlloc(memory, bytes);
}
CUresult cuMemAllocAsync(Pointer *memory, size_t bytes, void *stream) {
  return push(
      stream, NodeType::Allocate, [=] { return allocate(memory, bytes); },
      [=](Work &work) {
        return GraphMemory::get().allocate(memory, bytes, work);
      });
}
CUresult cuMemAllocManaged(Pointer *memory, size_t bytes, unsigned) {
  return allocateNow(memory, bytes, "cuMemAllocManaged");
}
CUresult cuMemHostAlloc(Pointer *memory, size_t bytes, unsigned) {
  return allocateNow(memory, bytes, "cuMemHostAlloc");
}
CUresult cuMemFree(Pointer memory) { return freeNow(memory, "cuMemFree"); }
CUresult cuMemFree_v2(Pointer memory) { return cuMemFree(memory); }
CUresult cuMemFreeHost(Pointer memory) {
  return freeNow(memory, "cuMemFreeHost");
}
CUresult cuMemFreeAsync(Pointer memory, void *stream) {
  bool isOfGraph = GraphMemory::get().holds(memory);
  return push(
      stream, NodeType::Free,
      [=] {
        if (!isOfGraph)
          std::free(memory);
        return kSuccess;
      },
      [=](Work &work) {
        if (!isOfGraph)
          return fail(kInvalidValue, "expected memory that the graph allocates "
                                     "where a graph shall free it");
        work = [] { return kSuccess; };
        return CUresult(kSuccess);
      });
}
CUresult cuMemHostRegister(void *, size_t, unsigned) {
  return refuseUnsafe("cuMemHostRegister");
}
CUresult cuMemHostUnregister(void *) {
  return refuseUnsafe("cuMemHostUnregister");
}
CUresult cuMemHostGetDevicePointer(Pointer *device, void *host, unsigned) {
  *device = host;
  return kSuccess;
}
CUresult cuMemPrefetchAsync(Pointer, size_t, int, void *stream) {
  return refuseWait(stream, "cuMemPrefetchAsync");
}
CUresult cuMemcpyAsync(Pointer target, Pointer source, size_t bytes,
                       void *stream) {
  return copy(target, source, bytes, stream);
}
CUresult cuMemcpyHtoDAsync(Pointer target, const void *source, size_t bytes,
                           void *stream) {
  return copy(target, source, bytes, stream);
}
CUresult cuMemcpyDtoHAsync(void *target, Pointer source, size_t bytes,
                           void *stream) {
  return copy(target, source, bytes, stream);
}
CUresult cuMemsetD8Async(Pointer target, unsigned char value, size_t count,
                         void *stream) {
  return fill<uint8_t>(target, value, count, stream);
}
CUresult cuMemsetD16Async(Pointer target, unsigned short value, size_t count,
                          void *stream) {
  return fill<uint16_t>(target, value, count, stream);
}
CUresult cuMemsetD32Async(Pointer target, unsigned value, size_t count,
                          void *stream) {
  return fill<uint32_t>(target, value, count, stream);
}

//===----------------------------------------------------------------------===//
// Modules and launches
//===----------------------------------------------------------------------===//

CUresult cuModuleLoadData(void **module, const void *image) {
  if (!image)
    return kInvalidImage;
  if (CUresult error = refuseUnsafe("cuModuleLoadData"))
    return error;
  if (std::string why = objectionTo(image, givenCapability()); !why.empty())
    return Driver::get().fail(kNoBinaryForGpu, why);
  *module = new Module{static_cast<const char *>(image)};
  return kSuccess;
}
CUresult cuModuleLoadDataEx(void **module, const void *image, unsigned, int *,
                            void **) {
  return cuModuleLoadData(module, image);
}
CUresult cuModuleUnload(void *module) {
  if (CUresult error = refuseUnsafe("cuModuleUnload"))
    return error;
  delete static_cast<Module *>(module);
  return kSuccess;
}
CUresult cuModuleGetFunction(void **function, void *module, const char *name) {
  auto &loaded = *static_cast<Module *>(module);
  if (!loaded.mayHold(name))
    return Driver::get().fail(kNotFound,
                              std::string("the image has no kernel ") + name);
  *function = Driver::get().addFunction(name, loaded.image);
  return kSuccess;
}
CUresult cuFuncSetAttribute(void *function, int attribute, int value) {
  if (attribute != kMaxDynamicSharedBytes)
    return kSuccess;
  if (value > kSharedBytes)
    return kInvalidValue;
  static_cast<Function *>(function)->sharedLimit = value;
  return kSuccess;
}
CUresult cuFuncGetAttribute(int *value, int attribute, void *function) {
  *value = attribute == kMaxDynamicSharedBytes
               ? static_cast<Function *>(function)->sharedLimit.load()
               : 0;
  return kSuccess;
}
// Libraries are modules that belong to no context, and kernels functions.
CUresult cuLibraryLoadData(void **library, const void *image, int *, void **,
                           unsigned, int *, void **, unsigned) {
  return cuModuleLoadData(library, image);
}
CUresult cuLibraryUnload(void *library) { return cuModuleUnload(library); }
CUresult cuLibraryGetKernel(void **kernel, void *library, const char *name) {
  // Callers may ask whether there is one.
  if (!static_cast<Module *>(library)->mayHold(name))
    return kNotFound;
  return cuModuleGetFunction(kernel, library, name);
}
CUresult cuKernelGetFunction(void **function, void *kernel) {
  *function = kernel;
  return kSuccess;
}
CUresult cuKernelGetAttribute(int *value, int attribute, void *kernel, int) {
  return cuFuncGetAttribute(value, attribute, kernel);
}
CUresult cuKernelSetAttribute(int attribute, int value, void *kernel, int) {
  return cuFuncSetAttribute(kernel, attribute, value);
}
CUresult cuLaunchKernel(void *handle, unsigned gridX, unsigned gridY,
                        unsigned gridZ, unsigned blockX, unsigned blockY,
                        unsigned blockZ, unsigned sharedBytes, void *stream,
                        void **parameters, void **) {
  auto *function = static_cast<Function *>(handle);
  Driver &driver = Driver::get();
  if (!function->kernel)
    return driver.fail(kLaunchFailed, missingEmulatedKernel(function->name));
  if (gridX == 0 || gridY != 1 || gridZ != 1 || blockY != 1 || blockZ != 1)
    return driver.fail(kInvalidValue,
                       "expected a grid and blocks of one dimension for " +
                           function->name);
  if (uint32_t size = emulatedClusterSize(*function->kernel); gridX % size != 0)
    return driver.fail(kInvalidClusterSize,
                       "expected a grid of clusters of " +
                           std::to_string(size) + " blocks for " +
                           function->name + ", but got " +
                           std::to_string(gridX) + " blocks");
  if (static_cast<int64_t>(sharedBytes) > function->sharedLimit)
    return driver.fail(kInvalidValue, function->name +
                                          " asks for more shared memory than "
                                          "its attribute allows");
  auto launch = [=](void **values) {
    return runKernel(*function, gridX, blockX, sharedBytes, values);
  };
  return push(
      stream, NodeType::Kernel, [=] { return launch(parameters); },
      [=](Work &work) {
        if (!function->parameters)
          return fail(kNotSupported,
                      "the image of " + function->name +
                          " does not tell its parameters in PTX, so its "
                          "launches cannot be captured here");
        auto values = std::make_shared<ParameterValues>(*function->parameters,
                                                        parameters);
        work = [=] { return launch(values->pointers()); };
        return CUresult(kSuccess);
      });
}

CUresult cuTensorMapEncodeTiled(void *map, int type, uint32_t rank,
                                void *address, const uint64_t *sizes,
                                const uint64_t *strides, const uint32_t *box,
                                const uint32_t *elementStrides, int interleave,
                                int swizzle, int l2Promotion, int fill) {
  std::string error = emulator::encodeTensorMap(
      map, {static_cast<uint32_t>(type), rank, address, sizes, strides, box,
            elementStrides, static_cast<uint32_t>(interleave),
            static_cast<uint32_t>(swizzle), static_cast<uint32_t>(l2Promotion),
            static_cast<uint32_t>(fill)});
  return error.empty() ? kSuccess : Driver::get().fail(kInvalidValue, error);
}

//===----------------------------------------------------------------------===//
// Functions by name
//===----------------------------------------------------------------------===//

CUresult cuGetProcAddress(const char *name, void **function, int, uint64_t) {
  static void *self = [] {
    Dl_info info;
    return dladdr(reinterpret_cast<void *>(&cuInit), &info)
               ? dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD)
               : nullptr;
  }();
  *function = self ? dlsym(self, name) : nullptr;
  if (!*function)
    *function = reinterpret_cast<void *>(&notSupported);
  return kSuccess;
}
CUresult cuGetProcAddress_v2(const char *name, void **function, int version,
                             uint64_t flags, int *status) {
  if (status)
    *status = 0;
  return cuGetProcAddress(name, function, version, flags);
}
}
