//===- FallbackKernels.h - Outline a linalg op into a kernel ----*- C++ -*-===//
#ifndef FTUNER_KERNEL_FALLBACK_FALLBACKKERNELS_H
#define FTUNER_KERNEL_FALLBACK_FALLBACKKERNELS_H

#include "FTuner/Kernel/KernelSignature.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/BuiltinOps.h"

namespace ftuner {

/// linalg op: how its fallback kernel is called and what it is for, where
/// another pass knows. A dictionary with
///   name       of the kernel, made unique
///   site       `ukernel.site` of the launch
///   use        #ukernel.use: the workload and family whose slices it adds up
///   alignment  optional: bytes to which its operands and their rows are
///              aligned
inline constexpr llvm::StringLiteral kKernelAttrName = "ukernel.kernel";

/// A kernel, and the values of the host that the operands of its signature are.
struct OutlinedFallback {
  mlir::gpu::GPUModuleOp kernel;
  KernelSignature signature;
  llvm::SmallVector<mlir::Value> operands;
};

/// Replaces `op`, on memrefs, by a `ukernel.launch @name::@name`, and appends
/// `gpu.module @name` with that kernel to `module`. Operands that are
/// `memref.get_global` become constants of the kernel's own module; other
/// buffers become pointers with their dynamic sizes and strides as i32, scalars
/// parameters by value (i1 as i8), constants part of the kernel.
///
/// Fails, with an error at `op`, where an operand is neither.
mlir::FailureOr<OutlinedFallback> outlineFallback(mlir::linalg::LinalgOp op,
                                                  llvm::StringRef name,
                                                  mlir::ModuleOp module);

} // namespace ftuner

#endif // FTUNER_KERNEL_FALLBACK_FALLBACKKERNELS_H
