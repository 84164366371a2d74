//===- Intervals.h - A plan as intervals of one axis ------------*- C++ -*-===//
//
// What the host evaluates: the class (kernel family) of a size. Free of IR;
// `ukernel-dispatch-workloads` turns the intervals into comparisons, or into an
// index_switch over the sizes.
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

/// The plan as a function of one axis: disjoint intervals in ascending order,
/// neighbours of one family merged. Sizes in none of them belong to
/// `Plan::generalFamily`. No value if the plan's boxes differ on another axis.
std::optional<std::vector<Interval>> mainAxisIntervals(const Plan &plan,
                                                       unsigned axis);

/// The family that serves a size.
unsigned familyForSize(llvm::ArrayRef<Interval> intervals, int64_t size,
                       unsigned generalFamily);

} // namespace ftuner

#endif // FTUNER_DISPATCH_INTERVALS_H
