//===- TensorMapEncoding.h - What encodes a tensor map ----------*- C++ -*-===//
#ifndef FTUNER_KERNEL_TENSORMAPENCODING_H
#define FTUNER_KERNEL_TENSORMAPENCODING_H

#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include <array>

namespace ftuner {

/// The arguments of the driver's cuTensorMapEncodeTiled that a kernel fixes, by
/// its numbers (cuda.h), in the order of ftrt_tensor_map.
struct TensorMapEncoding {
  uint32_t elementType = 0;
  uint32_t rank = 0;
  /// Dimensions behind the rank are 1.
  std::array<uint32_t, kMaxTensorMapRank> box = {};
  uint32_t swizzle = 0, l2Promotion = 0;
};

/// Of a parameter whose entry verifies: its map and its type.
TensorMapEncoding encodingOf(ukernel::TensorMapAttr map, mlir::Type type);

} // namespace ftuner

#endif // FTUNER_KERNEL_TENSORMAPENCODING_H
