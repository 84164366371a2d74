//===- RowReduction.h - Reductions of rows as nests -------------*- C++ -*-===//
//
// A row reduction reads rows that lie along one axis: softmax, norms, sums,
// extremes. Its computations are reductions of that axis, and elementwise ones,
// of every element or once a row. All other axes number rows. Each dimension of
// an operand follows one axis.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_WORKLOAD_ROWREDUCTION_H
#define FTUNER_WORKLOAD_ROWREDUCTION_H

#include "FTuner/Workload/Workload.h"

namespace ftuner {

/// A workload that is a row reduction, and outlives the view.
class RowReductionView {
public:
  /// Requires that `Workload::checkRowReduction` says nothing, as
  /// `Workload::asRowReduction` asks before.
  explicit RowReductionView(const Workload &workload);

  /// The axis along which rows lie, and the first of those that number them.
  unsigned row() const { return rowAxis; }
  unsigned firstSpace() const { return workload->spaceAxes().list().front(); }
  /// Computations that reduce a row, in their order.
  int64_t numReductions() const;
  /// Passes over a row that these need, of which each reads results of the one
  /// before: of a softmax two.
  int64_t numPhases() const;
  /// The pass that each computation reduces in, from 1 on; 0 of others.
  llvm::SmallVector<int64_t> phases() const;
  /// Returns whether an operand has an element for each of a row's, or one for
  /// all.
  bool isAlong(const Operand &operand) const;
  llvm::SmallVector<const Operand *> operandsAlong() const;
  /// Returns true if a reduction reads an operand, or an elementwise
  /// computation whose elements it reduces does.
  bool isReadByReductions(const Operand &operand) const;
  /// Bytes of the widest element among those operands'.
  int64_t widestBytes() const;
  /// Bytes of the widest accumulator: 4, or 8 with one of f64.
  int64_t accumulatorBytes() const;
  /// The axis along which those operands are contiguous, and neighbouring lanes
  /// lie: the row itself, or a space axis where rows lie across (a sum over the
  /// first dimension). If operands differ, the axis with the most bytes of an
  /// element.
  unsigned laneAxis() const;
  /// Returns whether neighbouring lanes, which access neighbours in memory, do
  /// so in the operand: others are accessed element by element.
  bool isAlongLanes(const Operand &operand) const {
    return isAlong(operand) && operand.contiguousAxis() == laneAxis();
  }

private:
  const Workload *workload;
  unsigned rowAxis;
};

} // namespace ftuner

#endif // FTUNER_WORKLOAD_ROWREDUCTION_H
