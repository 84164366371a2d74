//===- Intervals.cpp - A plan as cells and intervals ----------------------===//
#include "FTuner/Dispatch/Intervals.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <limits>

using namespace ftuner;

static constexpr int64_t openEnd = std::numeric_limits<int64_t>::max();

/// Returns whether two boxes are equal on every axis but one.
static bool equalElsewhere(llvm::ArrayRef<SizeRange> a,
                           llvm::ArrayRef<SizeRange> b, unsigned axis) {
  for (unsigned i = 0; i < a.size(); ++i)
    if (i != axis && (a[i].min != b[i].min || a[i].max != b[i].max))
      return false;
  return true;
}

/// Returns whether two boxes share shapes, whatever the size of one axis.
static bool overlapElsewhere(llvm::ArrayRef<SizeRange> a,
                             llvm::ArrayRef<SizeRange> b, unsigned axis) {
  for (unsigned i = 0; i < a.size(); ++i)
    if (i != axis && (a[i].min > b[i].max.value_or(openEnd) ||
                      b[i].min > a[i].max.value_or(openEnd)))
      return false;
  return true;
}

/// Intervals of entries whose boxes are equal on the other axes; the first that
/// holds a size wins.
static std::vector<Interval>
intervalsOf(llvm::ArrayRef<const DispatchEntry *> entries, unsigned axis) {
  // Between two neighbouring starts the answer does not change: a start is a
  // box's least size, or the size after its largest.
  std::vector<int64_t> starts;
  for (const DispatchEntry *entry : entries) {
    const SizeRange &range = entry->box[axis];
    starts.push_back(range.min);
    if (range.max && *range.max < openEnd)
      starts.push_back(*range.max + 1);
  }
  llvm::sort(starts);
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());

  std::vector<Interval> result;
  for (auto [index, lo] : llvm::enumerate(starts)) {
    auto holds = [&, lo = lo](const DispatchEntry *entry) {
      const SizeRange &range = entry->box[axis];
      return lo >= range.min && lo <= range.max.value_or(openEnd);
    };
    const auto *winner = llvm::find_if(entries, holds);
    if (winner == entries.end())
      continue;
    std::optional<int64_t> hi;
    if (index + 1 < starts.size())
      hi = starts[index + 1] - 1;
    unsigned family = (*winner)->family;
    bool merges = !result.empty() && result.back().hi &&
                  *result.back().hi + 1 == lo && result.back().family == family;
    if (merges)
      result.back().hi = hi;
    else
      result.push_back({lo, hi, family});
  }
  return result;
}

std::optional<std::vector<PlanCell>>
ftuner::planCells(llvm::ArrayRef<DispatchEntry> entries, unsigned axis) {
  std::vector<PlanCell> cells;
  std::vector<std::vector<const DispatchEntry *>> entriesOfCell;
  for (const DispatchEntry &entry : entries) {
    if (axis >= entry.box.size() ||
        entry.box.size() != entries.front().box.size())
      return std::nullopt;
    auto cell = llvm::find_if(cells, [&](const PlanCell &known) {
      return equalElsewhere(known.box, entry.box, axis);
    });
    if (cell == cells.end()) {
      for (const PlanCell &known : cells)
        if (overlapElsewhere(known.box, entry.box, axis))
          return std::nullopt;
      cells.push_back({entry.box, {}});
      entriesOfCell.emplace_back();
      cell = std::prev(cells.end());
    }
    entriesOfCell[cell - cells.begin()].push_back(&entry);
  }
  for (auto [cell, held] : llvm::zip_equal(cells, entriesOfCell))
    cell.intervals = intervalsOf(held, axis);
  return cells;
}

unsigned ftuner::familyForSize(llvm::ArrayRef<Interval> intervals, int64_t size,
                               unsigned otherwise) {
  const Interval *next = llvm::upper_bound(
      intervals, size,
      [](int64_t value, const Interval &other) { return value < other.lo; });
  if (next == intervals.begin())
    return otherwise;
  const Interval &interval = *std::prev(next);
  if (interval.hi && size > *interval.hi)
    return otherwise;
  return interval.family;
}
