//===- TensorMap.h - Operands that the device copies as boxes ---*- C++ -*-===//
//
// A tensor map describes an operand to the device (from compute capability 9.0
// on), which then copies boxes of it to shared memory by itself: one thread
// names the first element of a box. Elements of a box beyond the operand become
// zeros. What is fixed with a kernel is here; the address, the sizes and the
// strides come with a launch, when the host encodes the map
// (`ftrt_tensor_map_encode`).
//
// Source of the rules: cuTensorMapEncodeTiled in the reference of the CUDA
// driver API.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_SCHEDULE_TENSORMAP_H
#define FTUNER_SCHEDULE_TENSORMAP_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include <cstdint>

namespace ftuner {

/// Most dimensions of a tensor map.
inline constexpr unsigned kMaxTensorMapRank = 5;
/// Most elements of a box along a dimension.
inline constexpr int64_t kMaxTensorMapBox = 256;
/// Rows of a fitted box are a multiple of so many: the swizzle's pattern.
inline constexpr int64_t kTensorMapFitRows = 8;
/// Addresses and strides are multiples of so many bytes, and so are rows of a
/// box.
inline constexpr int64_t kTensorMapAlignment = 16;
/// Bytes of an encoded map, and what its address is a multiple of.
inline constexpr int64_t kTensorMapBytes = 128;
inline constexpr int64_t kTensorMapAddressAlignment = 64;

/// The boxes of a map. Sizes in elements, innermost dimension first.
struct TensorMapBox {
  llvm::SmallVector<int64_t, kMaxTensorMapRank> sizes;
  /// Rows of a box lie in shared memory in the pattern of 32, 64 or 128 bytes
  /// that matrices of the tensor cores have; 0: one behind the other.
  int64_t swizzleBytes = 128;
  /// How much the L2 cache fetches around what a copy asks for: 64, 128 or 256
  /// bytes; 0: no more than that.
  int64_t l2PromotionBytes = 128;
  /// For each dimension: the boxes of an operand that has fewer elements along
  /// it are fitted to these (`fittedBox`); 0 for no such dimension. Empty where
  /// all are 0.
  llvm::SmallVector<int64_t, kMaxTensorMapRank> fitBelow = {};

  bool operator==(const TensorMapBox &other) const {
    return sizes == other.sizes && swizzleBytes == other.swizzleBytes &&
           l2PromotionBytes == other.l2PromotionBytes &&
           fitBelow == other.fitBelow;
  }
  bool operator!=(const TensorMapBox &other) const { return !(*this == other); }
};

/// The elements of a box along a dimension of `size` elements, of which there
/// is at least one.
inline int64_t fittedBox(int64_t box, int64_t fitBelow, int64_t size) {
  if (size >= fitBelow)
    return box;
  return (size + kTensorMapFitRows - 1) / kTensorMapFitRows * kTensorMapFitRows;
}

/// Says which boxes no device takes; the second of elements of so many bytes.
llvm::Error checkTensorMapBox(const TensorMapBox &box);
llvm::Error checkTensorMapRows(const TensorMapBox &box, int64_t elementBytes);

/// A map that the kernels of a family take for an operand, whose dimensions
/// each follow one axis alone.
struct TensorMap {
  unsigned operand = 0;
  /// All dimensions of the operand, innermost first: the last one, which is
  /// contiguous, and then the others in any order.
  llvm::SmallVector<unsigned, kMaxTensorMapRank> dims;
  TensorMapBox box;
  /// Copies round f32 to the nearest numbers of tf32.
  bool roundsToTF32 = false;
};

} // namespace ftuner

#endif // FTUNER_SCHEDULE_TENSORMAP_H
