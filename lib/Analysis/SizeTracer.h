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
  /// Returns the formula of a comparison, 0 or 1; null if the ranges of the
  /// sizes allow both.
  mlir::AffineExpr traceComparison(mlir::arith::CmpIOp op);
  /// Returns the smaller, or the larger, of two formulas; null if the ranges of
  /// the sizes do not decide.
  mlir::AffineExpr chooseBetween(mlir::AffineExpr lhs, mlir::AffineExpr rhs,
                                 bool isGreater);
  /// Returns the bounds of a formula in the ranges of the sizes; an unknown
  /// bound has no value.
  std::pair<std::optional<int64_t>, std::optional<int64_t>>
  boundsOf(mlir::AffineExpr formula);
  mlir::AffineExpr compute(mlir::Value value);

  mlir::func::FuncOp func;
  mlir::FunctionType abiType;
  mlir::MLIRContext *context;
  /// Symbols of dimensions; of scalars, with dimension -1.
  llvm::DenseMap<std::pair<unsigned, int64_t>, mlir::AffineExpr> symbols;
  /// Known formulas of values: the arguments of the function of result sizes.
  llvm::DenseMap<mlir::Value, mlir::AffineExpr> known;
  /// The minimum and the maximum of each size.
  llvm::SmallVector<std::optional<int64_t>> lowest, highest;
  /// The sizes of the results, one after the other.
  llvm::SmallVector<mlir::Value> resultSizes;
};

} // namespace ftuner

#endif // FTUNER_LIB_ANALYSIS_SIZETRACER_H
