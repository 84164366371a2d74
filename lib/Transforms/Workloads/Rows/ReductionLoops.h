//===- ReductionLoops.h - Reductions of one loop ----------------*- C++ -*-===//
//
// Importers write reductions of several loops that rows can do by fewer:
// windows that are a whole image, and loops that are not neighbours.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_TRANSFORMS_WORKLOADS_ROWS_REDUCTIONLOOPS_H
#define FTUNER_LIB_TRANSFORMS_WORKLOADS_ROWS_REDUCTIONLOOPS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/PatternMatch.h"

namespace ftuner {

/// Returns true if each dimension of every operand follows one loop.
bool hasPlainMaps(mlir::linalg::LinalgOp op);

/// Replaces an operator whose only window is a whole image by a plain reduction
/// of the image's loops. Leaves other operators.
void reduceWholeWindow(mlir::linalg::LinalgOp op, mlir::RewriterBase &rewriter);

/// Replaces a reduction of loops that are not all neighbours in its operands by
/// two reductions, and returns these: the first reduces the last loops that are
/// neighbours, the second the results of the first along the other loops. The
/// values in between are in f32 if the program reduces f16 or bf16, and are
/// rounded once. Leaves other operators, and returns no reductions then.
llvm::SmallVector<mlir::linalg::LinalgOp>
splitReduction(mlir::linalg::LinalgOp op, mlir::RewriterBase &rewriter);

} // namespace ftuner

#endif // FTUNER_LIB_TRANSFORMS_WORKLOADS_ROWS_REDUCTIONLOOPS_H
