//===- LinalgPatterns.h - Patterns of the normalization ---------*- C++ -*-===//
#ifndef FTUNER_LIB_TRANSFORMS_LINALG_LINALGPATTERNS_H
#define FTUNER_LIB_TRANSFORMS_LINALG_LINALGPATTERNS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/PatternMatch.h"

namespace ftuner {

/// Adds patterns that rewrite products of integers with zero points as plain
/// products and sums over factors (ZeroPoints.cpp): from named operators to
/// generic ones, and from these.
void populateGeneralizeQuantizedPatterns(mlir::RewritePatternSet &patterns);
void populateZeroPointPatterns(mlir::RewritePatternSet &patterns);

/// Adds patterns that rewrite convolutions whose windows are points as products
/// (PointConvolutions.cpp): from named operators to generic ones, and from
/// these.
void populateGeneralizePointConvolutionPatterns(
    mlir::RewritePatternSet &patterns);
void populatePointConvolutionPatterns(mlir::RewritePatternSet &patterns);

/// Adds patterns that bring contractions into the form of workloads
/// (Contractions.cpp).
void populateContractionPatterns(mlir::RewritePatternSet &patterns);

/// Adds patterns that rewrite negative padding as slices (NegativePads.cpp).
void populateNegativePadPatterns(mlir::RewritePatternSet &patterns);

/// Adds patterns that guard elements for which an assertion inside an operator
/// does not hold, and reads by an index that may lie outside of a tensor: these
/// become NaN, or 0 for integers (ElementGuards.cpp).
void populateElementGuardPatterns(mlir::RewritePatternSet &patterns);

/// Replaces a sum of numbers of 8 bits in i32 over some dimensions of a tensor
/// by a product with ones; fails for other operators.
llvm::LogicalResult sumToProduct(mlir::linalg::GenericOp op,
                                 mlir::RewriterBase &rewriter);

} // namespace ftuner

#endif // FTUNER_LIB_TRANSFORMS_LINALG_LINALGPATTERNS_H
