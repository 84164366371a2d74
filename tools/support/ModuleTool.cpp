//===- ModuleTool.cpp - Programs over one module --------------------------===//
#include "ModuleTool.h"
#include "ArgumentNames.h"

#include "FTuner/Dialect/UKernel/Bridge/PlanAttributes.h"
#include "FTuner/Executor/Executor.h"
#include "FTuner/InitAll.h"
#include "FTuner/Pipelines/Pipelines.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/Remarks.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/ManagedStatic.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cstdlib>

using namespace mlir;

namespace ftuner::tool {

static DialectRegistry &getRegistry() {
  static DialectRegistry registry;
  registerAllDialects(registry);
  return registry;
}

/// The kinds of remarks, which their text begins with.
static constexpr llvm::StringLiteral kRemarkKinds[] = {
    "copy",     "dispatch", "fallback",  "family",    "gated",      "layout",
    "measured", "option",   "plan",      "portable",  "prediction", "rejected",
    "search",   "spill",    "statistic", "undefined", "weights"};

bool RemarksParser::parse(llvm::cl::Option &option, llvm::StringRef,
                          llvm::StringRef text, std::string &value) {
  value = text.empty() ? "all" : text.str();
  if (value == "all" || value == "summary")
    return false;
  for (llvm::StringRef kind : llvm::split(value, ','))
    if (!llvm::is_contained(kRemarkKinds, kind))
      return option.error("expected all, summary, or kinds of " +
                          llvm::join(llvm::ArrayRef(kRemarkKinds), ", ") +
                          " with commas between, but got '" + kind + "'");
  return false;
}

RemarksOption::RemarksOption(llvm::cl::OptionCategory &category)
    : opt("remarks",
          llvm::cl::desc(
              "The compiler prints its decisions, all or those of some "
              "kinds, and how many there are of each kind; with "
              "'summary' only how many there are"),
          llvm::cl::value_desc("all, summary, or KIND,..."),
          llvm::cl::ValueOptional, llvm::cl::cat(category)) {}

RemarksOption::operator Remarks() const {
  const std::string &text = getValue();
  Remarks result;
  result.isOn = !text.empty();
  result.printsAll = text == "all";
  if (result.isOn && !result.printsAll && text != "summary")
    for (llvm::StringRef kind : llvm::split(text, ','))
      result.kinds.insert(kind);
  return result;
}

namespace {
/// Makes optimization remarks diagnostics like all others.
class DiagnosticStreamer final : public remark::detail::MLIRRemarkStreamerBase {
  void streamOptimizationRemark(const remark::detail::Remark &remark) override {
    InFlightDiagnostic diagnostic = emitRemark(remark.getLocation())
                                    << remark.getRemarkName() << ": ";
    for (const remark::detail::Remark::Arg &argument : remark.getArgs())
      diagnostic << argument.val;
  }
};
} // namespace

static void printProgress(const llvm::Twine &text) {
  llvm::errs() << "progress: " << text << '\n';
}

/// The stage that begins with a pass, in the user's words; empty for passes
/// that belong to the stage before.
static llvm::StringRef stageOf(llvm::StringRef pass) {
  return llvm::StringSwitch<llvm::StringRef>(pass)
      .Case("ukernel-attach-device", "preparing the module")
      .Case("ukernel-form-workloads", "finding products and rows")
      .Case("ukernel-plan-workloads", "searching for programs")
      .Case("ukernel-prepare-host", "placing tensors in memory")
      .Case("ukernel-dispatch-workloads", "dispatching by size")
      .Case("convert-ukernel-to-gpu", "generating kernels")
      .Default("");
}

namespace {
/// Says which stage begins, and how many kernels are done. Called by one thread
/// at a time.
class ProgressPrinter final : public PassInstrumentation {
  void runBeforePass(Pass *pass, Operation *op) override {
    auto module = dyn_cast<ModuleOp>(op);
    if (!module)
      return;
    if (llvm::StringRef stage = stageOf(pass->getArgument()); !stage.empty())
      return printProgress(stage);
    if (!pass->getArgument().empty())
      return;
    // Passes of what is in the module follow.
    numKernels = llvm::range_size(module.getOps<gpu::GPUModuleOp>());
    numDone = 0;
  }
  void runAfterPipeline(std::optional<OperationName> name,
                        const PipelineParentInfo &) override {
    if (name && name->getStringRef() == gpu::GPUModuleOp::getOperationName())
      printProgress("compiling kernels, " + llvm::Twine(++numDone) + " of " +
                    llvm::Twine(numKernels));
  }

  size_t numKernels = 0, numDone = 0;
};
} // namespace

void ModuleTool::beginStage(llvm::StringRef stage) const {
  if (hasProgress)
    printProgress(stage);
}

ModuleTool::ModuleTool(Remarks remarks)
    : remarks(std::move(remarks)), context(getRegistry()),
      printer(sources, &context),
      filter(&context,
             [this](Diagnostic &diagnostic) { return handle(diagnostic); }) {
  // The location says enough; the operation may be a whole module.
  context.printOpOnDiagnostic(false);
  if (!this->remarks.isOn)
    return;
  const std::string any = ".*";
  remark::RemarkCategories categories{any, any, any, any, any};
  (void)remark::enableOptimizationRemarks(
      context, std::make_unique<DiagnosticStreamer>(),
      std::make_unique<remark::RemarkEmittingPolicyAll>(), categories);
}

ModuleTool::~ModuleTool() { printNumRemarks(); }

void ModuleTool::endProcess() {
  printNumRemarks();
  llvm::outs().flush();
  // Prints what was asked for of LLVM's statistics.
  llvm::llvm_shutdown();
  std::_Exit(EXIT_SUCCESS);
}

void ModuleTool::printNumRemarks() const {
  if (!remarks.isOn)
    return;
  llvm::errs() << "remarks: ";
  llvm::interleaveComma(numRemarks, llvm::errs(), [](const auto &entry) {
    llvm::errs() << entry.second << ' ' << entry.first;
  });
  llvm::errs() << (numRemarks.empty() ? "none\n" : "\n");
}

bool ModuleTool::addRemark(const Diagnostic &diagnostic) {
  std::string kind = llvm::StringRef(diagnostic.str()).split(": ").first.str();
  ++numRemarks[kind];
  return remarks.prints(kind);
}

LogicalResult ModuleTool::handle(Diagnostic &diagnostic) {
  if (diagnostic.getSeverity() == DiagnosticSeverity::Remark &&
      !addRemark(diagnostic))
    return success();
  if (isRepeated(diagnostic))
    return success();
  bool isError = diagnostic.getSeverity() == DiagnosticSeverity::Error;
  bool isWarning = diagnostic.getSeverity() == DiagnosticSeverity::Warning;
  if (!isa<UnknownLoc>(diagnostic.getLocation()) || !(isError || isWarning) ||
      !diagnostic.getNotes().empty())
    return failure();
  llvm::errs() << (isError ? "error: " : "warning: ") << diagnostic << '\n';
  return success();
}

bool ModuleTool::isRepeated(Diagnostic &diagnostic) {
  std::string text;
  llvm::raw_string_ostream(text) << diagnostic.getLocation() << diagnostic;
  return diagnostic.getSeverity() == DiagnosticSeverity::Error &&
         !errors.insert(text).second;
}

llvm::Expected<OwningOpRef<ModuleOp>>
ModuleTool::readModule(llvm::StringRef path) {
  llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> input = readInput(path);
  if (!input)
    return input.takeError();
  // Diagnostics show lines of the first module, which is the input.
  OwningOpRef<ModuleOp> module;
  if (sources.getNumBuffers() == 0) {
    sources.AddNewSourceBuffer(std::move(*input), llvm::SMLoc());
    module = parseNamed(sources, context);
  } else {
    llvm::SourceMgr further;
    further.AddNewSourceBuffer(
        llvm::MemoryBuffer::getMemBuffer((*input)->getBuffer(), path),
        llvm::SMLoc());
    module = parseNamed(further, context);
  }
  if (!module)
    return llvm::createStringError("cannot read a module from '" + path + "'");
  return module;
}

/// A compiled module is what it is: options must not ask for anything else.
static llvm::Error checkCompiled(ModuleOp module, llvm::StringRef option,
                                 llvm::StringRef device) {
  if (option != "device")
    return llvm::createStringError(
        "option --" + option +
        " has no effect: the module is compiled already");
  FailureOr<DeviceSpec> compiledFor = deviceOf(module);
  if (failed(compiledFor))
    return llvm::createStringError("the compiled module has no valid device");
  llvm::Expected<DeviceSpec> asked = loadDeviceSpec(device);
  if (!asked)
    return asked.takeError();
  if (toAttribute(module.getContext(), *asked) !=
      toAttribute(module.getContext(), *compiledFor))
    return llvm::createStringError("expected a module compiled for device '" +
                                   asked->name + "', but got one for '" +
                                   compiledFor->name + "'");
  return llvm::Error::success();
}

LogicalResult ModuleTool::run(PassManager &pm, ModuleOp module) {
  if (hasProgress)
    pm.addInstrumentation(std::make_unique<ProgressPrinter>());
  return pm.run(module);
}

llvm::Error ModuleTool::plan(ModuleOp module, const FTunerOptions &options,
                             llvm::function_ref<llvm::Error(ModuleOp)> check) {
  if (isCompiled(module))
    return llvm::createStringError(
        "expected linalg or planned workloads, but the module is "
        "compiled already");
  PassManager formation(&context), planning(&context);
  buildFrontEndFormationPipeline(formation, options);
  buildPlanningPipeline(planning, options);
  if (failed(run(formation, module)))
    return llvm::createStringError("planning failed");
  if (check)
    if (llvm::Error error = check(module))
      return error;
  if (failed(run(planning, module)))
    return llvm::createStringError("planning failed");
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
      if (llvm::Error error =
              checkCompiled(module, option, options.settings().device))
        return error;
    return llvm::Error::success();
  }
  // The passes of buildFTunerPipeline in two runs: kernels are large, and to
  // verify them after each pass that lowers them costs as much as those passes.
  // What comes in was verified, and what is emitted is; ftuner-opt and debug
  // builds verify it all.
  PassManager emission(&context), lowering(&context);
  buildFrontEndPipeline(emission, options);
  buildEmissionPipeline(emission);
  buildKernelLoweringPipeline(lowering);
#ifdef NDEBUG
  emission.enableVerifier(false);
  lowering.enableVerifier(false);
#endif
  for (PassManager *pm : {&emission, &lowering})
    if (failed(run(*pm, module)) || (pm == &emission && failed(verify(module))))
      return llvm::createStringError("compilation failed");
  return llvm::Error::success();
}

} // namespace ftuner::tool
