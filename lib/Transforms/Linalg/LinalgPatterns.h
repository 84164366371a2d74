//===- LinalgPatterns.h - What the normalization rewrites -------*- C++ -*-===//
#ifndef FTUNER_LIB_TRANSFORMS_LINALG_LINALGPATTERNS_H
#define FTUNER_LIB_TRANSFORMS_LINALG_LINALGPATTERNS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/PatternMatch.h"

namespace ftuner {

/// Products of integers with zero points as plain ones and sums over factors
/// (ZeroPoints.cpp): from named operators to generic ones, and from these.
void populateGeneralizeQuantizedPatterns(mlir::RewritePatternSet &patterns);
void populateZeroPointPatterns(mlir::RewritePatternSet &patterns);

/// Convolutions whose windows are points as products (PointConvolutions.cpp):
/// from named operators to generic ones, and from these.
void populateGeneralizePointConvolutionPatterns(
    mlir::RewritePatternSet &patterns);
void populatePointConvolutionPatterns(mlir::RewritePatternSet &patterns);

/// Padding that cuts off as slices (NegativePads.cpp).
void populateNegativePadPatterns(mlir::RewritePatternSet &patterns);

/// Guards elements that an assertion inside an operator does not hold for, and
/// reads by an index that may lie outside of a tensor: they are NaN, or 0 of
/// integers.
void populateElementGuardPatterns(mlir::RewritePatternSet &patterns);

/// Replaces a sum of numbers of 8 bits in i32 over some dimensions of a tensor
/// by a product with ones; fails for other operators.
llvm::LogicalResult sumToProduct(mlir::linalg::GenericOp op,
                                 mlir::RewriterBase &rewriter);

} // namespace ftuner

#endif // FTUNER_LIB_TRANSFORMS_LINALG_LINALGPATTERNS_H
