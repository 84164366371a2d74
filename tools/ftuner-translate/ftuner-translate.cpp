//===- ftuner-translate.cpp - From MLIR to PTX and its manifest -----------===//
//
// Takes linalg on tensors, which it compiles, or a module that went through
// `ftuner-opt --ftuner-compile`. Nothing is written on failure.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Target/Manifest.h"
#include "FTuner/Target/PTX.h"
#include "ModuleTool.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>

using namespace mlir;
using namespace ftuner;

namespace {
enum class Translation { None, Ptx, Manifest };

/// The program's own options.
struct Options {
  llvm::cl::OptionCategory category{"Options of ftuner-translate"};
  llvm::cl::opt<std::string> input{
      llvm::cl::Positional, llvm::cl::desc("<input file>"), llvm::cl::init("-"),
      llvm::cl::cat(category)};
  llvm::cl::opt<std::string> output{
      "o", llvm::cl::desc("Output file"), llvm::cl::value_desc("file"),
      llvm::cl::init("-"), llvm::cl::cat(category)};
  llvm::cl::opt<Translation> translation{
      llvm::cl::desc("What to write:"),
      llvm::cl::values(
          clEnumValN(Translation::Ptx, "ftuner-to-ptx",
                     "One PTX module with an entry for each kernel"),
          clEnumValN(Translation::Manifest, "ftuner-to-manifest",
                     "A description of functions, kernels and dispatch as "
                     "JSON (docs/manifest.md)")),
      llvm::cl::init(Translation::None), llvm::cl::cat(category)};
  llvm::cl::opt<bool> timing{
      "timing", llvm::cl::desc("Add the seconds of each stage to the manifest"),
      llvm::cl::cat(category)};
  llvm::cl::opt<bool> remarks{"remarks",
                              llvm::cl::desc("Print the compiler's decisions"),
                              llvm::cl::cat(category)};
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

static llvm::Error translate(const Options &options,
                             const tool::PipelineCommandLine &pipeline) {
  auto failure = [](const llvm::Twine &text) {
    return llvm::createStringError(llvm::inconvertibleErrorCode(), text);
  };
  if (options.translation.getNumOccurrences() != 1)
    return failure("expected one of --ftuner-to-ptx and --ftuner-to-manifest");
  if (options.timing && options.translation != Translation::Manifest)
    return failure("option --timing has no effect without "
                   "--ftuner-to-manifest");
  tool::ModuleTool moduleTool(options.remarks);
  Stopwatch stopwatch;
  auto module = moduleTool.readModule(options.input);
  if (!module)
    return module.takeError();
  if ((*module)->getBody()->empty())
    return failure("nothing to compile: the module is empty");
  if (llvm::Error error = moduleTool.compile(**module, pipeline))
    return error;
  if ((*module)->getOps<gpu::GPUModuleOp>().empty())
    return failure("nothing to compile: the module needs no kernels");
  stopwatch.lap("compilation");

  FailureOr<PtxModule> ptx = translateToPtx(**module);
  if (failed(ptx))
    return failure("translation to PTX failed");
  stopwatch.lap("ptx");
  if (options.translation == Translation::Ptx)
    return tool::writeOutput(options.output, ptx->text);

  ManifestOptions manifestOptions;
  if (options.timing)
    manifestOptions.seconds = stopwatch.seconds;
  std::string manifest;
  llvm::raw_string_ostream stream(manifest);
  if (failed(writeManifest(**module, *ptx, manifestOptions, stream)))
    return failure("writing the manifest failed");
  return tool::writeOutput(options.output, manifest);
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  tool::installErrorHandler();
  Options options;
  tool::PipelineCommandLine pipeline;
  pipeline.hideOtherOptions(options.category);
  if (!tool::parseCommandLine(argc, argv,
                              "Translates MLIR to PTX, or to a description of "
                              "that PTX\n"))
    return EXIT_FAILURE;
  if (llvm::Error error = translate(options, pipeline))
    return tool::fail(std::move(error));
  return EXIT_SUCCESS;
}
