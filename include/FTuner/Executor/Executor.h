//===- Executor.h - Runs functions ------------------------------*- C++ -*-===//
//
// Three ways to run a function of a module, the first two without a GPU:
//
//  * the reference lowers the input, linalg on tensors, through upstream's own
//    passes to loops on the CPU. Float arithmetic is promoted to f64, and each
//    value is rounded to the type that the program computes it in; what a
//    reduction accumulates, when it is done. None of FTuner's passes takes
//    part.
//  * the emulator runs a compiled module: its host code through a JIT, and the
//    kernels that it launches in FTuner/Emulator/Emulator.h.
//  * cuda runs a compiled module on a GPU: the same host code, and the kernels
//    as PTX through libftrt (FTuner/Runtime/ftrt.h), which is opened at run
//    time.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_EXECUTOR_EXECUTOR_H
#define FTUNER_EXECUTOR_EXECUTOR_H

#include "FTuner/Emulator/Emulator.h"
#include "FTuner/Executor/Arguments.h"

#include "mlir/IR/BuiltinOps.h"
#include <memory>

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
  /// Of each kernel, where the emulator counts.
  std::vector<emulator::KernelCounters> counters;
  int64_t workspaceBytes = 0;
  /// The GPU that ran the kernels, and the device that they are compiled for;
  /// empty where there was none.
  std::string device;
  /// Seconds that the call took until its kernels were done, without
  /// compilation of the host code.
  double seconds = 0;
};

/// A function, compiled for one way of running it.
class Executor {
public:
  virtual ~Executor() = default;
  /// Runs the function on arguments that fit its signature; any number of
  /// times.
  virtual llvm::Expected<RunResult>
  run(llvm::ArrayRef<ArgumentValue> arguments) = 0;
};

/// Compiles a function of a module on tensors, which is left unchanged. Reports
/// what upstream cannot lower. A `cf.assert` that fails, and sizes that do not
/// fit each other, are errors of a run.
llvm::Expected<std::unique_ptr<Executor>>
createReferenceExecutor(mlir::ModuleOp module, const Signature &signature);

struct EmulatorExecutorOptions {
  emulator::EmulatorOptions emulator;
  /// Bytes by which results are moved off their alignment.
  int64_t offset = 0;
};

/// Compiles the host code of a function of a compiled module, which must stay
/// alive and unchanged. Errors of the host code and of the emulator, writes to
/// arguments and writes outside of buffers are errors of a run.
llvm::Expected<std::unique_ptr<Executor>>
createEmulatorExecutor(mlir::ModuleOp module, const Signature &signature,
                       const EmulatorExecutorOptions &options);

struct CudaExecutorOptions {
  /// Path of libftrt.
  std::string runtimeLibrary;
  /// Bytes by which device buffers are moved off their alignment.
  int64_t offset = 0;
};

/// Compiles the host code of a function of a compiled module, and its kernels
/// to PTX for the device that the module is compiled for; loads them on
/// the first GPU. Tensors are copied to buffers on the GPU and back for each
/// run; results and workspace start as 0xff bytes. Errors of a run are those of
/// the host code and of the runtime, writes to arguments and writes near the
/// outside of buffers. Fails without libftrt, a driver or a GPU, in the
/// runtime's words.
llvm::Expected<std::unique_ptr<Executor>>
createCudaExecutor(mlir::ModuleOp module, const Signature &signature,
                   const CudaExecutorOptions &options);

/// The function that a user names by its name in the source, or the only public
/// one with a body for an empty name. Errors list the public functions.
llvm::Expected<mlir::FunctionOpInterface> findFunction(mlir::ModuleOp module,
                                                       llvm::StringRef name);

/// The function's name in the source; compiled ones have C identifiers.
llvm::StringRef getSourceName(mlir::FunctionOpInterface function);

/// Whether the module is the output of `ftuner-compile`.
bool isCompiled(mlir::ModuleOp module);

} // namespace ftuner

#endif // FTUNER_EXECUTOR_EXECUTOR_H
