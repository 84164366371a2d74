//===- MeasureOutput.cpp - --ftuner-measure -------------------------------===//
#include "MeasureOutput.h"

#include "FTuner/Dialect/UKernel/Bridge/PlanAttributes.h"
#include "FTuner/Kernel/Measure/GpuMeasurer.h"
#include "FTuner/Kernel/Measure/PtxasMeasurer.h"
#include "FTuner/Measure/MeasurementLog.h"
#include "FTuner/PTX/Ptxas.h"
#include "FTuner/Pipelines/Pipelines.h"
#include "FTuner/Pipelines/PlannedOperators.h"
#include "FTuner/Search/Setup/MeasurerFactory.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace ftuner::tool {

MeasureCommandLine::MeasureCommandLine(llvm::cl::OptionCategory &category)
    : log("log",
          llvm::cl::desc(
              "The program reuses the measurements in this file, and "
              "adds its own"),
          llvm::cl::value_desc("file"), llvm::cl::Hidden,
          llvm::cl::cat(category)),
      budget("budget",
             llvm::cl::desc(
                 "At most this number of measurements is made; those of "
                 "the log are free"),
             llvm::cl::init(std::numeric_limits<int64_t>::max()),
             llvm::cl::Hidden, llvm::cl::cat(category)) {}

llvm::Error MeasureCommandLine::expectNone() const {
  const llvm::cl::Option *options[] = {&log, &budget};
  for (const llvm::cl::Option *option : options)
    if (option->getNumOccurrences() > 0)
      return llvm::createStringError("option --" + option->ArgStr +
                                     " has no effect without --ftuner-measure");
  return llvm::Error::success();
}

namespace {
/// A measurer with what it refers to.
class MeasurerSetup {
public:
  llvm::Error create(ModuleOp module, const DeviceSpec &device,
                     const SearchSetup &setup,
                     const MeasureCommandLine &commandLine,
                     llvm::StringRef programPath);

  OperatorRegistry operators;
  std::unique_ptr<Measurer> measurer;
  /// The name of the measurer, for lines of the log.
  std::string measuredBy;

private:
  llvm::Error createCompiler(ModuleOp module, const DeviceSpec &device);
  llvm::Error createPtxas(ModuleOp module, const DeviceSpec &device);
  llvm::Error createGpu(ModuleOp module, const DeviceSpec &device,
                        llvm::StringRef programPath);

  std::unique_ptr<KernelCompiler> compiler;
  std::unique_ptr<Gpu> gpu;
  std::unique_ptr<Measurer> inner;
};
} // namespace

llvm::Error MeasurerSetup::createCompiler(ModuleOp module,
                                          const DeviceSpec &device) {
  llvm::Expected<KernelCompiler> created = KernelCompiler::create(
      module.getContext(), device, buildKernelLoweringPipeline);
  if (!created)
    return created.takeError();
  compiler = std::make_unique<KernelCompiler>(std::move(*created));
  return llvm::Error::success();
}

llvm::Error MeasurerSetup::createPtxas(ModuleOp module,
                                       const DeviceSpec &device) {
  std::optional<std::string> ptxas = findPtxas();
  if (!ptxas)
    return llvm::createStringError(
        "option --measurer: expected a ptxas on PATH or in "
        "CUDA_HOME");
  if (llvm::Error error = createCompiler(module, device))
    return error;
  inner = std::make_unique<PtxasMeasurer>(operators, *compiler, *ptxas);
  return llvm::Error::success();
}

llvm::Error MeasurerSetup::createGpu(ModuleOp module, const DeviceSpec &device,
                                     llvm::StringRef programPath) {
  // PREFIX/bin/ftuner-translate and PREFIX/lib/libftrt.so.1.
  llvm::SmallString<128> library =
      llvm::sys::path::parent_path(llvm::sys::path::parent_path(programPath));
  llvm::sys::path::append(library, "lib", "libftrt.so.1");
  llvm::Expected<std::unique_ptr<Gpu>> found = Gpu::create(library.str().str());
  if (!found)
    return found.takeError();
  gpu = std::move(*found);
  if (llvm::Error error = createCompiler(module, device))
    return error;
  inner = std::make_unique<GpuMeasurer>(operators, *compiler, *gpu);
  return llvm::Error::success();
}

llvm::Error MeasurerSetup::create(ModuleOp module, const DeviceSpec &device,
                                  const SearchSetup &setup,
                                  const MeasureCommandLine &commandLine,
                                  llvm::StringRef programPath) {
  llvm::StringRef name = setup.options.measuring.measurer;
  if (name == "log") {
    if (commandLine.log.empty())
      return llvm::createStringError(
          "option --measurer=log: expected a log, by --log");
    llvm::Expected<MeasurementLog> log =
        MeasurementLog::read(commandLine.log, device.name);
    if (!log)
      return log.takeError();
    measuredBy = log->measurers();
    measurer = std::make_unique<RecordedMeasurer>(std::move(*log));
    return llvm::Error::success();
  }
  if (name == "ptxas") {
    if (llvm::Error error = createPtxas(module, device))
      return error;
  } else if (name == "gpu") {
    if (llvm::Error error = createGpu(module, device, programPath))
      return error;
  } else {
    SearchSetup named = setup;
    if (name.empty())
      named.options.measuring.measurer = "cost-model";
    llvm::Expected<std::unique_ptr<Measurer>> made =
        makeMeasurer(named, device);
    if (!made)
      return made.takeError();
    inner = std::move(*made);
  }
  measuredBy = inner->name().str();
  llvm::Expected<MeasurementLog> log =
      commandLine.log.empty()
          ? MeasurementLog(device.name, inner->name())
          : MeasurementLog::read(commandLine.log, device.name, inner->name());
  if (!log)
    return log.takeError();
  measurer = std::make_unique<LoggingMeasurer>(
      *inner, std::move(*log), commandLine.log, commandLine.budget);
  return llvm::Error::success();
}

llvm::Expected<std::string> measureModule(ModuleOp module,
                                          const SearchSetup &setup,
                                          const NamedSizes &sizes,
                                          const MeasureCommandLine &commandLine,
                                          llvm::StringRef programPath) {
  FailureOr<DeviceSpec> device = deviceOf(module);
  if (failed(device))
    return llvm::createStringError("the module has no valid device");
  MeasurerSetup measuring;
  if (llvm::Error error =
          measuring.create(module, *device, setup, commandLine, programPath))
    return error;
  FailureOr<PlannedOperators> planned =
      collectPlannedOperators(module, measuring.operators);
  if (failed(planned))
    return llvm::createStringError("lowering to buffers failed");
  if (planned->empty())
    return llvm::createStringError(
        "nothing to measure: the module has no planned workloads");

  std::vector<MeasurementRequest> requests;
  for (const auto &[name, workloads] : *planned) {
    auto op = cast<ukernel::PlanOp>(SymbolTable::lookupSymbolIn(module, name));
    const Plan &plan = toPlan(op.getPlan());
    for (const Workload *workload : workloads) {
      llvm::Expected<Shape> shape = bindSizes(*workload, sizes);
      if (!shape)
        return llvm::createStringError("option --size: " +
                                       llvm::toString(shape.takeError()));
      for (unsigned number : plan.usedFamilies())
        requests.push_back({workload, plan.families[number], *shape});
    }
  }
  MeasurementLog format(device->name, measuring.measuredBy);
  std::string text;
  auto answers = measuring.measurer->measure(requests);
  for (auto [request, answer] : llvm::zip_equal(requests, answers)) {
    MeasurementLog::Entry entry;
    if (answer)
      entry.measurement = *answer;
    else
      entry.failure = llvm::toString(answer.takeError());
    text += format.line(request, entry) + "\n";
  }
  return text;
}

} // namespace ftuner::tool
