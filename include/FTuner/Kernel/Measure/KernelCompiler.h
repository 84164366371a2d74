//===- KernelCompiler.h - Kernels of families as PTX ------------*- C++ -*-===//
#ifndef FTUNER_KERNEL_MEASURE_KERNELCOMPILER_H
#define FTUNER_KERNEL_MEASURE_KERNELCOMPILER_H

#include "FTuner/Device/DeviceSpec.h"
#include "FTuner/Kernel/KernelSignature.h"
#include "FTuner/PTX/PTX.h"
#include "FTuner/Schedule/KernelFamily.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/Error.h"
#include <functional>
#include <vector>

namespace ftuner {

/// A kernel, compiled as the pipeline compiles it.
struct CompiledKernel {
  PtxKernel ptx;
  /// Those of later launches, which merge slices (`buildLaterGpuModules`).
  std::vector<PtxKernel> later;
  /// The device's architecture, exact if a kernel that was compiled with this
  /// one needs that.
  PtxTarget target;
  ukernel::EntryAttr entry;
  KernelSignature signature;

  /// Takes the PTX of all launches from consecutive kernels; returns what is
  /// behind them.
  std::vector<PtxKernel>::iterator take(std::vector<PtxKernel>::iterator next,
                                        const PtxTarget &newTarget) {
    target = newTarget;
    ptx = std::move(*next++);
    for (PtxKernel &kernel : later)
      kernel = std::move(*next++);
    return next;
  }
};

/// Compiles families of operators for one device.
class KernelCompiler {
public:
  /// Adds the passes from gpu.func to the NVVM level to a pipeline:
  /// `buildKernelLoweringPipeline`.
  using Lowering = std::function<void(mlir::OpPassManager &)>;

  /// An error for a processor that LLVM does not know.
  static llvm::Expected<KernelCompiler> create(mlir::MLIRContext *context,
                                               const DeviceSpec &device,
                                               Lowering lowering);

  struct Job {
    /// On buffers.
    ukernel::OperatorOpInterface op;
    KernelFamily family;
    /// A C identifier, that of no other job.
    std::string name;
  };
  /// Compiles each, all at once; answers are in the order of the jobs. An error
  /// is the first diagnostic of the job.
  std::vector<llvm::Expected<CompiledKernel>> compile(llvm::ArrayRef<Job> jobs);

  const DeviceSpec &getDevice() const { return device; }

private:
  KernelCompiler(mlir::MLIRContext *context, const DeviceSpec &device,
                 Lowering lowering)
      : context(context), device(device), lowering(std::move(lowering)) {}
  mlir::OwningOpRef<mlir::ModuleOp> createModule() const;
  llvm::Expected<PtxModule> translate(mlir::ModuleOp kernels) const;

  mlir::MLIRContext *context;
  DeviceSpec device;
  Lowering lowering;
};

} // namespace ftuner

#endif // FTUNER_KERNEL_MEASURE_KERNELCOMPILER_H
