//===- Workload.h - One operator with its iteration space -------*- C++ -*-===//
//
// The problem that a search strategy solves, free of IR: axes with ranges,
// operands with their storage order, bytes and FLOPs (paper, section IV).
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_WORKLOAD_WORKLOAD_H
#define FTUNER_WORKLOAD_WORKLOAD_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace ftuner {

/// The largest extent of an axis: extents are passed to kernels as i32.
constexpr int64_t maxExtent = std::numeric_limits<int32_t>::max();

/// Sizes that an axis takes: min, min + step, … up to max; open without a max.
struct SizeRange {
  int64_t min = 1;
  std::optional<int64_t> max = std::nullopt;
  int64_t step = 1;

  static SizeRange fixed(int64_t size) { return {size, size, 1}; }
  bool isFixed() const { return max && *max == min; }
  bool isOpen() const { return !max; }
  bool contains(int64_t size) const {
    return size >= min && (!max || size <= *max) && (size - min) % step == 0;
  }
  /// Number of sizes, if the range is closed.
  std::optional<int64_t> count() const {
    if (!max)
      return std::nullopt;
    return (*max - min) / step + 1;
  }
};

/// How often a size occurs, from the user's histogram.
struct SizeWeight {
  int64_t size;
  double weight;
};

enum class AxisKind { Space, Reduce };

/// One loop of the iteration space.
struct Axis {
  std::string name;
  AxisKind kind = AxisKind::Space;
  SizeRange range;
  /// Declared distribution of sizes; empty means uniform.
  std::vector<SizeWeight> weights;
  /// The extent is `factor` times the product of these symbols, which are equal
  /// wherever they have one name; none if the extent is not known so.
  int64_t factor = 1;
  std::vector<std::string> symbols = {};

  bool isDynamic() const { return !range.isFixed(); }
};

enum class OperandRole { Lhs, Rhs, Init, Extra, Output };

/// A tensor that the operator reads or writes.
struct Operand {
  OperandRole role;
  /// Axes that index the tensor, outermost dimension first; empty for a scalar.
  llvm::SmallVector<unsigned> axes;
  int64_t elementBytes = 4;

  /// The axis with unit stride.
  std::optional<unsigned> contiguousAxis() const {
    if (axes.empty())
      return std::nullopt;
    return axes.back();
  }
};

/// One binding of every axis to an extent, in the order of `Workload::axes`.
using Shape = llvm::SmallVector<int64_t, 4>;

/// A contraction with its fused epilogue. The axes are M, N (space) and K
/// (reduce), in this order (`kM`, `kN`, `kK`), then batch axes (space), along
/// which every block has one element.
struct Workload {
  static constexpr unsigned kM = 0, kN = 1, kK = 2, kFirstBatch = 3;

  std::string name;
  std::vector<Axis> axes;
  std::vector<Operand> operands;
  /// Floating-point operations for each point of the iteration space.
  double flopsPerPoint = 2;

  /// Axis along which programs combine two uKernels: M or N, the dynamic one
  /// with the largest extent; with none, the larger one (paper V-A). An open
  /// axis counts as larger than a closed one; ties go to the first.
  unsigned mainAxis() const;
  std::vector<unsigned> spaceAxes() const;
  /// A bit for each reduce axis.
  uint32_t reduceAxes() const;
  /// Whether the axes are those of a contraction: M, N, K, then batch axes.
  bool isContraction() const;
  const Operand *find(OperandRole role) const;

  /// Iteration points of one shape times `flopsPerPoint`.
  double flops(llvm::ArrayRef<int64_t> shape) const;

  /// Says what is wrong with the description, if anything: numbers and kinds of
  /// axes; sizes, steps and factors beyond `maxExtent`; weights; operands.
  llvm::Error check() const;

  /// M × N × K matrix product in f32, all row-major unless transposed.
  static Workload matmul(SizeRange m, SizeRange n, SizeRange k,
                         bool transposeLhs = false, bool transposeRhs = false);
  /// The same for every element of a batch axis; axes M, N, K, B.
  static Workload batchMatmul(SizeRange batch, SizeRange m, SizeRange n,
                              SizeRange k, bool transposeLhs = false,
                              bool transposeRhs = false);
};

/// ceil(value / divisor).
constexpr int64_t ceilDiv(int64_t value, int64_t divisor) {
  return (value + divisor - 1) / divisor;
}
/// The least multiple of `granule` that is at least `value` (paper: ceil_by).
constexpr int64_t ceilBy(int64_t value, int64_t granule) {
  return ceilDiv(value, granule) * granule;
}
/// The x in [0, modulus) with value · x ≡ 1 modulo `modulus`, for coprime
/// positive arguments; 0 for modulus 1.
int64_t modularInverse(int64_t value, int64_t modulus);

} // namespace ftuner

#endif // FTUNER_WORKLOAD_WORKLOAD_H
