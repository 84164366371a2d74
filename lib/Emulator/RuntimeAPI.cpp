//===- RuntimeAPI.cpp - ftrt.h over the emulator --------------------------===//
#include "FTuner/Emulator/Emulator.h"
#include "FTuner/Runtime/EmulatedImage.h"
#include "FTuner/Runtime/TensorMapRequest.h"

#include <cstring>

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

static int32_t encodeForHost(const ftrt_tensor_map *kind, const void *address,
                             const int64_t *sizes, const int64_t *strides,
                             void *, void *map) {
  using ftuner::TensorMapRequest;
  if (!TensorMapRequest::isComplete(kind, sizes, strides, map))
    return fail(FTRT_ERROR_INVALID_ARGUMENT,
                "expected a tensor map with sizes, strides and a place");
  TensorMapRequest request(*kind, address, sizes, strides);
  if (request.isEmpty()) {
    std::memset(map, 0, kTensorMapBytes);
    return FTRT_SUCCESS;
  }
  std::string error = encodeTensorMap(map, request.arguments());
  if (error.empty())
    return FTRT_SUCCESS;
  return fail(FTRT_ERROR_INVALID_ARGUMENT,
              request.str() + " in the emulator: " + error);
}

static int32_t imageIsExact(const ftrt_module *, void *, int32_t *exact) {
  std::string error = ftuner::emulatedImageIsExact(*exact);
  return error.empty() ? FTRT_SUCCESS
                       : fail(FTRT_ERROR_INVALID_ARGUMENT, error);
}

static int32_t failFromHost(const char *message) {
  return fail(FTRT_ERROR_HOST, message ? message : "unknown error");
}

static int32_t failWithSizes(const char *message, const int64_t *sizes,
                             int32_t count) {
  std::string text = message ? message : "unknown error";
  for (int32_t i = 0; i < count; ++i) {
    std::string place = "{" + std::to_string(i) + "}";
    for (size_t at = text.find(place); at != std::string::npos;
         at = text.find(place))
      text.replace(at, place.size(), std::to_string(sizes[i]));
  }
  return fail(FTRT_ERROR_HOST, text);
}

static const char *getLastError() { return lastError().c_str(); }

const RuntimeAPI &ftuner::emulator::getRuntimeAPI() {
  static const RuntimeAPI api = {&launch,       &encodeForHost, &imageIsExact,
                                 &failFromHost, &failWithSizes, &getLastError};
  return api;
}
