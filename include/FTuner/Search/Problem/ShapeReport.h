//===- ShapeReport.h - How a search judges one shape ------------*- C++ -*-===//
#ifndef FTUNER_SEARCH_PROBLEM_SHAPEREPORT_H
#define FTUNER_SEARCH_PROBLEM_SHAPEREPORT_H

#include "FTuner/CostModel/CostModel.h"
#include "FTuner/CostModel/Metrics.h"
#include "FTuner/Schedule/KernelFamily.h"
#include <optional>
#include <string>
#include <vector>

namespace ftuner {

/// A candidate that a stage rejected, with the figure that it failed by.
struct DroppedCandidate {
  UKernel ukernel;
  Metrics metrics;
  /// The stage's figure of this candidate, e.g. its number of blocks.
  double value = 0;
};

/// One stage of a filter, for one shape.
struct StageReport {
  /// As in the statistics of a plan, e.g. "space_axis".
  std::string name;
  /// The codegen path whose candidates the stage filtered; empty if there is
  /// only one path.
  std::string path = {};
  /// The requirement of the stage, e.g. "blocks ≥ 264".
  std::string requirement;
  int64_t before = 0;
  int64_t kept = 0;
  /// True if no candidate met the requirement, so that the best by `figure`
  /// were kept instead.
  bool relaxed = false;
  /// Name of the figure that the stage computes, e.g. "blocks".
  std::string figure;
  /// The rejected candidate with the greatest sum of metrics.
  std::optional<DroppedCandidate> dropped;
};

/// Returns whether all blocks of a program run one uKernel, which may be one of
/// a pair.
inline bool runsOneUKernel(const Partition &partition) {
  return partition.first == 0 || partition.second == 0;
}

/// A program with each term of its score.
struct ReportedProgram {
  KernelFamily family;
  Partition partition;
  Metrics metrics;
  /// The rows that tensor maps copy; empty if the family has no maps.
  BoxRows boxRows;
  CostBreakdown score;
  /// Predicted time with its terms, whatever the cost model is; its score is
  /// the negated microseconds.
  CostBreakdown predicted;
  /// The score, less the strategy's penalties, e.g. for a demand of the filter
  /// that the program misses.
  double rating = 0;
  /// The measured time; no value if it was not measured.
  std::optional<double> measuredMicroseconds;

  /// The predicted time.
  double microseconds() const { return -predicted.score; }
};

/// A step by which a strategy constructed a program.
struct ConstructionStep {
  /// Name of the action, e.g. "tile(m)".
  std::string action;
  /// Probability of the action in the state in which it was taken.
  double probability = 1;
  /// The state after the step.
  std::string state;
};

struct ShapeReport {
  Shape shape;
  /// Title of the measurer; empty if nothing was measured.
  std::string measurer;
  /// Number of candidates before the first stage.
  int64_t candidates = 0;
  std::vector<StageReport> stages;
  /// Steps by which a constructing strategy made the best program.
  std::vector<ConstructionStep> construction;
  /// Programs of one and of two uKernels in the pool.
  int64_t singlePrograms = 0;
  int64_t pairPrograms = 0;
  /// The best programs by score, best first.
  std::vector<ReportedProgram> programs;
  /// The best of all programs of one uKernel (`runsOneUKernel`) that the
  /// strategy rated for the shape, by its rating.
  std::optional<ReportedProgram> bestSingle;
};

} // namespace ftuner

#endif // FTUNER_SEARCH_PROBLEM_SHAPEREPORT_H
