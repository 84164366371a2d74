//===- ftuner-translate.cpp - From MLIR to PTX, manifests and libraries ---===//
//
// Takes linalg on tensors, which it compiles, or a module that went through
// `ftuner-opt --ftuner-compile`; to explain, one that went through
// `--ftuner-front-end`. Nothing is written on failure.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Dialect/UKernel/Bridge/PlanAttributes.h"
#include "FTuner/PTX/PTX.h"
#include "FTuner/Pipelines/Pipelines.h"
#include "FTuner/Pipelines/SearchMeasurer.h"
#include "FTuner/Search/Setup/MeasurerFactory.h"
#include "FTuner/Target/Explain.h"
#include "FTuner/Target/Iree.h"
#include "FTuner/Target/IreeReport.h"
#include "FTuner/Target/Manifest.h"
#include "FTuner/Target/ModuleTrees.h"
#include "LibraryOutput.h"
#include "MeasureOutput.h"
#include "ModuleTool.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>
#include <optional>

using namespace mlir;
using namespace ftuner;

namespace {
enum class Translation {
  None,
  Ptx,
  Manifest,
  Library,
  Explanation,
  Trees,
  Measurements,
  Iree,
  IreeSpec
};

/// Programs of a shape that are listed unless `--top-k` says otherwise.
constexpr int64_t kListedPrograms = 10;

/// The program's own options.
struct Options {
  llvm::cl::OptionCategory category{"Options of ftuner-translate"};
  llvm::cl::opt<std::string> input{
      llvm::cl::Positional, llvm::cl::desc("<input file>"), llvm::cl::init("-"),
      llvm::cl::cat(category)};
  llvm::cl::opt<std::string> output{
      "o", llvm::cl::desc("The output goes to this file"),
      llvm::cl::value_desc("file"), llvm::cl::init("-"),
      llvm::cl::cat(category)};
  llvm::cl::opt<Translation> translation{
      llvm::cl::desc("The program writes one of these:"),
      llvm::cl::values(
          clEnumValN(Translation::Ptx, "ftuner-to-ptx",
                     "One PTX module with an entry for each kernel"),
          clEnumValN(Translation::Manifest, "ftuner-to-manifest",
                     "A description of functions, kernels and dispatch as "
                     "JSON (docs/manifest.md)"),
          clEnumValN(Translation::Library, "ftuner-to-library",
                     "A shared library or an object file, and its C header "
                     "(docs/libraries.md)"),
          clEnumValN(Translation::Explanation, "ftuner-explain",
                     "An explanation of why each workload gets the programs "
                     "it gets (docs/explain.md)"),
          clEnumValN(Translation::Trees, "ftuner-trees",
                     "The loops and statements of each launch, as learned "
                     "cost models read them (docs/program-trees.md)"),
          clEnumValN(Translation::Measurements, "ftuner-measure",
                     "The time of each kernel family of the plans, a line of "
                     "JSON each (docs/measurements.md)"),
          clEnumValN(Translation::Iree, "ftuner-to-iree",
                     "A module for iree-compile that dispatches to the kernels "
                     "(docs/iree.md)"),
          clEnumValN(
              Translation::IreeSpec, "ftuner-to-iree-spec",
              "A transform spec for iree-compile that finds the products "
              "in any module (docs/iree.md)")),
      llvm::cl::init(Translation::None), llvm::cl::cat(category)};
  llvm::cl::opt<IreeTarget> ireeTarget{
      "iree-target",
      llvm::cl::desc("IREE runs the output of --ftuner-to-iree here"),
      llvm::cl::values(
          clEnumValN(IreeTarget::Cuda, "cuda", "On a GPU, from PTX"),
          clEnumValN(IreeTarget::Cpu, "llvm-cpu",
                     "On the CPU, where FTuner's plugin for IREE runs the "
                     "kernels in the emulator")),
      llvm::cl::init(IreeTarget::Cuda),
      llvm::cl::Hidden,
      llvm::cl::cat(category)};
  llvm::cl::opt<bool> ireeAnyAddress{
      "iree-any-address",
      llvm::cl::desc("Tensors of --ftuner-to-iree may begin at any address "
                     "of their elements, which rules faster kernels out"),
      llvm::cl::Hidden, llvm::cl::cat(category)};
  llvm::cl::opt<std::string> emulatedKernels{
      "emulated-kernels",
      llvm::cl::desc("The program also writes a shared library of the "
                     "kernels of --ftuner-to-iree for the emulator"),
      llvm::cl::value_desc("file"), llvm::cl::Hidden, llvm::cl::cat(category)};
  llvm::cl::opt<std::string> report{
      "report",
      llvm::cl::desc("The program also writes JSON to this file: what the "
                     "dispatches of --ftuner-to-iree carry (docs/iree.md), or "
                     "the explanation of --ftuner-explain"),
      llvm::cl::value_desc("file"), llvm::cl::Hidden, llvm::cl::cat(category)};
  llvm::cl::opt<std::string> manifest{
      "manifest",
      llvm::cl::desc("The program also writes the manifest of the PTX of "
                     "--ftuner-to-ptx to this file (docs/manifest.md)"),
      llvm::cl::value_desc("file"), llvm::cl::Hidden, llvm::cl::cat(category)};
  llvm::cl::opt<bool> timing{
      "timing", llvm::cl::desc("The manifest has the seconds of each stage"),
      llvm::cl::Hidden, llvm::cl::cat(category)};
  llvm::cl::list<std::string> sizes{
      "size",
      llvm::cl::desc("The shape to explain or to measure has these sizes, by "
                     "names of symbols or axes, e.g. T=53,N=768. A name that "
                     "is given again begins another shape, which keeps the "
                     "other sizes"),
      llvm::cl::value_desc("name=value"), llvm::cl::CommaSeparated,
      llvm::cl::cat(category)};
  llvm::cl::opt<std::string> function{
      "function",
      llvm::cl::desc("The explanation covers only the function of this C name "
                     "and its workloads"),
      llvm::cl::value_desc("name"), llvm::cl::Hidden, llvm::cl::cat(category)};
  llvm::cl::opt<std::string> workload{
      "workload",
      llvm::cl::desc(
          "The explanation has the text of this workload in full, in place of "
          "the summary"),
      llvm::cl::value_desc("name"), llvm::cl::Hidden, llvm::cl::cat(category)};
  llvm::cl::opt<bool> all{
      "all",
      llvm::cl::desc(
          "The explanation has the text of everything in full, in place of "
          "the summary"),
      llvm::cl::Hidden, llvm::cl::cat(category)};
  llvm::cl::opt<bool> json{"json",
                           llvm::cl::desc("Explanations and trees are JSON"),
                           llvm::cl::cat(category)};
  llvm::cl::opt<bool> features{
      "features",
      llvm::cl::desc("The JSON of --ftuner-trees has the numbers of each "
                     "statement"),
      llvm::cl::Hidden, llvm::cl::cat(category)};
  tool::RemarksOption remarks{category};
  llvm::cl::opt<bool> progress{
      "progress", llvm::cl::desc("Standard error says which stage begins"),
      llvm::cl::Hidden, llvm::cl::cat(category)};
  tool::LibraryCommandLine library{category};
  tool::MeasureCommandLine measure{category};
  /// The file of this program.
  std::string programPath;
};

/// Measures the stages of a run.
class Stopwatch {
public:
  /// Ends a stage and begins the next.
  void lap(llvm::StringRef stage) {
    auto now = std::chrono::steady_clock::now();
    seconds[stage.str()] = std::chrono::duration<double>(now - last).count();
    last = now;
  }
  std::map<std::string, double> seconds;

private:
  std::chrono::steady_clock::time_point last = std::chrono::steady_clock::now();
};
} // namespace

static llvm::Error checkOptions(const Options &options) {
  if (options.translation.getNumOccurrences() != 1)
    return llvm::createStringError(
        "expected one of --ftuner-to-ptx, --ftuner-to-manifest, "
        "--ftuner-to-library, --ftuner-to-iree, "
        "--ftuner-to-iree-spec, --ftuner-explain, --ftuner-trees "
        "and --ftuner-measure");
  bool hasManifest = options.manifest.getNumOccurrences() > 0;
  if (hasManifest && options.translation != Translation::Ptx)
    return llvm::createStringError(
        "option --manifest has no effect without --ftuner-to-ptx");
  if (hasManifest && (options.manifest.empty() || options.manifest == "-"))
    return llvm::createStringError(
        "option --manifest: expected the name of a file, but got "
        "'" +
        options.manifest + "'");
  if (hasManifest && options.output == "-")
    return llvm::createStringError(
        "option -o: expected the name of a file beside "
        "--manifest");
  if (options.timing && !hasManifest &&
      options.translation != Translation::Manifest)
    return llvm::createStringError("option --timing has no effect without "
                                   "--ftuner-to-manifest");
  bool isForIree = options.translation == Translation::Iree ||
                   options.translation == Translation::IreeSpec;
  if (options.translation != Translation::Library)
    if (llvm::Error error = options.library.expectNone(isForIree))
      return error;
  if (options.translation != Translation::Measurements)
    if (llvm::Error error = options.measure.expectNone())
      return error;
  for (const llvm::cl::opt<std::string> *file :
       {&options.emulatedKernels, &options.report}) {
    if (file->getNumOccurrences() == 0)
      continue;
    bool isExplanation = options.translation == Translation::Explanation;
    bool isReport = file == &options.report;
    bool isKnown =
        isReport ? options.translation == Translation::Iree || isExplanation
                 : isForIree;
    if (!isKnown)
      return llvm::createStringError("option --" + file->ArgStr +
                                     " has no effect without --ftuner-to-iree" +
                                     (isReport ? " or --ftuner-explain" : ""));
    if (options.output == "-")
      return llvm::createStringError(
          "option -o: expected the name of a file beside --" + file->ArgStr);
  }
  if (!isForIree && options.ireeTarget.getNumOccurrences() > 0)
    return llvm::createStringError("option --iree-target has no effect without "
                                   "--ftuner-to-iree");
  if (!isForIree && options.ireeAnyAddress.getNumOccurrences() > 0)
    return llvm::createStringError(
        "option --iree-any-address has no effect without "
        "--ftuner-to-iree");
  if (options.translation != Translation::Explanation &&
      options.function.getNumOccurrences() > 0)
    return llvm::createStringError("option --function has no effect without "
                                   "--ftuner-explain");
  bool explainsAsText =
      options.translation == Translation::Explanation && !options.json;
  if ((options.all || options.workload.getNumOccurrences() > 0) &&
      !explainsAsText)
    return llvm::createStringError(
        "options --workload and --all have no effect without "
        "--ftuner-explain, and with --json");
  if (options.all && options.workload.getNumOccurrences() > 0)
    return llvm::createStringError("expected one of --workload and --all");
  bool writesTrees = options.translation == Translation::Trees;
  if (options.features && (!writesTrees || !options.json))
    return llvm::createStringError(
        "option --features has no effect without --ftuner-trees "
        "and --json");
  if (options.translation == Translation::Explanation || writesTrees)
    return llvm::Error::success();
  if (options.json)
    return llvm::createStringError(
        "option --json has no effect without --ftuner-explain or "
        "--ftuner-trees");
  if (options.translation == Translation::Measurements)
    return llvm::Error::success();
  if (options.sizes.getNumOccurrences() > 0)
    return llvm::createStringError(
        "option --size has no effect without --ftuner-explain, "
        "--ftuner-trees or --ftuner-measure");
  return llvm::Error::success();
}

/// Writes the output, and a file beside it if there is one, and ends the
/// process; returns if that fails.
static llvm::Error finish(const Options &options, llvm::StringRef content,
                          tool::ModuleTool &moduleTool,
                          std::optional<tool::OutputFile> sideOutput = {}) {
  llvm::Error error = sideOutput
                          ? tool::writeOutputs({{options.output, content.str()},
                                                std::move(*sideOutput)})
                          : tool::writeOutput(options.output, content);
  if (error)
    return error;
  moduleTool.endProcess();
}

/// The manifest of a compiled module and its translation.
static llvm::Expected<std::string> manifestText(const Options &options,
                                                ModuleOp module,
                                                const PtxImages &ptx,
                                                const Stopwatch &stopwatch) {
  ManifestOptions manifestOptions;
  if (options.timing)
    manifestOptions.seconds = stopwatch.seconds;
  std::string manifest;
  llvm::raw_string_ostream stream(manifest);
  if (failed(writeManifest(module, ptx, manifestOptions, stream)))
    return llvm::createStringError("writing the manifest failed");
  return manifest;
}

/// Reads `--size`: one shape, and a further one from each name on that is given
/// again; it keeps the sizes before it that it does not name. Measurements take
/// exactly one shape.
static llvm::Expected<std::vector<NamedSizes>>
parseSizes(const Options &options) {
  std::vector<NamedSizes> shapes;
  llvm::StringSet<> given;
  for (llvm::StringRef text : options.sizes) {
    auto [name, value] = text.split('=');
    name = name.trim();
    int64_t size = 0;
    if (name.empty() || value.trim().getAsInteger(10, size) || size < 1)
      return llvm::createStringError(
          "option --size: expected NAME=VALUE with a positive whole "
          "number, but got '" +
          text + "'");
    if (shapes.empty())
      shapes.emplace_back();
    if (!given.insert(name).second) {
      shapes.push_back(shapes.back());
      given.clear();
      given.insert(name);
    }
    shapes.back()[name.str()] = size;
  }
  if (options.translation == Translation::Measurements) {
    if (shapes.size() > 1)
      return llvm::createStringError(
          "option --size: expected one shape to measure, but got " +
          llvm::Twine(shapes.size()));
    shapes.resize(1);
  }
  return shapes;
}

namespace {
/// An input whose workloads are planned, with its options of the command line.
struct PlannedInput {
  explicit PlannedInput(tool::Remarks remarks) : tool(std::move(remarks)) {}

  std::vector<NamedSizes> sizes;
  /// The options that planned the input.
  FTunerOptions given;
  /// The setup of measurements.
  std::optional<SearchSetup> measuring;
  tool::ModuleTool tool;
  OwningOpRef<ModuleOp> module;
};
} // namespace

static llvm::Expected<std::unique_ptr<PlannedInput>>
readPlanned(const Options &options, const tool::PipelineCommandLine &pipeline) {
  auto input = std::make_unique<PlannedInput>(options.remarks);
  llvm::Expected<std::vector<NamedSizes>> sizes = parseSizes(options);
  if (!sizes)
    return sizes.takeError();
  input->sizes = std::move(*sizes);
  if (llvm::Error error = pipeline.apply(input->given))
    return error;
  bool measures = options.translation == Translation::Measurements;
  if (measures) {
    llvm::Expected<SearchSetup> setup = makeSearchSetup(input->given.search());
    if (!setup)
      return setup.takeError();
    // For the plans nobody need measure.
    if (!setup->options.measuring.isOn())
      input->given.set("measurer", std::string());
    input->measuring = std::move(*setup);
  }
  if (options.progress)
    input->tool.showProgress();
  auto module = input->tool.readModule(options.input);
  if (!module)
    return module.takeError();
  input->module = std::move(*module);
  // Before the search, which takes long.
  auto checkSizes = [&](ModuleOp formed) {
    return checkSizeNames(formed, input->sizes, /*withFunctions=*/!measures);
  };
  if (llvm::Error error =
          input->tool.plan(*input->module, input->given, checkSizes))
    return error;
  return input;
}

namespace {
/// The measurer for explanations, with its device.
struct DeviceMeasurer {
  std::unique_ptr<DeviceSpec> device;
  /// Null where nothing is measured.
  std::unique_ptr<Measurer> measurer;
};
} // namespace

static llvm::Expected<DeviceMeasurer> measurerFor(ModuleOp module,
                                                  const SearchSetup &setup) {
  DeviceMeasurer result;
  if (!setup.options.measuring.isOn())
    return result;
  FailureOr<DeviceSpec> device = deviceOf(module);
  if (failed(device))
    return llvm::createStringError("the module has no valid device");
  result.device = std::make_unique<DeviceSpec>(std::move(*device));
  llvm::Expected<std::unique_ptr<Measurer>> measurer =
      makeSearchMeasurer(module, setup, *result.device);
  if (!measurer)
    return measurer.takeError();
  result.measurer = std::move(*measurer);
  return result;
}

static llvm::Error explain(const Options &options,
                           const tool::PipelineCommandLine &pipeline) {
  llvm::Expected<std::unique_ptr<PlannedInput>> read =
      readPlanned(options, pipeline);
  if (!read)
    return read.takeError();
  PlannedInput &input = **read;
  if (!llvm::is_contained(pipeline.getGiven(), "top-k"))
    input.given.set("top-k", kListedPrograms);
  input.tool.beginStage("explaining");
  llvm::Expected<SearchSetup> setup = makeSearchSetup(input.given.search());
  if (!setup)
    return setup.takeError();
  OwningOpRef<ModuleOp> launching = input.tool.lowerToLaunches(*input.module);
  llvm::Expected<DeviceMeasurer> measurer = measurerFor(*input.module, *setup);
  if (!measurer)
    return measurer.takeError();
  llvm::Expected<ModuleExplanation> explanation = explainModule(
      *input.module, launching ? *launching : ModuleOp(), *setup, input.sizes,
      measuringContext(*setup, measurer->measurer.get()), options.function);
  if (!explanation)
    return explanation.takeError();
  std::string text, json;
  llvm::raw_string_ostream stream(text), jsonStream(json);
  if (options.json || !options.report.empty())
    writeExplanationJson(*explanation, jsonStream);
  if (!options.json)
    if (llvm::Error error = writeExplanationText(
            *explanation, {options.all, options.workload}, stream))
      return error;
  const std::string &content = options.json ? json : text;
  if (options.report.empty())
    return tool::writeOutput(options.output, content);
  return tool::writeOutputs(
      {{options.output, content}, {options.report, json}});
}

static llvm::Error writeTrees(const Options &options,
                              const tool::PipelineCommandLine &pipeline) {
  llvm::Expected<std::unique_ptr<PlannedInput>> read =
      readPlanned(options, pipeline);
  if (!read)
    return read.takeError();
  PlannedInput &input = **read;
  input.tool.beginStage("writing trees");
  OwningOpRef<ModuleOp> launching = input.tool.lowerToLaunches(*input.module);
  if (!launching)
    return llvm::createStringError(
        "the module has no lowering: ftuner-opt --ftuner-compile "
        "says why");
  llvm::Expected<ModuleTrees> trees =
      describeModule(*input.module, *launching, input.sizes);
  if (!trees)
    return trees.takeError();
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (options.json)
    writeTreesJson(*trees, options.features, stream);
  else
    writeTreesText(*trees, stream);
  return tool::writeOutput(options.output, text);
}

static llvm::Error measure(const Options &options,
                           const tool::PipelineCommandLine &pipeline) {
  llvm::Expected<std::unique_ptr<PlannedInput>> read =
      readPlanned(options, pipeline);
  if (!read)
    return read.takeError();
  PlannedInput &input = **read;
  input.tool.beginStage("measuring");
  llvm::Expected<std::string> text =
      tool::measureModule(*input.module, *input.measuring, input.sizes.front(),
                          options.measure, options.programPath);
  if (!text)
    return text.takeError();
  return tool::writeOutput(options.output, *text);
}

/// Judges what is for IREE's executable.
static llvm::Expected<IreeOptions> ireeOptions(const Options &options) {
  IreeOptions iree;
  iree.target = options.ireeTarget;
  iree.hasAnyAddress = options.ireeAnyAddress;
  if (iree.target != IreeTarget::Cuda) {
    if (options.library.cubins.getNumOccurrences() > 0)
      return llvm::createStringError("option --cubins has no effect without "
                                     "--iree-target=cuda");
    return iree;
  }
  tool::LibraryPlan plan;
  if (llvm::Error error = tool::planCubins(options.library, plan))
    return error;
  if (!plan.hasOwnCubin && plan.architectures.empty())
    return iree;
  if (plan.architectures.size() > 1)
    return llvm::createStringError(
        "option --cubins: expected one architecture, since IREE "
        "takes the first image of its target");
  iree.ptxas = plan.ptxas;
  if (!plan.architectures.empty())
    iree.architecture = plan.architectures.front();
  return iree;
}

/// The module for IREE, or the spec; and what its executable holds.
static FailureOr<std::string> ireeText(const Options &options,
                                       const FTunerOptions &given,
                                       const IreeOptions &iree,
                                       tool::ModuleTool &moduleTool,
                                       ModuleOp module, IreeKernels &kernels) {
  if (options.translation == Translation::IreeSpec)
    return buildIreeSpec(module, given, iree, &kernels);
  PassManager pm(module.getContext());
  buildIreePipeline(pm, given, iree, &kernels);
  if (failed(moduleTool.run(pm, module)))
    return failure();
  // As ftuner-opt writes it.
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->print(stream);
  stream << '\n';
  return text;
}

static llvm::Error toIree(const Options &options,
                          const tool::PipelineCommandLine &pipeline) {
  FTunerOptions given;
  if (llvm::Error error = pipeline.apply(given))
    return error;
  llvm::Expected<IreeOptions> iree = ireeOptions(options);
  if (!iree)
    return iree.takeError();
  tool::ModuleTool moduleTool(options.remarks);
  moduleTool.allowUnregisteredDialects();
  if (options.progress)
    moduleTool.showProgress();
  auto module = moduleTool.readModule(options.input);
  if (!module)
    return module.takeError();
  IreeKernels kernels;
  FailureOr<std::string> text =
      ireeText(options, given, *iree, moduleTool, **module, kernels);
  if (failed(text))
    return llvm::createStringError("translation for IREE failed");
  if (options.emulatedKernels.empty() && options.report.empty())
    return tool::writeOutput(options.output, *text);
  std::vector<tool::OutputFile> outputs{{options.output, std::move(*text)}};
  if (!options.report.empty()) {
    std::string report;
    llvm::raw_string_ostream reportStream(report);
    writeIreeReport(kernels, reportStream);
    outputs.push_back({options.report, std::move(report)});
  }
  if (!options.emulatedKernels.empty()) {
    llvm::Expected<std::string> library =
        tool::emulatedKernels(*kernels.module, kernels.ptx,
                              options.emulatedKernels, options.programPath);
    if (!library)
      return library.takeError();
    outputs.push_back({options.emulatedKernels, std::move(*library)});
  }
  return tool::writeOutputs(outputs);
}

static llvm::Error translate(const Options &options,
                             const tool::PipelineCommandLine &pipeline) {
  if (llvm::Error error = checkOptions(options))
    return error;
  if (options.translation == Translation::Explanation)
    return explain(options, pipeline);
  if (options.translation == Translation::Trees)
    return writeTrees(options, pipeline);
  if (options.translation == Translation::Measurements)
    return measure(options, pipeline);
  if (options.translation == Translation::Iree ||
      options.translation == Translation::IreeSpec)
    return toIree(options, pipeline);
  tool::LibraryPlan libraryPlan;
  if (options.translation == Translation::Library) {
    llvm::Expected<tool::LibraryPlan> plan =
        tool::planLibrary(options.library, options.output, options.programPath);
    if (!plan)
      return plan.takeError();
    libraryPlan = std::move(*plan);
  }
  tool::ModuleTool moduleTool(options.remarks);
  if (options.progress)
    moduleTool.showProgress();
  Stopwatch stopwatch;
  auto module = moduleTool.readModule(options.input);
  if (!module)
    return module.takeError();
  if ((*module)->getBody()->empty())
    return llvm::createStringError("nothing to compile: the module is empty");
  if (llvm::Error error = moduleTool.compile(**module, pipeline))
    return error;
  if ((*module)->getOps<gpu::GPUModuleOp>().empty())
    return llvm::createStringError(
        "nothing to compile: the module needs no kernels");
  stopwatch.lap("compilation");
  if (options.translation == Translation::Library) {
    moduleTool.beginStage("writing the library");
    return tool::writeLibrary(**module, libraryPlan);
  }
  moduleTool.beginStage("writing PTX");
  bool writesPtx = options.translation == Translation::Ptx;
  if (writesPtx && options.manifest.empty()) {
    FailureOr<PtxModule> ptx = translateToPtx(**module);
    if (failed(ptx))
      return llvm::createStringError("translation to PTX failed");
    return finish(options, ptx->text, moduleTool);
  }
  FailureOr<PtxImages> ptx = translateImages(**module);
  if (failed(ptx))
    return llvm::createStringError("translation to PTX failed");
  stopwatch.lap("ptx");
  llvm::Expected<std::string> manifest =
      manifestText(options, **module, *ptx, stopwatch);
  if (!manifest)
    return manifest.takeError();
  if (!writesPtx)
    return finish(options, *manifest, moduleTool);
  return finish(options, ptx->own.text, moduleTool,
                tool::OutputFile{options.manifest, std::move(*manifest)});
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  tool::installErrorHandler();
  Options options;
  tool::PipelineCommandLine pipeline;
  pipeline.prepareHelp(options.category);
  options.programPath = llvm::sys::fs::getMainExecutable(
      argv[0], reinterpret_cast<void *>(&main));
  if (!tool::parseCommandLine(argc, argv,
                              "Translates MLIR to PTX, to a library, or to a "
                              "description or an explanation of that PTX\n"))
    return EXIT_FAILURE;
  if (llvm::Error error = translate(options, pipeline))
    return tool::fail(std::move(error));
  return EXIT_SUCCESS;
}
