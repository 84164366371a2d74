//===- MeasureOutput.h - --ftuner-measure -----------------------*- C++ -*-===//
#ifndef FTUNER_TOOLS_FTUNER_TRANSLATE_MEASUREOUTPUT_H
#define FTUNER_TOOLS_FTUNER_TRANSLATE_MEASUREOUTPUT_H

#include "FTuner/Search/Planning/Explanation.h"
#include "FTuner/Search/Setup/SearchSetup.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/CommandLine.h"

namespace ftuner::tool {

/// The options of `--ftuner-measure`.
struct MeasureCommandLine {
  explicit MeasureCommandLine(llvm::cl::OptionCategory &category);

  llvm::cl::opt<std::string> log;
  llvm::cl::opt<int64_t> budget;

  /// Reports options that were given although nothing is measured.
  llvm::Error expectNone() const;
};

/// Measures every family that a planned module's workloads use, at the sizes;
/// returns a line of JSON for each (docs/measurements.md). A family that cannot
/// be measured has the reason in its line. `programPath` is the path of this
/// program's file.
llvm::Expected<std::string> measureModule(mlir::ModuleOp module,
                                          const SearchSetup &setup,
                                          const NamedSizes &sizes,
                                          const MeasureCommandLine &commandLine,
                                          llvm::StringRef programPath);

} // namespace ftuner::tool

#endif // FTUNER_TOOLS_FTUNER_TRANSLATE_MEASUREOUTPUT_H
