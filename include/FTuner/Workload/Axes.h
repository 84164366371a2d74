//===- Axes.h - Loops of an iteration space and their sizes -----*- C++ -*-===//
#ifndef FTUNER_WORKLOAD_AXES_H
#define FTUNER_WORKLOAD_AXES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/MathExtras.h"
#include <cassert>
#include <cstdint>
#include <initializer_list>
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

/// One loop of several over which a fused axis runs.
struct Loop {
  std::string name;
  SizeRange range;
};

/// One dimension of the iteration space.
struct Axis {
  std::string name;
  SizeRange range;
  /// Declared distribution of sizes; empty means uniform.
  std::vector<SizeWeight> weights = {};
  /// The extent is `factor` times the product of these symbols, which are equal
  /// wherever they have one name; none if the extent is not known so.
  int64_t factor = 1;
  std::vector<std::string> symbols = {};
  /// Loops of a fused axis, the last one fastest; the product of their extents
  /// is the axis's extent. Empty if the axis is one loop.
  std::vector<Loop> loops = {};

  bool isDynamic() const { return !range.isFixed(); }
  bool isFused() const { return !loops.empty(); }
};

/// One binding of every axis to an extent, in the order of `Workload::axes`.
using Shape = llvm::SmallVector<int64_t, 4>;

/// Most axes of a workload.
constexpr unsigned maxAxes = 32;

/// A set of axes of a workload, each below `maxAxes`.
class AxisSet {
public:
  constexpr AxisSet() = default;
  constexpr AxisSet(std::initializer_list<unsigned> axes) {
    for (unsigned axis : axes)
      insert(axis);
  }
  static AxisSet containing(llvm::ArrayRef<unsigned> axes) {
    AxisSet set;
    for (unsigned axis : axes)
      set.insert(axis);
    return set;
  }
  static constexpr AxisSet ofMask(uint32_t mask) {
    AxisSet set;
    set.bits = mask;
    return set;
  }
  /// Returns the axes 0 to `count` - 1.
  static constexpr AxisSet first(unsigned count) {
    return ofMask(count >= maxAxes ? ~0u : (1u << count) - 1);
  }

  constexpr void insert(unsigned axis) {
    assert(axis < maxAxes && "expected one of the axes of a workload");
    bits |= 1u << axis;
  }
  constexpr bool contains(unsigned axis) const {
    return axis < maxAxes && (bits >> axis & 1);
  }
  constexpr bool containsAll(AxisSet other) const {
    return (other.bits & ~bits) == 0;
  }
  constexpr bool empty() const { return bits == 0; }
  unsigned size() const { return llvm::popcount(bits); }
  /// A bit for each axis.
  constexpr uint32_t mask() const { return bits; }
  /// Ascending.
  llvm::SmallVector<unsigned, 4> list() const {
    llvm::SmallVector<unsigned, 4> result;
    for (uint32_t rest = bits; rest != 0; rest &= rest - 1)
      result.push_back(llvm::countr_zero(rest));
    return result;
  }

  friend constexpr AxisSet operator|(AxisSet lhs, AxisSet rhs) {
    return ofMask(lhs.bits | rhs.bits);
  }
  friend constexpr AxisSet operator&(AxisSet lhs, AxisSet rhs) {
    return ofMask(lhs.bits & rhs.bits);
  }
  friend constexpr AxisSet operator-(AxisSet lhs, AxisSet rhs) {
    return ofMask(lhs.bits & ~rhs.bits);
  }
  friend constexpr bool operator==(AxisSet lhs, AxisSet rhs) {
    return lhs.bits == rhs.bits;
  }
  friend constexpr bool operator!=(AxisSet lhs, AxisSet rhs) {
    return lhs.bits != rhs.bits;
  }

private:
  uint32_t bits = 0;
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

#endif // FTUNER_WORKLOAD_AXES_H
