//===- Intervals.h - A plan as cells and intervals --------------*- C++ -*-===//
//
// What the host evaluates: first the cell of all axes but one, then the class
// (kernel family) of that axis's size. Free of IR; `ukernel-dispatch-workloads`
// turns intervals into comparisons, or into an index_switch over the sizes.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_DISPATCH_INTERVALS_H
#define FTUNER_DISPATCH_INTERVALS_H

#include "FTuner/Search/Plan.h"
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
  /// one family merged. Sizes in none belong to `Plan::generalFamily`.
  std::vector<Interval> intervals;
};

/// The plan as cells that differ on other axes than `axis`, no two of which
/// hold one shape; shapes in none belong to `Plan::generalFamily`. No value if
/// the plan's boxes overlap on the other axes without being equal there, or if
/// they lack the axis.
std::optional<std::vector<PlanCell>> planCells(const Plan &plan, unsigned axis);

/// The family that serves a size.
unsigned familyForSize(llvm::ArrayRef<Interval> intervals, int64_t size,
                       unsigned generalFamily);

} // namespace ftuner

#endif // FTUNER_DISPATCH_INTERVALS_H
