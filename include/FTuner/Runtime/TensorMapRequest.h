//===- TensorMapRequest.h - Arguments of a tensor map ---------*- C++ -*-===//
//
// The arguments of ftrt_tensor_map_encode, which libftrt and the emulator of
// programs implement, as those of the driver's cuTensorMapEncodeTiled. Needs no
// library.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_RUNTIME_TENSORMAPREQUEST_H
#define FTUNER_RUNTIME_TENSORMAPREQUEST_H

#include "FTuner/Runtime/EmulatedTensorMap.h"
#include "FTuner/Runtime/ftrt.h"
#include <cstdio>

namespace ftuner {

struct TensorMapRequest {
  static constexpr uint32_t kMaxRank = emulator::kMaxTensorMapRank;

  /// Returns whether all parts of a request are given.
  static bool isComplete(const ftrt_tensor_map *kind, const int64_t *sizes,
                         const int64_t *strides, const void *map) {
    return kind && kind->rank >= 1 && kind->rank <= kMaxRank && sizes && map &&
           (kind->rank == 1 || strides);
  }

  /// Creates a complete request.
  TensorMapRequest(const ftrt_tensor_map &kind, const void *address,
                   const int64_t *elements, const int64_t *elementStrides)
      : kind(kind), address(const_cast<void *>(address)) {
    uint64_t bytes = emulator::getElementBytes(
        static_cast<emulator::TensorMapType>(kind.element_type));
    for (uint32_t i = 0; i < kind.rank; ++i) {
      sizes[i] = static_cast<uint64_t>(elements[i]);
      if (i > 0)
        strides[i - 1] = static_cast<uint64_t>(elementStrides[i - 1]) * bytes;
    }
  }

  const ftrt_tensor_map &kind;
  void *address;
  /// Elements, and bytes.
  uint64_t sizes[kMaxRank] = {};
  uint64_t strides[kMaxRank - 1] = {};

  /// Returns true for a tensor without elements, whose map is zeros.
  bool isEmpty() const {
    for (uint32_t i = 0; i < kind.rank; ++i)
      if (sizes[i] == 0)
        return true;
    return false;
  }

  emulator::TensorMapArguments arguments() const {
    // Every element is copied.
    static constexpr uint32_t kSteps[kMaxRank] = {1, 1, 1, 1, 1};
    return {kind.element_type, kind.rank,         address, sizes,
            strides,           kind.box,          kSteps,  0,
            kind.swizzle,      kind.l2_promotion, 0};
  }

  /// "kernel 'f_0_k1': tensor map 'lhs_map' of 64 x 3 elements at 0x7f00,
  /// strides of 128 bytes".
  std::string str() const {
    auto text = [](const char *name) { return std::string(name ? name : ""); };
    auto number = [](uint64_t value) {
      return std::to_string(static_cast<int64_t>(value));
    };
    std::string result = "kernel '" + text(kind.kernel) + "': tensor map '" +
                         text(kind.parameter) + "' of ";
    for (uint32_t i = 0; i < kind.rank; ++i)
      result += (i ? " x " : "") + number(sizes[i]);
    char place[32];
    std::snprintf(place, sizeof(place), " elements at %p", address);
    result += place;
    for (uint32_t i = 0; i + 1 < kind.rank; ++i)
      result += (i ? ", " : ", strides of ") + number(strides[i]);
    return result + (kind.rank > 1 ? " bytes" : "");
  }
};

} // namespace ftuner

#endif // FTUNER_RUNTIME_TENSORMAPREQUEST_H
