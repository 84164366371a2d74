//===- FakeDriver.h - A CUDA driver without a device ------------*- C++ -*-===//
//
// A test double: a library with the functions of the CUDA driver that libftrt
// uses. It runs nothing. It counts calls, fails those it is told to fail, and
// refuses what a real driver would refuse: launches without a context, of
// kernels that are unloaded, with more shared memory than was asked for, and
// loading while a stream is being captured.
//
// Tensor maps are encoded as the emulator does, with the number of the device
// in the last byte.
//
// An image is text, or text after an ELF header; its kernels are the names
// after ".entry ". PTX with the word INVALID does not compile.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_TEST_UNIT_RUNTIME_FAKEDRIVER_H
#define FTUNER_TEST_UNIT_RUNTIME_FAKEDRIVER_H

#include "../../../lib/Runtime/CudaDriver.h"
#include <vector>

namespace fake {

enum Function {
#define FAKE_ENUM(name, symbol, parameters) name,
  FTRT_DRIVER_FUNCTIONS(FAKE_ENUM) FTRT_OPTIONAL_DRIVER_FUNCTIONS(FAKE_ENUM)
#undef FAKE_ENUM
      kFunctionCount
};

struct Device {
  const char *name;
  int major, minor;
  int sharedBytes; ///< MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
  bool memoryPools;
  size_t bytes;
};

struct Launch {
  const char *kernel;
  void *function;    ///< what cuLaunchKernel() was given
  const void *image; ///< the data that the kernel was loaded from
  int device;
  unsigned grid, block, dynamicSharedBytes;
  void *stream;
  void **parameters;
};

/// What tests see and set. Reset between tests; devices are read once by
/// libftrt and so stay.
struct Control {
  int version;
  std::vector<Device> devices;
  int staticSharedBytes; ///< of every kernel loaded from now on
  /// Called by every launch that is accepted; may be null.
  void (*onLaunch)(const Launch &);
  std::atomic<int> calls[kFunctionCount];
  /// What a function returns instead of doing anything; 0 is none.
  std::atomic<int> failures[kFunctionCount];
  /// Whether something illegal was tried while a stream was being captured.
  std::atomic<bool> captureInvalidated;
  std::atomic<int> librariesLoaded; ///< loaded and not unloaded
  int lastMemcpyBytes;
  /// What events are recorded at; launches do not move it.
  double microseconds;

  int callCount() const {
    int sum = 0;
    for (const std::atomic<int> &count : calls)
      sum += count;
    return sum;
  }
};

/// The one control of the process.
extern "C" Control *fake_driver_control();
/// Counts, failures and callbacks as at the start.
extern "C" void fake_driver_reset();
/// The calling thread starts, or ends, to capture a stream in the mode
/// "global", in which no thread may do what could synchronise.
extern "C" void fake_driver_begin_capture();
extern "C" void fake_driver_end_capture();
/// The calling thread has no context.
extern "C" void fake_driver_clear_context();

} // namespace fake

#endif // FTUNER_TEST_UNIT_RUNTIME_FAKEDRIVER_H
