//===- ftuner-opt.cpp - Runs passes over MLIR files -----------------------===//
//
// mlir-opt with everything upstream registered, plus FTuner's dialect, passes
// and pipelines. Unlike upstream's main it prints a line with `error:` whenever
// it fails, and leaves an existing output file alone then.
//
//===----------------------------------------------------------------------===//
#include "FTuner/InitAll.h"
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

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  tool::installErrorHandler();
  DialectRegistry registry;
  ftuner::registerAllDialects(registry);
  mlir::registerAllPasses();
  ftuner::registerAllPasses();

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
