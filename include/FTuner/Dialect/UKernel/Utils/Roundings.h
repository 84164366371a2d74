//===- Roundings.h - Rounding operations of a program -----------*- C++ -*-===//
//
// A value of a float type is rounded to that type where the program computes
// it: casts and narrow types that a program writes are part of its meaning.
//
// The one exception are accumulators of reductions, both of products of
// matrices and of plain sums: they are wide, and are rounded when they are
// stored. The products that a sum of products adds up are wide, too.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_DIALECT_UKERNEL_UTILS_ROUNDINGS_H
#define FTUNER_DIALECT_UKERNEL_UTILS_ROUNDINGS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <array>
#include <optional>

namespace ftuner {

/// Returns whether `op`, of arith or math, computes floats and rounds them to
/// the types of its results. Casts that keep every value, choices between
/// values and changes of the sign are exact; operations that update an
/// accumulator stay wide.
bool roundsResults(mlir::Operation *op);

/// Returns whether the operator, on tensors or buffers, updates its output
/// `number` by one operation on the output's own value in each step of a
/// reduction. Such an output is rounded when the operator is done.
bool accumulates(mlir::linalg::LinalgOp op, unsigned number);

/// Returns whether the operation of arith casts numbers and keeps every value:
/// floats to wider ones, integers to wider ones or to floats with enough
/// digits.
bool isExactCast(mlir::Operation *op);

/// Returns the type in which a contraction keeps sums that have `type` in the
/// program: f32 for f16 and bf16, otherwise `type`.
mlir::Type getAccumulatorTypeFor(mlir::Type type);

/// Returns whether the operator, on tensors or buffers, sums up products of its
/// two inputs, both tensors: out += a · b. Factors may be cast exactly.
bool isSumOfProducts(mlir::linalg::LinalgOp op);

/// Parts of a body of scalars that takes two factors, any number of inputs and
/// an accumulator. It transforms each factor by a prologue, and yields the
/// accumulator plus the product of the results.
struct SumOfProducts {
  /// The operands of the product.
  std::array<mlir::Value, 2> factors;
  /// The operations that compute each factor from the arguments, in order.
  std::array<llvm::SmallVector<mlir::Operation *>, 2> prologues;

  /// Returns the value of a factor before exact casts, for units that multiply
  /// narrow types.
  mlir::Value narrowFactor(unsigned factor) const;
  /// Returns whether a factor's prologue has more than exact casts.
  bool isComputed(unsigned factor) const;
};
std::optional<SumOfProducts> matchSumOfProducts(mlir::Block &body);

} // namespace ftuner

#endif // FTUNER_DIALECT_UKERNEL_UTILS_ROUNDINGS_H
