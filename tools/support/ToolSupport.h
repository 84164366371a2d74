//===- ToolSupport.h - Support code of FTuner's programs --------*- C++ -*-===//
//
// Command lines, input and output with one contract: every failure prints a
// line with `error:`, and nothing is written on failure.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_TOOLS_SUPPORT_TOOLSUPPORT_H
#define FTUNER_TOOLS_SUPPORT_TOOLSUPPORT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <string>
#include <vector>

namespace llvm::cl {
class OptionCategory;
} // namespace llvm::cl

namespace llvm {
class MemoryBuffer;
} // namespace llvm

namespace ftuner {
struct FTunerOptions;

namespace tool {

/// Prints `error: message` and returns the exit code of a failure.
int fail(const llvm::Twine &message);
int fail(llvm::Error error);

/// Parses the command line into the registered options. Says what is wrong with
/// it and returns false otherwise. `--help`, `--help-all` and `--version` end
/// the program.
bool parseCommandLine(int argc, char **argv, llvm::StringRef overview);

/// Reads a file, or standard input for `-`.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
readInput(llvm::StringRef path);

/// Writes a file in one step (a reader sees the old or the new content, and a
/// failure leaves the old), or standard output for `-`.
llvm::Error writeOutput(llvm::StringRef path, llvm::StringRef content);

/// A file to write.
struct OutputFile {
  std::string path;
  std::string content;
};

/// Writes regular files, all or none: each is written beside its place first.
llvm::Error writeOutputs(llvm::ArrayRef<OutputFile> files);

/// Makes an internal error of LLVM a line with `error:` instead of a crash
/// report. Call it once, at the start of a program.
void installErrorHandler();

/// Every option of the pipeline (`pipelineOptionList`) as `--NAME=VALUE` on the
/// command line, and those that are on or off as `--NAME` too; and
/// `--list-options`, which prints them as JSON and ends the program.
class PipelineCommandLine {
public:
  /// Registers the options. Lives as long as the command line is used.
  PipelineCommandLine();
  ~PipelineCommandLine();
  /// Sets the options that the user gave in `options`. Returns an error for
  /// values that are not of an option's type, and for those that the pipeline
  /// does not take; the search checks its own.
  llvm::Error apply(FTunerOptions &options) const;
  /// Names of the options that the user gave, sorted.
  std::vector<std::string> getGiven() const;
  /// Makes `--help` the program's first screen: the options of `category` that
  /// are not hidden, and the basic ones of the pipeline. `--help-all` shows all
  /// of `category`, and the pipeline's options by group. Options that neither
  /// knows are in no help text. Called once, when all options are registered.
  void prepareHelp(llvm::cl::OptionCategory &category);

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace tool
} // namespace ftuner

#endif // FTUNER_TOOLS_SUPPORT_TOOLSUPPORT_H
