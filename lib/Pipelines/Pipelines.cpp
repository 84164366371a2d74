//===- Pipelines.cpp - FTuner's pipelines -----------------------*- C++ -*-===//
#include "FTuner/Pipelines/Pipelines.h"

#include "FTuner/Conversion/Passes.h"
#include "FTuner/Device/DeviceSpec.h"
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

llvm::ArrayRef<OptionPreset> optionPresets() {
  auto text = [](const char *value) { return OptionValue(std::string(value)); };
  static const OptionPreset presets[] = {{"paper",
                                          {{"tile-rule", text("divisors")},
                                           {"filter", text("paper")},
                                           {"pool", text("exact")},
                                           {"main-axis", text("largest")},
                                           {"cost-model", text("sia")}}},
                                         {"artifact",
                                          {{"tile-rule", text("divisors")},
                                           {"filter", text("artifact")},
                                           {"pool", text("single")},
                                           {"bandwidths", text("measured")}}}};
  return presets;
}

static std::vector<std::string> presetNames() {
  std::vector<std::string> names = {PipelineSettings().preset};
  for (const OptionPreset &preset : optionPresets())
    names.push_back(preset.name.str());
  return names;
}

const OptionTable<PipelineSettings> &pipelineOptions() {
  using Options = PipelineSettings;
  static const OptionTable<PipelineSettings> table = {
      option("preset", &Options::preset,
             "The preset sets the options that bring the search near the "
             "'paper' or near the authors' 'artifact'; an option that is given "
             "beside it wins")
          .oneOf(presetNames())
          .basic(),
      option("device", &Options::device,
             "The device is a built-in one, such as 'h200', or a description "
             "in a file")
          .file(OptionFile::Access::Read)
          .orBuiltin(builtinDeviceNames)
          .basic(),
      option("ptxas-feedback", &Options::ptxasFeedback,
             "The compiler assembles the kernels of the plans, rejects "
             "families that spill registers, and searches again"),
      option("precision", &Options::precision,
             "Products of f32 may round their factors to 'tf32', for tensor "
             "cores, or cut them off ('tf32-truncate'); 'f32' keeps them")
          .oneOf({factorPrecisionNames().begin(), factorPrecisionNames().end()})
          .basic(),
      option("pack-weights", &Options::packWeights,
             "The compiler puts constant weights into the order in which "
             "blocks read them, on codegen paths that have one; their products "
             "then run only on the device's exact architecture"),
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

OptionValues FTunerOptions::values() const {
  OptionValues values = list.values();
  std::string name = pipelineOptions().read(values).preset;
  for (const OptionPreset &preset : optionPresets())
    for (const auto &[option, value] : preset.values)
      if (preset.name == name && !list.isGiven(option))
        values[option] = value;
  return values;
}

llvm::Error FTunerOptions::check() const {
  return pipelineOptions().check(settings());
}

OptionValues FTunerOptions::search() const {
  OptionValues values = this->values();
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
  if (!isPartial)
    pm.addNestedPass<func::FuncOp>(createUKernelPutChannelsLastPass());
  pm.addNestedPass<func::FuncOp>(createUKernelResolveSizesPass());
  pm.addNestedPass<func::FuncOp>(createUKernelExpandViewsPass());
  UKernelNormalizeLinalgPassOptions normalization;
  normalization.keepRounded = true;
  pm.addPass(createUKernelNormalizeLinalgPass(normalization));
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
  formation.leavePointwise = !isPartial;
  formation.leaveWindows = isPartial;
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
  UKernelFormWindowsPassOptions windows;
  windows.paths = namesOfPaths(options);
  pm.addPass(createUKernelFormWindowsPass(windows));
  pm.addNestedPass<func::FuncOp>(createUKernelFuseWindowsPass());
  UKernelFormPointwisePassOptions pointwise;
  pointwise.paths = namesOfPaths(options);
  pm.addPass(createUKernelFormPointwisePass(pointwise));
  pm.addNestedPass<func::FuncOp>(createUKernelPadRowsPass());
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

void buildLaunchPipeline(OpPassManager &pm) {
  pm.addPass(createUKernelPrepareHostPass());
  buildBufferizationPipeline(pm);
  pm.addNestedPass<func::FuncOp>(createUKernelAllocatePaddedRowsPass());
  pm.addPass(createUKernelDispatchWorkloadsPass());
  pm.addPass(createUKernelLowerFallbacksPass());
  pm.addPass(createUKernelPlanWorkspacePass());
}

void buildEmissionPipeline(OpPassManager &pm) {
  buildLaunchPipeline(pm);
  pm.addPass(createConvertUKernelToGPUPass());
  pm.addPass(createUKernelMergeKernelsPass());
  pm.addNestedPass<func::FuncOp>(createCanonicalizerPass());
  pm.addNestedPass<func::FuncOp>(createCSEPass());
}

void buildBackEndPipeline(OpPassManager &pm) {
  buildEmissionPipeline(pm);
  buildKernelLoweringPipeline(pm);
}

void buildFTunerPipeline(OpPassManager &pm, const FTunerOptions &options) {
  buildFrontEndPipeline(pm, options);
  buildBackEndPipeline(pm);
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

namespace {
/// The options of FTunerOptions that help texts show.
struct BasicOptions : PassPipelineOptions<BasicOptions> {
  BasicOptions()
      : list(PassOptionList::make<Option>(
            static_cast<mlir::detail::PassOptions &>(*this), declared())) {}

private:
  static ArrayRef<DeclaredOption> declared() {
    static const std::vector<DeclaredOption> basic = [] {
      std::vector<DeclaredOption> basic;
      for (const DeclaredOption &option : pipelineOptionList().options())
        if (option.decl->level == OptionLevel::Basic)
          basic.push_back(option);
      return basic;
    }();
    return basic;
  }

  PassOptionList list;
};
} // namespace

void registerOptionPipeline(
    llvm::StringRef name, llvm::StringRef text,
    std::function<void(OpPassManager &, const FTunerOptions &)> build) {
  registerPassPipeline(
      name, text,
      [build =
           std::move(build)](OpPassManager &pm, StringRef given,
                             function_ref<LogicalResult(const Twine &)> fail) {
        FTunerOptions options;
        if (failed(options.parseFromString(given)))
          return failure();
        if (llvm::Error error = options.check())
          return fail(llvm::toString(std::move(error)));
        build(pm, options);
        return LogicalResult::success();
      },
      [](function_ref<void(const mlir::detail::PassOptions &)> show) {
        show(BasicOptions());
      });
}

void registerFTunerPipelines() {
  registerOptionPipeline(
      kCompileName,
      "Compile linalg on tensors with dynamic dimensions to GPU kernels and "
      "host functions that dispatch over them",
      buildFTunerPipeline);
  registerOptionPipeline(
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
