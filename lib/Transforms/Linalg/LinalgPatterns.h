//===- LinalgPatterns.h - Patterns of the normalization ---------*- C++ -*-===//
#ifndef FTUNER_LIB_TRANSFORMS_LINALG_LINALGPATTERNS_H
#define FTUNER_LIB_TRANSFORMS_LINALG_LINALGPATTERNS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

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

/// Returns the one input of an elementwise operator that has dimensions; null
/// if it has several, or none (Contractions.cpp).
mlir::OpOperand *matchUnaryElementwise(mlir::linalg::LinalgOp op);

/// Creates a generic operator with other operands and maps, which has the loops
/// of `op` and takes its body (Contractions.cpp).
mlir::linalg::GenericOp takeBody(mlir::PatternRewriter &rewriter,
                                 mlir::linalg::LinalgOp op,
                                 mlir::ValueRange inputs,
                                 mlir::ValueRange inits,
                                 llvm::ArrayRef<mlir::AffineMap> maps);

/// Drops the loops of extent 1 from an operator, named or generic, and reshapes
/// its operands (Contractions.cpp). Fails if upstream cannot drop them.
llvm::LogicalResult dropUnitLoops(mlir::PatternRewriter &rewriter,
                                  mlir::linalg::LinalgOp op,
                                  llvm::ArrayRef<unsigned> loops);

/// Adds patterns that make contractions read the sources of their operands, and
/// then patterns that bring their loops into the form of workloads
/// (Contractions.cpp).
void populateContractionOperandPatterns(mlir::RewritePatternSet &patterns);
void populateContractionLoopPatterns(mlir::RewritePatternSet &patterns);

/// Adds a pattern that makes one operator of the two parts of a tensor that are
/// concatenated in the other order, as rotary embeddings do (SwappedParts.cpp).
void populateSwappedPartsPatterns(mlir::RewritePatternSet &patterns);

/// Replaces concatenations by insertions into one tensor each. Parts that no
/// operator can write there are copied by elementwise operators, which
/// concatenations of equal sizes share (ConcatenatedParts.cpp).
void copyConcatenatedParts(mlir::FunctionOpInterface function);

/// Emits a remark on each operator of a function that only copies elements of
/// tensors: what it copies, why no operator reads or writes the elements in
/// place, and how many bytes there are. The operator keeps the text in
/// `ukernel.copy` (CopyRemarks.cpp).
void remarkOnCopies(mlir::FunctionOpInterface function);

/// Moves an operator whose only reader inserts its result into a tensor, such
/// as a part of a concatenation, before that insertion. Upstream's elimination
/// of empty tensors then lets the operator write into the tensor: it asks that
/// the tensor exists where the operator begins (ConcatenatedParts.cpp).
void moveBeforeInsertion(mlir::tensor::InsertSliceOp insert);

/// Adds patterns that rewrite negative padding as slices, and that move
/// reshapes before padding (Pads.cpp).
void populatePadPatterns(mlir::RewritePatternSet &patterns);

/// Adds patterns that guard elements for which an assertion inside an operator
/// does not hold, and reads by an index that may lie outside of a tensor: these
/// become NaN, or 0 for integers (ElementGuards.cpp).
void populateElementGuardPatterns(mlir::RewritePatternSet &patterns);

/// Replaces a sum of numbers of 8 bits in i32 over some dimensions of a tensor
/// by a product with ones; fails for other operators.
llvm::LogicalResult sumToProduct(mlir::linalg::GenericOp op,
                                 mlir::RewriterBase &rewriter);

/// Adds folds of casts, reshapes, empty tensors and dimensions, as upstream's
/// fusion passes use them (NormalizeLinalg.cpp).
void populateCleanupPatterns(mlir::RewritePatternSet &patterns);

/// Returns the tensor without the dimensions that `map` reads at 0, as a
/// tensor.collapse_shape, and updates `map`; none if it reads no dimension at
/// 0.
std::optional<mlir::Value> dropUnitDims(mlir::PatternRewriter &rewriter,
                                        mlir::Location loc, mlir::Value tensor,
                                        mlir::AffineMap &map);

/// Adds a pattern that drops dimensions of extent 1 from inputs, which maps
/// read at the constant 0 (NormalizeLinalg.cpp).
void populateDropUnitDimsPatterns(mlir::RewritePatternSet &patterns);

/// Replaces sizes that are products of dimensions of arguments by one value
/// each, at the start of the function (ResolveSizes.cpp).
void resolveSizes(mlir::FunctionOpInterface function);

} // namespace ftuner

#endif // FTUNER_LIB_TRANSFORMS_LINALG_LINALGPATTERNS_H
