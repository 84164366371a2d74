//===- FamilyDispatch.h - The choice of a family as IR ----------*- C++ -*-===//
//
// A plan says by boxes of sizes which kernel family computes a shape. On the
// host that becomes operations on the sizes: where the boxes are cells along
// one axis (FTuner/Dispatch/Intervals.h), a switch over the cells and, in each,
// a switch over sizes or comparisons with the ends of intervals; else one
// comparison for each box. Without switches there are comparisons alone.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_DISPATCH_IR_FAMILYDISPATCH_H
#define FTUNER_DISPATCH_IR_FAMILYDISPATCH_H

#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/Search/Problem/Plan.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/MapVector.h"

namespace ftuner {

/// A tensor or buffer that kernels move in vectors, and the axis that it is
/// contiguous on.
struct VectorOperand {
  mlir::Value value;
  unsigned contiguousAxis;
  bool isPitched;

  int64_t elementBytes() const;
  /// Elements in `alignment` bytes, at least 1.
  int64_t elementsOf(int64_t alignment) const;
};
/// Returns the operands of an operator that kernels access by vectors.
llvm::SmallVector<VectorOperand>
vectorOperands(ukernel::OperatorOpInterface op);
/// Returns the number of elements that the extent of each axis must be a
/// multiple of, so that rows of the operands that are contiguous on the axis
/// are whole vectors. Padded rows may have any length.
llvm::MapVector<unsigned, int64_t>
elementsAlongAxes(llvm::ArrayRef<VectorOperand> operands, int64_t alignment);

/// The number of the family of the first entry that holds the shape, else
/// `otherwise`, of type index. `extents` are those of the workload's axes, also
/// of type index; those of axes that are not reduced are at least 1.
mlir::Value buildFamilyOfShape(mlir::ImplicitLocOpBuilder &b,
                               llvm::ArrayRef<DispatchEntry> entries,
                               unsigned otherwise,
                               llvm::ArrayRef<mlir::Value> extents,
                               AxisSet reduceAxes, bool hasSwitches = true);

} // namespace ftuner

#endif // FTUNER_DISPATCH_IR_FAMILYDISPATCH_H
