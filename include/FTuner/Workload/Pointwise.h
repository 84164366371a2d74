//===- Pointwise.h - Chains of elementwise operators as nests ---*- C++ -*-===//
//
// A pointwise workload reduces nothing: one computation makes the outputs'
// elements of each point from elements of the inputs. Its one axis numbers the
// points; with several loops it is fused of them, the last one fastest.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_WORKLOAD_POINTWISE_H
#define FTUNER_WORKLOAD_POINTWISE_H

#include "FTuner/Workload/Workload.h"

namespace ftuner {

/// How the elements of an operand lie that neighbouring points access.
enum class PointAccess {
  /// One element for all points.
  Scalar,
  /// In the order of the points, whatever the loops are.
  Dense,
  /// Side by side along the last loop.
  Row,
  /// One element along the last loop, others along other loops.
  Constant,
  /// Anywhere.
  Scattered
};

/// A workload that is pointwise, and outlives the view.
class PointwiseView {
public:
  /// Requires that `Workload::checkPointwise` succeeds.
  explicit PointwiseView(const Workload &workload) : workload(&workload) {}

  PointAccess accessOf(const Operand &operand) const;
  /// Returns whether threads may move the operand in vectors.
  bool isVector(const Operand &operand) const;
  /// Returns whether a vector of points must not reach from one trip of the
  /// last loop into the next: some operand asks for the loops.
  bool hasTrips() const;
  /// Extent of the last loop; no value if it is dynamic.
  std::optional<int64_t> rowLength() const;
  /// Bytes of the widest element among operands that are not scalars.
  int64_t widestBytes() const;
  /// Number of loops: 1 for an axis that is not fused.
  int64_t numLoops() const;

private:
  const Workload *workload;
};

} // namespace ftuner

#endif // FTUNER_WORKLOAD_POINTWISE_H
