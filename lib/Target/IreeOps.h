//===- IreeOps.h - Operations of IREE in generic form -----------*- C++ -*-===//
//
// Builds what IREE's dialects `flow` and `hal` hold, as unregistered operations
// and opaque attributes. Written from what iree-opt 3.13 prints by
// --mlir-print-op-generic.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_TARGET_IREEOPS_H
#define FTUNER_LIB_TARGET_IREEOPS_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include <optional>

namespace ftuner::iree {

/// flow.dispatch of one result.
struct Dispatch {
  std::string executable, entry;
  /// What the regions of the exports take, of type index.
  llvm::SmallVector<mlir::Value> workload;
  /// Tensors, and values of type i32.
  llvm::SmallVector<mlir::Value> arguments;
  mlir::Type result;
  /// A tensor with the sizes of the result.
  mlir::Value resultLike;
  /// The argument that the result is written to.
  std::optional<int64_t> tied;
};
mlir::Operation *buildDispatch(mlir::ImplicitLocOpBuilder &b,
                               const Dispatch &dispatch);

/// hal.executable.export of a kernel with one-dimensional blocks and grid. Its
/// workload is a number and the blocks of the grid.
struct Export {
  std::string name;
  /// The number that the workload has where this export is meant.
  int64_t condition = 0;
  /// The export that is tried where it is not; none: it is meant anyway.
  std::optional<std::string> fallback;
  /// Values of type i32.
  size_t constants = 0;
  /// For each binding.
  llvm::SmallVector<bool> isReadOnly;
  int64_t threads = 1, sharedMemoryBytes = 0;
};

/// hal.executable.source at the begin of a module, for IREE's target `cuda`.
class ExecutableBuilder {
public:
  ExecutableBuilder(mlir::ModuleOp module, llvm::StringRef name,
                    llvm::StringRef ptx);
  void add(const Export &kernel);

private:
  mlir::ImplicitLocOpBuilder b;
  int64_t count = 0;
};

} // namespace ftuner::iree

#endif // FTUNER_LIB_TARGET_IREEOPS_H
