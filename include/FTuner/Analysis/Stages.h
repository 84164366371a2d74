//===- Stages.h - Stages that passes build on -------------------*- C++ -*-===//
//
// The passes from linalg to kernels build on each other. One that finds work of
// an earlier stage, which its predecessor should have taken, says so at that
// operator; otherwise it would do nothing, or worse, leave a product to a
// simple kernel. Modules without such work pass.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_ANALYSIS_STAGES_H
#define FTUNER_ANALYSIS_STAGES_H

#include "mlir/IR/BuiltinOps.h"

namespace ftuner {

/// Properties of a module after a pass, in the order of `ftuner-compile`. Each
/// is about the functions of the module; operations in kernels do not count.
enum class Stage {
  /// No contraction is left that becomes a workload, except contractions that
  /// are
  /// marked as left (ukernel-form-workloads).
  Formed,
  /// Every workload has a plan (ukernel-plan-workloads).
  Planned,
  /// Every public function that works on tensors or buffers has the host ABI
  /// (ukernel-prepare-host).
  Prepared,
  /// Nothing works on tensors (ftuner-bufferize).
  Bufferized,
  /// No workload is left (ukernel-dispatch-workloads).
  Dispatched,
  /// No other operator on buffers is left (ukernel-lower-fallbacks).
  Outlined,
  /// No ukernel.kernel is left (convert-ukernel-to-gpu).
  Emitted,
};

/// Unit attribute of contractions and convolutions that are left to another
/// compiler.
inline constexpr llvm::StringLiteral kLeftAttrName = "ukernel.left";

/// Checks that the stages hold, in the given order. Emits an error at the first
/// operator that violates one; it says what `pass` expects and which pass to
/// run.
mlir::LogicalResult expectStages(mlir::ModuleOp module, llvm::StringRef pass,
                                 llvm::ArrayRef<Stage> stages);

} // namespace ftuner

#endif // FTUNER_ANALYSIS_STAGES_H
