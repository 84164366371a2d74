//===- Plan.h - The answer of a search --------------------------*- C++ -*-===//
#ifndef FTUNER_SEARCH_PROBLEM_PLAN_H
#define FTUNER_SEARCH_PROBLEM_PLAN_H

#include "FTuner/Schedule/KernelFamily.h"
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ftuner {

/// Sends every shape inside a box to a kernel family.
struct DispatchEntry {
  /// One closed or open range of extents for each axis of the workload; the
  /// step is 1.
  std::vector<SizeRange> box;
  unsigned family = 0;

  /// Whether the box holds the shape; never if their ranks differ.
  bool contains(llvm::ArrayRef<int64_t> shape) const;
};

/// A count or figure of the search, for the manifest and for remarks.
struct SearchStatistic {
  std::string name;
  double value = 0;
};

/// A program with its rating for one shape: its score, less what the strategy
/// holds against it.
struct RankedProgram {
  KernelFamily family;
  Partition partition;
  double score = 0;
  /// Predicted time; 0 if not known.
  double microseconds = 0;
  /// Measured time; 0 if the search did not have it measured.
  double measuredMicroseconds = 0;
};

/// The best programs of one shape, best first, whether their families were
/// chosen or not.
struct ShapeRanking {
  Shape shape;
  std::vector<RankedProgram> programs;
};

/// What the plan's kernels are predicted to cost for one shape.
struct ShapePrediction {
  Shape shape;
  /// The family that serves it, given aligned pointers.
  unsigned family = 0;
  /// Predicted time of that family's program.
  double microseconds = 0;
  /// That over the time of the fastest program that the search saw, less 1.
  double regret = 0;
  /// How likely the fastest program that was seen is really at least as fast as
  /// the next one, by the cost model that predicted their times
  /// (`ChoiceConfidence`); 0.5 to 1.
  double confidence = 1;
  /// Measured time of that family's program; 0 if the search did not have it
  /// measured.
  double measuredMicroseconds = 0;
};

/// Kernel families and which of them serves which shape.
struct Plan {
  std::vector<KernelFamily> families;
  /// For aligned operands (`alignment`): the first entry whose box holds the
  /// shape wins.
  std::vector<DispatchEntry> entries;
  /// Serves aligned operands when no entry holds the shape (sizes outside the
  /// declared range): a family that makes use of alignment if there is one.
  unsigned generalFamily = 0;
  /// The same for all other operands, by families that take any alignment.
  /// Empty where sizes cannot break the alignment, or one family has to do.
  std::vector<DispatchEntry> unalignedEntries;
  /// Serves any alignment and any stride when none of
  /// `unalignedEntries` holds the shape.
  unsigned unalignedGeneralFamily = 0;
  /// For the shapes that the search looked at, `SearchOptions::topK` programs
  /// each; empty for a topK of 1.
  std::vector<ShapeRanking> rankings;
  /// For the shapes that the search looked at, by the latency model.
  std::vector<ShapePrediction> predictions;
  /// Who made the plan: names of the search strategy and of the cost model, and
  /// of the calibration that predicted times are of. Empty if not known.
  std::string strategy, costModel, calibration;
  /// Who measured programs for the search, e.g. "gpu" or "model:latency@h200";
  /// empty where nobody did.
  std::string measurer;
  /// Codegen paths that the search could take, and those of them that it could
  /// since they were proven on the card; names separated by commas.
  std::string paths, provenPaths;
  std::vector<SearchStatistic> statistics;
  /// Decisions worth a remark, e.g. a filter stage relaxed for some shapes.
  std::vector<std::string> remarks;

  /// Bytes to which operands must be aligned to be served by `entries` and
  /// `generalFamily`: the most that these families ask for.
  int64_t alignment() const;
  /// Whether that is more than elements' own alignment.
  bool needsAlignment() const;
  /// The families that the dispatcher chooses among, ascending: those of
  /// entries, the general one, and the unaligned general one in any case.
  std::vector<unsigned> usedFamilies() const;
  /// Whether one of these runs on the device's exact architecture alone.
  bool needsExactArchitecture() const;
  /// The family for operands that are aligned to that many bytes; aligned ones
  /// unless told.
  unsigned
  familyFor(llvm::ArrayRef<int64_t> shape,
            int64_t alignment = std::numeric_limits<int64_t>::max()) const;
};

/// The first entry that holds the shape, by index; none outside all boxes.
std::optional<unsigned> entryFor(llvm::ArrayRef<DispatchEntry> entries,
                                 llvm::ArrayRef<int64_t> shape);

} // namespace ftuner

#endif // FTUNER_SEARCH_PROBLEM_PLAN_H
