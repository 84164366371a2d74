//===- RowPatterns.h - The form that rows start from ------------*- C++ -*-===//
//
// Importers write rows in other forms than those in which a group can start
// (RowGroup.h): a named softmax, an extreme with its position, a reduction of
// several loops, reshapes between the operators of a norm.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_TRANSFORMS_WORKLOADS_ROWS_ROWPATTERNS_H
#define FTUNER_LIB_TRANSFORMS_WORKLOADS_ROWS_ROWPATTERNS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace ftuner {

/// Rewrites the operators of a function to the form that rows start from.
/// `areRows` returns true if rows along the last dimension may have elements of
/// a type, and `isSupported` if a reduction becomes one of rows, with the
/// operators around it.
void normalizeRows(mlir::FunctionOpInterface function,
                   llvm::function_ref<bool(mlir::Type)> areRows,
                   llvm::function_ref<bool(mlir::linalg::LinalgOp)> isSupported,
                   mlir::RewriterBase &rewriter);

} // namespace ftuner

#endif // FTUNER_LIB_TRANSFORMS_WORKLOADS_ROWS_ROWPATTERNS_H
