//===- SizeTracer.h - Formulas of sizes on the host -------------*- C++ -*-===//
#ifndef FTUNER_LIB_ANALYSIS_SIZETRACER_H
#define FTUNER_LIB_ANALYSIS_SIZETRACER_H

#include "FTuner/Analysis/FunctionWork.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace ftuner {

/// Follows sizes on the host back to the sizes of a function's arguments.
class SizeTracer {
public:
  /// With numbers for `sizeNames`, formulas are of these.
  SizeTracer(mlir::func::FuncOp func, FunctionWork &work,
             llvm::ArrayRef<double> numbers = {});

  /// Returns the formula of an index; null if it does not follow from the
  /// function's sizes.
  mlir::AffineExpr trace(mlir::Value value);
  mlir::AffineExpr trace(mlir::OpFoldResult value);

private:
  void nameSizes(FunctionWork &work, llvm::ArrayRef<double> numbers);
  /// The size of a dimension of an argument, or of a result's buffer.
  mlir::AffineExpr argumentDim(unsigned argument, int64_t dim);
  mlir::AffineExpr dimOf(mlir::Value memref, int64_t dim);
  mlir::AffineExpr strideOf(mlir::Value memref, int64_t dim);
  mlir::AffineExpr traceBinary(mlir::Operation *op);
  /// The formula of a comparison, 0 or 1; null where the ranges of the sizes
  /// leave both.
  mlir::AffineExpr traceComparison(mlir::arith::CmpIOp op);
  /// The lesser, or the greater, of two formulas; null where the ranges of the
  /// sizes leave both.
  mlir::AffineExpr chooseBetween(mlir::AffineExpr lhs, mlir::AffineExpr rhs,
                                 bool isGreater);
  /// The values that a formula has in the ranges of the sizes; an end is none
  /// where it is not known.
  std::pair<std::optional<int64_t>, std::optional<int64_t>>
  boundsOf(mlir::AffineExpr formula);
  mlir::AffineExpr compute(mlir::Value value);

  mlir::func::FuncOp func;
  mlir::FunctionType abiType;
  mlir::MLIRContext *context;
  /// Symbols of dimensions; of scalars, with dimension -1.
  llvm::DenseMap<std::pair<unsigned, int64_t>, mlir::AffineExpr> symbols;
  /// What is known to be equal: the arguments of the function of result sizes.
  llvm::DenseMap<mlir::Value, mlir::AffineExpr> known;
  /// The least and the greatest value of each size.
  llvm::SmallVector<std::optional<int64_t>> lowest, highest;
  /// The sizes of the results, one after the other.
  llvm::SmallVector<mlir::Value> resultSizes;
};

} // namespace ftuner

#endif // FTUNER_LIB_ANALYSIS_SIZETRACER_H
