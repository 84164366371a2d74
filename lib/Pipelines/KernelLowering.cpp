//===- KernelLowering.cpp - gpu.func to NVVM --------------------*- C++ -*-===//
//
// The result stays before convert-nvvm-to-llvm, which turns much of it into
// inline PTX: the emulator and the PTX target both start from here.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Conversion/Passes.h"
#include "FTuner/Pipelines/Pipelines.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void ftuner::buildKernelLoweringPipeline(OpPassManager &pm) {
  OpPassManager &gpuPm = pm.nest<gpu::GPUModuleOp>();
  // What the first pass over a kernel leaves, and its blocks, LLVM simplifies.
  auto once =
      GreedyRewriteConfig()
          .setUseTopDownTraversal(true)
          .setMaxIterations(1)
          .setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
  gpuPm.addPass(createUKernelExpandMathPass());
  gpuPm.addPass(createUKernelExpandAccessesPass());
  gpuPm.addPass(createSCFToControlFlowPass());
  gpuPm.addPass(createLowerAffinePass());
  gpuPm.addPass(createCanonicalizerPass(once));
  gpuPm.addPass(createCSEPass());
  ConvertGpuOpsToNVVMOpsOptions options;
  options.indexBitwidth = 64;
  options.useBarePtrCallConv = true;
  gpuPm.addPass(createConvertGpuOpsToNVVMOps(options));
  gpuPm.addPass(createCanonicalizerPass(once));
  gpuPm.addPass(createCSEPass());
  gpuPm.addPass(createReconcileUnrealizedCastsPass());
  gpuPm.addPass(createUKernelPassTensorMapsPass());
}
