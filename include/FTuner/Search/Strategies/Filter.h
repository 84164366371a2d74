//===- Filter.h - Filter of uKernels for a shape ----------------*- C++ -*-===//
//
// The stages of algorithm 1 after HardwareAlign, in the paper's order, for one
// shape at a time:
//
//   CrossPick     Pad ≥ ε and Occ ≥ λ at some step (ε_min + i·Δε, λ_max − i·Δλ)
//   SetBound      registers · threads ≤ registers per SM / min(ceil(blocks /
//                 SMs), ζ)                                       (equation 4)
//   space axes    blocks ≥ active blocks per SM · SMs            (equation 5)
//   reduce axis   CMR ≥ ψ · (the best CMR left)                  (equation 6)
//
// and two that the paper lacks: enough warps in a block for the schedulers of
// an SM, without which SIA favours blocks of one warp; and the Pareto front of
// (CMR, Pad, Occ) for each height. `FilterReading::Paper` leaves these two out.
//
// `FilterReading::Artifact` has the stages of the authors' code instead:
//
//   threads            a multiple of 128 below 1024
//   occupancy          at least two blocks for some SM, and Occ > 95 %
//   registers          reg · (1 + k/16) of a thread below 255, and the sum of
//                      up to two blocks below an SM's registers; reg are the
//                      thread's accumulators
//   shared memory      of up to two blocks, below an SM's
//   padding            Pad > 95 %
//   shared memory CMR  the 20 greatest by FLOPs over what a block loads
//   register CMR       the 10 greatest by FLOPs over what a thread reads
//
// where 95 % is lowered by 5 % until something is left.
//
// A stage that would reject all candidates keeps the best by its own metric
// instead, and counts a relaxation. Each codegen path is filtered separately,
// since metrics are shares of the path's own peaks.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_SEARCH_STRATEGIES_FILTER_H
#define FTUNER_SEARCH_STRATEGIES_FILTER_H

#include "FTuner/CostModel/Metrics.h"
#include "FTuner/Search/Problem/ShapeReport.h"
#include "FTuner/Search/Ranking/Candidates.h"
#include "FTuner/Search/Strategies/FilterOptions.h"
#include <array>
#include <optional>

namespace ftuner {

/// Returns whether CrossPick accepts a candidate, in closed form: the steps at
/// which Pad passes are a prefix, those at which Occ passes are a suffix, and
/// both must overlap.
bool crossPickAccepts(const FilterOptions &options, double pad, double occ);

/// Returns the deficit of a candidate at the nearest step of CrossPick, as
/// shares of ε and λ; 0 if CrossPick accepts it.
double crossPickDeficit(const FilterOptions &options, double pad, double occ);

enum FilterStage {
  // Stages of the paper.
  CrossPick,
  SetBound,
  SpaceAxis,
  ReduceAxis,
  // Stages that the paper lacks; they run after the paper's.
  Warps,
  Pareto,
  // Stages of the artifact.
  Threads,
  Occupancy,
  Registers,
  SharedMemory,
  Padding,
  SharedMemoryCmr,
  RegisterCmr,
  NumFilterStages
};

/// Returns the stage's name for statistics, in lower case with underscores.
llvm::StringRef filterStageName(FilterStage stage);

/// Returns the stages of a reading, in their order.
llvm::ArrayRef<FilterStage> filterStages(FilterReading reading);

/// Returns the registers of the blocks that SetBound wants on an SM, as a share
/// of the SM's.
double registerShare(const SearchProblem &problem, const Metrics &metrics,
                     const KernelResources &needs);

/// Counts for each stage, summed over shapes: candidates after the stage, and
/// shapes for which it was relaxed.
struct FilterCounts {
  std::array<int64_t, NumFilterStages> kept = {};
  std::array<int64_t, NumFilterStages> relaxed = {};
};

/// A candidate (by index) that passed for a shape.
struct Survivor {
  unsigned candidate = 0;
  Metrics metrics;
};

/// The demands of the stages on a uKernel for one shape. A relaxed stage has no
/// demand, since no candidate could meet it.
struct Demands {
  bool crossPick = false;
  bool setBound = false;
  std::optional<double> blocks;
  std::optional<double> cmr;
  std::optional<double> threads;
};

struct FilterResult {
  /// Candidates that may serve the shape, ascending by index; at least one of
  /// each path.
  std::vector<Survivor> survivors;
  /// The demands on each path's uKernels.
  llvm::SmallVector<std::pair<const CodegenModel *, Demands>, 1> demands;

  /// Returns the demands on a path's uKernels; none for a path without
  /// candidates.
  Demands demandsOf(const CodegenModel &path) const {
    for (const auto &[other, demands] : demands)
      if (other == &path)
        return demands;
    return {};
  }
};

/// Filters candidates for one shape after another.
class CandidateFilter {
public:
  /// Makes a filter of the set, which is not empty. Problem and set outlive it.
  CandidateFilter(const SearchProblem &problem, const CandidateSet &set);

  /// Filters the candidates for a shape (every extent ≥ 1).
  FilterResult run(llvm::ArrayRef<int64_t> shape);
  /// Like `run` above; adds a report of each stage.
  FilterResult run(llvm::ArrayRef<int64_t> shape,
                   std::vector<StageReport> &reports);

  /// Returns the sum over the demands of a shape of the share by which a
  /// uKernel misses each; 0 if it meets all.
  double violation(const Demands &demands, const Metrics &metrics,
                   const KernelResources &resources) const;

  const FilterOptions options;
  /// Counts over the shapes so far.
  FilterCounts counts;

private:
  FilterResult run(llvm::ArrayRef<int64_t> shape,
                   std::vector<StageReport> *reports);

  /// Candidates of one path: those from `first` on.
  struct Group {
    const CodegenModel *path;
    unsigned first, size;
    /// Metrics of contractions, factored; for other operators the metrics of
    /// each candidate are computed separately.
    std::optional<FactoredMetrics> metrics;
  };

  const SearchProblem &problem;
  const CandidateSet &set;
  std::vector<Group> groups;
  /// Fills `values` for a group and a shape.
  void evaluate(const Group &group, llvm::ArrayRef<int64_t> shape);
  /// Metrics of every candidate of a group for one shape.
  std::vector<Metrics> values;
};

} // namespace ftuner

#endif // FTUNER_SEARCH_STRATEGIES_FILTER_H
