//===- IreeOps.h - Operations of IREE in generic form -----------*- C++ -*-===//
//
// Builds what IREE's dialects `flow`, `hal` and `stream` hold, as unregistered
// operations and opaque attributes. Written from what iree-opt 3.13 prints by
// --mlir-print-op-generic.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_TARGET_IREE_IREEOPS_H
#define FTUNER_LIB_TARGET_IREE_IREEOPS_H

#include "FTuner/Target/Iree.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace ftuner::iree {

/// A kernel with one-dimensional blocks and grid.
struct Kernel {
  std::string name;
  /// The number by which a dispatch means it, one for each of its choice.
  int64_t number = 0;
  int64_t threads = 1, sharedMemoryBytes = 0;
  /// Bytes that it expects tensors to begin at multiples of.
  int64_t alignment = 1;
};

/// The kernels of which a dispatch runs one. Their parameters are the same.
struct Choice {
  std::string name;
  llvm::SmallVector<Kernel> kernels;
  /// Values of type i32.
  size_t constants = 0;
  /// For each tensor.
  llvm::SmallVector<bool> isReadOnly;
};

/// An executable at the begin of a module. For CUDA, a hal.executable.source
/// that holds the image, PTX or a cubin, with an export for each kernel; for
/// the CPU a stream.executable, with an export for each choice that calls
/// functions of the plugin.
void buildExecutable(mlir::ModuleOp module, IreeTarget target,
                     llvm::StringRef name, llvm::ArrayRef<Choice> choices,
                     llvm::StringRef image);

/// A dispatch.
struct Dispatch {
  IreeTarget target;
  std::string executable;
  const Choice &choice;
  /// The number of the kernel, and the blocks of the grid; of type index.
  mlir::Value number, blocks;
  /// Tensors, and values of type i32.
  llvm::SmallVector<mlir::Value> arguments;
  llvm::SmallVector<mlir::Type, 1> results;
  /// Sizes that the types of results do not tell.
  llvm::SmallVector<mlir::Value> resultSizes;
  /// For each result the argument that it is written to; -1 for none.
  llvm::SmallVector<int64_t, 1> tied;
};

/// flow.dispatch.
mlir::Operation *buildDispatch(mlir::ImplicitLocOpBuilder &b,
                               const Dispatch &dispatch);

} // namespace ftuner::iree

#endif // FTUNER_LIB_TARGET_IREE_IREEOPS_H
