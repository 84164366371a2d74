//===- IndexedExtremes.h - Extremes with their positions --------*- C++ -*-===//
//
// Importers write the position of an extreme, such as an argmax, as one
// reduction with two results. Rows reduce to one result each.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_TRANSFORMS_WORKLOADS_ROWS_INDEXEDEXTREMES_H
#define FTUNER_LIB_TRANSFORMS_WORKLOADS_ROWS_INDEXEDEXTREMES_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace ftuner {

/// Splits the reductions of a function to an extreme and its position into
/// reductions with one result. `areRows` and `isSupported`: see
/// `normalizeRows`. A reduction stays whose parts are not supported.
void splitIndexedExtremes(
    mlir::FunctionOpInterface function,
    llvm::function_ref<bool(mlir::Type)> areRows,
    llvm::function_ref<bool(mlir::linalg::LinalgOp)> isSupported,
    mlir::RewriterBase &rewriter);

} // namespace ftuner

#endif // FTUNER_LIB_TRANSFORMS_WORKLOADS_ROWS_INDEXEDEXTREMES_H
