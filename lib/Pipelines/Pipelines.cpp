//===- Pipelines.cpp - FTuner's pipelines -----------------------*- C++ -*-===//
#include "FTuner/Pipelines/Pipelines.h"

#include "FTuner/Conversion/Passes.h"
#include "FTuner/Pipelines/Passes.h"
#include "FTuner/Transforms/Passes.h"

#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace ftuner {

/// The options of the search, as the pass takes them.
static UKernelPlanWorkloadsPassOptions
planOptions(const FTunerOptions &options) {
  UKernelPlanWorkloadsPassOptions plan;
  plan.strategy = options.strategy;
  plan.costModel = options.costModel;
  plan.calibration = options.calibration;
  plan.topK = options.topK;
  plan.maxKernels = options.maxKernels;
  plan.maxCandidates = options.maxCandidates;
  plan.epsilonMin = options.epsilonMin;
  plan.epsilonMax = options.epsilonMax;
  plan.epsilonStep = options.epsilonStep;
  plan.lambdaMin = options.lambdaMin;
  plan.lambdaMax = options.lambdaMax;
  plan.lambdaStep = options.lambdaStep;
  plan.zeta = options.zeta;
  plan.tileRule = options.tileRule;
  plan.pool = options.pool;
  plan.psi = options.psi;
  plan.activeBlocks = options.activeBlocks;
  plan.c0 = options.c0;
  plan.c1 = options.c1;
  plan.c2 = options.c2;
  return plan;
}

void buildFrontEndPipeline(OpPassManager &pm, const FTunerOptions &options) {
  UKernelAttachDevicePassOptions device;
  device.device = options.device;
  pm.addPass(createUKernelAttachDevicePass(device));
  pm.addPass(createInlinerPass());
  pm.addPass(createSymbolDCEPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createUKernelNormalizeLinalgPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createUKernelFormWorkloadsPass());
  pm.addPass(createUKernelPlanWorkloadsPass(planOptions(options)));
  if (!options.ptxasFeedback)
    return;
  OpPassManager search(ModuleOp::getOperationName());
  search.addPass(createUKernelPlanWorkloadsPass(planOptions(options)));
  UKernelPtxasFeedbackPassOptions feedback;
  feedback.search = {search};
  pm.addPass(createUKernelPtxasFeedbackPass(feedback));
}

void buildLaunchPipeline(OpPassManager &pm) {
  pm.addPass(createUKernelPrepareHostPass());
  buildBufferizationPipeline(pm);
  pm.addPass(createUKernelDispatchWorkloadsPass());
  pm.addPass(createUKernelLowerLeftoversPass());
  pm.addPass(createUKernelPlanWorkspacePass());
}

void buildBackEndPipeline(OpPassManager &pm) {
  buildLaunchPipeline(pm);
  pm.addPass(createConvertUKernelToGPUPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  buildKernelLoweringPipeline(pm);
}

void buildFTunerPipeline(OpPassManager &pm, const FTunerOptions &options) {
  buildFrontEndPipeline(pm, options);
  buildBackEndPipeline(pm);
}

static constexpr llvm::StringLiteral kCompileName = "ftuner-compile",
                                     kFrontEndName = "ftuner-front-end",
                                     kBufferizeName = "ftuner-bufferize",
                                     kLowerKernelsName = "ftuner-lower-kernels",
                                     kLowerHostName = "ftuner-lower-host";

ArrayRef<llvm::StringLiteral> getFTunerPipelineNames() {
  static const llvm::StringLiteral names[] = {kCompileName, kFrontEndName,
                                              kBufferizeName, kLowerKernelsName,
                                              kLowerHostName};
  return names;
}

void registerFTunerPipelines() {
  PassPipelineRegistration<FTunerOptions>(
      kCompileName,
      "Compile linalg on tensors with dynamic dimensions to GPU kernels and "
      "host functions that dispatch over them",
      buildFTunerPipeline);
  PassPipelineRegistration<FTunerOptions>(
      kFrontEndName,
      "Form and plan the workloads: the part of ftuner-compile on tensors",
      buildFrontEndPipeline);
  PassPipelineRegistration<>(
      kBufferizeName,
      "Bufferize planned workloads with destinations passed by the caller",
      buildBufferizationPipeline);
  PassPipelineRegistration<>(kLowerKernelsName,
                             "Lower every gpu.module to the NVVM level",
                             buildKernelLoweringPipeline);
  PassPipelineRegistration<>(
      kLowerHostName, "Lower the host functions of a compiled module to LLVM",
      [](OpPassManager &pm) { buildHostLoweringPipeline(pm); });
}

} // namespace ftuner
