//===- RuntimeAPI.cpp - ftrt.h over the emulator --------------------------===//
#include "FTuner/Emulator/Emulator.h"

using namespace ftuner::emulator;

static std::string &lastError() {
  thread_local std::string message;
  return message;
}

static int32_t fail(int32_t code, std::string message) {
  lastError() = std::move(message);
  return code;
}

static int32_t launch(ftrt_kernel *kernel, uint32_t gridX, uint32_t blockX,
                      uint32_t dynamicSharedBytes, void *stream,
                      void **parameters) {
  if (!kernel || !kernel->name)
    return fail(FTRT_ERROR_INVALID_ARGUMENT, "expected a kernel, but got null");
  if (!stream)
    return fail(FTRT_ERROR_INVALID_ARGUMENT,
                "expected an emulator as the stream, but got null");
  // The handle stays null: the same host code may run on several emulators.
  auto *emulator = static_cast<Emulator *>(stream);
  if (!emulator->hasKernel(kernel->name))
    return fail(FTRT_ERROR_UNKNOWN_KERNEL,
                "unknown kernel '" + std::string(kernel->name) + "'");
  LaunchConfig config;
  config.grid.x = gridX;
  config.block.x = blockX;
  config.dynamicSharedBytes = dynamicSharedBytes;
  if (llvm::Error error = emulator->launch(kernel->name, config, parameters))
    return fail(FTRT_ERROR_LAUNCH_FAILED, llvm::toString(std::move(error)));
  return FTRT_SUCCESS;
}

static int32_t failFromHost(const char *message) {
  return fail(FTRT_ERROR_HOST, message ? message : "unknown error");
}

static const char *getLastError() { return lastError().c_str(); }

const RuntimeAPI &ftuner::emulator::getRuntimeAPI() {
  static const RuntimeAPI api = {&launch, &failFromHost, &getLastError};
  return api;
}
