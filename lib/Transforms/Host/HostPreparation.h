//===- HostPreparation.h - Host functions before bufferization --*- C++ -*-===//
#ifndef FTUNER_LIB_TRANSFORMS_HOST_HOSTPREPARATION_H
#define FTUNER_LIB_TRANSFORMS_HOST_HOSTPREPARATION_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ftuner {

/// Builds a private function `name` after `func` (on tensors) that computes the
/// sizes of `func`'s results from the sizes of its arguments and its scalars:
/// one index for every dimension of every result. Assertions on sizes are kept.
/// Fails, naming the result, where a size is known only after running the
/// computation.
mlir::FailureOr<mlir::func::FuncOp> buildResultSizes(mlir::func::FuncOp func,
                                                     llvm::StringRef name);

/// Rewrites what has neither loops nor a bufferization into what has: softmax,
/// Winograd, pack, unpack, concat, reshape; and splat constants into fills,
/// which need no data on the device. Also keeps loops in place: what a loop
/// yields is written back to the buffer it iterates on.
mlir::LogicalResult decomposeForBufferization(mlir::func::FuncOp func);

} // namespace ftuner

#endif // FTUNER_LIB_TRANSFORMS_HOST_HOSTPREPARATION_H
