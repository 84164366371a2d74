//===- OperatorKind.h - Kinds of operators ----------------------*- C++ -*-===//
//
// The kind of an operator, from its interface and its region: names of
// operations are not read.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_ANALYSIS_OPERATORKIND_H
#define FTUNER_ANALYSIS_OPERATORKIND_H

#include "mlir/IR/Operation.h"
#include <optional>

namespace ftuner {

/// The kind of an operator on tensors or buffers.
enum class OperatorKind {
  /// Multiplies two operands and sums the products over an axis.
  Contraction,
  /// Reduces windows of an operand that overlap or have strides: convolutions
  /// and pools.
  Window,
  /// Reduces an axis in another way: sums, norms, softmax.
  Reduction,
  /// Moves or fills elements, and computes none.
  Copy,
  /// Computes each element from elements at one position of the operands.
  Elementwise,
};

/// The word for a kind in reports: "contraction", "window", "reduction",
/// "copy", "elementwise".
llvm::StringRef wordFor(OperatorKind kind);
/// The kind of that word; none for other words.
std::optional<OperatorKind> operatorKindFor(llvm::StringRef word);

/// The kind of an operator: a linalg operation, or one with
/// `ukernel::OperatorOpInterface`. Other operations are copies.
OperatorKind kindOf(mlir::Operation *op);

/// Returns whether the operator sums products: a contraction, or a window of
/// products such as a convolution. Pools do not.
bool sumsProducts(mlir::Operation *op);

} // namespace ftuner

#endif // FTUNER_ANALYSIS_OPERATORKIND_H
