//===- Bufferization.cpp - Tensors to memrefs -------------------*- C++ -*-===//
#include "FTuner/Pipelines/Pipelines.h"
#include "FTuner/Transforms/Passes.h"

#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void ftuner::buildBufferizationPipeline(OpPassManager &pm) {
  pm.addPass(bufferization::createEmptyTensorEliminationPass());
  bufferization::OneShotBufferizePassOptions options;
  options.bufferizeFunctionBoundaries = true;
  options.functionBoundaryTypeConversion =
      bufferization::LayoutMapOption::IdentityLayoutMap;
  pm.addPass(bufferization::createOneShotBufferizePass(options));
  // Loops and branches no longer pass on what they compute in place.
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createUKernelResultsToArgumentsPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
}
