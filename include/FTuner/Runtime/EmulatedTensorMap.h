//===- EmulatedTensorMap.h - Tensor maps of the emulator --------*- C++ -*-===//
//
// The emulator's own encoding of the 128 bytes that describe a tensor to copies
// of boxes (CUtensorMap), and the checks of its parts, which are those that the
// driver's cuTensorMapEncodeTiled makes. The stand-in driver, the emulator's
// interface for libftrt and the emulated copies share it. Needs no library.
//
// Source of the rules and of the numbers: cuTensorMapEncodeTiled in the
// reference of the CUDA driver API, and cuda.h of CUDA 12. The reference also
// asks for strides that are multiples of one another; drivers do not check it,
// and neither does this.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_RUNTIME_EMULATEDTENSORMAP_H
#define FTUNER_RUNTIME_EMULATEDTENSORMAP_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace ftuner::emulator {

/// The bytes of a map, and what its address is a multiple of.
constexpr size_t kTensorMapBytes = 128, kTensorMapAlignment = 64;
constexpr uint32_t kMaxTensorMapRank = 5;

/// CUtensorMapDataType, as far as the emulator has it.
enum class TensorMapType : uint8_t {
  UInt8,
  UInt16,
  UInt32,
  Int32,
  UInt64,
  Int64,
  Float16,
  Float32,
  Float64,
  BFloat16,
  Float32Ftz,
  TFloat32,
  TFloat32Ftz,
};
constexpr uint32_t kTensorMapTypes = 13;

/// CUtensorMapSwizzle. Of the address, so many bits from the fifth on are
/// exchanged, by those from the eighth on.
enum class TensorMapSwizzle : uint8_t { None, Bytes32, Bytes64, Bytes128 };

/// Contents of the 128 bytes of a map. The innermost dimension is the first.
struct EmulatedTensorMap {
  static constexpr uint64_t kMark = 0x50414d5245545546; // "FUTERMAP"

  uint64_t mark;    ///< kMark.
  uint64_t address; ///< Address of the first element.
  uint64_t sizes[kMaxTensorMapRank];
  uint64_t strides[kMaxTensorMapRank - 1]; ///< Bytes; of the second and on.
  uint16_t box[kMaxTensorMapRank];
  /// Every so many elements are copied; of the first dimension all.
  uint8_t elementStrides[kMaxTensorMapRank];
  uint8_t rank;
  TensorMapType type;
  TensorMapSwizzle swizzle;
  uint8_t fillsWithNaN; ///< Not zeros, where a box leaves the tensor.

  uint32_t elementBytes() const;
  /// Elements of a box along a dimension that are copied.
  uint32_t boxElements(uint32_t dimension) const {
    uint32_t step = dimension == 0 ? 1 : elementStrides[dimension];
    return (box[dimension] + step - 1) / step;
  }
  /// Bytes that a copy of one box writes.
  uint64_t boxBytes() const {
    uint64_t bytes = elementBytes();
    for (uint32_t i = 0; i < rank; ++i)
      bytes *= boxElements(i);
    return bytes;
  }
};
static_assert(sizeof(EmulatedTensorMap) <= kTensorMapBytes);

/// The arguments of cuTensorMapEncodeTiled behind the map, in its order.
struct TensorMapArguments {
  uint32_t type, rank;
  void *address;
  const uint64_t *sizes;
  const uint64_t *strides;
  const uint32_t *box;
  const uint32_t *elementStrides;
  uint32_t interleave, swizzle, l2Promotion, fill;
};

inline uint32_t getElementBytes(TensorMapType type) {
  switch (type) {
  case TensorMapType::UInt8:
    return 1;
  case TensorMapType::UInt16:
  case TensorMapType::Float16:
  case TensorMapType::BFloat16:
    return 2;
  case TensorMapType::UInt64:
  case TensorMapType::Int64:
  case TensorMapType::Float64:
    return 8;
  default:
    return 4;
  }
}

inline uint32_t EmulatedTensorMap::elementBytes() const {
  return getElementBytes(type);
}

/// Returns what the driver refuses about the arguments, in words, or, after
/// writing the map, an empty text.
inline std::string encodeTensorMap(void *map,
                                   const TensorMapArguments &arguments) {
  constexpr uint64_t kMaxSize = uint64_t(1) << 32, kStrideEnd = uint64_t(1)
                                                                << 40;
  constexpr uint32_t kMaxBox = 256, kMaxElementStride = 8, kUnit = 16;
  constexpr uint32_t kSwizzles = 4, kL2Promotions = 4, kFills = 2;
  auto got = [](uint64_t value) {
    return ", but got " + std::to_string(value);
  };
  auto dimension = [](uint32_t i) {
    return " of dimension " + std::to_string(i) + " of a tensor map";
  };
  auto isMisaligned = [](const void *address, uint64_t alignment) {
    return reinterpret_cast<uintptr_t>(address) % alignment != 0;
  };
  const TensorMapArguments &a = arguments;
  if (!map || isMisaligned(map, kTensorMapAlignment))
    return "expected a tensor map at a multiple of 64 bytes";
  if (a.type >= kTensorMapTypes)
    return "expected an element type of a tensor map below " +
           std::to_string(kTensorMapTypes) + got(a.type);
  if (a.rank == 0 || a.rank > kMaxTensorMapRank)
    return "expected a tensor map of 1 to 5 dimensions" + got(a.rank);
  if (!a.sizes || !a.box || !a.elementStrides || (a.rank > 1 && !a.strides))
    return "expected sizes, strides and a box of a tensor map, but got null";
  if (a.interleave != 0)
    return "no emulation of a tensor map with interleaving" + got(a.interleave);
  if (a.swizzle >= kSwizzles)
    return "expected a swizzle of a tensor map below 4" + got(a.swizzle);
  if (a.l2Promotion >= kL2Promotions)
    return "expected an L2 promotion of a tensor map below 4" +
           got(a.l2Promotion);
  auto type = static_cast<TensorMapType>(a.type);
  bool isFloat = type >= TensorMapType::Float16;
  if (a.fill >= kFills || (a.fill != 0 && !isFloat))
    return "expected a fill of a tensor map of 0, or 1 for floating-point "
           "elements" +
           got(a.fill);
  if (!a.address || isMisaligned(a.address, kUnit))
    return "expected a tensor of a tensor map at a multiple of 16 bytes" +
           got(reinterpret_cast<uintptr_t>(a.address));
  EmulatedTensorMap result;
  std::memset(&result, 0, sizeof(result));
  result.mark = EmulatedTensorMap::kMark;
  result.address = reinterpret_cast<uintptr_t>(a.address);
  result.rank = static_cast<uint8_t>(a.rank);
  result.type = type;
  result.swizzle = static_cast<TensorMapSwizzle>(a.swizzle);
  result.fillsWithNaN = static_cast<uint8_t>(a.fill);
  for (uint32_t i = 0; i < a.rank; ++i) {
    if (a.sizes[i] == 0 || a.sizes[i] > kMaxSize)
      return "expected a size of 1 to 4294967296" + dimension(i) +
             got(a.sizes[i]);
    if (a.box[i] == 0 || a.box[i] > kMaxBox)
      return "expected a box of 1 to 256 elements" + dimension(i) +
             got(a.box[i]);
    if (a.elementStrides[i] == 0 || a.elementStrides[i] > kMaxElementStride)
      return "expected an element stride of 1 to 8" + dimension(i) +
             got(a.elementStrides[i]);
    result.sizes[i] = a.sizes[i];
    result.box[i] = static_cast<uint16_t>(a.box[i]);
    result.elementStrides[i] = static_cast<uint8_t>(a.elementStrides[i]);
    if (i == 0)
      continue;
    uint64_t stride = a.strides[i - 1];
    if (stride % kUnit != 0 || stride >= kStrideEnd)
      return "expected a stride of a multiple of 16 bytes below 2^40" +
             dimension(i) + got(stride);
    result.strides[i - 1] = stride;
  }
  uint32_t innerBytes = a.box[0] * getElementBytes(type);
  if (innerBytes % kUnit != 0)
    return "expected rows of a multiple of 16 bytes in boxes of a tensor map" +
           got(innerBytes);
  if (a.swizzle != 0 && innerBytes > kUnit << a.swizzle)
    return "expected rows of at most " + std::to_string(kUnit << a.swizzle) +
           " bytes, as the swizzle has it, in boxes of a tensor map" +
           got(innerBytes);
  std::memset(map, 0, kTensorMapBytes);
  std::memcpy(map, &result, sizeof(result));
  return "";
}

} // namespace ftuner::emulator

#endif // FTUNER_RUNTIME_EMULATEDTENSORMAP_H
