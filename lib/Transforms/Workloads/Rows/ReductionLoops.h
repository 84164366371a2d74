//===- ReductionLoops.h - Reductions of one loop ----------------*- C++ -*-===//
//
// What importers write as reductions of several loops, by fewer: windows that
// are a whole image, and loops that are no neighbours.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_TRANSFORMS_WORKLOADS_ROWS_REDUCTIONLOOPS_H
#define FTUNER_LIB_TRANSFORMS_WORKLOADS_ROWS_REDUCTIONLOOPS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/PatternMatch.h"

namespace ftuner {

/// Whether every operand is read and written along loops alone.
bool hasPlainMaps(mlir::linalg::LinalgOp op);

/// Replaces an operator whose window is all of an image, of one position, by a
/// plain reduction of the image's loops. Others stay.
void reduceWholeWindow(mlir::linalg::LinalgOp op, mlir::RewriterBase &rewriter);

/// Replaces a reduction of loops that are not all neighbours in its operands by
/// two, and returns them: of the last ones that are, and of what is left by
/// those before. What lies between both is in f32 where the program sums up or
/// compares f16 or bf16, and is rounded once. Returns none, and does nothing,
/// for other operators.
llvm::SmallVector<mlir::linalg::LinalgOp>
splitReduction(mlir::linalg::LinalgOp op, mlir::RewriterBase &rewriter);

} // namespace ftuner

#endif // FTUNER_LIB_TRANSFORMS_WORKLOADS_ROWS_REDUCTIONLOOPS_H
