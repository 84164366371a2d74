//===- IndexArithmetic.h - Formulas of the grid as IR -----------*- C++ -*-===//
//
// The Math (FTuner/Schedule/Arithmetic.h) that builds operations of the dialect
// `arith` on values of type index, all unsigned, at the insertion point of a
// builder. The host counts blocks with it, a kernel finds its tile.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_DIALECT_UKERNEL_UTILS_INDEXARITHMETIC_H
#define FTUNER_DIALECT_UKERNEL_UTILS_INDEXARITHMETIC_H

#include "FTuner/Schedule/Arithmetic.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace ftuner::ukernel {

/// Folds what is constant. Holds the builder by reference.
class IndexArithmetic {
public:
  using Index = mlir::Value;
  using Condition = mlir::Value;

  explicit IndexArithmetic(mlir::ImplicitLocOpBuilder &b) : b(b) {}

  Index constant(int64_t value);
  Index add(Index lhs, Index rhs);
  Index sub(Index lhs, Index rhs);
  Index mul(Index lhs, Index rhs);
  Index mul(Index lhs, int64_t rhs) { return mul(lhs, constant(rhs)); }
  Index div(Index lhs, Index rhs);
  Index div(Index lhs, int64_t rhs) { return div(lhs, constant(rhs)); }
  Index rem(Index lhs, Index rhs);
  Index rem(Index lhs, int64_t rhs) { return rem(lhs, constant(rhs)); }
  Condition less(Index lhs, Index rhs);
  Condition atMost(Index lhs, Index rhs);
  Condition atLeast(Index lhs, Index rhs);
  Index select(Condition condition, Index lhs, Index rhs);
  std::optional<int64_t> known(Index value);

  /// Not of the Math: any comparison.
  Condition compare(mlir::arith::CmpIPredicate predicate, Index lhs, Index rhs);

protected:
  mlir::ImplicitLocOpBuilder &b;
};

} // namespace ftuner::ukernel

#endif // FTUNER_DIALECT_UKERNEL_UTILS_INDEXARITHMETIC_H
