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

/// A candidate that a stage threw out, with the figure that it failed by.
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
  /// The codegen path whose candidates it looked at; empty where there is one.
  std::string path = {};
  /// What the stage asks for, e.g. "blocks ≥ 264".
  std::string requirement;
  int64_t before = 0;
  int64_t kept = 0;
  /// Nothing met the requirement: the best by `figure` were kept instead.
  bool relaxed = false;
  /// What the stage measures, e.g. "blocks".
  std::string figure;
  /// Of what was thrown out, the candidate with the greatest sum of metrics.
  std::optional<DroppedCandidate> dropped;
};

/// Returns whether all blocks of a program are of one uKernel, be it that of
/// one height of a pair.
inline bool runsOneUKernel(const Partition &partition) {
  return partition.first == 0 || partition.second == 0;
}

/// A program with each term of its score.
struct ReportedProgram {
  KernelFamily family;
  Partition partition;
  Metrics metrics;
  /// The rows that tensor maps copy, none where the family has no maps.
  BoxRows boxRows;
  CostBreakdown score;
  /// Predicted time with its terms, whatever the cost model is; its score is
  /// the negated microseconds.
  CostBreakdown predicted;
  /// The score, less what the strategy holds against the program, e.g. that it
  /// misses a demand of the filter.
  double rating = 0;
  /// The measured time, where the strategy had it measured.
  std::optional<double> measuredMicroseconds;

  /// The predicted time.
  double microseconds() const { return -predicted.score; }
};

/// A step by which a strategy constructed a program.
struct ConstructionStep {
  /// As the strategy calls it, e.g. "tile(m)".
  std::string action;
  /// Of the action where it was taken.
  double probability = 1;
  /// What there was after it.
  std::string state;
};

struct ShapeReport {
  Shape shape;
  /// Who measured programs; empty where nobody did.
  std::string measurer;
  /// Candidates that the stages began with.
  int64_t candidates = 0;
  std::vector<StageReport> stages;
  /// How the best program was constructed, by strategies that construct.
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
