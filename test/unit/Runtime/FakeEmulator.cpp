//===- FakeEmulator.cpp - An emulator without fibers ----------------------===//
//
// A test double: runs one thread of a kernel, and refuses what the kernel's
// block size does not allow. Its functions return 1, 2 and 3. Built once as it
// should be, once of another version, once without its interface.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Runtime/EmulatedTensorMap.h"
#include "FTuner/Runtime/EmulatorInterface.h"
#include <cstdio>

#ifndef FAKE_EMULATOR_VERSION
#define FAKE_EMULATOR_VERSION FTRT_EMULATOR_VERSION
#endif

#ifndef FAKE_EMULATOR_WITHOUT_INTERFACE
static int one() { return 1; }
static int two() { return 2; }
static int three() { return 3; }

static int32_t launch(const ftrt_host_kernel *kernel, uint32_t gridX,
                      uint32_t blockX, uint32_t dynamicSharedBytes,
                      void **parameters, int32_t (*check)(), char *message,
                      uint64_t capacity) {
  if (blockX != kernel->block_x) {
    std::snprintf(message, capacity,
                  "expected a block of %u threads, but got %u", kernel->block_x,
                  blockX);
    return FTRT_ERROR_LAUNCH_FAILED;
  }
  kernel->entry(parameters);
  if (check && check() != 0) {
    std::snprintf(message, capacity, "interrupted");
    return FTRT_ERROR_INTERRUPTED;
  }
  return FTRT_SUCCESS;
}

static int32_t encodeTensorMap(void *map, uint32_t type, uint32_t rank,
                               void *address, const uint64_t *sizes,
                               const uint64_t *strides, const uint32_t *box,
                               const uint32_t *elementStrides,
                               uint32_t interleave, uint32_t swizzle,
                               uint32_t l2Promotion, uint32_t fill,
                               char *message, uint64_t capacity) {
  std::string error = ftuner::emulator::encodeTensorMap(
      map, {type, rank, address, sizes, strides, box, elementStrides,
            interleave, swizzle, l2Promotion, fill});
  if (error.empty())
    return FTRT_SUCCESS;
  std::snprintf(message, capacity, "%s", error.c_str());
  return FTRT_ERROR_INVALID_ARGUMENT;
}

const ftrt_emulator_interface *ftrt_emulator_get_interface() {
  static void *const functions[] = {reinterpret_cast<void *>(&one),
                                    reinterpret_cast<void *>(&two),
                                    reinterpret_cast<void *>(&three)};
  static const ftrt_emulator_interface interface = {
      FAKE_EMULATOR_VERSION, 3, functions, &launch, &encodeTensorMap};
  return &interface;
}
#endif
