//===- Jit.h - Just-in-time compilation for the host ------------*- C++ -*-===//
#ifndef FTUNER_LIB_EXECUTOR_JIT_H
#define FTUNER_LIB_EXECUTOR_JIT_H

#include "mlir/ExecutionEngine/ExecutionEngine.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/ArrayRef.h"
#include <utility>

namespace ftuner {

/// Compiles a module of the LLVM dialect for this machine, optimized. Undefined
/// functions are taken from `symbols`, then from the program itself.
llvm::Expected<std::unique_ptr<mlir::ExecutionEngine>>
createJit(mlir::ModuleOp module,
          llvm::ArrayRef<std::pair<llvm::StringRef, void *>> symbols);

} // namespace ftuner

#endif // FTUNER_LIB_EXECUTOR_JIT_H
