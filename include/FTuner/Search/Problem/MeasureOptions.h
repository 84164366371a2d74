//===- MeasureOptions.h - Options of measurements ---------------*- C++ -*-===//
#ifndef FTUNER_SEARCH_PROBLEM_MEASUREOPTIONS_H
#define FTUNER_SEARCH_PROBLEM_MEASUREOPTIONS_H

#include "FTuner/Support/Options.h"
#include <cstdint>
#include <string>

namespace ftuner {

/// The programs of a shape that are measured beside the best `top`.
enum class MeasuredSet {
  None,
  /// Everything that the strategy ranks for the shape.
  Filter,
};

/// The measurements of ranked strategies (docs/search.md).
struct MeasureOptions {
  /// Number of best programs of each sampled shape that are measured.
  int64_t top = 0;
  MeasuredSet set = MeasuredSet::None;
  /// Name of the measurer, e.g. "gpu" or "model:latency"
  /// (docs/measurements.md); empty for no measurer.
  std::string measurer;
  /// Maximum number of programs that are measured for one workload. Programs
  /// that a log knows count, too, so that a search that goes on from a log ends
  /// as an uninterrupted one does.
  int64_t budget = 1'000'000;
  /// Path of a log of measurements to go on from; empty for no log.
  std::string log;
  /// A shape is measured if the cost model's confidence in its choice of the
  /// best program is below this; 0: all shapes.
  double unsure = 0;
  /// Shapes whose operands take more MiB are not measured; 0: no limit.
  int64_t memoryMib = 0;
  /// Time limit of a command for one program, in seconds.
  int64_t commandSeconds = 600;

  /// True if the strategy measures by itself, whatever `top` and `set` are
  /// (SearchStrategy::measures). Not an option.
  bool byStrategy = false;

  bool isOn() const {
    return top > 0 || set != MeasuredSet::None || byStrategy;
  }
  /// Checks that a measurer is named if something is to be measured.
  llvm::Error checkMeasurer() const;
};

/// measure-top, measure, measurer, measure-budget, measure-log, measure-unsure,
/// measure-memory and measure-seconds.
const OptionTable<MeasureOptions> &measureOptions();

/// Returns a line for each of these options that is given although nothing is
/// measured.
std::vector<std::string> unreadMeasureOptions(const OptionValues &given,
                                              const MeasureOptions &options);

/// Splits a measurer's name at the colon: "recorded:a.jsonl" gives {"recorded",
/// "a.jsonl"}.
std::pair<llvm::StringRef, llvm::StringRef>
splitMeasurerName(llvm::StringRef name);

} // namespace ftuner

#endif // FTUNER_SEARCH_PROBLEM_MEASUREOPTIONS_H
