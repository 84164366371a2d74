//===- SumKernel.h - The kernel that adds slices up -------------*- C++ -*-===//
//
// The second kernel of a family with split-K slices (SplitReduction.h), for
// hosts that launch kernels by their parameters alone. In a function on buffers
// `ukernel-dispatch-workloads` and `ukernel-lower-fallbacks` make it.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_KERNEL_FALLBACK_SUMKERNEL_H
#define FTUNER_KERNEL_FALLBACK_SUMKERNEL_H

#include "FTuner/Kernel/KernelSignature.h"

#include "mlir/IR/BuiltinOps.h"

namespace ftuner {

/// Appends to `module` the kernel that merges the slices of a family and
/// computes the operator's output, which is on dense buffers. A thread computes
/// one element. Its parameters are `signature`: those of the operator with its
/// slices (`signatureOf`), and maybe more. Reports what kernels cannot compute.
mlir::FailureOr<mlir::gpu::GPUModuleOp>
buildSumKernel(mlir::ModuleOp module, ukernel::OperatorOpInterface op,
               ukernel::FamilyAttr family, llvm::StringRef name,
               const KernelSignature &signature);

} // namespace ftuner

#endif // FTUNER_KERNEL_FALLBACK_SUMKERNEL_H
