//===- RowAccumulation.h - Reductions of one loop as rows reduce -*- C++
//-*-===//
//
// An operator of linalg that reduces one loop, and how a row reduction computes
// it: in a wide accumulator that starts from the neutral element.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_TRANSFORMS_WORKLOADS_ROWS_ROWACCUMULATION_H
#define FTUNER_LIB_TRANSFORMS_WORKLOADS_ROWS_ROWACCUMULATION_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <optional>

namespace ftuner {

/// A reduction in the accumulator of a row.
struct RowAccumulation {
  /// Updates the accumulator, in the operator's body.
  mlir::Operation *combining;
  /// Name of the operation that updates the accumulator of a row: there,
  /// booleans are integers.
  mlir::OperationName name;
  /// Type of the row's accumulator: f32, f64 or i32.
  mlir::Type type;
  /// Value that the operator starts from, which is combined with the row's
  /// result: a scalar or a tensor, or else a constant. Both are null where the
  /// operator starts from the neutral element.
  mlir::Value start;
  mlir::Attribute constantStart;

  bool hasStart() const { return start || constantStart; }

  /// Casts a value to the accumulator's type.
  mlir::Value widen(mlir::OpBuilder &b, mlir::Value value) const;
  /// Casts an accumulator to the type of the operator's result.
  static mlir::Value narrow(mlir::OpBuilder &b, mlir::Value accumulator,
                            mlir::Type type);
  /// Applies the operation `name` to operands of the accumulator's type.
  mlir::Value combine(mlir::OpBuilder &b, mlir::ValueRange operands) const;
};

/// Creates the operation `name` on operands that are wider than those of `op`,
/// with the attributes of `op` that still hold.
mlir::Value createWide(mlir::OpBuilder &b, mlir::Operation *op,
                       mlir::OperationName name, mlir::ValueRange operands);

/// Returns how rows compute an operator that reduces one loop to one element
/// for each point of the other loops; nothing for other operators.
std::optional<RowAccumulation> matchRowReduction(mlir::linalg::LinalgOp op);
bool isRowReduction(mlir::linalg::LinalgOp op);

/// Returns the only loop that a reduction of rows reduces.
unsigned getReductionLoop(mlir::linalg::LinalgOp op);

/// Returns true for an operator with parallel loops only, whose body computes
/// with its arguments, positions and scalars.
bool isElementwise(mlir::linalg::LinalgOp op);

/// Returns the map of the only output.
mlir::AffineMap getInitMap(mlir::linalg::LinalgOp op);

} // namespace ftuner

#endif // FTUNER_LIB_TRANSFORMS_WORKLOADS_ROWS_ROWACCUMULATION_H
