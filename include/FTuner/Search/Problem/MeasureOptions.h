//===- MeasureOptions.h - What a search measures, and by whom -*- C++ -*-===//
#ifndef FTUNER_SEARCH_PROBLEM_MEASUREOPTIONS_H
#define FTUNER_SEARCH_PROBLEM_MEASUREOPTIONS_H

#include "FTuner/Support/Options.h"
#include <cstdint>
#include <string>

namespace ftuner {

/// Which programs of a shape are measured beside the best `top`.
enum class MeasuredSet {
  None,
  /// Everything that the strategy ranks for the shape.
  Filter,
};

/// What ranked strategies measure (docs/search.md).
struct MeasureOptions {
  /// Best programs of each sampled shape.
  int64_t top = 0;
  MeasuredSet set = MeasuredSet::None;
  /// Who measures, e.g. "gpu" or "model:latency" (docs/measurements.md); empty
  /// for nobody.
  std::string measurer;
  /// Most programs that are measured for one workload. What a log knows counts,
  /// too, so that a search that goes on from one ends as it would have.
  int64_t budget = 1'000'000;
  /// Path of a file of measurements to go on from; empty for none.
  std::string log;
  /// Shapes are measured where the cost model trusts its choice of the best
  /// program less than this; 0: all shapes.
  double unsure = 0;
  /// Shapes whose operands take more MiB are not measured; 0: no limit.
  int64_t memoryMib = 0;
  /// Time limit of a command for one program.
  int64_t commandSeconds = 600;

  /// Whether the strategy measures by itself, whatever `top` and `set` say
  /// (SearchStrategy::measures); no option.
  bool byStrategy = false;

  bool isOn() const {
    return top > 0 || set != MeasuredSet::None || byStrategy;
  }
  /// Says why nobody can measure what is asked for.
  llvm::Error checkMeasurer() const;
};

/// measure-top, measure, measurer, measure-budget, measure-log, measure-unsure,
/// measure-memory and measure-seconds.
const OptionTable<MeasureOptions> &measureOptions();

/// A line for each of these options that is given although nothing is measured.
std::vector<std::string> unreadMeasureOptions(const OptionValues &given,
                                              const MeasureOptions &options);

/// The kind of a measurer and what follows the colon: "recorded:a.jsonl" is
/// {"recorded", "a.jsonl"}.
std::pair<llvm::StringRef, llvm::StringRef>
splitMeasurerName(llvm::StringRef name);

} // namespace ftuner

#endif // FTUNER_SEARCH_PROBLEM_MEASUREOPTIONS_H
