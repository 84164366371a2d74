//===- HostPreparation.h - Host functions before bufferization --*- C++ -*-===//
#ifndef FTUNER_LIB_TRANSFORMS_HOST_HOSTPREPARATION_H
#define FTUNER_LIB_TRANSFORMS_HOST_HOSTPREPARATION_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ftuner {

/// Resolves dimensions to sizes of the arguments and drops unused operations.
mlir::LogicalResult simplifySizes(mlir::func::FuncOp func);

/// Proves that no iteration changes the sizes of a tensor that a loop carries
/// (scf.for, scf.while), and replaces these sizes by the sizes before the loop.
/// Fails, naming the loop, if a size may change. Aligns the values that regions
/// of scf.while pass on.
mlir::LogicalResult fixLoopSizes(mlir::func::FuncOp func);

/// Copies tensors that loops carry into tensors of the sizes before the loop,
/// so that patterns find these sizes, and carries nothing on. For functions
/// that compute only sizes.
void stateLoopSizes(mlir::func::FuncOp func);

/// Writes tensors that iterations pass on back to the buffers that the loops
/// carry, where bufferization could not see that both share a buffer.
void keepLoopsInPlace(mlir::func::FuncOp func);

/// Builds a private function `name` after `func` (on tensors) that computes the
/// sizes of `func`'s results from the sizes of its arguments and its scalars:
/// one index for every dimension of every result. Assertions on sizes are kept.
/// Fails, naming the result, where a size is known only after running the
/// computation.
mlir::FailureOr<mlir::func::FuncOp> buildResultSizes(mlir::func::FuncOp func,
                                                     llvm::StringRef name);

/// Gives assertions that importers wrote their place and the sizes that they
/// compare.
void describeAssertions(mlir::func::FuncOp func);

/// Decomposes operations without loops and bufferization into others: softmax,
/// Winograd, pack, unpack, concat, reshape; and splat constants into fills,
/// which need no data on the device. Also keeps loops in place: what a loop
/// yields is written back to the buffer it iterates on.
mlir::LogicalResult decomposeForBufferization(mlir::func::FuncOp func);

} // namespace ftuner

#endif // FTUNER_LIB_TRANSFORMS_HOST_HOSTPREPARATION_H
