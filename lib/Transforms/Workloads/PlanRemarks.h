//===- PlanRemarks.h - What is told of plans --------------------*- C++ -*-===//
//
// Remarks of `ukernel-plan-workloads`.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_TRANSFORMS_WORKLOADS_PLANREMARKS_H
#define FTUNER_LIB_TRANSFORMS_WORKLOADS_PLANREMARKS_H

#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/Search/Setup/SearchSetup.h"

#include "mlir/IR/BuiltinOps.h"

namespace ftuner {

/// Which family serves which box, and what the search had to say.
void remarkPlan(ukernel::OperatorOpInterface op, llvm::StringRef symbol,
                const Plan &plan);

/// Says what families behind gates that nobody has proven on a card would gain:
/// the predicted time of the shape that takes longest, planned by itself.
void remarkUnproven(ukernel::OperatorOpInterface op, llvm::StringRef symbol,
                    const Workload &workload, const DeviceSpec &device,
                    const Plan &plan, const SearchSetup &setup);

/// Which kernels of a given plan may spill: they are right, but slow.
void remarkSpills(ukernel::OperatorOpInterface op, ukernel::PlanOp planOp,
                  const Plan &plan, const SearchProblem &problem);

/// Which options have no effect.
void remarkUnread(mlir::ModuleOp module, const SearchSetup &setup);

/// Why a plan has none for other architectures.
void remarkNotPortable(ukernel::OperatorOpInterface op, llvm::StringRef symbol,
                       llvm::Error error);

} // namespace ftuner

#endif // FTUNER_LIB_TRANSFORMS_WORKLOADS_PLANREMARKS_H
