//===- UKernel.h - The ukernel dialect --------------------------*- C++ -*-===//
#ifndef FTUNER_DIALECT_UKERNEL_IR_UKERNEL_H
#define FTUNER_DIALECT_UKERNEL_IR_UKERNEL_H

#include "FTuner/Dialect/UKernel/IR/UKernelInterfaces.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/AffineMap.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "FTuner/Dialect/UKernel/IR/UKernelDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "FTuner/Dialect/UKernel/IR/UKernelAttributes.h.inc"

namespace ftuner::ukernel {
class CombineOp;
class KernelOp;

/// Says how two uKernels differ in more than their tile along `axis`: in the
/// tiles of other axes, in the split, or in the threads along the axis
/// (family_c3, combine_c4).
mlir::LogicalResult
verifySharedLayout(llvm::function_ref<mlir::InFlightDiagnostic()> emitError,
                   int64_t axis, UKernelAttr first, UKernelAttr second);
} // namespace ftuner::ukernel

#define GET_OP_CLASSES
#include "FTuner/Dialect/UKernel/IR/UKernelOps.h.inc"

namespace ftuner::ukernel {
/// Attaches the bufferization of `ukernel.workload`.
void registerBufferizableOpInterfaceExternalModels(
    mlir::DialectRegistry &registry);
} // namespace ftuner::ukernel

#endif // FTUNER_DIALECT_UKERNEL_IR_UKERNEL_H
