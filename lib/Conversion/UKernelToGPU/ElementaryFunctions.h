//===- ElementaryFunctions.h - Functions of f32 as operations ---*- C++ -*-===//
//
// Approximations of elementary functions for f32 and vectors of it, which need
// no device library. docs/math.md lists their errors, which a test measures.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_CONVERSION_UKERNELTOGPU_ELEMENTARYFUNCTIONS_H
#define FTUNER_LIB_CONVERSION_UKERNELTOGPU_ELEMENTARYFUNCTIONS_H

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/PatternMatch.h"

namespace ftuner {

/// Creates a constant of a float type or of a vector of it.
mlir::Value createFloat(mlir::OpBuilder &b, mlir::Location loc, mlir::Type type,
                        const llvm::APFloat &value);

/// Create 2^x and 1/x of f32 as the GPU's instructions; a result below the
/// normal floats becomes 0. The error is at most 2^-22 of the power, and 1 ulp
/// of the reciprocal.
mlir::Value createApproximateExp2(mlir::ImplicitLocOpBuilder &b, mlir::Value x);
mlir::Value createApproximateReciprocal(mlir::ImplicitLocOpBuilder &b,
                                        mlir::Value x);

/// Creates |x|^y of f32. The logarithm has 48 bits, so that large exponents do
/// not magnify its error.
mlir::Value createPowerOfMagnitude(mlir::ImplicitLocOpBuilder &b, mlir::Value x,
                                   mlir::Value y);

/// Returns true if `populateElementaryPatterns` expands the operation, which
/// then needs no pattern of upstream.
bool isElementaryFunction(llvm::StringRef name);

/// Adds patterns for functions of f32. Functions of f16 and bf16 are computed
/// in f32 and rounded.
void populateElementaryPatterns(mlir::RewritePatternSet &patterns);

} // namespace ftuner

#endif // FTUNER_LIB_CONVERSION_UKERNELTOGPU_ELEMENTARYFUNCTIONS_H
