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

namespace {
/// Steps of CrossPick at which one Pad and one Occ pass.
struct CrossPickSteps {
  double last;        ///< of all steps
  double lastForPad;  ///< Pad passes from step 0 to here
  double firstForOcc; ///< Occ passes from here on
};
} // namespace

static CrossPickSteps crossPickSteps(const SearchOptions &options, double pad,
                                     double occ) {
  auto stepsBetween = [](double low, double high, double step) {
    return std::floor((high - low) / step + tolerance);
  };
  CrossPickSteps steps;
  steps.last = std::min(
      stepsBetween(options.epsilonMin, options.epsilonMax, options.epsilonStep),
      stepsBetween(options.lambdaMin, options.lambdaMax, options.lambdaStep));
  steps.lastForPad = stepsBetween(options.epsilonMin, pad, options.epsilonStep);
  steps.firstForOcc =
      std::ceil((options.lambdaMax - occ) / options.lambdaStep - tolerance);
  return steps;
}

bool ftuner::crossPickAccepts(const SearchOptions &options, double pad,
                              double occ) {
  CrossPickSteps steps = crossPickSteps(options, pad, occ);
  return std::max(steps.firstForOcc, 0.0) <=
         std::min(steps.lastForPad, steps.last);
}

double ftuner::crossPickDeficit(const SearchOptions &options, double pad,
                                double occ) {
  if (crossPickAccepts(options, pad, occ))
    return 0;
  // Nearest is the last step that Pad passes, or the first of all.
  CrossPickSteps steps = crossPickSteps(options, pad, occ);
  double step = std::clamp(steps.lastForPad, 0.0, steps.last);
  double epsilon = options.epsilonMin + step * options.epsilonStep;
  double lambda = options.lambdaMax - step * options.lambdaStep;
  double deficit = 0;
  if (pad < epsilon)
    deficit += 1 - pad / epsilon;
  if (occ < lambda)
    deficit += 1 - occ / lambda;
  return deficit;
}

/// Registers of the blocks that SetBound wants on an SM, as a share of the
/// SM's.
static double registerShare(const SearchProblem &problem,
                            const Metrics &metrics,
                            const KernelResources &needs) {
  int64_t bound = std::min(ceilDiv(metrics.blocks, problem.device.smCount),
                           problem.options.zeta);
  return static_cast<double>(needs.registersPerThread * needs.threads * bound) /
         problem.device.registersPerSm;
}

double ftuner::violation(const SearchProblem &problem,
                         const Thresholds &thresholds, const Metrics &metrics,
                         const KernelResources &resources) {
  auto lacking = [](double value, double least) {
    return value < least * (1 - tolerance) ? 1 - value / least : 0.0;
  };
  double sum =
      thresholds.efficiency
          ? lacking(metrics.pad * metrics.occ, *thresholds.efficiency)
          : crossPickDeficit(problem.options, metrics.pad, metrics.occ);
  sum += lacking(thresholds.registerShare,
                 registerShare(problem, metrics, resources));
  sum += lacking(static_cast<double>(metrics.blocks), thresholds.blocks);
  sum += lacking(metrics.cmr, thresholds.cmr);
  sum += lacking(static_cast<double>(resources.threads), thresholds.threads);
  return sum;
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

  FilterResult run(llvm::ArrayRef<int64_t> shape);

private:
  /// Keeps what `accepts`; if that is nothing, what has the best `quality`,
  /// which is returned.
  std::optional<double>
  apply(FilterStage stage, llvm::function_ref<bool(const Survivor &)> accepts,
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

std::optional<double>
ShapeFilter::apply(FilterStage stage,
                   llvm::function_ref<bool(const Survivor &)> accepts,
                   llvm::function_ref<double(const Survivor &)> quality) {
  std::optional<double> relaxedTo;
  if (llvm::none_of(survivors, accepts)) {
    ++counts.relaxed[stage];
    double best = -std::numeric_limits<double>::infinity();
    for (const Survivor &survivor : survivors)
      best = std::max(best, quality(survivor));
    relaxedTo = best;
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
  return relaxedTo;
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

FilterResult ShapeFilter::run(llvm::ArrayRef<int64_t> shape) {
  const SearchOptions &options = problem.options;
  ShapeMetrics metrics(problem.workload, shape, problem.device);
  for (unsigned i = 0; i < set.candidates.size(); ++i)
    survivors.push_back({i, metrics.ukernel(set.candidates[i].ukernel)});

  Thresholds thresholds;
  thresholds.efficiency = apply(
      CrossPick,
      [&](const Survivor &s) {
        return crossPickAccepts(options, s.metrics.pad, s.metrics.occ);
      },
      [](const Survivor &s) { return s.metrics.pad * s.metrics.occ; });

  auto share = [&](const Survivor &s) {
    return registerShare(problem, s.metrics, candidate(s).resources);
  };
  std::optional<double> relaxedTo = apply(
      SetBound, [&](const Survivor &s) { return share(s) <= 1; },
      [&](const Survivor &s) { return -share(s); });
  thresholds.registerShare = relaxedTo ? -*relaxedTo : 1;

  auto blocks = [](const Survivor &s) {
    return static_cast<double>(s.metrics.blocks);
  };
  double least = options.activeBlocksPerSm * problem.device.smCount;
  relaxedTo = apply(
      SpaceAxis, [&](const Survivor &s) { return blocks(s) >= least; }, blocks);
  thresholds.blocks = relaxedTo.value_or(least);

  for (const Survivor &survivor : survivors)
    thresholds.cmr =
        std::max(thresholds.cmr, options.psi * survivor.metrics.cmr);
  auto cmr = [](const Survivor &s) { return s.metrics.cmr; };
  apply(
      ReduceAxis, [&](const Survivor &s) { return cmr(s) >= thresholds.cmr; },
      cmr);

  auto threads = [&](const Survivor &s) {
    return static_cast<double>(candidate(s).resources.threads);
  };
  relaxedTo = apply(
      Warps, [&](const Survivor &s) { return threads(s) >= schedulerThreads; },
      threads);
  thresholds.threads = relaxedTo.value_or(schedulerThreads);

  keepParetoFronts();
  limit();
  counts.kept[Pareto] += survivors.size();
  return {std::move(survivors), thresholds};
}

FilterResult ftuner::filterCandidates(const SearchProblem &problem,
                                      const CandidateSet &set,
                                      llvm::ArrayRef<int64_t> shape,
                                      FilterCounts &counts) {
  return ShapeFilter(problem, set, counts).run(shape);
}
