//===- Roundings.h - Where a program rounds ---------------------*- C++ -*-===//
//
// A value of a float type is rounded to that type where the program computes
// it: casts and narrow types that a program writes are part of its meaning.
//
// The one exception is what a reduction accumulates, be it a product of
// matrices or a plain sum: accumulators are wide, and round when they are
// stored. So do the products that a sum of products adds up.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_DIALECT_UKERNEL_UTILS_ROUNDINGS_H
#define FTUNER_DIALECT_UKERNEL_UTILS_ROUNDINGS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace ftuner {

/// Whether `op`, of arith or math, computes floats and rounds them to the types
/// of its results. Casts that keep every value, choices between values and
/// changes of the sign are exact; what updates an accumulator stays wide.
bool roundsResults(mlir::Operation *op);

/// Whether the operator, on tensors or buffers, updates its output `number` by
/// one operation on the output's own value in each step of a reduction: it is
/// rounded when the operator is done.
bool accumulates(mlir::linalg::LinalgOp op, unsigned number);

/// Whether the operation of arith casts numbers and keeps every value: floats
/// to wider ones, integers to wider ones or to floats with as many digits.
bool isExactCast(mlir::Operation *op);

/// The type in which a contraction keeps the sums that a program types `type`:
/// f32 for f16 and bf16, else the same.
mlir::Type getAccumulatorTypeFor(mlir::Type type);

/// Whether the operator, on tensors or buffers, sums up products of its two
/// inputs, both tensors: out += a · b, factors possibly cast, exactly.
bool isSumOfProducts(mlir::linalg::LinalgOp op);
/// Whether the body of scalars, of such an operator or of a workload, does so:
/// takes two factors and the accumulator and yields the next accumulator.
bool isSumOfProducts(mlir::Block &body);

} // namespace ftuner

#endif // FTUNER_DIALECT_UKERNEL_UTILS_ROUNDINGS_H
