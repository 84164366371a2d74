//===- EmulatorLibrary.cpp - The library libftrt_emulator -----------------===//
#include "FTuner/Runtime/EmulatedTensorMap.h"
#include "FTuner/Runtime/EmulatorInterface.h"
#include "GridRunner.h"
#include "RuntimeFunctions.h"
#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>

using namespace ftuner::emulator;

/// Returns whether the processor has what host images use by default
/// (HostImage.h).
static bool hasInstructions() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("x86-64-v3");
#else
  return true;
#endif
}

static int32_t fail(int32_t code, const std::string &text, char *message,
                    uint64_t capacity) {
  if (!message || capacity == 0)
    return code;
  uint64_t length = std::min<uint64_t>(text.size(), capacity - 1);
  std::memcpy(message, text.data(), length);
  message[length] = '\0';
  return code;
}

/// Runs a launch when those of other threads are through, or never if it is
/// interrupted while it waits. Says what went wrong before the first block ran.
static std::string runExclusively(const Launch &launch) {
  // Never destroyed: launches may still run while the process ends.
  static std::timed_mutex &mutex = *new std::timed_mutex;
  static GridRunner &runner = *new GridRunner;
  // The caller may run anything when it is asked, but it holds the mutex then.
  static thread_local bool isRunning = false;
  if (isRunning)
    return "expected no launch while another one of the same thread runs";
  std::unique_lock<std::timed_mutex> lock(mutex, std::defer_lock);
  isRunning = true;
  if (!launch.interruption)
    lock.lock();
  while (!lock && !lock.try_lock_for(Interruption::kInterval) &&
         !launch.interruption->look())
    ;
  std::string error = lock ? runner.run(launch, /*workers=*/0) : std::string();
  isRunning = false;
  return error;
}

static int32_t launchKernel(const ftrt_host_kernel *kernel, uint32_t gridX,
                            uint32_t blockX, uint32_t dynamicSharedBytes,
                            void **parameters, int32_t (*check)(),
                            char *message, uint64_t capacity) {
  if (!kernel || !kernel->name || !kernel->entry)
    return fail(FTRT_ERROR_INVALID_ARGUMENT, "expected a kernel, but got null",
                message, capacity);
  std::string name = kernel->name;
  if (!parameters)
    return fail(FTRT_ERROR_INVALID_ARGUMENT,
                "expected parameters of kernel '" + name + "', but got null",
                message, capacity);
  static const bool isSupported = hasInstructions();
  if (!isSupported)
    return fail(FTRT_ERROR_NO_EMULATOR,
                "the emulator needs a processor with the instructions of "
                "x86-64-v3 (AVX2 and FMA)",
                message, capacity);

  ErrorLog log([](uint32_t) { return std::string(); });
  Launch launch{};
  launch.entry = kernel->entry;
  launch.parameters = parameters;
  uint32_t grid[3] = {gridX, 1, 1}, block[3] = {blockX, 1, 1};
  std::copy_n(grid, 3, launch.grid);
  std::copy_n(block, 3, launch.block);
  launch.dynamicSharedBytes = dynamicSharedBytes;
  launch.staticSharedBytes = kernel->static_shared_bytes;
  launch.order = RunOrder::Forward;
  launch.lazyAsyncCopies = true;
  launch.log = &log;
  KernelLimits limits;
  limits.staticSharedBytes = kernel->static_shared_bytes;
  limits.knownBlock = {{kernel->block_x, 1, 1}};
  limits.clusterSize = std::max<uint32_t>(kernel->cluster_x, 1);
  launch.clusterSize = limits.clusterSize;
  std::optional<Interruption> interruption;
  if (check)
    launch.interruption = &interruption.emplace(check);
  std::string error = checkLaunch(name, limits, launch);
  if (error.empty())
    error = runExclusively(launch);
  if (interruption && interruption->isRaised())
    return fail(FTRT_ERROR_INTERRUPTED, "interrupted", message, capacity);
  if (error.empty())
    error = log.summary(name);
  if (!error.empty())
    return fail(FTRT_ERROR_LAUNCH_FAILED, error, message, capacity);
  return FTRT_SUCCESS;
}

static int32_t encodeMap(void *map, uint32_t type, uint32_t rank, void *address,
                         const uint64_t *sizes, const uint64_t *strides,
                         const uint32_t *box, const uint32_t *elementStrides,
                         uint32_t interleave, uint32_t swizzle,
                         uint32_t l2Promotion, uint32_t fill, char *message,
                         uint64_t capacity) {
  std::string error = encodeTensorMap(map, {type, rank, address, sizes, strides,
                                            box, elementStrides, interleave,
                                            swizzle, l2Promotion, fill});
  return error.empty()
             ? FTRT_SUCCESS
             : fail(FTRT_ERROR_INVALID_ARGUMENT, error, message, capacity);
}

/// Returns the table of EmulatorInterface.h. The first call fills it in.
extern "C" __attribute__((visibility("default")))
const ftrt_emulator_interface *
ftrt_emulator_get_interface() {
  // The interface has addresses only, in the order of HostFunctions.def.
  static const auto functions = [] {
    std::array<void *, kRuntimeFunctionCount> addresses;
    for (uint32_t i = 0; i < kRuntimeFunctionCount; ++i)
      addresses[i] = getRuntimeFunctions()[i].address;
    return addresses;
  }();
  static const ftrt_emulator_interface interface = {
      FTRT_EMULATOR_VERSION, kRuntimeFunctionCount, functions.data(),
      &launchKernel, &encodeMap};
  return &interface;
}
