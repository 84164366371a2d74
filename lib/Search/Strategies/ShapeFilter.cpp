//===- ShapeFilter.cpp - Stages that thin out candidates ------------------===//
#include "ShapeFilter.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>

using namespace ftuner;

/// Tolerance for the rounding of qualities.
static constexpr double tolerance = 1e-9;

ShapeFilter::ShapeFilter(const SearchProblem &problem,
                         const FilterOptions &options, const CandidateSet &set,
                         FilterCounts &counts,
                         std::vector<StageReport> *reports, unsigned first,
                         llvm::ArrayRef<Metrics> metrics)
    : problem(problem), options(options), set(set), counts(counts),
      reports(reports), sia(siaOptions().read(problem.options.own)) {
  survivors.reserve(metrics.size());
  for (auto [index, value] : llvm::enumerate(metrics))
    survivors.push_back({first + static_cast<unsigned>(index), value});
}

bool ShapeFilter::apply(const Stage &stage) {
  std::vector<Survivor> before;
  if (reports)
    before = survivors;
  bool isMet = llvm::any_of(survivors, stage.accepts);
  if (isMet) {
    llvm::erase_if(survivors, [&](const Survivor &survivor) {
      return !stage.accepts(survivor);
    });
  } else {
    ++counts.relaxed[stage.stage];
    double best = -std::numeric_limits<double>::infinity();
    for (const Survivor &survivor : survivors)
      best = std::max(best, stage.quality(survivor));
    double minimum = best - std::abs(best) * tolerance;
    llvm::erase_if(survivors, [&](const Survivor &survivor) {
      return !(stage.quality(survivor) >= minimum);
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

static void sortByCandidate(std::vector<Survivor> &survivors) {
  llvm::sort(survivors, [](const Survivor &a, const Survivor &b) {
    return a.candidate < b.candidate;
  });
}

void ShapeFilter::keepBest(FilterStage stage, int64_t limit,
                           llvm::StringRef figure,
                           llvm::function_ref<double(const Survivor &)> value) {
  std::vector<Survivor> before = survivors;
  if (static_cast<int64_t>(survivors.size()) > limit) {
    llvm::stable_sort(survivors, [&](const Survivor &a, const Survivor &b) {
      return value(a) > value(b);
    });
    survivors.resize(limit);
    sortByCandidate(survivors);
  }
  counts.kept[stage] += survivors.size();
  if (reports)
    report({stage, nullptr, nullptr, figure, value,
            [&] {
              return "the " + std::to_string(limit) + " greatest by " +
                     figure.str();
            }},
           before, /*isRelaxed=*/false);
}

void ShapeFilter::thinToFronts() {
  std::map<int64_t, std::vector<Survivor>> heights;
  for (const Survivor &survivor : survivors)
    heights[candidate(survivor).family.lowHeight()].push_back(survivor);
  survivors.clear();
  for (auto &[height, group] : heights) {
    // Candidates are sorted by falling CMR, preferred ones first. A later one
    // survives only if no earlier one reaches both its Pad and its Occ.
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

void ShapeFilter::keepParetoFronts(int64_t limit) {
  int64_t numPassed = survivors.size();
  thinToFronts();
  if (static_cast<int64_t>(survivors.size()) > limit) {
    llvm::sort(survivors, [&](const Survivor &a, const Survivor &b) {
      double sumA = sum(a), sumB = sum(b);
      return sumA != sumB ? sumA > sumB : a.candidate < b.candidate;
    });
    survivors.resize(limit);
  }
  sortByCandidate(survivors);
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
}

std::string ftuner::atLeast(llvm::StringRef figure, double minimum) {
  std::string text;
  llvm::raw_string_ostream(text)
      << figure << " ≥ " << llvm::format("%.4g", minimum);
  return text;
}
