//===- Intervals.h - A plan as cells and intervals --------------*- C++ -*-===//
//
// What the host evaluates: first the cell of all axes but one, then the class
// (kernel family) of that axis's size. Free of IR; `ukernel-dispatch-workloads`
// turns intervals into comparisons, or into an index_switch over the sizes.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_DISPATCH_INTERVALS_H
#define FTUNER_DISPATCH_INTERVALS_H

#include "FTuner/Search/Problem/Plan.h"
#include "llvm/ADT/ArrayRef.h"
#include <cstdint>
#include <optional>
#include <vector>

namespace ftuner {

/// Sizes lo ≤ size ≤ hi, without hi open, served by one family.
struct Interval {
  int64_t lo = 0;
  std::optional<int64_t> hi;
  unsigned family = 0;
};

/// A box of shapes in which one axis decides.
struct PlanCell {
  /// One range for each axis of the workload; the deciding axis's is that of
  /// the first of the plan's boxes in the cell and not to be used.
  std::vector<SizeRange> box;
  /// Disjoint intervals of the deciding axis in ascending order, neighbours of
  /// one family merged. Sizes in none belong to no entry.
  std::vector<Interval> intervals;
};

/// A plan's entries as cells that differ on other axes than `axis`, no two of
/// which hold one shape; shapes in none belong to no entry. No value if the
/// boxes overlap on the other axes without being equal there, or if they lack
/// the axis.
std::optional<std::vector<PlanCell>>
planCells(llvm::ArrayRef<DispatchEntry> entries, unsigned axis);

/// The family that serves a size; `otherwise` if no interval holds it.
unsigned familyForSize(llvm::ArrayRef<Interval> intervals, int64_t size,
                       unsigned otherwise);

} // namespace ftuner

#endif // FTUNER_DISPATCH_INTERVALS_H
