//===- SplitReduction.h - Split-K in two steps ------------------*- C++ -*-===//
//
// A family with a split-K factor of s becomes two kernels. Blocks of the first
// reduce one of s slices of the reduce axis each (Schedule/Grid.h) and leave
// the states as they are, each accumulator in its type in a buffer of s slices,
// one behind the other. An empty slice leaves the identity. The second
// merges the slices in their order, so that results do not depend on which
// block ends first. What both compute, the operator says
// (`OperatorOpInterface`).
//
// Rejected: atomic additions to the output (an order that changes from run to
// run, an output that must be zero before, and no place for an epilogue); a
// counter for each tile, with which the last block of a tile adds the slices up
// (hosts would have to keep zeroed memory, and IREE knows no such buffers).
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_KERNEL_SPLITREDUCTION_H
#define FTUNER_KERNEL_SPLITREDUCTION_H

#include "FTuner/Dialect/UKernel/IR/UKernel.h"

namespace ftuner {

/// The same family for the whole reduce axis.
ukernel::FamilyAttr wholeFamily(ukernel::FamilyAttr family);

/// A buffer of an accumulator of all slices: a dimension of slices, which is
/// dynamic, before those of the accumulator.
struct SliceBuffer {
  mlir::MemRefType type;
  /// The axis, or the loop of one, of each dimension behind that of slices: a
  /// dimension of the operator's maps.
  llvm::SmallVector<unsigned> axes;
};

/// The buffers of slices, one for each accumulator.
llvm::SmallVector<SliceBuffer, 1>
sliceBuffersOf(ukernel::OperatorOpInterface op);

} // namespace ftuner

#endif // FTUNER_KERNEL_SPLITREDUCTION_H
