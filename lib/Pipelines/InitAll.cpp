//===- InitAll.cpp - Registration -------------------------------*- C++ -*-===//
#include "FTuner/InitAll.h"

#include "FTuner/Codegen/IR/CodegenPath.h"
#include "FTuner/Conversion/Passes.h"
#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/Pipelines/Passes.h"
#include "FTuner/Pipelines/Pipelines.h"
#include "FTuner/Transforms/Passes.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"

void ftuner::registerAllDialects(mlir::DialectRegistry &registry) {
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  mlir::registerAllToLLVMIRTranslations(registry);
  registerUKernelDialect(registry);
  ukernel::registerBufferizableOpInterfaceExternalModels(registry);
}

void ftuner::registerAllPasses() {
  registerFTunerTransformsPasses();
  registerFTunerConversionPasses();
  registerFTunerPipelinesPasses();
  registerFTunerPipelines();
}
