//===- ftuner-run.cpp - Runs a function of an MLIR file -------------------===//
//
// Runs a function through compiled host code and kernels, emulated or on a GPU,
// or through upstream's lowering (the reference), on data from files or made
// up, and compares the two. Nothing is written on failure.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Executor/Executor.h"
#include "FTuner/Executor/Npy.h"
#include "FTuner/Executor/Tolerance.h"
#include "FTuner/Pipelines/Pipelines.h"
#include "ModuleTool.h"
#include "RunReport.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"
#include <cmath>

using namespace mlir;
using namespace ftuner;
using emulator::EmulatorOptions;

namespace {
enum class ExecutorKind { Emulator, Cuda, Reference };

const char *getName(ExecutorKind kind) {
  switch (kind) {
  case ExecutorKind::Emulator:
    return "emulator";
  case ExecutorKind::Cuda:
    return "cuda";
  case ExecutorKind::Reference:
    break;
  }
  return "reference";
}

/// The program's own options.
struct Options {
  /// How the program was called.
  std::string program;
  llvm::cl::OptionCategory category{"Options of ftuner-run"};
  llvm::cl::opt<std::string> input{
      llvm::cl::Positional, llvm::cl::desc("<input file>"), llvm::cl::init("-"),
      llvm::cl::cat(category)};
  llvm::cl::opt<std::string> function{
      "function",
      llvm::cl::desc("The program runs this function; a module with several "
                     "needs it"),
      llvm::cl::value_desc("name"), llvm::cl::cat(category)};
  llvm::cl::list<std::string> arguments{
      "args",
      llvm::cl::desc("Each argument has an item: a tensor type such as "
                     "53x768xf32, a number for a scalar, or TYPE@FILE.npy to "
                     "read the data. Given again, the function runs again"),
      llvm::cl::value_desc("items"), llvm::cl::cat(category)};
  llvm::cl::opt<ExecutorKind> executor{
      "executor", llvm::cl::desc("The function is run by one of these:"),
      llvm::cl::values(
          clEnumValN(ExecutorKind::Emulator, "emulator",
                     "compiled host code, and its kernels on the CPU"),
          clEnumValN(ExecutorKind::Cuda, "cuda",
                     "compiled host code, and its kernels on a GPU"),
          clEnumValN(ExecutorKind::Reference, "reference",
                     "upstream's lowering to loops, in f64, rounded where "
                     "the program rounds")),
      llvm::cl::init(ExecutorKind::Emulator), llvm::cl::cat(category)};
  llvm::cl::opt<uint64_t> seed{
      "seed", llvm::cl::desc("Tensors without a file get data from this seed"),
      llvm::cl::init(0), llvm::cl::cat(category)};
  llvm::cl::opt<bool> check{
      "check", llvm::cl::desc("The results are compared with the reference"),
      llvm::cl::cat(category)};
  llvm::cl::opt<std::string> reference{
      "reference",
      llvm::cl::desc(
          "The function of the same name in this module is the "
          "reference of --check, such as in the module that the "
          "input was planned or compiled from; by default the input"),
      llvm::cl::value_desc("file"), llvm::cl::Hidden, llvm::cl::cat(category)};
  llvm::cl::opt<double> tolerance{
      "tolerance",
      llvm::cl::desc("A result passes with at most this relative Frobenius "
                     "error; by default 1e-12 for f64, 1e-5 where f32 is on "
                     "the way to the "
                     "result, 0 for integers, and more where the result is "
                     "rounded to f16 (up to 2e-3) or bf16 (up to 2e-2)"),
      llvm::cl::Hidden, llvm::cl::cat(category)};
  llvm::cl::opt<std::string> saveDir{
      "save-dir",
      llvm::cl::desc("The results go to this folder: result0.npy, result1.npy, "
                     "..."),
      llvm::cl::value_desc("folder"), llvm::cl::Hidden,
      llvm::cl::cat(category)};
  llvm::cl::opt<bool> json{
      "json", llvm::cl::desc("Each run prints one JSON object in one line"),
      llvm::cl::cat(category)};
  tool::RemarksOption remarks{category};
  llvm::cl::opt<int64_t> misalign{
      "misalign",
      llvm::cl::desc(
          "Every tensor moves this number of bytes off its "
          "alignment, rounded up to a multiple of its elements' size"),
      llvm::cl::value_desc("bytes"),
      llvm::cl::init(0),
      llvm::cl::Hidden,
      llvm::cl::cat(category)};

  llvm::cl::opt<bool> checkBounds{
      "check-bounds",
      llvm::cl::desc("The emulator checks the address and alignment of every "
                     "access"),
      llvm::cl::Hidden, llvm::cl::cat(category)};
  llvm::cl::opt<bool> checkRaces{
      "check-races",
      llvm::cl::desc("The emulator checks that barriers order accesses to the "
                     "same bytes"),
      llvm::cl::Hidden, llvm::cl::cat(category)};
  llvm::cl::opt<EmulatorOptions::ThreadOrder> threadOrder{
      "thread-order",
      llvm::cl::desc("The emulator runs threads in this order:"),
      llvm::cl::values(
          clEnumValN(EmulatorOptions::Forward, "forward", "ascending"),
          clEnumValN(EmulatorOptions::Reverse, "reverse", "descending"),
          clEnumValN(EmulatorOptions::Shuffled, "shuffled",
                     "a new order after every barrier, from the seed")),
      llvm::cl::init(EmulatorOptions::Forward),
      llvm::cl::Hidden,
      llvm::cl::cat(category)};
  llvm::cl::opt<bool> eagerCopies{
      "eager-async-copies",
      llvm::cl::desc("Asynchronous copies write at once, not when they are "
                     "waited for"),
      llvm::cl::Hidden, llvm::cl::cat(category)};
  llvm::cl::opt<bool> counters{
      "counters",
      llvm::cl::desc(
          "The emulator counts accesses of memory and instructions of each "
          "kernel (docs/emulator.md)"),
      llvm::cl::Hidden, llvm::cl::cat(category)};
};

/// A program's run: everything between the command line and the exit code.
class Runner {
public:
  Runner(const Options &options, const tool::PipelineCommandLine &pipeline)
      : options(options), pipeline(pipeline), moduleTool(options.remarks) {}

  llvm::Error run();

private:
  llvm::Error checkOptions() const;
  llvm::Error prepare();
  llvm::Error readReference();
  llvm::Error prepareExecutors();
  llvm::Expected<std::unique_ptr<Executor>>
  createEmulator(const Signature &lowered);
  llvm::Expected<std::unique_ptr<Executor>>
  createCuda(const Signature &lowered);
  llvm::Expected<RunReport> runOnce(llvm::StringRef arguments);
  llvm::Error save(RunReport &report) const;
  double getTolerance(size_t result, const Comparison &comparison) const;

  const Options &options;
  const tool::PipelineCommandLine &pipeline;
  tool::ModuleTool moduleTool;
  OwningOpRef<ModuleOp> module;
  /// Null where the reference is the module itself.
  OwningOpRef<ModuleOp> referenceModule;
  OwningOpRef<ModuleOp> compiled;
  std::string functionName;
  Signature signature;
  std::vector<Tolerance> tolerances;
  std::unique_ptr<Executor> executor;
  std::unique_ptr<Executor> reference;
};
} // namespace

llvm::Error Runner::checkOptions() const {
  if (std::isnan(options.tolerance) || options.tolerance < 0)
    return llvm::createStringError("option --tolerance: expected at least 0");
  const llvm::cl::Option *emulatorOptions[] = {
      &options.checkBounds, &options.checkRaces, &options.threadOrder,
      &options.eagerCopies, &options.counters};
  for (const llvm::cl::Option *option : emulatorOptions)
    if (option->getNumOccurrences() &&
        options.executor != ExecutorKind::Emulator)
      return llvm::createStringError(
          "option --" + option->ArgStr +
          " has no effect without --executor=emulator");
  if (options.tolerance.getNumOccurrences() && !options.check)
    return llvm::createStringError(
        "option --tolerance has no effect without --check");
  if (options.reference.getNumOccurrences() && !options.check)
    return llvm::createStringError(
        "option --reference has no effect without --check");
  if (!options.saveDir.empty() && options.arguments.size() > 1)
    return llvm::createStringError(
        "option --save-dir: expected one --args, but got " +
        llvm::Twine(options.arguments.size()));
  constexpr int64_t maxMisalignment = 256;
  if (options.misalign < 0 || options.misalign > maxMisalignment)
    return llvm::createStringError("option --misalign: expected 0 to " +
                                   llvm::Twine(maxMisalignment) + ", but got " +
                                   llvm::Twine(options.misalign));
  return llvm::Error::success();
}

/// Leaves one public function, so that nothing else is compiled.
static void keepOnly(ModuleOp module, llvm::StringRef name) {
  for (auto function : module.getOps<FunctionOpInterface>())
    if (function.isPublic() && function.getName() != name)
      function.setPrivate();
}

llvm::Error Runner::prepareExecutors() {
  bool needsReference =
      options.check || options.executor == ExecutorKind::Reference;
  if (needsReference) {
    ModuleOp source = referenceModule ? *referenceModule : *module;
    if (isCompiled(source))
      return llvm::createStringError(
          "the reference needs the module before compilation, but "
          "got a compiled one");
    auto created = createReferenceExecutor(source, signature);
    if (!created)
      return created.takeError();
    reference = std::move(*created);
  }
  if (options.executor == ExecutorKind::Reference)
    return llvm::Error::success();

  compiled = OwningOpRef<ModuleOp>(module->clone());
  if (!isCompiled(*compiled))
    keepOnly(*compiled, functionName);
  if (llvm::Error error = moduleTool.compile(*compiled, pipeline))
    return error;
  auto function = findFunction(*compiled, functionName);
  if (!function)
    return function.takeError();
  // Keep the input's symbols of dimensions.
  Signature lowered = signature;
  lowered.name = function->getName().str();
  auto created = options.executor == ExecutorKind::Cuda
                     ? createCuda(lowered)
                     : createEmulator(lowered);
  if (!created)
    return created.takeError();
  executor = std::move(*created);
  return llvm::Error::success();
}

llvm::Expected<std::unique_ptr<Executor>>
Runner::createEmulator(const Signature &lowered) {
  EmulatorExecutorOptions executorOptions;
  executorOptions.offset = options.misalign;
  executorOptions.emulator.checkBounds = options.checkBounds;
  executorOptions.emulator.checkRaces = options.checkRaces;
  executorOptions.emulator.lazyAsyncCopies = !options.eagerCopies;
  executorOptions.emulator.counters = options.counters;
  executorOptions.emulator.order = options.threadOrder;
  executorOptions.emulator.seed = static_cast<unsigned>(options.seed);
  return createEmulatorExecutor(*compiled, lowered, executorOptions);
}

llvm::Expected<std::unique_ptr<Executor>>
Runner::createCuda(const Signature &lowered) {
  // PREFIX/bin/ftuner-run and PREFIX/lib/libftrt.so.1.
  std::string program = llvm::sys::fs::getMainExecutable(
      options.program.c_str(), reinterpret_cast<void *>(&keepOnly));
  llvm::SmallString<128> library =
      llvm::sys::path::parent_path(llvm::sys::path::parent_path(program));
  llvm::sys::path::append(library, "lib", "libftrt.so.1");
  CudaExecutorOptions executorOptions;
  executorOptions.runtimeLibrary = library.str().str();
  executorOptions.offset = options.misalign;
  return createCudaExecutor(*compiled, lowered, executorOptions);
}

/// Returns true if the functions take and give the same types; `symbols` are
/// hints.
static bool haveSameTypes(const Signature &a, const Signature &b) {
  auto isSame = [](const SignatureType &a, const SignatureType &b) {
    return a.isTensor == b.isTensor && a.type == b.type && a.shape == b.shape;
  };
  return llvm::equal(a.arguments, b.arguments, isSame) &&
         llvm::equal(a.results, b.results, isSame);
}

llvm::Error Runner::readReference() {
  auto read = moduleTool.readModule(options.reference);
  if (!read)
    return read.takeError();
  referenceModule = std::move(*read);
  auto function = findFunction(*referenceModule, functionName);
  if (!function)
    return llvm::createStringError("option --reference: " +
                                   llvm::toString(function.takeError()));
  FailureOr<Signature> found = getSignature(*function);
  if (failed(found) || !haveSameTypes(*found, signature))
    return llvm::createStringError("option --reference: expected a function '" +
                                   functionName +
                                   "' of the same types as in the input");
  return llvm::Error::success();
}

llvm::Error Runner::prepare() {
  auto read = moduleTool.readModule(options.input);
  if (!read)
    return read.takeError();
  module = std::move(*read);
  auto function = findFunction(*module, options.function);
  if (!function)
    return function.takeError();
  functionName = getSourceName(*function).str();
  FailureOr<Signature> converted = getSignature(*function);
  if (failed(converted))
    return llvm::createStringError("function '" + functionName +
                                   "' cannot be run");
  signature = std::move(*converted);
  FTunerOptions compilation;
  if (llvm::Error error = pipeline.apply(compilation))
    return error;
  if (options.reference.getNumOccurrences()) {
    if (llvm::Error error = readReference())
      return error;
    function = findFunction(*referenceModule, functionName);
    if (!function)
      return function.takeError();
  }
  tolerances = getTolerances(
      *function, *findFactorPrecision(compilation.settings().precision));
  return llvm::Error::success();
}

double Runner::getTolerance(size_t result, const Comparison &comparison) const {
  if (options.tolerance.getNumOccurrences())
    return options.tolerance;
  return tolerances[result].limitFor(comparison);
}

llvm::Expected<RunReport> Runner::runOnce(llvm::StringRef text) {
  ArgumentOptions argumentOptions;
  argumentOptions.seed = options.seed;
  argumentOptions.offset = options.misalign;
  auto arguments = parseArguments(text, signature, argumentOptions);
  if (!arguments)
    return arguments.takeError();
  RunReport report;
  report.function = functionName;
  report.executor = getName(options.executor);
  report.arguments = text.str();
  auto result = (executor ? *executor : *reference).run(*arguments);
  if (!result)
    return result.takeError();
  report.run = std::move(*result);
  // A comparison with the reference needs the results on the host.
  if (!executor && !options.check)
    for (auto [index, tensor] : llvm::enumerate(report.run.results))
      report.tolerances.push_back(getTolerance(index, compare(tensor, tensor)));
  if (!options.check)
    return report;

  auto expected = reference->run(*arguments);
  if (!expected)
    return expected.takeError();
  for (auto [index, tensor] : llvm::enumerate(report.run.results)) {
    const Tensor &wanted = expected->results[index];
    if (tensor.getShape() != wanted.getShape())
      return llvm::createStringError("expected result " + llvm::Twine(index) +
                                     " of type " + wanted.getTypeString() +
                                     " as in the reference, but got " +
                                     tensor.getTypeString());
    report.comparisons.push_back(compare(tensor, wanted));
    report.tolerances.push_back(getTolerance(index, report.comparisons.back()));
  }
  return report;
}

llvm::Error Runner::save(RunReport &report) const {
  if (options.saveDir.empty())
    return llvm::Error::success();
  if (std::error_code code = llvm::sys::fs::create_directories(options.saveDir))
    return llvm::createStringError("cannot create '" + options.saveDir +
                                   "': " + code.message());
  std::vector<tool::OutputFile> files;
  for (auto [index, tensor] : llvm::enumerate(report.run.results)) {
    llvm::SmallString<128> path(options.saveDir);
    llvm::sys::path::append(path, "result" + llvm::Twine(index) + ".npy");
    files.push_back({path.str().str(), formatNpy(tensor)});
  }
  if (llvm::Error error = tool::writeOutputs(files))
    return error;
  for (tool::OutputFile &file : files)
    report.files.push_back(std::move(file.path));
  return llvm::Error::success();
}

llvm::Error Runner::run() {
  if (llvm::Error error = checkOptions())
    return error;
  if (llvm::Error error = prepare())
    return error;
  std::vector<std::string> runs(options.arguments.begin(),
                                options.arguments.end());
  if (runs.empty())
    runs.emplace_back();
  for (const std::string &arguments : runs)
    if (llvm::Error error = checkArguments(arguments, signature))
      return error;
  if (llvm::Error error = prepareExecutors())
    return error;

  // All runs are made and reported, also after one that fails.
  unsigned numFailed = 0;
  for (const std::string &arguments : runs) {
    auto report = runOnce(arguments);
    llvm::Error error = report ? report->check() : report.takeError();
    if (report && !error)
      error = save(*report);
    if (report)
      (options.json ? printJson : printText)(*report, llvm::outs());
    llvm::outs().flush();
    if (!error)
      continue;
    if (runs.size() == 1)
      return error;
    ++numFailed;
    tool::fail(llvm::toString(std::move(error)) + " (--args=" + arguments +
               ")");
  }
  if (numFailed)
    return llvm::createStringError(llvm::Twine(numFailed) + " of " +
                                   llvm::Twine(runs.size()) + " runs failed");
  return llvm::Error::success();
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  tool::installErrorHandler();
  Options options;
  options.program = argv[0];
  tool::PipelineCommandLine pipeline;
  pipeline.prepareHelp(options.category);
  if (!tool::parseCommandLine(
          argc, argv,
          "Runs a function of an MLIR file on the CPU or on a GPU\n"))
    return EXIT_FAILURE;
  if (llvm::Error error = Runner(options, pipeline).run())
    return tool::fail(std::move(error));
  return EXIT_SUCCESS;
}
