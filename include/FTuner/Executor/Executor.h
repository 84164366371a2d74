//===- Executor.h - Runs functions on the CPU -------------------*- C++ -*-===//
//
// Two ways to run a function of a module without a GPU:
//
//  * `runReference` lowers the input, linalg on tensors, through upstream's own
//    passes to loops on the CPU. Float arithmetic is promoted to f64 and
//    results are rounded once. None of FTuner's passes takes part.
//  * `runEmulated` runs a compiled module: its host code through a JIT, and the
//    kernels that it launches in the emulator.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_EXECUTOR_EXECUTOR_H
#define FTUNER_EXECUTOR_EXECUTOR_H

#include "FTuner/Emulator/Emulator.h"
#include "FTuner/Executor/Arguments.h"

#include "mlir/IR/BuiltinOps.h"

namespace ftuner {

/// One launch of a kernel, as the host code asked for it.
struct LaunchRecord {
  std::string kernel;
  uint32_t blocks = 0;
  uint32_t threads = 0;
  uint32_t dynamicSharedBytes = 0;
};

struct RunResult {
  std::vector<Tensor> results;
  /// Empty for the reference.
  std::vector<LaunchRecord> launches;
  int64_t workspaceBytes = 0;
  /// Seconds that the call took, without compilation of the host code.
  double seconds = 0;
};

/// Runs `function` of a module on tensors. A `cf.assert` that fails, and sizes
/// that do not fit each other, are errors. Reports what upstream cannot lower.
llvm::Expected<RunResult> runReference(mlir::ModuleOp module,
                                       const Signature &signature,
                                       llvm::ArrayRef<ArgumentValue> arguments);

struct EmulatedRunOptions {
  emulator::EmulatorOptions emulator;
  /// Bytes by which results are moved off their alignment.
  int64_t offset = 0;
};

/// Runs `function` of a compiled module. Errors of the host code and of the
/// emulator, writes to arguments and writes outside of buffers are errors.
llvm::Expected<RunResult> runEmulated(mlir::ModuleOp module,
                                      const Signature &signature,
                                      llvm::ArrayRef<ArgumentValue> arguments,
                                      const EmulatedRunOptions &options);

/// The function that a user names, or the only public one with a body for an
/// empty name. Errors list the public functions.
llvm::Expected<mlir::FunctionOpInterface> findFunction(mlir::ModuleOp module,
                                                       llvm::StringRef name);

/// Whether the module is the output of `ftuner-compile`.
bool isCompiled(mlir::ModuleOp module);

} // namespace ftuner

#endif // FTUNER_EXECUTOR_EXECUTOR_H
