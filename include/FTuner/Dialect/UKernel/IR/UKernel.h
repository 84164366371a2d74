//===- UKernel.h - The ukernel dialect --------------------------*- C++ -*-===//
#ifndef FTUNER_DIALECT_UKERNEL_IR_UKERNEL_H
#define FTUNER_DIALECT_UKERNEL_IR_UKERNEL_H

#include "FTuner/Dialect/UKernel/IR/UKernelInterfaces.h"
#include "FTuner/Schedule/Schedule.h"
#include "FTuner/Schedule/TensorMap.h"
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

#include "llvm/ADT/StringMap.h"
#include <functional>
#include <memory>
#include <mutex>

#include "FTuner/Dialect/UKernel/IR/ScheduleAttrInterface.h.inc"

#include "FTuner/Dialect/UKernel/IR/UKernelDialect.h.inc"

#include "FTuner/Dialect/UKernel/IR/UKernelEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "FTuner/Dialect/UKernel/IR/UKernelAttributes.h.inc"

namespace ftuner::ukernel {
class CombineOp;
class KernelOp;

/// Says what is wrong with one or two tiles for a schedule: sizes, an axis that
/// they lack, two that differ in more than ascending heights along it
/// (family_c1 to family_c4, combine_c4).
mlir::LogicalResult
verifyTiles(llvm::function_ref<mlir::InFlightDiagnostic()> emitError,
            ScheduleAttrInterface schedule, int64_t axis,
            llvm::ArrayRef<mlir::DenseI64ArrayAttr> tiles);
} // namespace ftuner::ukernel

#define GET_OP_CLASSES
#include "FTuner/Dialect/UKernel/IR/UKernelOps.h.inc"

namespace ftuner::ukernel {
/// Attaches the bufferization of `ukernel.workload`.
void registerBufferizableOpInterfaceExternalModels(
    mlir::DialectRegistry &registry);
} // namespace ftuner::ukernel

#endif // FTUNER_DIALECT_UKERNEL_IR_UKERNEL_H
