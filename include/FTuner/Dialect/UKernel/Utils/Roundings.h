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

#include <array>
#include <optional>

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

/// The parts of a body of scalars that takes two factors, any number of inputs
/// and an accumulator, and yields the accumulator plus the product of what
/// becomes of each factor.
struct SumOfProducts {
  /// The operands of the product.
  std::array<mlir::Value, 2> factors;
  /// What computes them from the arguments, in order.
  std::array<llvm::SmallVector<mlir::Operation *>, 2> prologues;

  /// The value of a factor before exact casts: units that multiply narrow types
  /// take it.
  mlir::Value narrowFactor(unsigned factor) const;
  /// Whether more becomes of a factor than exact casts.
  bool isComputed(unsigned factor) const;
};
std::optional<SumOfProducts> matchSumOfProducts(mlir::Block &body);

} // namespace ftuner

#endif // FTUNER_DIALECT_UKERNEL_UTILS_ROUNDINGS_H
