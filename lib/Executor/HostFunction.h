//===- HostFunction.h - Compiled host code of a function --------*- C++ -*-===//
#ifndef FTUNER_LIB_EXECUTOR_HOSTFUNCTION_H
#define FTUNER_LIB_EXECUTOR_HOSTFUNCTION_H

#include "FTuner/Emulator/Emulator.h"
#include "FTuner/Executor/Arguments.h"

#include "mlir/IR/BuiltinOps.h"
#include <memory>
#include <string>
#include <vector>

namespace mlir {
class ExecutionEngine;
} // namespace mlir

namespace ftuner {

/// Host code of one function of a compiled module, compiled just in time and
/// called by the host ABI (docs/abi.md).
class HostFunction {
public:
  /// `name` is the C name. The host code calls `api`, which knows the kernels
  /// by name: they belong to no ftrt_module.
  static llvm::Expected<HostFunction> create(mlir::ModuleOp module,
                                             llvm::StringRef name,
                                             const emulator::RuntimeAPI &api);
  HostFunction(HostFunction &&);
  ~HostFunction();

  /// i32 f_result_sizes(sizes..., scalars..., out): tensors for the results,
  /// `offset` bytes off their alignment, rounded up to whole elements.
  llvm::Expected<std::vector<Tensor>> createResults(const Signature &signature,
                                                    AbiValues values,
                                                    int64_t offset) const;
  /// i64 f_workspace_size(sizes..., scalars...), in bytes.
  llvm::Expected<int64_t> getWorkspaceSize(AbiValues values) const;
  /// i32 f(arguments..., results..., sizes..., scalars..., workspace, stream);
  /// `buffers` are the arguments' and then the results'.
  llvm::Error call(std::vector<void *> buffers, AbiValues values,
                   void *workspace, void *stream) const;

private:
  HostFunction(std::unique_ptr<mlir::ExecutionEngine> jit, std::string name,
               emulator::RuntimeAPI api);
  using Packed = void (*)(void **);
  llvm::Expected<Packed> lookup(const llvm::Twine &suffix) const;
  llvm::Error fail(const llvm::Twine &text) const;

  std::unique_ptr<mlir::ExecutionEngine> jit;
  std::string name;
  emulator::RuntimeAPI api;
};

} // namespace ftuner

#endif // FTUNER_LIB_EXECUTOR_HOSTFUNCTION_H
