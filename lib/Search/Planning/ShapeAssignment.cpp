//===- ShapeAssignment.cpp - Shapes of each family ------------------------===//
#include "ShapeAssignment.h"
#include "FTuner/Schedule/Alignment.h"
#include "FTuner/Search/Problem/SearchTuning.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <limits>
#include <numeric>

using namespace ftuner;

ShapeAssignment::ShapeAssignment(const ProgramRanker &ranker,
                                 const RangeSamples &samples,
                                 llvm::ArrayRef<RankedShape> ranked,
                                 bool isMixed, Plan &plan)
    : ranker(ranker), problem(ranker.problem), workload(problem.workload),
      mainAxis(workload.mainAxis()), samples(samples), ranked(ranked),
      cells(samples.cells), isMixed(isMixed), plan(plan) {}

bool ShapeAssignment::isAligned(llvm::ArrayRef<int64_t> shape) const {
  return alignmentOf(workload, shape) >= ranker.set.alignment;
}

unsigned ShapeAssignment::bestFamily(llvm::ArrayRef<unsigned> candidates,
                                     size_t cell, int64_t size,
                                     std::optional<unsigned> current) const {
  // Sizes between the ranked ones belong to the sample below.
  auto next = llvm::upper_bound(samples.sizes, size,
                                [](int64_t value, const SizeSample &sample) {
                                  return value < sample.size;
                                });
  size_t row = std::max<ptrdiff_t>(next - samples.sizes.begin() - 1, 0);
  Shape shape = shapeAt(workload, cells[cell], mainAxis, size);
  unsigned best = candidates.front();
  double bestRating = -std::numeric_limits<double>::infinity();
  double currentRating = bestRating;
  for (unsigned family : candidates) {
    double rating =
        ranker.rateMeasured(plan.families[family], familyResources[family],
                            shape, ranked[row * cells.size() + cell]);
    if (family == current)
      currentRating = rating;
    if (rating <= bestRating)
      continue;
    best = family;
    bestRating = rating;
  }
  // Scores are negated times.
  bool keepsCurrent = problem.costModel.predictsTime() &&
                      currentRating >= bestRating * (1 + tuning::minTurnGain);
  return keepsCurrent ? *current : best;
}

std::vector<DispatchEntry>
ShapeAssignment::assignCell(llvm::ArrayRef<unsigned> candidates, size_t cell,
                            llvm::ArrayRef<SizeSample> sizes) const {
  const Axis &axis = workload.axes[mainAxis];
  std::vector<DispatchEntry> entries;
  for (auto [index, sample] : llvm::enumerate(sizes)) {
    std::optional<unsigned> current;
    if (!entries.empty())
      current = entries.back().family;
    unsigned best = bestFamily(candidates, cell, sample.size, current);
    std::optional<int64_t> end = axis.range.max;
    if (index + 1 < sizes.size())
      end = sizes[index + 1].size - 1;
    if (!entries.empty() && entries.back().family == best) {
      entries.back().box[mainAxis].max = end;
      continue;
    }
    DispatchEntry entry{cells[cell].box, best};
    // Sizes below the first sample have its family. Sizes beyond the last one
    // are left to a family that is chosen for them.
    entry.box[mainAxis] = {
        entries.empty() ? std::min<int64_t>(axis.range.min, 1) : sample.size,
        end, 1};
    entries.push_back(std::move(entry));
  }
  return entries;
}

/// Returns whether two lists send the sizes of the main axis to the same
/// families.
static bool agreeAlong(unsigned axis, llvm::ArrayRef<DispatchEntry> a,
                       llvm::ArrayRef<DispatchEntry> b) {
  return llvm::equal(a, b, [&](const DispatchEntry &x, const DispatchEntry &y) {
    return x.family == y.family && x.box[axis].min == y.box[axis].min &&
           x.box[axis].max == y.box[axis].max;
  });
}

/// Returns the axis along which the second box begins where the first one ends;
/// no value if they differ along further axes except the main one.
static std::optional<unsigned> adjoiningAxis(llvm::ArrayRef<SizeRange> box,
                                             llvm::ArrayRef<SizeRange> next,
                                             unsigned mainAxis) {
  std::optional<unsigned> adjoining;
  for (unsigned axis = 0; axis < box.size(); ++axis) {
    if (axis == mainAxis ||
        (box[axis].min == next[axis].min && box[axis].max == next[axis].max))
      continue;
    if (adjoining || !box[axis].max || *box[axis].max + 1 != next[axis].min)
      return std::nullopt;
    adjoining = axis;
  }
  return adjoining;
}

bool ShapeAssignment::extend(std::vector<DispatchEntry> &entries,
                             llvm::ArrayRef<unsigned> candidates, size_t cell,
                             llvm::ArrayRef<SizeSample> sizes) const {
  std::optional<unsigned> adjoining =
      adjoiningAxis(entries.front().box, cells[cell].box, mainAxis);
  if (!adjoining)
    return false;
  auto suits = [&](const SizeSample &sample) {
    const DispatchEntry &entry =
        *llvm::find_if(entries, [&](const DispatchEntry &entry) {
          std::optional<int64_t> end = entry.box[mainAxis].max;
          return !end || sample.size <= *end;
        });
    return bestFamily(candidates, cell, sample.size, entry.family) ==
           entry.family;
  };
  if (!llvm::all_of(sizes, suits))
    return false;
  for (DispatchEntry &entry : entries)
    entry.box[*adjoining].max = cells[cell].box[*adjoining].max;
  return true;
}

void ShapeAssignment::addSteps(std::vector<SizeSample> &sizes) const {
  const SizeRange &range = workload.axes[mainAxis].range;
  int64_t first = sizes.front().size, last = sizes.back().size;
  for (const KernelFamily &family : plan.families) {
    // If a size needs only so few blocks, all of them have the greater height.
    int64_t tile = family.tiles.back()[mainAxis];
    for (int64_t blocks = 1; blocks <= tuning::maxStepBlocks; ++blocks) {
      int64_t size =
          first +
          ceilBy(std::max<int64_t>(blocks * tile + 1 - first, 0), range.step);
      if (size > last)
        break;
      sizes.push_back({size});
    }
  }
  llvm::sort(sizes, [](const SizeSample &a, const SizeSample &b) {
    return a.size < b.size;
  });
  sizes.erase(
      llvm::unique(sizes, [](const SizeSample &a,
                             const SizeSample &b) { return a.size == b.size; }),
      sizes.end());
}

void ShapeAssignment::run(size_t numFamilies) {
  const Axis &axis = workload.axes[mainAxis];
  std::optional<int64_t> count = axis.range.count();
  isExhaustive = count && *count <= maxEnumeratedSizes && cells.size() == 1;
  int64_t limit = std::clamp<int64_t>(tuning::maxDispatchSamples / cells.size(),
                                      tuning::minDispatchSamplesPerCell,
                                      tuning::maxDispatchSamplesPerCell);
  std::vector<SizeSample> sizes =
      sampleSizes(axis, isExhaustive ? maxEnumeratedSizes : limit);
  if (!isExhaustive)
    addSteps(sizes);

  for (const KernelFamily &family : plan.families)
    familyResources.push_back(family.path().resources(workload, family));
  std::vector<unsigned> candidates(numFamilies);
  std::iota(candidates.begin(), candidates.end(), 0);
  auto assignAligned = [&](std::optional<bool> areAligned) {
    plan.entries = assign(candidates, sizes, areAligned);
    // No size is beyond an open range.
    if (axis.range.isFixed() || axis.range.isOpen())
      plan.generalFamily = plan.entries.front().family;
  };
  if (!isMixed)
    return assignAligned(std::nullopt);
  assignAligned(true);
  if (!plan.needsAlignment()) // Which all operands have.
    return assignAligned(std::nullopt);
  candidates.clear();
  for (auto [index, family] : llvm::enumerate(plan.families))
    if (family.takesAnyAlignment())
      candidates.push_back(index);
  if (candidates.size() > 1)
    plan.unalignedEntries = assign(candidates, sizes, false);
}

std::vector<DispatchEntry>
ShapeAssignment::assign(llvm::ArrayRef<unsigned> candidates,
                        llvm::ArrayRef<SizeSample> sizes,
                        std::optional<bool> areAligned) const {
  std::vector<std::vector<DispatchEntry>> byCell;
  for (size_t cell = 0; cell < cells.size(); ++cell) {
    std::vector<SizeSample> counting;
    if (areAligned)
      llvm::copy_if(sizes, std::back_inserter(counting),
                    [&](const SizeSample &sample) {
                      return isAligned(shapeAt(workload, cells[cell], mainAxis,
                                               sample.size)) == *areAligned;
                    });
    llvm::ArrayRef<SizeSample> own =
        counting.empty() ? sizes : llvm::ArrayRef(counting);
    if (byCell.empty() || !extend(byCell.back(), candidates, cell, own))
      byCell.push_back(assignCell(candidates, cell, own));
  }
  bool mainAxisDecides = llvm::all_of(byCell, [&](const auto &entries) {
    return agreeAlong(mainAxis, entries, byCell.front());
  });
  if (mainAxisDecides) {
    // The alignment of a shape depends on one size.
    byCell.resize(1);
    for (DispatchEntry &entry : byCell.front())
      for (unsigned other = 0; other < entry.box.size(); ++other)
        if (other != mainAxis && workload.axes[other].isDynamic())
          entry.box[other] = {0, std::nullopt, 1};
  }
  std::vector<DispatchEntry> all;
  for (const std::vector<DispatchEntry> &entries : byCell)
    llvm::append_range(all, entries);
  return all;
}

void ShapeAssignment::dropIdleParts() {
  if (!isExhaustive)
    return;
  // Blocks of each part over all sizes.
  std::vector<Partition> blocks(plan.families.size());
  for (llvm::ArrayRef<DispatchEntry> entries :
       {llvm::ArrayRef(plan.entries), llvm::ArrayRef(plan.unalignedEntries)}) {
    const DispatchEntry *entry = entries.data();
    for (const SizeSample &sample :
         sampleSizes(workload.axes[mainAxis], maxEnumeratedSizes)) {
      if (entries.empty())
        break;
      while (*entry->box[mainAxis].max < sample.size)
        ++entry;
      Partition partition = partitionShape(
          plan.families[entry->family],
          shapeAt(workload, cells.front(), mainAxis, sample.size));
      blocks[entry->family].first += partition.first;
      blocks[entry->family].second += partition.second;
    }
  }
  for (auto [index, family] : llvm::enumerate(plan.families)) {
    unsigned axis = family.combineAxis;
    if (blocks[index].blocks() == 0 || index == plan.generalFamily ||
        (axis != mainAxis && !workload.axes[axis].range.isFixed()))
      continue;
    KernelFamily running = runningParts(family, blocks[index]);
    if (!problem.isRejected(running))
      family = std::move(running);
  }
}

void ftuner::removeUnusedFamilies(Plan &plan) {
  std::vector<unsigned> uses(plan.families.size(), 0);
  ++uses[plan.generalFamily];
  ++uses[plan.unalignedGeneralFamily];
  for (const DispatchEntry &entry :
       llvm::concat<const DispatchEntry>(plan.entries, plan.unalignedEntries))
    ++uses[entry.family];
  std::vector<unsigned> newIndex(plan.families.size(), 0);
  std::vector<KernelFamily> kept;
  for (unsigned i = 0; i < plan.families.size(); ++i) {
    if (!uses[i])
      continue;
    newIndex[i] = llvm::find(kept, plan.families[i]) - kept.begin();
    if (newIndex[i] == kept.size())
      kept.push_back(plan.families[i]);
  }
  plan.families = std::move(kept);
  plan.generalFamily = newIndex[plan.generalFamily];
  plan.unalignedGeneralFamily = newIndex[plan.unalignedGeneralFamily];
  for (DispatchEntry &entry :
       llvm::concat<DispatchEntry>(plan.entries, plan.unalignedEntries))
    entry.family = newIndex[entry.family];
}
