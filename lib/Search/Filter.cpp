//===- Filter.cpp - Which uKernels may serve a shape ----------------------===//
#include "FTuner/Search/Filter.h"
#include "FTuner/CostModel/Sia.h"
#include "SearchTuning.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>

using namespace ftuner;

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

static bool doMeet(const CrossPickSteps &steps) {
  return std::max(steps.firstForOcc, 0.0) <=
         std::min(steps.lastForPad, steps.last);
}

bool ftuner::crossPickAccepts(const SearchOptions &options, double pad,
                              double occ) {
  return doMeet(crossPickSteps(options, pad, occ));
}

double ftuner::crossPickDeficit(const SearchOptions &options, double pad,
                                double occ) {
  CrossPickSteps steps = crossPickSteps(options, pad, occ);
  if (doMeet(steps))
    return 0;
  // Nearest is the last step that Pad passes, or the first of all.
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
  int64_t bound =
      std::min(ceilDiv(metrics.blocks, problem.device.smCount), problem.zeta());
  return static_cast<double>(needs.registersPerThread * needs.threads * bound) /
         problem.device.registersPerSm;
}

double ftuner::violation(const SearchProblem &problem, const Demands &demands,
                         const Metrics &metrics,
                         const KernelResources &resources) {
  auto lacking = [](double value, std::optional<double> least) {
    return least && value < *least * (1 - tolerance) ? 1 - value / *least : 0.0;
  };
  double sum = 0;
  if (demands.crossPick)
    sum += crossPickDeficit(problem.options, metrics.pad, metrics.occ);
  if (demands.setBound)
    sum += lacking(1 / registerShare(problem, metrics, resources), 1);
  sum += lacking(static_cast<double>(metrics.blocks), demands.blocks);
  sum += lacking(metrics.cmr, demands.cmr);
  sum += lacking(static_cast<double>(resources.threads), demands.threads);
  return sum;
}

llvm::StringRef ftuner::filterStageName(FilterStage stage) {
  static const char *const names[] = {"cross_pick",  "set_bound", "space_axis",
                                      "reduce_axis", "warps",     "pareto"};
  return names[stage];
}

namespace {
/// One stage that looks at each candidate by itself.
struct Stage {
  FilterStage stage;
  llvm::function_ref<bool(const Survivor &)> accepts;
  /// What is kept instead where nothing is accepted: the greatest.
  llvm::function_ref<double(const Survivor &)> quality;
  /// For reports: what is measured, its value, and what is asked for.
  llvm::StringRef figure;
  llvm::function_ref<double(const Survivor &)> value;
  llvm::function_ref<std::string()> requirement;
};

class ShapeFilter {
public:
  ShapeFilter(const SearchProblem &problem, const CandidateSet &set,
              FilterCounts &counts, std::vector<StageReport> *reports)
      : problem(problem), set(set), counts(counts), reports(reports) {}

  /// Filters the candidates from `first` on, which have these metrics. Adds
  /// what is left to the result.
  void run(unsigned first, llvm::ArrayRef<Metrics> metrics,
           FilterResult &result);

private:
  /// Keeps what the stage accepts, or if that is nothing, what has the best
  /// quality; whether something was accepted.
  bool apply(const Stage &stage);
  void report(const Stage &stage, llvm::ArrayRef<Survivor> before,
              bool isRelaxed);
  /// Keeps the Pareto front for each height on the combine axis.
  void keepParetoFronts();
  /// Keeps the `maxCandidates` with the greatest sum of metrics, by index.
  void limit();

  const Candidate &candidate(const Survivor &survivor) const {
    return set.candidates[survivor.candidate];
  }
  /// The published sum (equation 1).
  double sum(const Survivor &survivor) const {
    return sia.c0 * survivor.metrics.cmr + sia.c1 * survivor.metrics.pad +
           sia.c2 * survivor.metrics.occ;
  }

  const SearchProblem &problem;
  const CandidateSet &set;
  FilterCounts &counts;
  std::vector<StageReport> *reports;
  std::vector<Survivor> survivors;
  const SiaOptions sia = siaOptions().read(problem.options.own);
};
} // namespace

bool ShapeFilter::apply(const Stage &stage) {
  std::vector<Survivor> before = std::move(survivors);
  survivors.clear();
  llvm::copy_if(before, std::back_inserter(survivors), stage.accepts);
  bool isMet = !survivors.empty();
  if (!isMet) {
    ++counts.relaxed[stage.stage];
    double best = -std::numeric_limits<double>::infinity();
    for (const Survivor &survivor : before)
      best = std::max(best, stage.quality(survivor));
    double least = best - std::abs(best) * tolerance;
    llvm::copy_if(before, std::back_inserter(survivors),
                  [&](const Survivor &survivor) {
                    return stage.quality(survivor) >= least;
                  });
  }
  counts.kept[stage.stage] += survivors.size();
  if (reports)
    report(stage, before, !isMet);
  return isMet;
}

void ShapeFilter::report(const Stage &stage, llvm::ArrayRef<Survivor> before,
                         bool isRelaxed) {
  StageReport report;
  report.name = filterStageName(stage.stage).str();
  report.requirement = stage.requirement();
  report.figure = stage.figure.str();
  report.before = before.size();
  report.kept = survivors.size();
  report.relaxed = isRelaxed;
  // Both are in the order of the candidates.
  const Survivor *kept = survivors.data(), *end = kept + survivors.size();
  const Survivor *best = nullptr;
  for (const Survivor &survivor : before) {
    if (kept != end && kept->candidate == survivor.candidate) {
      ++kept;
      continue;
    }
    if (!best || sum(survivor) > sum(*best))
      best = &survivor;
  }
  if (best)
    report.dropped = {candidate(*best).ukernel, best->metrics,
                      stage.value(*best)};
  reports->push_back(std::move(report));
}

void ShapeFilter::keepParetoFronts() {
  std::map<int64_t, std::vector<Survivor>> heights;
  for (const Survivor &survivor : survivors)
    heights[candidate(survivor).family.lowHeight()].push_back(survivor);
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
  size_t most = problem.options.maxCandidates;
  if (survivors.size() > most) {
    llvm::sort(survivors, [&](const Survivor &a, const Survivor &b) {
      double sumA = sum(a), sumB = sum(b);
      return sumA != sumB ? sumA > sumB : a.candidate < b.candidate;
    });
    survivors.resize(most);
  }
  llvm::sort(survivors, [](const Survivor &a, const Survivor &b) {
    return a.candidate < b.candidate;
  });
}

/// "blocks ≥ 264".
static std::string atLeast(const char *figure, double least) {
  std::string text;
  llvm::raw_string_ostream(text)
      << figure << " ≥ " << llvm::format("%.4g", least);
  return text;
}

void ShapeFilter::run(unsigned first, llvm::ArrayRef<Metrics> metrics,
                      FilterResult &result) {
  const SearchOptions &options = problem.options;
  survivors.reserve(metrics.size());
  for (auto [index, value] : llvm::enumerate(metrics))
    survivors.push_back({first + static_cast<unsigned>(index), value});

  Demands demands;
  auto efficiency = [](const Survivor &s) {
    return s.metrics.pad * s.metrics.occ;
  };
  demands.crossPick =
      apply({CrossPick,
             [&](const Survivor &s) {
               return crossPickAccepts(options, s.metrics.pad, s.metrics.occ);
             },
             efficiency, "pad · occ", efficiency,
             [&] {
               std::string text;
               llvm::raw_string_ostream(text)
                   << "pad ≥ ε and occ ≥ λ at a step from "
                   << llvm::format("(%g, %g) by (+%g, −%g)", options.epsilonMin,
                                   options.lambdaMax, options.epsilonStep,
                                   options.lambdaStep);
               return text;
             }});

  auto share = [&](const Survivor &s) {
    return registerShare(problem, s.metrics, candidate(s).resources);
  };
  demands.setBound = apply(
      {SetBound, [&](const Survivor &s) { return share(s) <= 1; },
       [&](const Survivor &s) { return -share(s); }, "register share", share,
       [&] {
         return "registers of min(ceil(blocks / SMs), " +
                std::to_string(problem.zeta()) + ") blocks ≤ those of an SM";
       }});

  auto blocks = [](const Survivor &s) {
    return static_cast<double>(s.metrics.blocks);
  };
  double least = options.activeBlocksPerSm * problem.device.smCount;
  if (apply({SpaceAxis, [&](const Survivor &s) { return blocks(s) >= least; },
             blocks, "blocks", blocks,
             [&] { return atLeast("blocks", least); }}))
    demands.blocks = least;

  double leastCmr = 0;
  for (const Survivor &survivor : survivors)
    leastCmr = std::max(leastCmr, options.psi * survivor.metrics.cmr);
  demands.cmr = leastCmr;
  auto cmr = [](const Survivor &s) { return s.metrics.cmr; };
  apply({ReduceAxis, [&](const Survivor &s) { return cmr(s) >= leastCmr; }, cmr,
         "cmr", cmr, [&] { return atLeast("cmr", leastCmr); }});

  auto threads = [&](const Survivor &s) {
    return static_cast<double>(candidate(s).resources.threads);
  };
  if (apply({Warps,
             [&](const Survivor &s) {
               return threads(s) >= tuning::filterThreads;
             },
             threads, "threads", threads,
             [&] { return atLeast("threads", tuning::filterThreads); }}))
    demands.threads = tuning::filterThreads;

  int64_t numPassed = survivors.size();
  keepParetoFronts();
  limit();
  counts.kept[Pareto] += survivors.size();
  if (reports) {
    StageReport report;
    report.name = filterStageName(Pareto).str();
    report.requirement =
        "on the Pareto front of (cmr, pad, occ) for its height";
    report.before = numPassed;
    report.kept = survivors.size();
    reports->push_back(std::move(report));
  }
  result.demands.push_back({&set.candidates[first].family.path(), demands});
  llvm::append_range(result.survivors, survivors);
}

CandidateFilter::CandidateFilter(const SearchProblem &problem,
                                 const CandidateSet &set)
    : problem(problem), set(set) {
  for (size_t first = 0; first < set.candidates.size();) {
    const CodegenModel &path = set.candidates[first].family.path();
    std::vector<UKernel> ukernels;
    while (first + ukernels.size() < set.candidates.size()) {
      const Candidate &next = set.candidates[first + ukernels.size()];
      if (&next.family.path() != &path)
        break;
      ukernels.push_back(next.ukernel);
    }
    Group &group = groups.emplace_back();
    group.path = &path;
    group.first = static_cast<unsigned>(first);
    group.size = static_cast<unsigned>(ukernels.size());
    if (problem.workload.isContraction())
      group.metrics.emplace(problem.workload, problem.device, path, ukernels);
    first += ukernels.size();
  }
}

void CandidateFilter::evaluate(const Group &group,
                               llvm::ArrayRef<int64_t> shape) {
  if (group.metrics)
    return group.metrics->evaluate(shape, values);
  ShapeMetrics metrics(problem.workload, shape, problem.device);
  values.clear();
  for (unsigned i = 0; i < group.size; ++i)
    values.push_back(
        metrics.ukernel(set.candidates[group.first + i].family, 0));
}

FilterResult CandidateFilter::run(llvm::ArrayRef<int64_t> shape,
                                  std::vector<StageReport> *reports) {
  FilterResult result;
  for (const Group &group : groups) {
    evaluate(group, shape);
    size_t numReports = reports ? reports->size() : 0;
    ShapeFilter(problem, set, counts, reports).run(group.first, values, result);
    // Whose stages they are, where there is more than one path.
    if (reports && groups.size() > 1)
      for (StageReport &report :
           llvm::MutableArrayRef(*reports).drop_front(numReports))
        report.path = group.path->name().str();
  }
  return result;
}

FilterResult CandidateFilter::run(llvm::ArrayRef<int64_t> shape) {
  return run(shape, nullptr);
}

FilterResult CandidateFilter::run(llvm::ArrayRef<int64_t> shape,
                                  std::vector<StageReport> &reports) {
  return run(shape, &reports);
}
