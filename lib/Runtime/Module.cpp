//===- Module.cpp - Loaded modules and resolved kernels -------------------===//
#include "Module.h"
#include "Api.h"
#include "EmulatorLibrary.h"
#include "Errors.h"
#include "FTuner/Runtime/EmulatedImage.h"
#include "Images.h"
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

using namespace ftrt;
using namespace ftrt::cuda;

namespace {
/// An image given to the driver; one serves all devices that it fits.
struct LoadedImage {
  CUlibrary library = nullptr;
  /// The driver may write here as long as the library is loaded, since it may
  /// put off compiling PTX until a kernel is needed.
  struct Log {
    char text[8192] = "";
    int options[2] = {CU_JIT_ERROR_LOG_BUFFER,
                      CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[2] = {text, reinterpret_cast<void *>(sizeof(text) - 1)};
  };
  std::unique_ptr<Log> log;
};

/// Record that ftrt_module::handle points to.
struct ModuleRecord {
  std::unique_ptr<KernelRecord[]> kernels;
  /// The devices of kernel i begin at i * device count.
  std::unique_ptr<DeviceKernel[]> deviceKernels;
  std::vector<LoadedImage> images;
  bool hostFunctionsFilled = false;
};

/// Held while records are made, changed or released.
std::mutex loadMutex;

int32_t getModuleRecord(ftrt_module *module, ModuleRecord *&record) {
  // Modules of other versions may keep something else where the handle is.
  if (module && module->abi_version == FTRT_ABI_VERSION && module->handle) {
    record = static_cast<ModuleRecord *>(module->handle);
    return FTRT_SUCCESS;
  }
  if (int32_t code = checkModule(module))
    return code;
  auto made = std::make_unique<ModuleRecord>();
  made->kernels = std::make_unique<KernelRecord[]>(module->kernel_count);
  made->images.resize(module->image_count);
  record = made.release();
  __atomic_store_n(&module->handle, record, __ATOMIC_RELEASE);
  for (uint64_t i = 0; i < module->kernel_count; ++i)
    __atomic_store_n(&module->kernels[i]->handle, &record->kernels[i],
                     __ATOMIC_RELEASE);
  return FTRT_SUCCESS;
}

/// The records of a kernel and of its module, which must list it: what is not
/// listed could not be released.
int32_t getRecords(ftrt_kernel &kernel, ModuleRecord *&module,
                   KernelRecord *&record) {
  if (!kernel.name)
    return fail(FTRT_ERROR_INVALID_ARGUMENT,
                "expected a kernel with a name, but got null");
  if (!kernel.module)
    return fail(FTRT_ERROR_INVALID_ARGUMENT,
                format("kernel '%s' belongs to no module", kernel.name));
  if (int32_t code = getModuleRecord(kernel.module, module))
    return code;
  record = getRecord(kernel);
  if (!record)
    return fail(FTRT_ERROR_INVALID_ARGUMENT,
                format("module '%s' does not list kernel '%s'",
                       kernel.module->name, kernel.name));
  return FTRT_SUCCESS;
}

int32_t imageFailure(int32_t code, const ftrt_module &module,
                     const ftrt_image &image, const LoadedImage &loaded,
                     const std::string &why) {
  std::string words = format("module '%s': %s: %s", module.name,
                             describeImage(image).c_str(), why.c_str());
  if (loaded.log && *loaded.log->text)
    words += format("\n%s", loaded.log->text);
  return fail(code, std::move(words));
}

int32_t loadImage(const ftrt_module &module, const ftrt_image &image,
                  LoadedImage &loaded) {
  if (loaded.library)
    return FTRT_SUCCESS;
  LoadedImage made;
  unsigned optionCount = 0;
  if (image.kind == FTRT_IMAGE_PTX) {
    made.log = std::make_unique<LoadedImage::Log>();
    optionCount = 2;
  }
  CUresult result = driver.cuLibraryLoadData(
      &made.library, image.data, optionCount ? made.log->options : nullptr,
      optionCount ? made.log->values : nullptr, optionCount, nullptr, nullptr,
      0);
  if (result != CUDA_SUCCESS)
    return imageFailure(FTRT_ERROR_DRIVER, module, image, made,
                        describe("cuLibraryLoadData", result));
  loaded = std::move(made);
  return FTRT_SUCCESS;
}

/// Finds the kernel in its image and fills in what the device says of it. With
/// `mayLack`, an image without the kernel leaves `found` null.
int32_t findKernel(const ftrt_kernel &kernel, const ftrt_image &image,
                   const LoadedImage &loaded, CUdevice device, bool mayLack,
                   DeviceKernel &entry, CUkernel &found) {
  auto failure = [&](int32_t code, const char *call, CUresult result) {
    return imageFailure(
        code, *kernel.module, image, loaded,
        format("kernel '%s': %s", kernel.name, describe(call, result).c_str()));
  };
  CUresult result =
      driver.cuLibraryGetKernel(&found, loaded.library, kernel.name);
  if (result == CUDA_ERROR_NOT_FOUND && mayLack) {
    found = nullptr;
    return FTRT_SUCCESS;
  }
  if (result != CUDA_SUCCESS)
    return failure(result == CUDA_ERROR_NOT_FOUND ? FTRT_ERROR_UNKNOWN_KERNEL
                                                  : FTRT_ERROR_DRIVER,
                   "cuLibraryGetKernel", result);
  // The driver loads lazily: without this the first launch would.
  CUfunction function = nullptr;
  result = driver.cuKernelGetFunction(&function, found);
  if (result != CUDA_SUCCESS)
    return failure(FTRT_ERROR_DRIVER, "cuKernelGetFunction", result);
  int staticBytes = 0, dynamicBytes = 0;
  result = driver.cuKernelGetAttribute(
      &staticBytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, found, device);
  if (result == CUDA_SUCCESS)
    result = driver.cuKernelGetAttribute(
        &dynamicBytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, found,
        device);
  if (result != CUDA_SUCCESS)
    return failure(FTRT_ERROR_DRIVER, "cuKernelGetAttribute", result);
  entry.staticSharedBytes = staticBytes;
  entry.dynamicSharedBytes.store(dynamicBytes, std::memory_order_relaxed);
  return FTRT_SUCCESS;
}

/// Raises the limit of dynamic shared memory, which is 48 KiB (less the static
/// one) until then, where a launch needs more.
int32_t raiseSharedMemory(const ftrt_kernel &kernel, CUdevice device,
                          DeviceKernel &entry, CUkernel found,
                          uint32_t needed) {
  if (needed <= entry.dynamicSharedBytes.load(std::memory_order_relaxed))
    return FTRT_SUCCESS;
  const DeviceInfo &info = driver.devices[device];
  uint64_t total = uint64_t(needed) + entry.staticSharedBytes;
  if (total > static_cast<uint64_t>(info.sharedBytes))
    return fail(FTRT_ERROR_LAUNCH_FAILED,
                format("kernel '%s' needs %u bytes of dynamic and %u bytes of "
                       "static shared memory, but a block on device %d (%s) "
                       "has at most %d bytes",
                       kernel.name, needed, entry.staticSharedBytes, device,
                       info.name.c_str(), info.sharedBytes));
  CUresult result = driver.cuKernelSetAttribute(
      CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, static_cast<int>(needed),
      found, device);
  if (result != CUDA_SUCCESS)
    return fail(FTRT_ERROR_DRIVER,
                format("kernel '%s': raising its dynamic shared memory to %u "
                       "bytes on device %d (%s): %s",
                       kernel.name, needed, device, info.name.c_str(),
                       describe("cuKernelSetAttribute", result).c_str()));
  entry.dynamicSharedBytes.store(needed, std::memory_order_relaxed);
  return FTRT_SUCCESS;
}

int32_t failNoImage(const ftrt_module &module, CUdevice device) {
  const DeviceInfo &info = driver.devices[device];
  std::string cubins = format("sm_%d", 10 * info.major);
  if (info.minor)
    cubins += format(" to sm_%d", info.architecture());
  return fail(FTRT_ERROR_NO_IMAGE,
              format("module '%s': expected a cubin for %s or PTX for at most "
                     "sm_%d, for device %d (%s), but the module holds %s",
                     module.name, cubins.c_str(), info.architecture(), device,
                     info.name.c_str(), describeImages(module).c_str()));
}

/// Expects the lock to be held. With `mayLack`, a kernel that the device's
/// image does not have stays as it is.
int32_t resolveLocked(ftrt_kernel &kernel, CUdevice device,
                      uint32_t dynamicSharedBytes, bool mayLack) {
  ModuleRecord *module = nullptr;
  KernelRecord *record = nullptr;
  if (int32_t code = getRecords(kernel, module, record))
    return code;
  if (!module->deviceKernels) {
    module->deviceKernels = std::make_unique<DeviceKernel[]>(
        kernel.module->kernel_count * driver.deviceCount);
    for (uint64_t i = 0; i < kernel.module->kernel_count; ++i)
      module->kernels[i].devices.store(
          &module->deviceKernels[i * driver.deviceCount],
          std::memory_order_release);
  }
  DeviceKernel &entry = record->devices.load(std::memory_order_relaxed)[device];
  CUkernel found = entry.kernel.load(std::memory_order_relaxed);
  if (!found) {
    const DeviceInfo &info = driver.devices[device];
    const ftrt_image *image =
        chooseImage(*kernel.module, info.major, info.minor);
    if (!image)
      return failNoImage(*kernel.module, device);
    LoadedImage &loaded = module->images[image - kernel.module->images];
    if (int32_t code = loadImage(*kernel.module, *image, loaded))
      return code;
    if (int32_t code =
            findKernel(kernel, *image, loaded, device, mayLack, entry, found))
      return code;
    if (!found)
      return FTRT_SUCCESS;
    entry.kernel.store(found, std::memory_order_release);
  }
  return raiseSharedMemory(kernel, device, entry, found, dynamicSharedBytes);
}

int32_t fillHostFunctions(const ftrt_module &module,
                          const ftrt_host_image &image) {
  const ftrt_emulator_interface &interface =
      *emulator.load(std::memory_order_acquire);
  if (image.function_count > interface.function_count)
    return fail(FTRT_ERROR_VERSION,
                format("module '%s': its host image calls %u functions of the "
                       "emulator, but the emulator has %u",
                       module.name, image.function_count,
                       interface.function_count));
  for (uint32_t i = 0; i < image.function_count; ++i)
    image.functions[i] = interface.functions[i];
  return FTRT_SUCCESS;
}
} // namespace

int32_t ftrt::resolveOnDevice(ftrt_kernel &kernel, CUdevice device,
                              uint32_t dynamicSharedBytes) {
  std::lock_guard<std::mutex> lock(loadMutex);
  RelaxedCapture relaxed;
  return resolveLocked(kernel, device, dynamicSharedBytes, /*mayLack=*/false);
}

int32_t ftrt::resolveOnEmulator(ftrt_kernel &kernel) {
  std::lock_guard<std::mutex> lock(loadMutex);
  ModuleRecord *module = nullptr;
  KernelRecord *record = nullptr;
  if (int32_t code = getRecords(kernel, module, record))
    return code;
  const ftrt_host_image *image = findHostImage(*kernel.module);
  if (!image)
    return fail(FTRT_ERROR_NO_IMAGE,
                format("module '%s': expected a host image, for the emulator, "
                       "but the module holds %s",
                       kernel.module->name,
                       describeImages(*kernel.module).c_str()));
  if (int32_t code = openEmulator())
    return code;
  if (!module->hostFunctionsFilled) {
    if (int32_t code = fillHostFunctions(*kernel.module, *image))
      return code;
    module->hostFunctionsFilled = true;
  }
  for (uint32_t i = 0; i < image->kernel_count; ++i) {
    const ftrt_host_kernel &candidate = image->kernels[i];
    if (std::strcmp(candidate.name, kernel.name) == 0) {
      record->host.store(&candidate, std::memory_order_release);
      return FTRT_SUCCESS;
    }
  }
  return fail(FTRT_ERROR_UNKNOWN_KERNEL,
              format("module '%s': its host image has no kernel '%s'",
                     kernel.module->name, kernel.name));
}

static int32_t prepareOnDevice(ftrt_module &module) {
  CUdevice device = 0;
  if (int32_t code = getCurrentDevice(device))
    return code;
  std::lock_guard<std::mutex> lock(loadMutex);
  RelaxedCapture relaxed;
  ModuleRecord *record = nullptr;
  if (int32_t code = getModuleRecord(&module, record))
    return code;
  // Host code asks which image is taken, and launches what that one has.
  const bool mayLack = hasVariants(module);
  for (uint64_t i = 0; i < module.kernel_count; ++i) {
    ftrt_kernel &kernel = *module.kernels[i];
    DeviceKernel *devices = record->kernels[i].devices.load();
    CUkernel found = devices ? devices[device].kernel.load() : nullptr;
    if (!found) {
      if (int32_t code = resolveLocked(kernel, device, 0, mayLack))
        return code;
      continue;
    }
    // Resolved already, but maybe in another context of the device.
    CUfunction function = nullptr;
    CUresult result = driver.cuKernelGetFunction(&function, found);
    if (result != CUDA_SUCCESS)
      return fail(FTRT_ERROR_DRIVER,
                  format("module '%s': kernel '%s': %s", module.name,
                         kernel.name,
                         describe("cuKernelGetFunction", result).c_str()));
  }
  return FTRT_SUCCESS;
}

/// The answer for the emulator.
__attribute__((noinline, cold)) static int32_t
emulatedIsExact(const ftrt_module &module, int32_t &exact) {
  std::string why = ftuner::emulatedImageIsExact(exact);
  if (why.empty())
    return FTRT_SUCCESS;
  return fail(FTRT_ERROR_INVALID_ARGUMENT,
              format("module '%s': %s", module.name, why.c_str()));
}

int32_t ftrt_image_is_exact(const ftrt_module *module, void *stream,
                            int32_t *exact) {
  if (__builtin_expect(!exact, 0))
    return fail(FTRT_ERROR_INVALID_ARGUMENT,
                "expected a place for the answer, but got null");
  // A handle says that the module was checked.
  if (__builtin_expect(!module || module->abi_version != FTRT_ABI_VERSION ||
                           !__atomic_load_n(&module->handle, __ATOMIC_ACQUIRE),
                       0))
    if (int32_t code = checkModule(module))
      return code;
  if (stream == ftrt_emulator_stream())
    return emulatedIsExact(*module, *exact);
  CUdevice device = 0;
  if (int32_t code = getCurrentDevice(device))
    return code;
  const DeviceInfo &info = driver.devices[device];
  const ftrt_image *image = chooseImage(*module, info.major, info.minor);
  if (__builtin_expect(!image, 0))
    return failNoImage(*module, device);
  *exact = isExact(*image);
  return FTRT_SUCCESS;
}

int32_t ftrt_prepare(ftrt_module *module, void *stream) {
  {
    std::lock_guard<std::mutex> lock(loadMutex);
    ModuleRecord *record = nullptr;
    if (int32_t code = getModuleRecord(module, record))
      return code;
  }
  if (stream != ftrt_emulator_stream())
    return prepareOnDevice(*module);
  for (uint64_t i = 0; i < module->kernel_count; ++i) {
    ftrt_kernel &kernel = *module->kernels[i];
    if (getRecord(kernel)->host.load(std::memory_order_acquire))
      continue;
    if (int32_t code = resolveOnEmulator(kernel))
      return code;
  }
  return FTRT_SUCCESS;
}

int32_t ftrt_release(ftrt_module *module) {
  std::lock_guard<std::mutex> lock(loadMutex);
  if (!module || module->abi_version != FTRT_ABI_VERSION || !module->handle)
    return checkModule(module);
  std::unique_ptr<ModuleRecord> record(
      static_cast<ModuleRecord *>(module->handle));
  __atomic_store_n(&module->handle, nullptr, __ATOMIC_RELEASE);
  for (uint64_t i = 0; i < module->kernel_count; ++i)
    __atomic_store_n(&module->kernels[i]->handle, nullptr, __ATOMIC_RELEASE);
  int32_t code = FTRT_SUCCESS;
  for (size_t i = 0; i < record->images.size(); ++i) {
    LoadedImage &loaded = record->images[i];
    if (!loaded.library)
      continue;
    RelaxedCapture relaxed;
    CUresult result = driver.cuLibraryUnload(loaded.library);
    // A driver that ended before us, at the end of the process, has unloaded
    // it.
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_DEINITIALIZED)
      code = imageFailure(FTRT_ERROR_DRIVER, *module, module->images[i], loaded,
                          describe("cuLibraryUnload", result));
  }
  return code;
}
