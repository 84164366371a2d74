//===- ftuner-opt.cpp - Runs passes over MLIR files -----------------------===//
//
// mlir-opt with everything upstream registered, plus FTuner's dialect, passes
// and pipelines. Unlike upstream's main it prints a line with `error:` whenever
// it fails, and then does not touch an existing output file.
//
//===----------------------------------------------------------------------===//
#include "FTuner/InitAll.h"
#include "FTuner/Pipelines/Pipelines.h"
#include "FTuner/Target/Iree.h"
#include "ToolSupport.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Support/Timing.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace ftuner;

/// Lists FTuner's pipelines as upstream lists passes.
static void printPipelines() {
  constexpr size_t indent = 2;
  std::vector<const PassPipelineInfo *> pipelines;
  size_t width = 0;
  SmallVector<StringRef> names(ftuner::getFTunerPipelineNames());
  names.push_back(ftuner::kIreePipelineName);
  for (StringRef name : names)
    if (const PassPipelineInfo *pipeline = PassPipelineInfo::lookup(name)) {
      pipelines.push_back(pipeline);
      width = std::max(width, pipeline->getOptionWidth() + indent);
    }
  llvm::outs() << "Pass Pipelines:\n";
  for (const PassPipelineInfo *pipeline : pipelines)
    pipeline->printHelpStr(indent, width);
}

/// Answers `--help` with only FTuner's passes and pipelines, which would be
/// lost in the list of mlir-opt. `--help-all` prints mlir-opt's `--help`.
/// Returns whether help was asked for.
static bool printHelp(MutableArrayRef<char *> arguments) {
  static char all[] = "--help";
  for (char *&argument : arguments) {
    StringRef text = argument;
    if (text == "--help-all" || text == "-help-all") {
      argument = all;
      return false;
    }
    if (text != "--help" && text != "-help" && text != "-h" && text != "--h")
      continue;
    llvm::outs() << "OVERVIEW: FTuner's optimizer driver\n\n"
                    "USAGE: ftuner-opt [options] <input file>\n\n"
                    "FTuner's passes and pipelines, with their options as in "
                    "--ftuner-compile=\"device=h200 max-kernels=8\":\n\n";
    printPipelines();
    // Nobody else's are registered yet.
    printRegisteredPasses();
    llvm::outs()
        << "\nEvery pass and option of mlir-opt works, too (-o, "
           "--pass-pipeline, --mlir-print-ir-after-all, --remarks-filter, "
           "...):\n"
           "  --help-all     lists them with FTuner's\n"
           "  --help-hidden  lists all there is\n"
           "  --list-passes  lists the passes alone\n";
    return true;
  }
  return false;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  tool::installErrorHandler();
  ftuner::registerAllPasses();
  ftuner::registerIreePipeline();
  if (printHelp({argv + 1, argv + argc}))
    return EXIT_SUCCESS;
  DialectRegistry registry;
  ftuner::registerAllDialects(registry);
  mlir::registerAllPasses();

  llvm::cl::opt<std::string> inputFile(llvm::cl::Positional,
                                       llvm::cl::desc("<input file>"),
                                       llvm::cl::init("-"));
  llvm::cl::opt<std::string> outputFile("o", llvm::cl::desc("Output file"),
                                        llvm::cl::value_desc("file"),
                                        llvm::cl::init("-"));
  MlirOptMainConfig::registerCLOptions(registry);
  registerAsmPrinterCLOptions();
  registerMLIRContextCLOptions();
  registerPassManagerCLOptions();
  registerDefaultTimingManagerCLOptions();
  if (!tool::parseCommandLine(argc, argv, "FTuner's optimizer driver\n"))
    return EXIT_FAILURE;

  MlirOptMainConfig config = MlirOptMainConfig::createFromCLOptions();
  if (config.shouldListPasses()) {
    printRegisteredPasses();
    return EXIT_SUCCESS;
  }
  if (config.shouldShowDialects()) {
    llvm::outs() << "Available Dialects: ";
    llvm::interleaveComma(registry.getDialectNames(), llvm::outs());
    llvm::outs() << '\n';
    return EXIT_SUCCESS;
  }

  llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> input =
      tool::readInput(inputFile);
  if (!input)
    return tool::fail(input.takeError());
  std::string output;
  llvm::raw_string_ostream stream(output);
  if (failed(MlirOptMain(stream, std::move(*input), registry, config)))
    return tool::fail("processing '" + inputFile + "' failed");
  if (llvm::Error error = tool::writeOutput(outputFile, output))
    return tool::fail(std::move(error));
  return EXIT_SUCCESS;
}
