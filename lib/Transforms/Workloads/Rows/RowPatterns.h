//===- RowPatterns.h - The form that rows start from ------------*- C++ -*-===//
//
// What importers write in another form than RowFormation takes: named softmax,
// extremes with their positions, reductions of several loops, reshapes between
// the operators of a norm.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_TRANSFORMS_WORKLOADS_ROWS_ROWPATTERNS_H
#define FTUNER_LIB_TRANSFORMS_WORKLOADS_ROWS_ROWPATTERNS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace ftuner {

/// Rewrites the operators of a function. `takes`: whether rows may have
/// elements of a type, along the last dimension. `isComputed`: whether a
/// reduction becomes one of rows, with what is around it.
void normalizeRows(mlir::FunctionOpInterface function,
                   llvm::function_ref<bool(mlir::Type)> takes,
                   llvm::function_ref<bool(mlir::linalg::LinalgOp)> isComputed,
                   mlir::RewriterBase &rewriter);

} // namespace ftuner

#endif // FTUNER_LIB_TRANSFORMS_WORKLOADS_ROWS_ROWPATTERNS_H
