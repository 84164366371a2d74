//===- IndexMath.h - Index arithmetic of emitters ---------------*- C++ -*-===//
#ifndef FTUNER_CODEGEN_IR_INDEXMATH_H
#define FTUNER_CODEGEN_IR_INDEXMATH_H

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace ftuner {

using mlir::Value;
using mlir::ValueRange;
using Values = llvm::SmallVector<Value>;

/// A constant of type i32.
Value createI32(mlir::ImplicitLocOpBuilder &b, int64_t value);
/// A number that is not negative, e.g. an i32, as an index.
Value toIndex(mlir::ImplicitLocOpBuilder &b, Value number);

/// Index arithmetic without wrap-around, folded where operands are constant.
class IndexMath {
public:
  using Index = Value;
  explicit IndexMath(mlir::ImplicitLocOpBuilder &b) : b(b) {}
  Value constant(int64_t value);
  Value add(Value lhs, Value rhs);
  Value add(Value lhs, int64_t rhs);
  Value sub(Value lhs, int64_t rhs);
  Value mul(Value lhs, Value rhs);
  Value mul(Value lhs, int64_t rhs);
  Value div(Value lhs, int64_t rhs);
  Value rem(Value lhs, int64_t rhs);
  Value bitXor(Value lhs, Value rhs);
  Value less(Value lhs, Value rhs);
  Value minimum(Value lhs, Value rhs);

private:
  mlir::ImplicitLocOpBuilder &b;
};

} // namespace ftuner

#endif // FTUNER_CODEGEN_IR_INDEXMATH_H
