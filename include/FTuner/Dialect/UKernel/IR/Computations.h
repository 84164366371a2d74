//===- Computations.h - What an operator computes, for the core -*- C++ -*-===//
//
// From the types, maps and scalar regions of an operator to the operands and
// computations of the core's `Workload`: what implementations of
// `OperatorOpInterface::describe` share.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_DIALECT_UKERNEL_IR_COMPUTATIONS_H
#define FTUNER_DIALECT_UKERNEL_IR_COMPUTATIONS_H

#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/Workload/Contraction.h"

namespace ftuner {

//===----------------------------------------------------------------------===//
// Parts, also of what is no operator yet
//===----------------------------------------------------------------------===//

/// The type of the elements of a shaped type, or of a scalar. Integers without
/// a sign go up to 64 bits, to the next size that there is.
ElementType toElementType(mlir::Type type);

/// An operand of that type, or a scalar, that the map accesses: sums of
/// multiples of axes.
Operand toOperand(OperandRole role, mlir::Type type, mlir::AffineMap map);

/// What an operation computes of elements; none for what counts for nothing
/// and has no type of its own: constants, indices, terminators.
std::optional<Operations> operationsOf(mlir::Operation &op);

/// The operations of a body of scalars, equal ones counted.
std::vector<Operations> collectOperations(mlir::Block &body);
/// Adds an operation and those in its regions.
void collectOperations(mlir::Operation &op, std::vector<Operations> &result);

/// Whether an operation on scalars is the same wherever what is known is: pure,
/// of nothing else, and no position.
bool isInvariant(mlir::Operation &op,
                 llvm::function_ref<bool(mlir::Value)> isKnown);

/// How a body merges two parts, and what an empty one holds: by the one
/// operation that takes the accumulator, its last argument, and makes the next
/// one.
std::pair<Merge, Identity> mergeOf(mlir::Block &combiner);

/// Scalar bodies of an operator: of the combiner, with inputs and then the
/// accumulator as arguments, and of the epilogue, null for none.
struct ComputationBodies {
  mlir::Block *combiner;
  mlir::Block *epilogue = nullptr;
  /// The accumulator's type, null for the combiner's.
  mlir::Type accumulator = {};
};

/// Makes the computations of a workload that has axes and operands. `change`
/// may change the parts of a contraction, and what follows another reduction.
void setComputations(Workload &workload, AxisSet reduce,
                     const ComputationBodies &bodies,
                     llvm::function_ref<void(ContractionParts &)> change = {});

/// Scalar bodies of a row reduction (`ukernel.row_reduction`), and the operands
/// that they read and write.
struct RowBodies {
  /// The axis along which a row lies, the last one.
  unsigned rowAxis = 0;
  /// For each input, true if it has an element for each element of a row.
  llvm::SmallVector<bool> inputsAlongRow;
  /// The body of each reduction: its arguments are all inputs, the results of
  /// the reductions before it, and its accumulator.
  llvm::SmallVector<mlir::Block *> reductions;
  /// The bodies that yield outputs of rows and of elements, and the numbers of
  /// these outputs as operands.
  mlir::Block *values = nullptr, *map = nullptr;
  llvm::SmallVector<unsigned, 2> valueOutputs, mapOutputs;
  /// If the operator reduces a slice of each row: for each reduction, the number
  /// of the operand to which it writes its state. Empty if the operator reduces
  /// whole rows.
  llvm::SmallVector<unsigned> states;
};

/// Makes the computations of a row reduction, for a workload that has axes and
/// operands.
void setRowComputations(Workload &workload, const RowBodies &bodies);

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

/// Adds the loops of fused axes to a workload that has the axes, and fits the
/// ranges of these to loops of known extents.
void addLoops(ukernel::OperatorOpInterface op, Workload &workload);
/// Adds the operator's operands, in its order.
void addOperands(ukernel::OperatorOpInterface op, Workload &workload);

/// Makes the computations of an operator with one reduction from its regions.
/// `change`: see `setComputations`.
void describeReduction(
    ukernel::ReductionOpInterface op, Workload &workload,
    llvm::function_ref<void(ContractionParts &)> change = {});

/// Says what is wrong with the computations that the operator describes
/// (operator_c5). The verifier of an operator that is no reduction calls it
/// behind the checks of its regions.
mlir::LogicalResult verifyComputations(ukernel::OperatorOpInterface op);

} // namespace ftuner

#endif // FTUNER_DIALECT_UKERNEL_IR_COMPUTATIONS_H
