//===- Filter.h - Which uKernels may serve a shape --------------*- C++ -*-===//
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
//   registers          reg · (1 + k/16) of a thread below 255, those of up to
//                      two blocks below an SM's; reg are its accumulators
//   shared memory      of up to two blocks, below an SM's
//   padding            Pad > 95 %
//   shared memory CMR  the 20 greatest by FLOPs over what a block loads
//   register CMR       the 10 greatest by FLOPs over what a thread reads
//
// where 95 % is lowered by 5 % until something is left.
//
// A stage that would leave nothing keeps the best by its own metric instead,
// and counts that as a relaxation. Codegen paths are filtered by themselves:
// metrics are shares of what a path could reach.
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

/// Membership of CrossPick in closed form: the steps where Pad passes are a
/// prefix, those where Occ passes a suffix; they must meet.
bool crossPickAccepts(const FilterOptions &options, double pad, double occ);

/// What lacks for CrossPick at the step that is nearest, as shares of ε and λ;
/// 0 if it accepts.
double crossPickDeficit(const FilterOptions &options, double pad, double occ);

enum FilterStage {
  // Of the paper.
  CrossPick,
  SetBound,
  SpaceAxis,
  ReduceAxis,
  // Ours, behind these.
  Warps,
  Pareto,
  // Of the artifact.
  Threads,
  Occupancy,
  Registers,
  SharedMemory,
  Padding,
  SharedMemoryCmr,
  RegisterCmr,
  NumFilterStages
};

/// Lower-case names with underscores, for statistics.
llvm::StringRef filterStageName(FilterStage stage);

/// The stages of a reading, in their order.
llvm::ArrayRef<FilterStage> filterStages(FilterReading reading);

/// Registers of the blocks that SetBound wants on an SM, as a share of the
/// SM's.
double registerShare(const SearchProblem &problem, const Metrics &metrics,
                     const KernelResources &needs);

/// Summed over shapes: candidates after each stage, and shapes for which it was
/// relaxed.
struct FilterCounts {
  std::array<int64_t, NumFilterStages> kept = {};
  std::array<int64_t, NumFilterStages> relaxed = {};
};

/// A candidate (by index) that passed for a shape.
struct Survivor {
  unsigned candidate = 0;
  Metrics metrics;
};

/// What the stages ask of a uKernel for one shape. A relaxed stage asks
/// nothing: no candidate could meet it.
struct Demands {
  bool crossPick = false;
  bool setBound = false;
  std::optional<double> blocks;
  std::optional<double> cmr;
  std::optional<double> threads;
};

struct FilterResult {
  /// Candidates that may serve the shape, ascending by index: of each path at
  /// least one.
  std::vector<Survivor> survivors;
  /// What was asked of each path's uKernels.
  llvm::SmallVector<std::pair<const CodegenModel *, Demands>, 1> demands;

  /// Those of a path; none for one without candidates.
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
  /// Problem and set outlive the filter; the set has a candidate.
  CandidateFilter(const SearchProblem &problem, const CandidateSet &set);

  /// Candidates for a shape (every extent ≥ 1).
  FilterResult run(llvm::ArrayRef<int64_t> shape);
  /// The same; tells what each stage threw out.
  FilterResult run(llvm::ArrayRef<int64_t> shape,
                   std::vector<StageReport> &reports);

  /// By how much a uKernel misses the demands of a shape: the sum of what lacks
  /// at each stage as a share of what is asked; 0 if it passes.
  double violation(const Demands &demands, const Metrics &metrics,
                   const KernelResources &resources) const;

  const FilterOptions options;
  /// Summed over the shapes so far.
  FilterCounts counts;

private:
  FilterResult run(llvm::ArrayRef<int64_t> shape,
                   std::vector<StageReport> *reports);

  /// Candidates of one path: those from `first` on.
  struct Group {
    const CodegenModel *path;
    unsigned first, size;
    /// Of contractions; of other operators each candidate is looked at by
    /// itself.
    std::optional<FactoredMetrics> metrics;
  };

  const SearchProblem &problem;
  const CandidateSet &set;
  std::vector<Group> groups;
  /// Fills in `values`.
  void evaluate(const Group &group, llvm::ArrayRef<int64_t> shape);
  /// Metrics of every candidate of a group for one shape.
  std::vector<Metrics> values;
};

} // namespace ftuner

#endif // FTUNER_SEARCH_STRATEGIES_FILTER_H
