//===- SplitReduction.h - Split-K in two steps ------------------*- C++ -*-===//
//
// A family with a split-K factor of s becomes two kernels. Blocks of the first
// sum one of s slices of the reduce axis each (Schedule/Grid.h) and leave the
// sums as they are, in the type of the accumulator, in a buffer of s outputs,
// one behind the other. An empty slice leaves zeros. The second adds the slices
// up in their order, so that results do not depend on which block ends first,
// adds what the sum starts from, and applies the epilogue.
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
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace ftuner {

/// The same family for the whole reduce axis.
ukernel::FamilyAttr wholeFamily(ukernel::FamilyAttr family);

/// The type of the buffer of slices: a dimension of slices, which is dynamic,
/// before those of the operator's output.
mlir::MemRefType slicesType(ukernel::WorkloadOp op);

/// What the first kernel computes, as an operator on the first slice: the
/// contraction alone, from zero, with the output `sums`, whose elements are of
/// the accumulator's type. At the insertion point.
ukernel::WorkloadOp buildSliceOperator(mlir::OpBuilder &b,
                                       ukernel::WorkloadOp op,
                                       mlir::Value sums);

/// What the second kernel computes, from so many slices in a buffer of
/// `slicesType`, at the insertion point: the operator's output.
mlir::linalg::GenericOp buildSumOfSlices(mlir::OpBuilder &b,
                                         ukernel::WorkloadOp op,
                                         int64_t numSlices, mlir::Value slices);

} // namespace ftuner

#endif // FTUNER_KERNEL_SPLITREDUCTION_H
