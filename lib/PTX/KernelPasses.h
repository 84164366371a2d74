//===- KernelPasses.h - LLVM passes over kernels ----------------*- C++ -*-===//
#ifndef FTUNER_LIB_PTX_KERNELPASSES_H
#define FTUNER_LIB_PTX_KERNELPASSES_H

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace ftuner {

/// Optimizes the module of one kernel for its target. Only loops that ask for
/// it are unrolled; ptxas unrolls others where that pays.
void optimizeKernel(llvm::Module &module, llvm::TargetMachine &machine);

} // namespace ftuner

#endif // FTUNER_LIB_PTX_KERNELPASSES_H
