//===- Module.h - Loaded modules and resolved kernels -----------*- C++ -*-===//
//
// What the handles of ftrt_module and ftrt_kernel point to. A kernel's record
// is made when its module is first used, in whatever world, and holds what the
// kernel is in each: a CUkernel per device, and a kernel of the emulator. All
// of it is made under one lock and published by atomic stores, so that
// launches read it without a lock.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_RUNTIME_MODULE_H
#define FTUNER_LIB_RUNTIME_MODULE_H

#include "Api.h"
#include "CudaDriver.h"
#include <atomic>

namespace ftrt {

/// A kernel on a device.
struct DeviceKernel {
  /// Null until resolved; written after everything else.
  std::atomic<cuda::CUkernel> kernel{nullptr};
  /// Dynamic shared memory that launches may ask for, in bytes.
  std::atomic<uint32_t> dynamicSharedBytes{0};
  /// Static shared memory of the kernel, in bytes.
  uint32_t staticSharedBytes = 0;
};

/// Record that ftrt_kernel::handle points to.
struct KernelRecord {
  /// One for each device; null until the module is first used on one.
  std::atomic<DeviceKernel *> devices{nullptr};
  /// Null until resolved.
  std::atomic<const ftrt_host_kernel *> host{nullptr};
};

/// The kernel's record; null before the module is first used.
inline KernelRecord *getRecord(const ftrt_kernel &kernel) {
  return static_cast<KernelRecord *>(
      __atomic_load_n(&kernel.handle, __ATOMIC_ACQUIRE));
}

/// Makes a kernel ready for launches with so much dynamic shared memory on a
/// device, whose context is current: loads the module for it, finds the kernel,
/// has it loaded into the context, raises its limit of shared memory.
int32_t resolveOnDevice(ftrt_kernel &kernel, cuda::CUdevice device,
                        uint32_t dynamicSharedBytes);

/// Makes a kernel ready for the emulator.
int32_t resolveOnEmulator(ftrt_kernel &kernel);

} // namespace ftrt

#endif // FTUNER_LIB_RUNTIME_MODULE_H
