//===- ContractionSchedule.h - Schedules of contractions in IR --*- C++ -*-===//
#ifndef FTUNER_CODEGEN_IR_CONTRACTIONSCHEDULE_H
#define FTUNER_CODEGEN_IR_CONTRACTIONSCHEDULE_H

#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/Workload/Contraction.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

namespace ftuner {

// What attributes of schedules verify alike, whichever path computes a
// contraction.

/// The axes of their tiles, which know no operator: those of a
/// `ukernel.workload`.
inline constexpr ContractionAxes tileAxes = {
    ukernel::WorkloadOp::kM, ukernel::WorkloadOp::kN, ukernel::WorkloadOp::kK};

/// A block has at least one `worker` ("thread", "warp") along m and along n,
/// and one stage.
llvm::LogicalResult verifyContractionSchedule(
    llvm::function_ref<mlir::InFlightDiagnostic()> emitError,
    llvm::StringRef worker, llvm::ArrayRef<int64_t> workers, int64_t stages);

/// A tile has sizes along m, n and k.
llvm::LogicalResult
verifyContractionTile(llvm::function_ref<mlir::InFlightDiagnostic()> emitError,
                      llvm::ArrayRef<int64_t> tile);

} // namespace ftuner

#endif // FTUNER_CODEGEN_IR_CONTRACTIONSCHEDULE_H
