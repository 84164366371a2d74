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
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include <algorithm>
#include <map>
#include <numeric>

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
/// Shapes that the fallback families are scored on.
static constexpr int64_t fallbackSizes = 12;
/// Extent far beyond a range, for the general family.
static constexpr int64_t generalExtent = 4096;

namespace {
/// Families by the candidate that is their only or their larger part.
class FamilyTable {
public:
  FamilyTable(const SearchProblem &problem, const CandidateSet &set);

  unsigned single(unsigned candidate);
  /// The pair of the candidate and the one a row lower, or the candidate alone
  /// where no such pair is legal.
  unsigned pairWithLower(unsigned candidate);
  /// The pair of the candidate and the one a row higher, if it is legal.
  std::optional<unsigned> pairWithHigher(unsigned candidate);

  std::vector<KernelFamily> families;

private:
  /// The same thread layout with another height.
  using Key = std::array<int64_t, 5>;
  Key key(const UKernel &ukernel, int64_t height) const;
  unsigned add(KernelFamily family);

  const SearchProblem &problem;
  const CandidateSet &set;
  bool combines = false;
  std::map<Key, unsigned> byLayout;
  llvm::DenseMap<unsigned, unsigned> singles, pairs;
};

class FTunerSearch {
public:
  FTunerSearch(const SearchProblem &problem, const CandidateSet &set)
      : problem(problem), workload(problem.workload), set(set),
        table(problem, set), mainAxis(workload.mainAxis()) {}

  Plan run();

private:
  double score(const KernelFamily &family, llvm::ArrayRef<int64_t> shape) const;
  /// Indices of the families of a shape's best programs, best first.
  std::vector<unsigned> propose(llvm::ArrayRef<int64_t> shape,
                                FilterCounts &counts);
  std::vector<unsigned> chooseForRange();
  /// A family of one uKernel for sizes beyond the range.
  unsigned chooseGeneral();
  /// A family without alignment requirements.
  KernelFamily chooseFallback() const;
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
  FilterCounts counts;
  int64_t numFilteredShapes = 0, numPrograms = 0;
  bool isExhaustive = false;
  Plan plan;
};
} // namespace

//===----------------------------------------------------------------------===//
// FamilyTable
//===----------------------------------------------------------------------===//

FamilyTable::FamilyTable(const SearchProblem &problem, const CandidateSet &set)
    : problem(problem), set(set) {
  TileGranules granules =
      problem.codegen.granules(problem.workload, problem.device);
  combines =
      llvm::is_contained(granules.combineAxes, problem.workload.mainAxis());
  unsigned axis = set.prototype.combineAxis;
  for (auto [index, candidate] : llvm::enumerate(set.candidates))
    byLayout.emplace(key(candidate.ukernel, candidate.ukernel.regTile[axis]),
                     index);
}

FamilyTable::Key FamilyTable::key(const UKernel &ukernel,
                                  int64_t height) const {
  unsigned axis = set.prototype.combineAxis;
  unsigned other = axis == Workload::kM ? Workload::kN : Workload::kM;
  return {ukernel.threadsAlong(axis), ukernel.threadsAlong(other),
          ukernel.regTile[other], height, 0};
}

unsigned FamilyTable::add(KernelFamily family) {
  families.push_back(std::move(family));
  return families.size() - 1;
}

unsigned FamilyTable::single(unsigned candidate) {
  auto [it, inserted] = singles.try_emplace(candidate, 0);
  if (inserted)
    it->second = add(set.single(candidate));
  return it->second;
}

unsigned FamilyTable::pairWithLower(unsigned candidate) {
  auto it = pairs.find(candidate);
  if (it != pairs.end())
    return it->second;
  KernelFamily family = set.single(candidate);
  unsigned axis = family.combineAxis;
  UKernel lower = family.parts.front();
  int64_t height = lower.regTile[axis];
  bool isPair = false;
  if (combines && height > 1) {
    lower.smemTile[axis] = lower.threadsAlong(axis) * (height - 1);
    lower.regTile[axis] = height - 1;
    family.parts.insert(family.parts.begin(), lower);
    llvm::Error error = checkFamily(problem, family);
    isPair = !error;
    llvm::consumeError(std::move(error));
  }
  unsigned index = isPair ? add(std::move(family)) : single(candidate);
  pairs[candidate] = index;
  return index;
}

std::optional<unsigned> FamilyTable::pairWithHigher(unsigned candidate) {
  const UKernel &ukernel = set.candidates[candidate].ukernel;
  int64_t height = ukernel.regTile[set.prototype.combineAxis];
  auto it = byLayout.find(key(ukernel, height + 1));
  if (it == byLayout.end())
    return std::nullopt;
  unsigned index = pairWithLower(it->second);
  if (families[index].parts.size() != 2)
    return std::nullopt;
  return index;
}

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

std::vector<unsigned> FTunerSearch::propose(llvm::ArrayRef<int64_t> shape,
                                            FilterCounts &counts) {
  std::vector<std::pair<double, unsigned>> ranked;
  llvm::DenseMap<unsigned, bool> seen;
  auto add = [&](unsigned family) {
    if (!seen.try_emplace(family, true).second)
      return;
    ++numPrograms;
    ranked.emplace_back(score(table.families[family], shape), family);
  };
  unsigned axis = set.prototype.combineAxis;
  for (const Survivor &survivor :
       filterCandidates(problem, set, shape, counts)) {
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
  std::vector<unsigned> best;
  for (const auto &entry : ranked)
    best.push_back(entry.second);
  return best;
}

unsigned FTunerSearch::chooseGeneral() {
  Shape shape;
  for (const Axis &axis : workload.axes) {
    int64_t size = largestSize(axis);
    bool isMain = shape.size() == mainAxis;
    shape.push_back(
        axis.isDynamic() && isMain ? std::max(generalExtent, 4 * size) : size);
  }
  FilterCounts ignored;
  std::optional<unsigned> best;
  double bestScore = 0;
  for (const Survivor &survivor :
       filterCandidates(problem, set, shape, ignored)) {
    double value = score(set.single(survivor.candidate), shape);
    if (best && value <= bestScore)
      continue;
    best = survivor.candidate;
    bestScore = value;
  }
  return table.single(*best);
}

KernelFamily FTunerSearch::chooseFallback() const {
  std::vector<ShapeSample> shapes = combineShapes(
      workload, mainAxis, sampleSizes(workload.axes[mainAxis], fallbackSizes));
  std::optional<KernelFamily> best;
  double bestScore = 0;
  FilterCounts ignored;
  // Proposals of the filter for each shape, each scored over all shapes.
  llvm::DenseMap<unsigned, bool> seen;
  for (const ShapeSample &proposer : shapes) {
    std::vector<Survivor> survivors =
        filterCandidates(problem, set, proposer.shape, ignored);
    for (const Survivor &survivor : survivors) {
      if (!seen.try_emplace(survivor.candidate, true).second)
        continue;
      KernelFamily family = set.single(survivor.candidate);
      family.vectorWidth = 1;
      if (llvm::Error error = checkFamily(problem, family)) {
        llvm::consumeError(std::move(error));
        continue;
      }
      double total = 0;
      for (const ShapeSample &sample : shapes)
        total += score(family, sample.shape);
      if (best && total <= bestScore)
        continue;
      best = std::move(family);
      bestScore = total;
    }
  }
  // A path whose aligned layouts are all illegal without alignment would be a
  // surprise; `verify` reports it.
  return best ? *best : set.single(0);
}

std::vector<unsigned> FTunerSearch::chooseForRange() {
  const SearchOptions &options = problem.options;
  std::vector<ShapeSample> shapes =
      combineShapes(workload, mainAxis,
                    sampleSizes(workload.axes[mainAxis], maxFilteredSizes));
  if (shapes.size() > maxFilteredShapes) {
    size_t combinations =
        combineShapes(workload, mainAxis, SizeSample()).size();
    int64_t sizes = std::max<int64_t>(maxFilteredShapes / combinations, 8);
    shapes = combineShapes(workload, mainAxis,
                           sampleSizes(workload.axes[mainAxis], sizes));
  }
  numFilteredShapes = shapes.size();

  std::vector<unsigned> proposed;
  llvm::DenseMap<unsigned, bool> seen;
  auto add = [&](unsigned family) {
    if (seen.try_emplace(family, true).second)
      proposed.push_back(family);
  };
  std::vector<unsigned> chosen;
  const Axis &axis = workload.axes[mainAxis];
  bool needsGeneral =
      axis.isDynamic() && !axis.range.isOpen() && options.maxKernels >= 3;
  if (needsGeneral) {
    add(chooseGeneral());
    chosen.push_back(0);
  }
  for (const ShapeSample &sample : shapes) {
    std::vector<unsigned> best = propose(sample.shape, counts);
    best.resize(std::min(best.size(), proposalsPerShape));
    llvm::for_each(best, add);
  }

  ScoreMatrix scores(proposed.size(), shapes.size());
  std::vector<double> weights;
  for (const ShapeSample &sample : shapes)
    weights.push_back(sample.weight);
  for (size_t row = 0; row < proposed.size(); ++row)
    for (size_t column = 0; column < shapes.size(); ++column)
      scores.at(row, column) =
          score(table.families[proposed[row]], shapes[column].shape);

  // One kernel is the fallback.
  size_t limit = options.maxKernels - 1 - chosen.size();
  chooseFamilies(scores, weights, limit, chosen);
  for (unsigned &index : chosen)
    index = proposed[index];
  return chosen;
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
    llvm::ArrayRef<ShapeSample> shapes =
        llvm::ArrayRef(all).slice(index * shapesPerSize, shapesPerSize);
    unsigned best = 0;
    double bestScore = 0;
    for (unsigned family = 0; family < numFamilies; ++family) {
      double total = 0;
      for (const ShapeSample &shape : shapes)
        total += score(plan.families[family], shape.shape);
      if (family > 0 && total <= bestScore)
        continue;
      best = family;
      bestScore = total;
    }
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
  add("shapes", numFilteredShapes);
  for (unsigned i = 0; i < NumFilterStages; ++i) {
    FilterStage stage = static_cast<FilterStage>(i);
    llvm::StringRef name = filterStageName(stage);
    add("after_" + name, counts.kept[i]);
    if (counts.relaxed[i] == 0)
      continue;
    add("relaxed_" + name, counts.relaxed[i]);
    plan.remarks.push_back(("filter stage " + name + " relaxed for " +
                            llvm::Twine(counts.relaxed[i]) + " of " +
                            llvm::Twine(numFilteredShapes) +
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
  KernelFamily fallback = chooseFallback();
  if (problem.options.maxKernels > 1) {
    for (unsigned family : chooseForRange())
      plan.families.push_back(table.families[family]);
  }
  size_t numChosen = plan.families.size();
  plan.fallbackFamily = numChosen;
  plan.families.push_back(std::move(fallback));
  assignSizes(std::max<size_t>(numChosen, 1));

  const Axis &axis = workload.axes[mainAxis];
  if (axis.isDynamic() && axis.range.isOpen()) {
    // Beyond an open range lie only sizes smaller than its least.
    plan.generalFamily = plan.entries.front().family;
  } else if (!axis.isDynamic()) {
    plan.generalFamily = plan.entries.front().family;
  } else if (problem.options.maxKernels < 3) {
    plan.generalFamily = plan.entries.back().family;
  }
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
