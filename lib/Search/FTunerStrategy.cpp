//===- FTunerStrategy.cpp - The search of FTuner --------------------------===//
//
// For sampled shapes: candidates → filter → programs of one or two uKernels
// ranked by the cost model. Of all programs' families, few are chosen that lose
// little on every shape, and every size of the range is given the best of them.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Search/Filter.h"
#include "FTuner/Search/Sampling.h"
#include "FamilySelection.h"
#include "FamilyTable.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include <algorithm>
#include <limits>
#include <map>

using namespace ftuner;

/// Most sizes of the main axis for which candidates are filtered; families for
/// sizes between them come from their neighbours.
static constexpr int64_t maxFilteredSizes = 256;
/// The same where other dynamic axes multiply the shapes.
static constexpr int64_t maxFilteredShapes = 384;
/// Samples of a main axis with too many sizes to enumerate.
static constexpr int64_t maxDispatchSamples = 768;
/// Best programs of a shape whose families may be chosen.
static constexpr size_t proposalsPerShape = 12;
/// Shapes that the fallback family is scored on.
static constexpr int64_t maxFallbackShapes = 12;
/// Extent far beyond a range, for the general family.
static constexpr int64_t generalExtent = 4096;

namespace {
/// A sampled shape with what passed its filter.
struct FilteredShape {
  ShapeSample sample;
  FilterResult result;
  /// Score of its best program; set by `propose`.
  double bestScore = 0;
};

class FTunerSearch {
public:
  FTunerSearch(const SearchProblem &problem, const CandidateSet &set)
      : problem(problem), workload(problem.workload), set(set),
        table(problem, set), mainAxis(workload.mainAxis()) {}

  Plan run();

private:
  double score(const KernelFamily &family, llvm::ArrayRef<int64_t> shape) const;
  /// The score where one of the parts that run passes the shape's filter; else
  /// at most the best program's, less what the filter misses.
  double rate(const KernelFamily &family, const KernelResources &resources,
              llvm::ArrayRef<int64_t> shape, const FilteredShape &filter) const;

  void filterShapes();
  /// Indices of the families of a shape's best programs, best first.
  std::vector<unsigned> propose(FilteredShape &shape);
  std::vector<unsigned> chooseForRange();
  /// A family of one uKernel for sizes beyond the range.
  unsigned chooseGeneral();
  /// A family without alignment requirements.
  KernelFamily chooseFallback() const;
  /// The first `numFamilies` of the plan's, rated for one size of the main
  /// axis: the index of the best.
  unsigned bestFamily(size_t numFamilies,
                      llvm::ArrayRef<ShapeSample> shapes) const;
  /// Sends every size of the main axis to one of the plan's families.
  void assignSizes(size_t numFamilies);
  /// Replaces pairs of which only one part runs, where that is certain.
  void dropIdleParts();
  void removeUnusedFamilies();
  void report();

  const SearchProblem &problem;
  const Workload &workload;
  const CandidateSet &set;
  FamilyTable table;
  unsigned mainAxis;
  /// Sizes of the main axis, and for each the same number of shapes.
  std::vector<SizeSample> filteredSizes;
  std::vector<FilteredShape> filtered;
  FilterCounts counts;
  int64_t numPrograms = 0;
  bool isExhaustive = false;
  Plan plan;
};
} // namespace

//===----------------------------------------------------------------------===//
// FTunerSearch
//===----------------------------------------------------------------------===//

double FTunerSearch::score(const KernelFamily &family,
                           llvm::ArrayRef<int64_t> shape) const {
  Program program{&family, coverExtent(family, shape[family.combineAxis])};
  return problem.costModel
      .evaluate(workload, shape, program, problem.device, problem.codegen,
                problem.options.cost)
      .score;
}

double FTunerSearch::rate(const KernelFamily &family,
                          const KernelResources &resources,
                          llvm::ArrayRef<int64_t> shape,
                          const FilteredShape &filter) const {
  Cover cover = coverExtent(family, shape[family.combineAxis]);
  ShapeMetrics metrics(workload, shape, problem.device);
  double missing = std::numeric_limits<double>::infinity();
  auto visit = [&](const UKernel &part) {
    missing = std::min(missing, violation(problem, filter.result.thresholds,
                                          metrics.ukernel(part), resources));
  };
  if (cover.first > 0)
    visit(family.parts.front());
  if (cover.second > 0)
    visit(family.parts.back());
  double value = score(family, shape);
  if (missing == 0)
    return value;
  return std::min(value, filter.bestScore) -
         missing * std::abs(filter.bestScore);
}

void FTunerSearch::filterShapes() {
  const Axis &axis = workload.axes[mainAxis];
  int64_t combinations = combineShapes(workload, mainAxis, SizeSample()).size();
  int64_t limit = std::clamp<int64_t>(maxFilteredShapes / combinations, 8,
                                      maxFilteredSizes);
  filteredSizes = sampleSizes(axis, limit);
  for (ShapeSample &sample : combineShapes(workload, mainAxis, filteredSizes)) {
    FilterResult result = filterCandidates(problem, set, sample.shape, counts);
    filtered.push_back({std::move(sample), std::move(result)});
  }
}

std::vector<unsigned> FTunerSearch::propose(FilteredShape &filter) {
  llvm::ArrayRef<int64_t> shape = filter.sample.shape;
  std::vector<std::pair<double, unsigned>> ranked;
  llvm::DenseMap<unsigned, bool> seen;
  auto add = [&](unsigned family) {
    if (!seen.try_emplace(family, true).second)
      return;
    ++numPrograms;
    ranked.emplace_back(score(table.families[family], shape), family);
  };
  unsigned axis = set.prototype.combineAxis;
  for (const Survivor &survivor : filter.result.survivors) {
    // A pair holds its larger part's program of one uKernel, so one family
    // serves this size and its neighbours.
    unsigned candidate = survivor.candidate;
    add(table.pairWithLower(candidate));
    int64_t height = set.candidates[candidate].ukernel.smemTile[axis];
    if (shape[axis] % height != 0)
      if (std::optional<unsigned> family = table.pairWithHigher(candidate))
        add(*family);
  }
  llvm::stable_sort(
      ranked, [](const auto &a, const auto &b) { return a.first > b.first; });
  filter.bestScore = ranked.front().first;
  std::vector<unsigned> best;
  for (const auto &entry : ranked)
    best.push_back(entry.second);
  return best;
}

unsigned FTunerSearch::chooseGeneral() {
  Shape shape;
  for (const Axis &axis : workload.axes)
    shape.push_back(largestSize(axis));
  shape[mainAxis] = std::max(generalExtent, 4 * shape[mainAxis]);
  FilterCounts ignored;
  std::optional<unsigned> best;
  double bestScore = 0;
  FilterResult result = filterCandidates(problem, set, shape, ignored);
  for (const Survivor &survivor : result.survivors) {
    double value = score(set.single(survivor.candidate), shape);
    if (best && value <= bestScore)
      continue;
    best = survivor.candidate;
    bestScore = value;
  }
  return table.single(*best);
}

KernelFamily FTunerSearch::chooseFallback() const {
  // Candidates that pass for some shapes of the range, scored over all these.
  std::vector<const FilteredShape *> shapes;
  size_t stride = ceilDiv(filtered.size(), maxFallbackShapes);
  for (size_t i = 0; i < filtered.size(); i += stride)
    shapes.push_back(&filtered[i]);
  shapes.push_back(&filtered.back());

  std::optional<KernelFamily> best;
  double bestRating = 0;
  llvm::DenseMap<unsigned, bool> seen;
  for (const FilteredShape *proposer : shapes)
    for (const Survivor &survivor : proposer->result.survivors) {
      if (!seen.try_emplace(survivor.candidate, true).second)
        continue;
      KernelFamily family = set.single(survivor.candidate);
      family.vectorWidth = 1;
      if (llvm::Error error = checkFamily(problem, family)) {
        llvm::consumeError(std::move(error));
        continue;
      }
      KernelResources resources = problem.codegen.resources(workload, family);
      double total = 0;
      for (const FilteredShape *filter : shapes)
        total += filter->sample.weight *
                 rate(family, resources, filter->sample.shape, *filter);
      if (best && total <= bestRating)
        continue;
      best = std::move(family);
      bestRating = total;
    }
  // A path whose aligned layouts are all illegal without alignment would be a
  // surprise; `verify` reports it.
  return best ? *best : set.single(0);
}

std::vector<unsigned> FTunerSearch::chooseForRange() {
  std::vector<unsigned> proposed;
  llvm::DenseMap<unsigned, bool> seen;
  auto add = [&](unsigned family) {
    if (seen.try_emplace(family, true).second)
      proposed.push_back(family);
  };
  std::vector<unsigned> chosen;
  const SizeRange &range = workload.axes[mainAxis].range;
  if (!range.isFixed() && !range.isOpen() && problem.options.maxKernels >= 3) {
    add(chooseGeneral());
    chosen.push_back(0);
  }
  for (FilteredShape &shape : filtered) {
    std::vector<unsigned> best = propose(shape);
    best.resize(std::min(best.size(), proposalsPerShape));
    llvm::for_each(best, add);
  }

  ScoreMatrix scores(proposed.size(), filtered.size());
  std::vector<double> weights;
  for (const FilteredShape &shape : filtered)
    weights.push_back(shape.sample.weight);
  for (auto [row, family] : llvm::enumerate(proposed))
    for (auto [column, shape] : llvm::enumerate(filtered))
      scores.at(row, column) =
          rate(table.families[family], table.resources[family],
               shape.sample.shape, shape);

  // One kernel is the fallback.
  size_t limit = problem.options.maxKernels - 1 - chosen.size();
  chooseFamilies(scores, weights, limit, chosen);
  for (unsigned &index : chosen)
    index = proposed[index];
  return chosen;
}

unsigned FTunerSearch::bestFamily(size_t numFamilies,
                                  llvm::ArrayRef<ShapeSample> shapes) const {
  // Sizes between the filtered ones take the thresholds of the one below.
  int64_t size = shapes.front().shape[mainAxis];
  auto next = llvm::upper_bound(filteredSizes, size,
                                [](int64_t value, const SizeSample &sample) {
                                  return value < sample.size;
                                });
  size_t row = std::max<ptrdiff_t>(next - filteredSizes.begin() - 1, 0);
  const FilteredShape *filters = &filtered[row * shapes.size()];
  unsigned best = 0;
  double bestRating = -std::numeric_limits<double>::infinity();
  for (unsigned family = 0; family < numFamilies; ++family) {
    KernelResources resources =
        problem.codegen.resources(workload, plan.families[family]);
    double total = 0;
    for (auto [index, shape] : llvm::enumerate(shapes))
      total +=
          rate(plan.families[family], resources, shape.shape, filters[index]);
    if (total <= bestRating)
      continue;
    best = family;
    bestRating = total;
  }
  return best;
}

void FTunerSearch::assignSizes(size_t numFamilies) {
  const Axis &axis = workload.axes[mainAxis];
  std::optional<int64_t> count = axis.range.count();
  isExhaustive = count && *count <= maxEnumeratedSizes;
  std::vector<SizeSample> sizes =
      sampleSizes(axis, isExhaustive ? maxEnumeratedSizes : maxDispatchSamples);

  // Other axes do not select: their boxes are whole, so that the class of a
  // shape is a function of one size.
  std::vector<SizeRange> box;
  for (const Axis &other : workload.axes)
    box.push_back(other.isDynamic() ? SizeRange{0, std::nullopt, 1}
                                    : other.range);
  std::vector<ShapeSample> all = combineShapes(workload, mainAxis, sizes);
  size_t shapesPerSize = all.size() / sizes.size();
  for (auto [index, sample] : llvm::enumerate(sizes)) {
    auto shapes =
        llvm::ArrayRef(all).slice(index * shapesPerSize, shapesPerSize);
    unsigned best = bestFamily(numFamilies, shapes);
    std::optional<int64_t> end = axis.range.max;
    if (index + 1 < sizes.size())
      end = sizes[index + 1].size - 1;
    if (!plan.entries.empty() && plan.entries.back().family == best) {
      plan.entries.back().box[mainAxis].max = end;
      continue;
    }
    box[mainAxis] = {plan.entries.empty() ? axis.range.min : sample.size, end,
                     1};
    plan.entries.push_back({box, best});
  }
}

void FTunerSearch::dropIdleParts() {
  if (!isExhaustive || mainAxis != set.prototype.combineAxis)
    return;
  std::vector<std::array<bool, 2>> runs(plan.families.size(), {false, false});
  const DispatchEntry *entry = plan.entries.data();
  for (const SizeSample &sample :
       sampleSizes(workload.axes[mainAxis], maxEnumeratedSizes)) {
    while (*entry->box[mainAxis].max < sample.size)
      ++entry;
    Cover cover = coverExtent(plan.families[entry->family], sample.size);
    runs[entry->family][0] |= cover.first > 0;
    runs[entry->family][1] |= cover.second > 0;
  }
  for (auto [family, used] : llvm::zip(plan.families, runs)) {
    if (family.parts.size() != 2 || used[0] == used[1])
      continue;
    family.parts.erase(family.parts.begin() + (used[0] ? 1 : 0));
  }
}

void FTunerSearch::removeUnusedFamilies() {
  std::vector<unsigned> uses(plan.families.size(), 0);
  ++uses[plan.generalFamily];
  ++uses[plan.fallbackFamily];
  for (const DispatchEntry &entry : plan.entries)
    ++uses[entry.family];
  std::vector<unsigned> newIndex(plan.families.size(), 0);
  std::vector<KernelFamily> kept;
  std::map<std::string, unsigned> byText;
  for (unsigned i = 0; i < plan.families.size(); ++i) {
    if (!uses[i])
      continue;
    auto [it, inserted] =
        byText.try_emplace(plan.families[i].str(), kept.size());
    if (inserted)
      kept.push_back(plan.families[i]);
    newIndex[i] = it->second;
  }
  plan.families = std::move(kept);
  plan.generalFamily = newIndex[plan.generalFamily];
  plan.fallbackFamily = newIndex[plan.fallbackFamily];
  for (DispatchEntry &entry : plan.entries)
    entry.family = newIndex[entry.family];
}

void FTunerSearch::report() {
  auto add = [&](llvm::Twine name, double value) {
    plan.statistics.push_back({name.str(), value});
  };
  add("raw_candidates", set.rawCount);
  add("legal_candidates", set.candidates.size());
  add("shapes", filtered.size());
  for (unsigned i = 0; i < NumFilterStages; ++i) {
    FilterStage stage = static_cast<FilterStage>(i);
    llvm::StringRef name = filterStageName(stage);
    add("after_" + name, counts.kept[i]);
    if (counts.relaxed[i] == 0)
      continue;
    add("relaxed_" + name, counts.relaxed[i]);
    plan.remarks.push_back(("filter stage " + name + " relaxed for " +
                            llvm::Twine(counts.relaxed[i]) + " of " +
                            llvm::Twine(filtered.size()) +
                            " shapes: no candidate would be left")
                               .str());
  }
  add("programs", numPrograms);
  add("families", plan.families.size());
  if (set.prototype.vectorWidth >
      problem.codegen.guaranteedVectorWidth(workload))
    plan.remarks.push_back("sizes may break the alignment of vector accesses: "
                           "such calls take the fallback family");
}

Plan FTunerSearch::run() {
  filterShapes();
  if (problem.options.maxKernels > 1)
    for (unsigned family : chooseForRange())
      plan.families.push_back(table.families[family]);
  size_t numChosen = plan.families.size();
  plan.fallbackFamily = numChosen;
  plan.families.push_back(chooseFallback());
  assignSizes(std::max<size_t>(numChosen, 1));

  const Axis &axis = workload.axes[mainAxis];
  bool isClosed = axis.isDynamic() && !axis.range.isOpen();
  if (!isClosed) // Beyond an open range lie only sizes below its least.
    plan.generalFamily = plan.entries.front().family;
  else if (problem.options.maxKernels < 3)
    plan.generalFamily = plan.entries.back().family;
  dropIdleParts();
  removeUnusedFamilies();
  report();
  return std::move(plan);
}

namespace {
class FTunerStrategy final : public SearchStrategy {
public:
  llvm::StringRef name() const override { return "ftuner"; }

  llvm::Expected<Plan> search(const SearchProblem &problem) const override {
    llvm::Expected<CandidateSet> set =
        enumerateCandidates(problem, reachableVectorWidth(problem));
    if (!set)
      return set.takeError();
    return FTunerSearch(problem, *set).run();
  }
};
} // namespace

namespace ftuner {
const SearchStrategy &ftunerStrategy() {
  static const FTunerStrategy strategy;
  return strategy;
}
} // namespace ftuner
