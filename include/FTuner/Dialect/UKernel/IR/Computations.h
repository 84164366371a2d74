//===- Computations.h - Computations of operators ---------------*- C++ -*-===//
//
// Functions that implementations of `OperatorOpInterface::describe` share. They
// turn the types, maps and scalar regions of an operator into the operands and
// computations of the core's `Workload`.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_DIALECT_UKERNEL_IR_COMPUTATIONS_H
#define FTUNER_DIALECT_UKERNEL_IR_COMPUTATIONS_H

#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/Workload/Contraction.h"

namespace ftuner {

//===----------------------------------------------------------------------===//
// Parts of operators, also before there is an operator
//===----------------------------------------------------------------------===//

/// Returns the type of the elements of a shaped type, or of a scalar. Signless
/// integers of up to 64 bits are rounded up to the next element type.
ElementType toElementType(mlir::Type type);

/// Returns an operand of that type, or a scalar, that the map accesses. The
/// results of the map are sums of multiples of axes.
Operand toOperand(OperandRole role, mlir::Type type, mlir::AffineMap map);
/// Returns an operand that a map accesses which has the loops of fused axes as
/// dimensions after `numAxes` axes. `groups`: see `ukernel::groupDimensions`.
Operand toOperand(OperandRole role, mlir::Type type, mlir::AffineMap map,
                  unsigned numAxes, llvm::ArrayRef<ukernel::FusedLoop> loops,
                  llvm::ArrayRef<mlir::ReassociationIndices> groups);

/// Returns the operations on elements that an operation stands for; no value
/// for constants, indices and terminators, which do not count.
std::optional<Operations> operationsOf(mlir::Operation &op);

/// Returns the operations of a body of scalars; equal ones are counted.
std::vector<Operations> collectOperations(mlir::Block &body);
/// Adds an operation and the operations in its regions.
void collectOperations(mlir::Operation &op, std::vector<Operations> &result);

/// Returns whether equal known values give an operation on scalars equal
/// results at every point: it is pure, all its operands are known, and it is
/// not an index.
bool isInvariant(mlir::Operation &op,
                 llvm::function_ref<bool(mlir::Value)> isKnown);

/// Returns the merge of two parts that a combiner defines, and the value of an
/// empty part. They follow from the one operation that takes the accumulator,
/// the body's last argument, and makes the next one.
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
  /// If the operator reduces a slice of each row: for each reduction, the
  /// number of the operand to which it writes its state. Empty if the operator
  /// reduces whole rows.
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
/// `sizes`: static extents of the axes, and then of the loops.
void addLoops(llvm::ArrayRef<ukernel::FusedLoop> loops,
              llvm::ArrayRef<int64_t> sizes, Workload &workload);
/// Adds the operator's operands, in its order.
void addOperands(ukernel::OperatorOpInterface op, Workload &workload);

/// Makes the computations of an operator with one reduction from its regions.
/// `change`: see `setComputations`.
void describeReduction(
    ukernel::ReductionOpInterface op, Workload &workload,
    llvm::function_ref<void(ContractionParts &)> change = {});

/// Verifies the computations that the operator describes (operator_c5). The
/// verifier of an operator that is not a reduction calls it after the checks of
/// its regions.
mlir::LogicalResult verifyComputations(ukernel::OperatorOpInterface op);

} // namespace ftuner

#endif // FTUNER_DIALECT_UKERNEL_IR_COMPUTATIONS_H
