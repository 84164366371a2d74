//===- ModuleTool.cpp - Programs over one module --------------------------===//
#include "ModuleTool.h"

#include "FTuner/Executor/Executor.h"
#include "FTuner/InitAll.h"
#include "FTuner/Pipelines/Pipelines.h"
#include "FTuner/Transforms/PlanAttributes.h"

#include "mlir/IR/Dialect.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;

namespace ftuner::tool {

static DialectRegistry &getRegistry() {
  static DialectRegistry registry;
  registerAllDialects(registry);
  return registry;
}

ModuleTool::ModuleTool(bool showRemarks)
    : context(getRegistry()), printer(sources, &context),
      filter(&context, [this, showRemarks](Diagnostic &diagnostic) {
        // Success swallows the diagnostic; failure hands it on to be printed.
        return success((!showRemarks && diagnostic.getSeverity() ==
                                            DiagnosticSeverity::Remark) ||
                       isRepeated(diagnostic));
      }) {
  // The location says enough; the operation may be a whole module.
  context.printOpOnDiagnostic(false);
  if (!showRemarks)
    return;
  const std::string any = ".*";
  remark::RemarkCategories categories{any, any, any, any, any};
  (void)remark::enableOptimizationRemarks(
      context, /*streamer=*/nullptr,
      std::make_unique<remark::RemarkEmittingPolicyAll>(), categories,
      /*printAsEmitRemarks=*/true);
}

bool ModuleTool::isRepeated(Diagnostic &diagnostic) {
  std::string text;
  llvm::raw_string_ostream(text) << diagnostic.getLocation() << diagnostic;
  return diagnostic.getSeverity() == DiagnosticSeverity::Error &&
         !errors.insert(text).second;
}

static llvm::Error toolError(const llvm::Twine &text) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), text);
}

llvm::Expected<OwningOpRef<ModuleOp>>
ModuleTool::readModule(llvm::StringRef path) {
  llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> input = readInput(path);
  if (!input)
    return input.takeError();
  sources.AddNewSourceBuffer(std::move(*input), llvm::SMLoc());
  OwningOpRef<ModuleOp> module =
      parseSourceFile<ModuleOp>(sources, ParserConfig(&context));
  if (!module)
    return toolError("cannot read a module from '" + path + "'");
  return module;
}

/// A compiled module is what it is: options must not ask for anything else.
static llvm::Error checkCompiled(ModuleOp module, llvm::StringRef option,
                                 llvm::StringRef device) {
  if (option != "device")
    return toolError("option --" + option +
                     " has no effect: the module is compiled already");
  FailureOr<DeviceSpec> compiledFor = deviceOf(module);
  if (failed(compiledFor))
    return toolError("the compiled module has no valid device");
  llvm::Expected<DeviceSpec> asked = loadDeviceSpec(device);
  if (!asked)
    return asked.takeError();
  if (toAttribute(module.getContext(), *asked) !=
      toAttribute(module.getContext(), *compiledFor))
    return toolError("expected a module compiled for device '" + asked->name +
                     "', but got one for '" + compiledFor->name + "'");
  return llvm::Error::success();
}

llvm::Error ModuleTool::plan(ModuleOp module, const FTunerOptions &options) {
  if (isCompiled(module))
    return toolError("expected linalg or planned workloads, but the module is "
                     "compiled already");
  PassManager pm(&context);
  buildFrontEndPipeline(pm, options);
  if (failed(pm.run(module)))
    return toolError("planning failed");
  return llvm::Error::success();
}

OwningOpRef<ModuleOp> ModuleTool::lowerToLaunches(ModuleOp planned) {
  ScopedDiagnosticHandler quiet(&context,
                                [](Diagnostic &) { return success(); });
  OwningOpRef<ModuleOp> result = planned.clone();
  PassManager pm(&context);
  buildLaunchPipeline(pm);
  if (failed(pm.run(*result)))
    return {};
  return result;
}

llvm::Error ModuleTool::compile(ModuleOp module,
                                const PipelineCommandLine &commandLine) {
  FTunerOptions options;
  if (llvm::Error error = commandLine.apply(options))
    return error;
  if (isCompiled(module)) {
    for (const std::string &option : commandLine.getGiven())
      if (llvm::Error error = checkCompiled(module, option, options.device))
        return error;
    return llvm::Error::success();
  }
  PassManager pm(&context);
  buildFTunerPipeline(pm, options);
  if (failed(pm.run(module)))
    return toolError("compilation failed");
  return llvm::Error::success();
}

} // namespace ftuner::tool
