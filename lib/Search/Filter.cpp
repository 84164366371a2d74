//===- Filter.cpp - Which uKernels may serve a shape ----------------------===//
#include "FTuner/Search/Filter.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

using namespace ftuner;

/// Threads of a block that give each of an SM's four schedulers a warp.
static constexpr int64_t schedulerThreads = 128;

/// Rounding of the thresholds' steps, e.g. (0.95 − 0.50) / 0.01.
static constexpr double tolerance = 1e-9;

bool ftuner::crossPickAccepts(const SearchOptions &options, double pad,
                              double occ) {
  auto stepsBetween = [](double low, double high, double step) {
    return std::floor((high - low) / step + tolerance);
  };
  double lastStep = std::min(
      stepsBetween(options.epsilonMin, options.epsilonMax, options.epsilonStep),
      stepsBetween(options.lambdaMin, options.lambdaMax, options.lambdaStep));
  double lastForPad =
      stepsBetween(options.epsilonMin, pad, options.epsilonStep);
  double firstForOcc =
      std::ceil((options.lambdaMax - occ) / options.lambdaStep - tolerance);
  return std::max(firstForOcc, 0.0) <= std::min(lastForPad, lastStep);
}

llvm::StringRef ftuner::filterStageName(FilterStage stage) {
  static const char *const names[] = {"cross_pick",  "set_bound", "space_axis",
                                      "reduce_axis", "warps",     "pareto"};
  return names[stage];
}

namespace {
class ShapeFilter {
public:
  ShapeFilter(const SearchProblem &problem, const CandidateSet &set,
              FilterCounts &counts)
      : problem(problem), set(set), counts(counts) {}

  std::vector<Survivor> run(llvm::ArrayRef<int64_t> shape);

private:
  /// Keeps what `accepts`; if that is nothing, what has the best `quality`.
  void apply(FilterStage stage,
             llvm::function_ref<bool(const Survivor &)> accepts,
             llvm::function_ref<double(const Survivor &)> quality);
  /// Keeps the Pareto front for each height on the combine axis.
  void keepParetoFronts();
  /// Keeps the `maxCandidates` with the greatest sum of metrics.
  void limit();

  const Candidate &candidate(const Survivor &survivor) const {
    return set.candidates[survivor.candidate];
  }

  const SearchProblem &problem;
  const CandidateSet &set;
  FilterCounts &counts;
  std::vector<Survivor> survivors;
};
} // namespace

void ShapeFilter::apply(FilterStage stage,
                        llvm::function_ref<bool(const Survivor &)> accepts,
                        llvm::function_ref<double(const Survivor &)> quality) {
  bool isEmpty = llvm::none_of(survivors, accepts);
  if (isEmpty) {
    ++counts.relaxed[stage];
    double best = -std::numeric_limits<double>::infinity();
    for (const Survivor &survivor : survivors)
      best = std::max(best, quality(survivor));
    double least = best - std::abs(best) * tolerance;
    llvm::erase_if(survivors, [&](const Survivor &survivor) {
      return quality(survivor) < least;
    });
  } else {
    llvm::erase_if(survivors, [&](const Survivor &survivor) {
      return !accepts(survivor);
    });
  }
  counts.kept[stage] += survivors.size();
}

void ShapeFilter::keepParetoFronts() {
  unsigned axis = set.prototype.combineAxis;
  std::map<int64_t, std::vector<Survivor>> heights;
  for (const Survivor &survivor : survivors)
    heights[candidate(survivor).ukernel.smemTile[axis]].push_back(survivor);
  survivors.clear();
  for (auto &[height, group] : heights) {
    // By falling CMR, preferred ones first: a later one survives only if no
    // earlier one has both its Pad and its Occ.
    llvm::stable_sort(group, [](const Survivor &a, const Survivor &b) {
      return a.metrics.cmr > b.metrics.cmr;
    });
    std::vector<Survivor> front;
    for (const Survivor &survivor : group) {
      auto dominates = [&](const Survivor &other) {
        return other.metrics.pad >= survivor.metrics.pad &&
               other.metrics.occ >= survivor.metrics.occ;
      };
      if (llvm::none_of(front, dominates))
        front.push_back(survivor);
    }
    survivors.insert(survivors.end(), front.begin(), front.end());
  }
}

void ShapeFilter::limit() {
  const CostModelOptions &cost = problem.options.cost;
  auto sum = [&](const Survivor &survivor) {
    return cost.c0 * survivor.metrics.cmr + cost.c1 * survivor.metrics.pad +
           cost.c2 * survivor.metrics.occ;
  };
  llvm::sort(survivors, [](const Survivor &a, const Survivor &b) {
    return a.candidate < b.candidate;
  });
  size_t most = problem.options.maxCandidates;
  if (survivors.size() <= most)
    return;
  llvm::stable_sort(survivors, [&](const Survivor &a, const Survivor &b) {
    return sum(a) > sum(b);
  });
  survivors.resize(most);
}

std::vector<Survivor> ShapeFilter::run(llvm::ArrayRef<int64_t> shape) {
  const SearchOptions &options = problem.options;
  const DeviceSpec &device = problem.device;
  ShapeMetrics metrics(problem.workload, shape, device);
  for (unsigned i = 0; i < set.candidates.size(); ++i)
    survivors.push_back({i, metrics.ukernel(set.candidates[i].ukernel)});

  apply(
      CrossPick,
      [&](const Survivor &s) {
        return crossPickAccepts(options, s.metrics.pad, s.metrics.occ);
      },
      [](const Survivor &s) { return s.metrics.pad * s.metrics.occ; });

  auto registersOverBound = [&](const Survivor &s) {
    int64_t bound =
        std::min(ceilDiv(s.metrics.blocks, device.smCount), options.zeta);
    const KernelResources &needs = candidate(s).resources;
    return static_cast<double>(needs.registersPerThread * needs.threads *
                               bound) /
           device.registersPerSm;
  };
  apply(
      SetBound, [&](const Survivor &s) { return registersOverBound(s) <= 1; },
      [&](const Survivor &s) { return -registersOverBound(s); });

  int64_t leastBlocks = options.activeBlocksPerSm * device.smCount;
  apply(
      SpaceAxis,
      [&](const Survivor &s) { return s.metrics.blocks >= leastBlocks; },
      [](const Survivor &s) { return static_cast<double>(s.metrics.blocks); });

  double bestCmr = 0;
  for (const Survivor &survivor : survivors)
    bestCmr = std::max(bestCmr, survivor.metrics.cmr);
  apply(
      ReduceAxis,
      [&](const Survivor &s) { return s.metrics.cmr >= options.psi * bestCmr; },
      [](const Survivor &s) { return s.metrics.cmr; });

  apply(
      Warps,
      [&](const Survivor &s) {
        return candidate(s).resources.threads >= schedulerThreads;
      },
      [&](const Survivor &s) {
        return static_cast<double>(candidate(s).resources.threads);
      });

  keepParetoFronts();
  limit();
  counts.kept[Pareto] += survivors.size();
  return std::move(survivors);
}

std::vector<Survivor> ftuner::filterCandidates(const SearchProblem &problem,
                                               const CandidateSet &set,
                                               llvm::ArrayRef<int64_t> shape,
                                               FilterCounts &counts) {
  return ShapeFilter(problem, set, counts).run(shape);
}
