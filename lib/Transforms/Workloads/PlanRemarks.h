//===- PlanRemarks.h - Remarks on plans -------------------------*- C++ -*-===//
//
// Remarks of the pass `ukernel-plan-workloads`.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_TRANSFORMS_WORKLOADS_PLANREMARKS_H
#define FTUNER_LIB_TRANSFORMS_WORKLOADS_PLANREMARKS_H

#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/Search/Setup/SearchSetup.h"

#include "mlir/IR/BuiltinOps.h"

namespace ftuner {

/// Remarks which family serves which box, and passes on the search's remarks.
void remarkPlan(ukernel::OperatorOpInterface op, llvm::StringRef symbol,
                const Plan &plan);

/// Remarks how much faster unproven families would be: families behind gates
/// that nobody has proven on a card. Compares predicted times of the slowest
/// shape, planned by itself.
void remarkUnproven(ukernel::OperatorOpInterface op, llvm::StringRef symbol,
                    const Workload &workload, const DeviceSpec &device,
                    const Plan &plan, const SearchSetup &setup);

/// Remarks which kernels of a given plan may spill, which makes them slow.
void remarkSpills(ukernel::OperatorOpInterface op, ukernel::PlanOp planOp,
                  const Plan &plan, const SearchProblem &problem);

/// Remarks which options have no effect.
void remarkUnread(mlir::ModuleOp module, const SearchSetup &setup);

/// Remarks why a plan has no portable plan for other architectures.
void remarkNotPortable(ukernel::OperatorOpInterface op, llvm::StringRef symbol,
                       llvm::Error error);

} // namespace ftuner

#endif // FTUNER_LIB_TRANSFORMS_WORKLOADS_PLANREMARKS_H
