//===- Intervals.cpp - A plan as intervals of one axis --------------------===//
#include "FTuner/Dispatch/Intervals.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <limits>

using namespace ftuner;

static constexpr int64_t openEnd = std::numeric_limits<int64_t>::max();

/// Whether two boxes agree on every axis but one.
static bool agreeElsewhere(const DispatchEntry &a, const DispatchEntry &b,
                           unsigned axis) {
  if (a.box.size() != b.box.size())
    return false;
  for (unsigned i = 0; i < a.box.size(); ++i)
    if (i != axis &&
        (a.box[i].min != b.box[i].min || a.box[i].max != b.box[i].max))
      return false;
  return true;
}

std::optional<std::vector<Interval>> ftuner::mainAxisIntervals(const Plan &plan,
                                                               unsigned axis) {
  std::vector<Interval> result;
  if (plan.entries.empty())
    return result;
  for (const DispatchEntry &entry : plan.entries)
    if (axis >= entry.box.size() ||
        !agreeElsewhere(plan.entries.front(), entry, axis))
      return std::nullopt;

  // Between two neighbouring starts the answer does not change: a start is a
  // box's least size, or the size after its largest.
  std::vector<int64_t> starts;
  for (const DispatchEntry &entry : plan.entries) {
    starts.push_back(entry.box[axis].min);
    if (entry.box[axis].max && *entry.box[axis].max < openEnd)
      starts.push_back(*entry.box[axis].max + 1);
  }
  llvm::sort(starts);
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());

  for (auto [index, lo] : llvm::enumerate(starts)) {
    const DispatchEntry *winner = nullptr;
    for (const DispatchEntry &entry : plan.entries) {
      const SizeRange &range = entry.box[axis];
      if (lo < range.min || lo > range.max.value_or(openEnd))
        continue;
      winner = &entry;
      break;
    }
    if (!winner)
      continue;
    std::optional<int64_t> hi;
    if (index + 1 < starts.size())
      hi = starts[index + 1] - 1;
    bool merges = !result.empty() && result.back().hi &&
                  *result.back().hi + 1 == lo &&
                  result.back().family == winner->family;
    if (merges)
      result.back().hi = hi;
    else
      result.push_back({lo, hi, winner->family});
  }
  return result;
}

unsigned ftuner::familyForSize(llvm::ArrayRef<Interval> intervals, int64_t size,
                               unsigned generalFamily) {
  const Interval *next = llvm::upper_bound(
      intervals, size,
      [](int64_t value, const Interval &other) { return value < other.lo; });
  if (next == intervals.begin())
    return generalFamily;
  const Interval &interval = *std::prev(next);
  if (interval.hi && size > *interval.hi)
    return generalFamily;
  return interval.family;
}
