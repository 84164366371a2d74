//===- RunReport.h - Report of ftuner-run about a run -----------*- C++ -*-===//
#ifndef FTUNER_TOOLS_FTUNER_RUN_RUNREPORT_H
#define FTUNER_TOOLS_FTUNER_RUN_RUNREPORT_H

#include "FTuner/Executor/Executor.h"

#include "llvm/Support/raw_ostream.h"
#include <optional>

namespace ftuner {

/// One run with its outcome.
struct RunReport {
  std::string function;
  std::string executor;
  /// The text of --args.
  std::string arguments;
  RunResult run;
  /// One for each result with --check, else empty.
  std::vector<Comparison> comparisons;
  /// One for each result with --check and of the reference, else empty.
  std::vector<double> tolerances;
  /// Files of the results with --save-dir, else empty.
  std::vector<std::string> files;

  /// Says which results differ from the reference by more than the tolerance.
  llvm::Error check() const;
};

/// For people: a line for each result, the launches, the counters, the seconds.
void printText(const RunReport &report, llvm::raw_ostream &os);
/// For programs: one JSON object in one line.
void printJson(const RunReport &report, llvm::raw_ostream &os);

} // namespace ftuner

#endif // FTUNER_TOOLS_FTUNER_RUN_RUNREPORT_H
