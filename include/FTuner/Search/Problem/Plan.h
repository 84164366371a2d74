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

  /// Returns whether the box holds the shape; false if their ranks differ.
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

/// The predicted time of the plan's kernel for one shape.
struct ShapePrediction {
  Shape shape;
  /// The family that serves it, given aligned pointers.
  unsigned family = 0;
  /// Predicted time of that family's program.
  double microseconds = 0;
  /// Predicted time divided by the time of the fastest program that the search
  /// saw, minus 1.
  double regret = 0;
  /// Probability that the fastest program that was seen is really at least as
  /// fast as the second, by the cost model that predicted their times
  /// (`ChoiceConfidence`); 0.5 to 1.
  double confidence = 1;
  /// Measured time of that family's program; 0 if it was not measured.
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
  /// Like `entries`, for operands that are not aligned; the families take any
  /// alignment. Empty if sizes cannot break the alignment, or if one family
  /// serves all unaligned operands.
  std::vector<DispatchEntry> unalignedEntries;
  /// Serves any alignment and any stride when none of
  /// `unalignedEntries` holds the shape.
  unsigned unalignedGeneralFamily = 0;
  /// `SearchOptions::topK` programs for each shape that the search looked at;
  /// empty if topK is 1.
  std::vector<ShapeRanking> rankings;
  /// Predictions of the latency model for the shapes that the search looked at.
  std::vector<ShapePrediction> predictions;
  /// Names of the search strategy, of the cost model, and of the calibration of
  /// predicted times. Empty if not known.
  std::string strategy, costModel, calibration;
  /// Title of the measurer, e.g. "gpu" or "model:latency@h200"; empty if
  /// nothing was measured.
  std::string measurer;
  /// Names of the codegen paths that the search could take, and of those paths
  /// among them that were open because they were proven on the card; separated
  /// by commas.
  std::string paths, provenPaths;
  std::vector<SearchStatistic> statistics;
  /// Decisions worth a remark, e.g. a filter stage relaxed for some shapes.
  std::vector<std::string> remarks;

  /// Returns the bytes to which operands must be aligned to be served by
  /// `entries` and `generalFamily`: the maximum over these families.
  int64_t alignment() const;
  /// Returns whether `alignment` exceeds the alignment of elements.
  bool needsAlignment() const;
  /// Returns the families that the dispatcher chooses among, ascending:
  /// families of entries, the general family and the unaligned general family.
  std::vector<unsigned> usedFamilies() const;
  /// Returns whether one of `usedFamilies` runs only on the device's exact
  /// architecture.
  bool needsExactArchitecture() const;
  /// Returns the family for operands that are aligned to that many bytes; by
  /// default for aligned operands.
  unsigned
  familyFor(llvm::ArrayRef<int64_t> shape,
            int64_t alignment = std::numeric_limits<int64_t>::max()) const;
};

/// Returns the index of the first entry that holds the shape, or no value if
/// the shape is outside of all boxes.
std::optional<unsigned> entryFor(llvm::ArrayRef<DispatchEntry> entries,
                                 llvm::ArrayRef<int64_t> shape);

} // namespace ftuner

#endif // FTUNER_SEARCH_PROBLEM_PLAN_H
