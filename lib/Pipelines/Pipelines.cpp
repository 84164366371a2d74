//===- Pipelines.cpp - FTuner's pipelines -----------------------*- C++ -*-===//
#include "FTuner/Pipelines/Pipelines.h"

#include "FTuner/Conversion/Passes.h"
#include "FTuner/Pipelines/Passes.h"
#include "FTuner/Pipelines/SearchMeasurer.h"
#include "FTuner/Search/Setup/SearchOptionList.h"
#include "FTuner/Transforms/Passes.h"

#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace ftuner {

const OptionTable<PipelineSettings> &pipelineOptions() {
  using Options = PipelineSettings;
  static const OptionTable<PipelineSettings> table = {
      option("device", &Options::device,
             "Name of a built-in device, or path of a description"),
      option("ptxas-feedback", &Options::ptxasFeedback,
             "Assemble the kernels of the plans, reject families that spill, "
             "and search again"),
      option(
          "assume-aligned", &Options::assumeAligned,
          "Take every buffer to begin at an address that all kernel families "
          "can use; sizes and strides alone decide among them"),
      option("precision", &Options::precision,
             "What products of f32 may round their factors to: 'tf32', for "
             "tensor cores, 'tf32-truncate', where bits may also be cut off, "
             "or 'f32' for nothing")
          .oneOf(
              {factorPrecisionNames().begin(), factorPrecisionNames().end()}),
      option("pack-weights", &Options::packWeights,
             "Put constant weights into the order in which blocks read them, "
             "for codegen paths that have one; their products run on the "
             "device's exact architecture alone"),
  };
  return table;
}

const OptionList &pipelineOptionList() {
  static const OptionList list = [] {
    OptionList list = searchOptionList();
    list.add({"pipeline", ""}, pipelineOptions().decls());
    return list;
  }();
  return list;
}

FTunerOptions::FTunerOptions()
    : list(PassOptionList::make<Option>(
          static_cast<mlir::detail::PassOptions &>(*this),
          pipelineOptionList().options())) {}

OptionValues FTunerOptions::search() const {
  OptionValues values = list.values();
  for (const OptionDecl *decl : pipelineOptions().decls())
    values.erase(decl->name);
  return values;
}

static void attachDevice(OpPassManager &pm, const PipelineSettings &settings) {
  UKernelAttachDevicePassOptions device;
  device.device = settings.device;
  pm.addPass(createUKernelAttachDevicePass(device));
}

/// The codegen paths that the search may choose from. What is wrong with the
/// names the search says.
static std::string namesOfPaths(const FTunerOptions &options) {
  llvm::Expected<ChosenPaths> paths =
      readPaths(searchChoiceOptions().read(options.search()));
  if (paths)
    return namesOf(paths->models, ",");
  llvm::consumeError(paths.takeError());
  return "";
}

void buildFormationPipeline(OpPassManager &pm, const FTunerOptions &options,
                            bool isPartial) {
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createUKernelNormalizeLinalgPass());
  // Importers ask whether sizes are negative, where a program may say -1. Not
  // before elementwise operations on tensors are linalg: of those the pass
  // makes constants, which dynamic tensors have not.
  pm.addPass(arith::createIntRangeOptimizationsPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  UKernelFormWorkloadsPassOptions formation;
  formation.precision = options.settings().precision;
  formation.leaveConstantProducts = isPartial;
  formation.paths = namesOfPaths(options);
  formation.leavePackedProducts = isPartial;
  pm.addPass(createUKernelFormWorkloadsPass(formation));
}

void buildPlanningPipeline(OpPassManager &pm, const FTunerOptions &options,
                           bool isPartial) {
  if (options.settings().packWeights) {
    UKernelPackWeightsPassOptions packing;
    packing.paths = namesOfPaths(options);
    packing.anyConstant = isPartial;
    pm.addPass(createUKernelPackWeightsPass(packing));
  }
  pm.addPass(
      createUKernelPlanWorkloadsPass(options.search(), makeSearchMeasurer));
  if (!options.settings().ptxasFeedback)
    return;
  OpPassManager search(ModuleOp::getOperationName());
  search.addPass(
      createUKernelPlanWorkloadsPass(options.search(), makeSearchMeasurer));
  UKernelPtxasFeedbackPassOptions feedback;
  feedback.search = {search};
  pm.addPass(createUKernelPtxasFeedbackPass(feedback));
}

void buildFrontEndFormationPipeline(OpPassManager &pm,
                                    const FTunerOptions &options) {
  attachDevice(pm, options.settings());
  pm.addNestedPass<func::FuncOp>(createUKernelAssertViewsPass());
  pm.addPass(createInlinerPass());
  pm.addPass(createSymbolDCEPass());
  buildFormationPipeline(pm, options, /*isPartial=*/false);
  pm.addNestedPass<func::FuncOp>(createUKernelFuseWindowsPass());
}

void buildFrontEndPipeline(OpPassManager &pm, const FTunerOptions &options) {
  buildFrontEndFormationPipeline(pm, options);
  buildPlanningPipeline(pm, options);
}

void buildPartialFrontEndPipeline(OpPassManager &pm,
                                  const FTunerOptions &options) {
  attachDevice(pm, options.settings());
  buildFormationPipeline(pm, options, /*isPartial=*/true);
  buildPlanningPipeline(pm, options, /*isPartial=*/true);
}

void buildLaunchPipeline(OpPassManager &pm, const PipelineSettings &settings) {
  pm.addPass(createUKernelPrepareHostPass());
  buildBufferizationPipeline(pm);
  UKernelDispatchWorkloadsPassOptions dispatch;
  dispatch.assumeAligned = settings.assumeAligned;
  pm.addPass(createUKernelDispatchWorkloadsPass(dispatch));
  pm.addPass(createUKernelLowerFallbacksPass());
  pm.addPass(createUKernelPlanWorkspacePass());
}

void buildEmissionPipeline(OpPassManager &pm,
                           const PipelineSettings &settings) {
  buildLaunchPipeline(pm, settings);
  pm.addPass(createConvertUKernelToGPUPass());
  pm.addPass(createUKernelMergeKernelsPass());
  pm.addNestedPass<func::FuncOp>(createCanonicalizerPass());
  pm.addNestedPass<func::FuncOp>(createCSEPass());
}

void buildBackEndPipeline(OpPassManager &pm, const PipelineSettings &settings) {
  buildEmissionPipeline(pm, settings);
  buildKernelLoweringPipeline(pm);
}

void buildFTunerPipeline(OpPassManager &pm, const FTunerOptions &options) {
  buildFrontEndPipeline(pm, options);
  buildBackEndPipeline(pm, options.settings());
}

/// Builds `ftuner-form` from a text of options.
static LogicalResult
buildFromText(OpPassManager &pm, StringRef text,
              function_ref<LogicalResult(const Twine &)> /*emitError*/) {
  FTunerOptions options;
  if (failed(options.parseFromString(text)))
    return failure();
  buildFormationPipeline(pm, options);
  return success();
}

static constexpr llvm::StringLiteral kCompileName = "ftuner-compile",
                                     kFrontEndName = "ftuner-front-end",
                                     kFormName = "ftuner-form",
                                     kBufferizeName = "ftuner-bufferize",
                                     kLowerKernelsName = "ftuner-lower-kernels",
                                     kLowerHostName = "ftuner-lower-host";

ArrayRef<llvm::StringLiteral> getFTunerPipelineNames() {
  static const llvm::StringLiteral names[] = {
      kCompileName,   kFrontEndName,     kFormName,
      kBufferizeName, kLowerKernelsName, kLowerHostName};
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
  // Help lists the same options for the pipelines above.
  registerPassPipeline(
      kFormName,
      "Form the workloads, which tells the kernels of a function without a "
      "search or a device; takes the options of ftuner-compile",
      buildFromText,
      [](function_ref<void(const mlir::detail::PassOptions &)>) {});
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
