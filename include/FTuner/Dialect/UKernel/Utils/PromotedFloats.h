//===- PromotedFloats.h - f16 and bf16 computed in f32 ----------*- C++ -*-===//
//
// What a body states in f16 or bf16 is computed in f32 and rounded where it
// would be. One sum, product, quotient or root in f32 and a rounding give what
// the operation itself gives; others may differ in the last place (S. Figueroa,
// "When is double rounding innocuous?", SIGNUM Newsletter 30, 1995), and every
// GPU has them.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_DIALECT_UKERNEL_UTILS_PROMOTEDFLOATS_H
#define FTUNER_DIALECT_UKERNEL_UTILS_PROMOTEDFLOATS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

namespace ftuner {

/// Returns whether elements of the type (f16 or bf16) are computed in f32.
bool isNarrowFloat(mlir::Type type);

/// Returns the value, a scalar or vector, in f32 if it is narrower.
mlir::Value promoted(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value);
/// Returns the value with elements of `element`, rounded if it is wider.
mlir::Value rounded(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value,
                    mlir::Type element);

/// Clones an operation of scalars, of arith or math, on values that `mapping`
/// holds in f32 where their types are narrower; values that it does not hold
/// come as they are. Its results are in f32 too, rounded to their own types.
/// With `width` above 0 the clone computes on vectors of so many elements,
/// which `mapping` holds, except for constants, which stay scalars.
void clonePromoted(mlir::OpBuilder &b, mlir::Operation &op,
                   mlir::IRMapping &mapping, int64_t width = 0);

} // namespace ftuner

#endif // FTUNER_DIALECT_UKERNEL_UTILS_PROMOTEDFLOATS_H
