//===- KernelBuilder.h - Operator and family to a kernel --------*- C++ -*-===//
//
// A kernel is an operator on buffers and a kernel family, and follows from
// these alone: no plan, dispatch or host function takes part. Passes, and
// measurers that want the kernel of a family, build it here.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_KERNEL_KERNELBUILDER_H
#define FTUNER_KERNEL_KERNELBUILDER_H

#include "FTuner/Device/DeviceSpec.h"
#include "FTuner/Kernel/KernelSignature.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace ftuner {

/// Copies operands that are not contiguous along their last dimension, as
/// kernels want it, in front of the operator, and an output back behind it.
void makeInnermostContiguous(ukernel::OperatorOpInterface op);

/// The constant scalar that kernels have in the place of an operator's operand;
/// null for what is a parameter.
mlir::Operation *constantOf(mlir::Value operand);

/// An operator alone, in a function.
struct IsolatedOperator {
  mlir::OwningOpRef<mlir::func::FuncOp> function;
  ukernel::OperatorOpInterface op;
};

/// Copies an operator into a function whose arguments are its operands but for
/// what is constant, dense buffers in place of tensors. The copy has nothing
/// that kernels do not differ by: neither plan nor ranges.
IsolatedOperator isolate(ukernel::OperatorOpInterface op);

/// Whether two operators compute the same function of their operands but for
/// constant scalars, which must be equal, so that they have equal kernels.
bool computeTheSame(ukernel::OperatorOpInterface lhs,
                    ukernel::OperatorOpInterface rhs);

/// ukernel.kernel: the family of a plan that it stands for, where that is not
/// the one of its tiles.
inline constexpr llvm::StringLiteral kPlannedFamilyAttrName =
    "ukernel.planned_family";

/// Builds the kernel of an operator by a family's tiles, at the insertion
/// point. Its operands are those of the operator; constant scalars among them
/// are part of it. `workload` may be null. Emits an error for an operator on
/// tensors, and for a family of another number of axes.
mlir::FailureOr<ukernel::KernelOp> buildKernel(mlir::OpBuilder &b,
                                               ukernel::OperatorOpInterface op,
                                               ukernel::FamilyAttr family,
                                               llvm::StringRef name,
                                               mlir::StringAttr workload = {});

/// Loads the dialects that emitted kernels consist of. A pass that emits
/// kernels declares them instead.
void loadKernelDialects(mlir::MLIRContext *context);
void registerKernelDialects(mlir::DialectRegistry &registry);

/// A kernel as a gpu.module with one gpu.func of its name, and
/// `ukernel.entry`.
struct EmittedKernel {
  mlir::gpu::GPUModuleOp module;
  KernelSignature signature;
};

/// Emits a kernel beside it, in front; the caller erases it. Emits an error,
/// and leaves nothing behind, if no codegen path computes the operator by the
/// family on the device, and for buffers that kernels cannot view: those
/// without strides, or not contiguous along their last dimension.
mlir::FailureOr<EmittedKernel> emitKernel(ukernel::KernelOp kernel,
                                          const DeviceSpec &device);

/// Both at once, at the insertion point; of a family with split-K slices, the
/// kernel that sums slices (SplitReduction.h). Emits an error also for a kernel
/// that does not verify.
mlir::FailureOr<EmittedKernel>
buildGpuModule(mlir::OpBuilder &b, ukernel::OperatorOpInterface op,
               ukernel::FamilyAttr family, llvm::StringRef name,
               const DeviceSpec &device, mlir::StringAttr workload = {});

/// The kernels of the launches behind that one, which merge the slices and go
/// on (`mergesInKernels`), in order, with "_1", "_2", … behind the name; none
/// of a family without slices, or whose slices a fallback kernel sums.
mlir::FailureOr<llvm::SmallVector<EmittedKernel, 1>>
buildLaterGpuModules(mlir::OpBuilder &b, ukernel::OperatorOpInterface op,
                     ukernel::FamilyAttr family, llvm::StringRef name,
                     const DeviceSpec &device);

} // namespace ftuner

#endif // FTUNER_KERNEL_KERNELBUILDER_H
