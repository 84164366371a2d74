//===- Pointwise.h - Chains of elementwise operators as nests ---*- C++ -*-===//
//
// One computation of a pointwise workload makes the outputs' elements of each
// point from elements of the inputs. Axis 0 numbers the points; with several
// loops it is fused of them, the last one fastest. A pool or a convolution of
// each channel has a second axis, fused of the loops over the window of a point
// (its taps), which another computation reduces first.
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

  /// Extents of the loops over a window; empty without taps.
  llvm::SmallVector<int64_t, 3> taps() const;
  /// Number of taps of a point, 1 without.
  int64_t numTaps() const;
  /// Returns whether the operand has elements for the taps of a point.
  bool hasTaps(const Operand &operand) const;
  /// Number of positions along a dimension of an operand that the windows of
  /// `width` neighbouring points have: neighbours share some.
  int64_t numPositions(const Operand &operand, unsigned dim,
                       int64_t width) const;
  /// Number of elements, or vectors, that a thread reads of an operand for a
  /// vector of `width` points.
  int64_t numReads(const Operand &operand, int64_t width) const;
  /// Number of elements of an operand that a block of neighbouring points
  /// reads, each once. A dynamic loop counts as `loopExtent` points.
  double numElementsOfBlock(const Operand &operand, int64_t points,
                            int64_t loopExtent) const;

private:
  const Workload *workload;
};

} // namespace ftuner

#endif // FTUNER_WORKLOAD_POINTWISE_H
