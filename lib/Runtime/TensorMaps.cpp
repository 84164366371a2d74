//===- TensorMaps.cpp - Encoding of tensor maps ---------------------------===//
#include "Api.h"
#include "CudaDriver.h"
#include "EmulatorLibrary.h"
#include "Errors.h"
#include "FTuner/Runtime/TensorMapRequest.h"
#include "TensorMapCache.h"
#include <cstring>

using namespace ftrt;
using namespace ftrt::cuda;
using ftuner::TensorMapRequest;
using ftuner::emulator::TensorMapArguments;

namespace {
/// A map where it is encoded.
struct alignas(ftuner::emulator::kTensorMapAlignment) Map {
  TensorMapWords words = {};
};
static_assert(sizeof(Map) == ftuner::emulator::kTensorMapBytes);

/// No CUDA device has it.
constexpr CUdevice kEmulatorDevice = -1;
} // namespace

static TensorMapCache cache;

/// Drivers do not say whether maps depend on the device: the key does.
static TensorMapKey keyOf(const TensorMapRequest &request, CUdevice device) {
  constexpr uint32_t rank = TensorMapRequest::kMaxRank;
  const ftrt_tensor_map &kind = request.kind;
  auto pair = [](uint32_t low, uint32_t high) {
    return uint64_t(high) << 32 | low;
  };
  TensorMapKey key = {reinterpret_cast<uintptr_t>(request.address),
                      pair(kind.element_type, static_cast<uint32_t>(device)),
                      pair(kind.swizzle, kind.l2_promotion)};
  uint32_t box[rank] = {};
  for (uint32_t i = 0; i < kind.rank; ++i)
    box[i] = kind.box[i];
  key[3] = pair(kind.rank, box[0]);
  key[4] = pair(box[1], box[2]);
  key[5] = pair(box[3], box[4]);
  for (uint32_t i = 0; i < rank; ++i)
    key[6 + i] = request.sizes[i];
  for (uint32_t i = 0; i + 1 < rank; ++i)
    key[6 + rank + i] = request.strides[i];
  return key;
}

//===----------------------------------------------------------------------===//
// Encoding
//===----------------------------------------------------------------------===//

__attribute__((noinline, cold)) static int32_t
failEncoding(const TensorMapRequest &request, CUresult result) {
  std::string words =
      request.str() + ": " + describe("cuTensorMapEncodeTiled", result);
  // The driver does not say why; the emulator has its rules.
  Map scratch;
  std::string why =
      ftuner::emulator::encodeTensorMap(&scratch, request.arguments());
  if (!why.empty())
    words += ": " + why;
  return fail(FTRT_ERROR_DRIVER, words);
}

static int32_t encodeOnDevice(const TensorMapRequest &request, Map &map) {
  if (!driver.cuTensorMapEncodeTiled)
    return fail(FTRT_ERROR_DRIVER,
                request.str() +
                    ": the driver has no function 'cuTensorMapEncodeTiled'");
  TensorMapArguments a = request.arguments();
  CUresult result = driver.cuTensorMapEncodeTiled(
      &map, static_cast<int>(a.type), a.rank, a.address, a.sizes, a.strides,
      a.box, a.elementStrides, static_cast<int>(a.interleave),
      static_cast<int>(a.swizzle), static_cast<int>(a.l2Promotion),
      static_cast<int>(a.fill));
  return result == CUDA_SUCCESS ? FTRT_SUCCESS : failEncoding(request, result);
}

static int32_t encodeEmulated(const TensorMapRequest &request, Map &map) {
  if (int32_t code = openEmulator())
    return code;
  TensorMapArguments a = request.arguments();
  char message[1024] = "";
  int32_t code = emulator.load(std::memory_order_acquire)
                     ->encode_tensor_map(
                         &map, a.type, a.rank, a.address, a.sizes, a.strides,
                         a.box, a.elementStrides, a.interleave, a.swizzle,
                         a.l2Promotion, a.fill, message, sizeof(message));
  if (code == FTRT_SUCCESS)
    return FTRT_SUCCESS;
  message[sizeof(message) - 1] = '\0';
  return fail(code, request.str() + " in the emulator: " + message);
}

int32_t ftrt_tensor_map_encode(const ftrt_tensor_map *kind, const void *address,
                               const int64_t *sizes, const int64_t *strides,
                               void *stream, void *result) {
  if (__builtin_expect(
          !TensorMapRequest::isComplete(kind, sizes, strides, result), 0))
    return fail(
        FTRT_ERROR_INVALID_ARGUMENT,
        "expected a tensor map of 1 to 5 dimensions with sizes, strides "
        "and a place, but got less");
  TensorMapRequest request(*kind, address, sizes, strides);
  Map map;
  if (!request.isEmpty()) {
    bool isEmulated = stream == ftrt_emulator_stream();
    CUdevice device = kEmulatorDevice;
    if (!isEmulated)
      if (int32_t code = getCurrentDevice(device))
        return code;
    TensorMapKey key = keyOf(request, device);
    if (!cache.find(key, map.words)) {
      if (int32_t code = isEmulated ? encodeEmulated(request, map)
                                    : encodeOnDevice(request, map))
        return code;
      cache.insert(key, map.words);
    }
  }
  std::memcpy(result, &map, sizeof(map));
  return FTRT_SUCCESS;
}
