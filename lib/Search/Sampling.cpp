//===- Sampling.cpp - Sizes that a search looks at ------------------------===//
#include "FTuner/Search/Sampling.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>

using namespace ftuner;

/// What a size missing from the user's histogram weighs against the mean one:
/// enough to break ties, too little to decide.
static constexpr double unlistedWeight = 1e-3;

/// Representative sizes of an open axis other than the main one lie between
/// these: nobody asks for speed at the ends of a range without ends.
static constexpr int64_t leastOpenRepresentative = 64;
static constexpr int64_t openRepresentative = 4096;

/// The smallest size ≥ 1 of the range.
static int64_t smallestSize(const SizeRange &range) {
  if (range.min >= 1)
    return range.min;
  int64_t size = range.min + range.step;
  return range.max ? std::max<int64_t>(1, std::min(size, *range.max)) : size;
}

static int64_t endOf(const SizeRange &range, int64_t openEnd) {
  int64_t first = smallestSize(range);
  int64_t end = range.max.value_or(std::max(openEnd, first));
  if (end <= first)
    return first;
  return first + (end - first) / range.step * range.step;
}

int64_t ftuner::largestSize(const Axis &axis) {
  return endOf(axis.range, openRangeEnd);
}

static void applyHistogram(const Axis &axis, std::vector<SizeSample> &samples) {
  if (axis.weights.empty())
    return;
  double sum = 0;
  for (SizeSample &sample : samples)
    sample.weight = 0;
  for (const SizeWeight &entry : axis.weights) {
    auto next = llvm::upper_bound(samples, entry.size,
                                  [](int64_t size, const SizeSample &sample) {
                                    return size < sample.size;
                                  });
    if (next != samples.begin())
      std::prev(next)->weight += entry.weight;
    sum += entry.weight;
  }
  double least = unlistedWeight * sum / samples.size();
  for (SizeSample &sample : samples)
    sample.weight = std::max(sample.weight, least);
}

std::vector<SizeSample> ftuner::sampleSizes(const Axis &axis, int64_t limit) {
  int64_t first = smallestSize(axis.range), step = axis.range.step;
  int64_t last = endOf(axis.range, openRangeEnd);
  int64_t count = (last - first) / step + 1;
  std::vector<SizeSample> samples;
  if (count <= limit) {
    for (int64_t size = first; size <= last; size += step)
      samples.push_back({size, 1});
  } else {
    double ratio = static_cast<double>(last) / first;
    for (int64_t i = 0; i < limit; ++i) {
      double target = first * std::pow(ratio, double(i) / (limit - 1));
      int64_t index = std::llround((target - first) / step);
      int64_t size = first + std::clamp<int64_t>(index, 0, count - 1) * step;
      if (samples.empty() || size > samples.back().size)
        samples.push_back({size, 1});
    }
  }
  applyHistogram(axis, samples);
  return samples;
}

std::vector<int64_t> ftuner::representativeSizes(const Axis &axis) {
  int64_t first = smallestSize(axis.range);
  if (axis.range.isOpen() && first < leastOpenRepresentative)
    first += ceilBy(leastOpenRepresentative - first, axis.range.step);
  int64_t last = std::max(first, endOf(axis.range, openRepresentative));
  double middle = std::sqrt(static_cast<double>(first) * last);
  int64_t steps = std::llround((middle - first) / axis.range.step);
  std::vector<int64_t> sizes = {first, first + steps * axis.range.step, last};
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

std::vector<ShapeSample>
ftuner::combineShapes(const Workload &workload, unsigned mainAxis,
                      llvm::ArrayRef<SizeSample> mainSizes) {
  // Shapes of the other axes, with 1 on the main one.
  std::vector<Shape> others = {Shape(workload.axes.size(), 1)};
  for (unsigned axis = 0; axis < workload.axes.size(); ++axis) {
    if (axis == mainAxis)
      continue;
    std::vector<Shape> extended;
    for (const Shape &shape : others)
      for (int64_t size : representativeSizes(workload.axes[axis])) {
        extended.push_back(shape);
        extended.back()[axis] = size;
      }
    others = std::move(extended);
  }
  std::vector<ShapeSample> result;
  for (const SizeSample &sample : mainSizes)
    for (const Shape &other : others) {
      result.push_back({other, sample.weight / others.size()});
      result.back().shape[mainAxis] = sample.size;
    }
  return result;
}
