//===- KernelParameters.h - Kernels with the same parameters ----*- C++ -*-===//
//
// Where a host passes the same to all kernels of a choice, as IREE does, each
// has the parameters of all of them, and leaves what it does not need.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_KERNEL_KERNELPARAMETERS_H
#define FTUNER_KERNEL_KERNELPARAMETERS_H

#include "FTuner/Kernel/KernelBuilder.h"

namespace ftuner {

/// The parameters of the kernels of an operator on buffers by any family, but
/// for the part. With a type for `slices` there is one more pointer, to
/// elements of it that are read, in front of the output's; it stands for the
/// operand behind the last one.
KernelSignature signatureOf(ukernel::OperatorOpInterface op,
                            mlir::Type slices = {});

/// Whether kernels take the sizes of the operand's dimensions, beside those of
/// axes: windows over loops of fused axes, or such that may reach beyond it,
/// are held against them.
bool isHeldAgainstSizes(ukernel::OperatorOpInterface op, unsigned number);
/// The operand, by its number, and dimension that define the extent of an axis
/// or a loop, a dimension of the maps.
std::pair<unsigned, unsigned> sourceOf(ukernel::OperatorOpInterface op,
                                       unsigned dim);

/// The number of the parameter that stands for this, if there is one.
std::optional<unsigned> findParameter(const KernelSignature &signature,
                                      ukernel::ParameterKind kind,
                                      std::optional<unsigned> operand,
                                      unsigned index = 0);

/// Gives a kernel other parameters. `valueOf` gives what takes the place of one
/// of its own, by number, from the arguments that stand for the new ones.
void replaceParameters(
    mlir::gpu::GPUModuleOp kernel, const KernelSignature &wanted,
    llvm::function_ref<mlir::Value(mlir::ImplicitLocOpBuilder &b,
                                   unsigned number, mlir::ValueRange arguments)>
        valueOf);

/// The same where `wanted` has all parameters of the kernel.
void replaceParameters(EmittedKernel &kernel, const KernelSignature &wanted);

} // namespace ftuner

#endif // FTUNER_KERNEL_KERNELPARAMETERS_H
