//===- OperatorWorkload.h - Operators as the core sees them -----*- C++ -*-===//
//
// From an operator of the IR, through `OperatorOpInterface`, to the `Workload`
// that search, cost models and codegen paths know, and which paths compute it.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_DIALECT_UKERNEL_BRIDGE_OPERATORWORKLOAD_H
#define FTUNER_DIALECT_UKERNEL_BRIDGE_OPERATORWORKLOAD_H

#include "FTuner/Device/DeviceSpec.h"
#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/Schedule/CodegenModel.h"
#include "FTuner/Workload/Contraction.h"

namespace ftuner {

/// The workload that the operator poses to a search: its axes, with names in
/// capital letters and the operator's ranges, static extents as fixed ones,
/// others open; operands in the operator's order, factors and symbols of
/// `ukernel.extents`. Sizes below 1 are left out of ranges: they cost nothing,
/// and every plan serves them.
Workload toWorkload(ukernel::OperatorOpInterface op);

/// The same by static extents alone, other axes taking all sizes: kernels know
/// no ranges.
Workload toUnrangedWorkload(ukernel::OperatorOpInterface op);

/// Whether kernels of the operator move what the epilogue reads and writes in
/// vectors (Alignment.h).
bool hasVectorEpilogue(ukernel::OperatorOpInterface op);

/// The name that an axis has in the workload.
std::string axisNameOf(ukernel::OperatorOpInterface op, unsigned axis);

//===----------------------------------------------------------------------===//
// Parts, for what is no operator yet
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

//===----------------------------------------------------------------------===//
// Support
//===----------------------------------------------------------------------===//

/// Which codegen paths, those that compete by default or more, compute a
/// workload: on the module's device, or, for a module without one, on any
/// built-in device.
class PathSupport {
public:
  /// Emits an error if the module's device is none.
  static mlir::FailureOr<PathSupport> of(mlir::ModuleOp module);

  /// Asks these paths, too.
  void add(llvm::ArrayRef<const CodegenModel *> others);
  /// Names of the paths, those that were added last.
  std::vector<llvm::StringRef> pathsFor(const Workload &workload) const;
  /// Success if there is one; else why not, what every path says, of the first
  /// device where there are several.
  llvm::Error check(const Workload &workload) const;

private:
  std::vector<DeviceSpec> devices;
  llvm::SmallVector<const CodegenModel *> paths = defaultCodegenModels();
};

} // namespace ftuner

#endif // FTUNER_DIALECT_UKERNEL_BRIDGE_OPERATORWORKLOAD_H
