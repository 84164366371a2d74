//===- PlannedOperators.h - Operators on buffers with plans -----*- C++ -*-===//
#ifndef FTUNER_PIPELINES_PLANNEDOPERATORS_H
#define FTUNER_PIPELINES_PLANNEDOPERATORS_H

#include "FTuner/Kernel/Measure/OperatorRegistry.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace ftuner {

/// Workloads of the registry by the symbols of their plans.
using PlannedOperators =
    llvm::MapVector<mlir::StringAttr, llvm::SetVector<const Workload *>>;

/// Lowers a copy of a planned module as far as operators on buffers, and adds
/// these to the registry, equal ones once. They are named as the dispatcher
/// does it. Errors are emitted; remarks and warnings are left to compilation.
mlir::FailureOr<PlannedOperators>
collectPlannedOperators(mlir::ModuleOp module, OperatorRegistry &operators);

/// Adds the operators of a module on tensors, planned or not, in the same way.
llvm::LogicalResult collectOperators(mlir::ModuleOp module,
                                     OperatorRegistry &operators);

} // namespace ftuner

#endif // FTUNER_PIPELINES_PLANNEDOPERATORS_H
