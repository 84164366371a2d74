//===- Filter.cpp - Filter of uKernels for a shape ------------------------===//
#include "FTuner/Search/Strategies/Filter.h"
#include "ShapeFilter.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>
#include <iterator>

using namespace ftuner;

/// Tolerance for the rounding of the thresholds' steps, e.g. (0.95 − 0.50) /
/// 0.01.
static constexpr double tolerance = 1e-9;

namespace {
/// Steps of CrossPick at which one Pad and one Occ pass.
struct CrossPickSteps {
  double last;        ///< of all steps
  double lastForPad;  ///< Pad passes from step 0 to here
  double firstForOcc; ///< Occ passes from here on
};
} // namespace

static CrossPickSteps crossPickSteps(const FilterOptions &options, double pad,
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

bool ftuner::crossPickAccepts(const FilterOptions &options, double pad,
                              double occ) {
  return doMeet(crossPickSteps(options, pad, occ));
}

double ftuner::crossPickDeficit(const FilterOptions &options, double pad,
                                double occ) {
  CrossPickSteps steps = crossPickSteps(options, pad, occ);
  if (doMeet(steps))
    return 0;
  // The nearest step is the last one at which Pad passes, or else the first of
  // all.
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

double ftuner::registerShare(const SearchProblem &problem,
                             const Metrics &metrics,
                             const KernelResources &needs) {
  int64_t bound =
      std::min(ceilDiv(metrics.blocks, problem.device.smCount), problem.zeta());
  return static_cast<double>(needs.registersPerThread * needs.threads * bound) /
         problem.device.registersPerSm;
}

double CandidateFilter::violation(const Demands &demands,
                                  const Metrics &metrics,
                                  const KernelResources &resources) const {
  auto lacking = [](double value, std::optional<double> minimum) {
    return minimum && value < *minimum * (1 - tolerance) ? 1 - value / *minimum
                                                         : 0.0;
  };
  double sum = 0;
  if (demands.crossPick)
    sum += crossPickDeficit(options, metrics.pad, metrics.occ);
  if (demands.setBound)
    sum += lacking(1 / registerShare(problem, metrics, resources), 1);
  sum += lacking(static_cast<double>(metrics.blocks), demands.blocks);
  sum += lacking(metrics.cmr, demands.cmr);
  sum += lacking(static_cast<double>(resources.threads), demands.threads);
  return sum;
}

llvm::StringRef ftuner::filterStageName(FilterStage stage) {
  static const char *const names[] = {
      "cross_pick",  "set_bound",     "space_axis", "reduce_axis",
      "warps",       "pareto",        "threads",    "occupancy",
      "registers",   "shared_memory", "padding",    "shared_memory_cmr",
      "register_cmr"};
  static_assert(std::size(names) == NumFilterStages);
  return names[stage];
}

llvm::ArrayRef<FilterStage> ftuner::filterStages(FilterReading reading) {
  static const FilterStage pareto[] = {CrossPick,  SetBound, SpaceAxis,
                                       ReduceAxis, Warps,    Pareto};
  static const FilterStage artifact[] = {
      Threads, Occupancy,       Registers,  SharedMemory,
      Padding, SharedMemoryCmr, RegisterCmr};
  switch (reading) {
  case FilterReading::Paper:
    return llvm::ArrayRef(pareto).take_front(4);
  case FilterReading::Artifact:
    return artifact;
  case FilterReading::Pareto:
    break;
  }
  return pareto;
}

CandidateFilter::CandidateFilter(const SearchProblem &problem,
                                 const CandidateSet &set)
    : options(filterOptions().read(problem.options.own)), problem(problem),
      set(set) {
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
      group.metrics.emplace(problem.workload, problem.device, path, ukernels,
                            metricOptions().read(problem.options.own));
    first += ukernels.size();
  }
}

void CandidateFilter::evaluate(const Group &group,
                               llvm::ArrayRef<int64_t> shape) {
  if (group.metrics)
    return group.metrics->evaluate(shape, values);
  ShapeMetrics metrics(problem.workload, shape, problem.device,
                       metricOptions().read(problem.options.own));
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
    ShapeFilter stages(problem, options, set, counts, reports, group.first,
                       values);
    Demands demands;
    if (options.reading == FilterReading::Artifact)
      runArtifactStages(stages);
    else
      demands = runPaperStages(stages);
    result.demands.push_back({group.path, demands});
    llvm::append_range(result.survivors, stages.survivors);
    // With several paths, each report names its path.
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
