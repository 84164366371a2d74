//===- Sampling.cpp - Sizes that a search looks at ------------------------===//
#include "FTuner/Workload/Sampling.h"
#include "FTuner/Workload/RowReduction.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>
#include <set>

using namespace ftuner;

/// Weight of a size that the user's histogram lacks, relative to the mean
/// weight: enough to break ties, too little to decide.
static constexpr double unlistedWeight = 1e-3;

/// Representative sizes of an open axis other than the main one lie between
/// two: speed at the far ends of an open range does not matter.
static constexpr int64_t minOpenRepresentative = 64;
static constexpr int64_t openRepresentative = 4096;
/// Further representatives for the length of rows that a kernel reduces: rows
/// that do not fit in a block's registers, and rows that several blocks share,
/// aligned and not.
static constexpr int64_t longRows[] = {32768, 131073, 524288};

/// Common sizes are powers of two and multiples of `kMinCommon`, from it on:
/// below, samples are dense. Multiples end at `kMaxCommonMultiple`. At most one
/// of `kShareOfCommon` samples is a common size.
static constexpr int64_t kMinCommon = 128, kMaxCommonMultiple = 4096,
                         kShareOfCommon = 3;

int64_t ftuner::smallestSize(const Axis &axis) {
  const SizeRange &range = axis.range;
  if (range.min >= 1)
    return range.min;
  int64_t next = range.min + range.step;
  return range.contains(next) ? next : 1;
}

/// Returns the largest size of the axis; about `openEnd` if it is open. The
/// result is at least the axis's smallest size.
static int64_t endOf(const Axis &axis, int64_t openEnd) {
  const SizeRange &range = axis.range;
  int64_t first = smallestSize(axis);
  int64_t end = range.max.value_or(std::max(openEnd, first));
  if (end <= first)
    return first;
  return first + (end - first) / range.step * range.step;
}

int64_t ftuner::largestSize(const Axis &axis) {
  return endOf(axis, openRangeEnd);
}

/// Returns the sizes ≥ 1 of positive weight in the axis's histogram, ascending;
/// an empty list if there are more than `maxCount`.
static std::vector<int64_t> listedSizes(const Axis &axis, int64_t maxCount) {
  std::vector<int64_t> sizes;
  for (const SizeWeight &entry : axis.weights)
    if (entry.weight > 0 && entry.size >= 1)
      sizes.push_back(entry.size);
  if (static_cast<int64_t>(sizes.size()) > maxCount)
    sizes.clear();
  return sizes;
}

/// Sets the weights of samples to their shares of the axis's histogram: an
/// entry belongs to the largest sample that is not above it.
static void applyHistogram(const Axis &axis, std::vector<SizeSample> &samples) {
  if (axis.weights.empty())
    return;
  double sum = 0;
  for (const SizeWeight &entry : axis.weights)
    sum += entry.weight;
  for (SizeSample &sample : samples)
    sample.weight = 0;
  for (const SizeWeight &entry : axis.weights) {
    auto next = llvm::upper_bound(samples, entry.size,
                                  [](int64_t size, const SizeSample &sample) {
                                    return size < sample.size;
                                  });
    if (next != samples.begin())
      std::prev(next)->weight += entry.weight / sum;
  }
  double minWeight = unlistedWeight / samples.size();
  for (SizeSample &sample : samples)
    sample.weight = std::max(sample.weight, minWeight);
}

/// Sizes that people use, ascending, at most `maxCount`: powers of two, the
/// sizes before and after each, multiples of 128 from 128 on, and their
/// successors, which need one more row of blocks. A kind that would exceed the
/// limit is left out.
static std::vector<int64_t> commonSizes(const Axis &axis, int64_t first,
                                        int64_t last, int64_t maxCount) {
  std::set<int64_t> sizes;
  auto add = [&](llvm::ArrayRef<int64_t> kind) {
    std::set<int64_t> more = sizes;
    for (int64_t size : kind)
      if (size > first && size < last && axis.range.contains(size))
        more.insert(size);
    if (static_cast<int64_t>(more.size()) <= maxCount)
      sizes = std::move(more);
  };
  std::vector<int64_t> powers, neighbours, multiples, successors;
  for (int64_t power = kMinCommon; power <= last; power *= 2) {
    powers.push_back(power);
    neighbours.insert(neighbours.end(), {power - 1, power + 1});
  }
  for (int64_t size = kMinCommon; size <= kMaxCommonMultiple;
       size += kMinCommon) {
    multiples.push_back(size);
    successors.push_back(size + 1);
  }
  add(powers);
  add(neighbours);
  add(multiples);
  add(successors);
  return {sizes.begin(), sizes.end()};
}

std::vector<SizeSample> ftuner::sampleSizes(const Axis &axis, int64_t limit) {
  int64_t first = smallestSize(axis), step = axis.range.step;
  int64_t last = largestSize(axis);
  limit = std::max<int64_t>(limit, 2);
  int64_t count = (last - first) / step + 1;
  std::vector<SizeSample> samples;
  if (count <= limit) {
    for (int64_t size = first; size <= last; size += step)
      samples.push_back({size, 1});
  } else {
    double ratio = static_cast<double>(last) / first;
    std::vector<int64_t> sizes = listedSizes(axis, limit - 2);
    if (sizes.empty())
      sizes = commonSizes(axis, first, last, limit / kShareOfCommon);
    int64_t numOthers = limit - sizes.size();
    for (int64_t i = 0; i < numOthers; ++i) {
      double target = first * std::pow(ratio, double(i) / (numOthers - 1));
      int64_t index = std::llround((target - first) / step);
      sizes.push_back(first + std::clamp<int64_t>(index, 0, count - 1) * step);
    }
    llvm::sort(sizes);
    sizes.erase(llvm::unique(sizes), sizes.end());
    for (int64_t size : sizes)
      samples.push_back({size, 1});
  }
  applyHistogram(axis, samples);
  return samples;
}

std::vector<int64_t> ftuner::representativeSizes(const Axis &axis,
                                                 unsigned count) {
  int64_t first = smallestSize(axis);
  if (axis.range.isOpen() && first < minOpenRepresentative)
    first += ceilBy(minOpenRepresentative - first, axis.range.step);
  int64_t last = std::max(first, endOf(axis, openRepresentative));
  std::vector<int64_t> sizes = {first};
  for (unsigned i = 1; i + 1 < count; ++i) {
    double share = static_cast<double>(i) / (count - 1);
    double exact = first * std::pow(static_cast<double>(last) / first, share);
    int64_t steps = std::llround((exact - first) / axis.range.step);
    sizes.push_back(first + steps * axis.range.step);
  }
  sizes.push_back(last);
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

std::vector<Shape> ftuner::representativeShapes(llvm::ArrayRef<Axis> axes) {
  std::vector<Shape> shapes(3);
  for (const Axis &axis : axes) {
    std::vector<int64_t> sizes = representativeSizes(axis);
    for (size_t i = 0; i < shapes.size(); ++i)
      shapes[i].push_back(sizes[i * (sizes.size() - 1) / (shapes.size() - 1)]);
  }
  shapes.erase(std::unique(shapes.begin(), shapes.end()), shapes.end());
  return shapes;
}

/// Returns the axis whose size decides the size of `axis`, since both have the
/// same symbols: `mainAxis` if possible, or else the first such axis.
static unsigned leadingAxis(const Workload &workload, unsigned axis,
                            unsigned mainAxis) {
  const std::vector<std::string> &symbols = workload.axes[axis].symbols;
  if (symbols.empty() || axis == mainAxis)
    return axis;
  if (workload.axes[mainAxis].symbols == symbols)
    return mainAxis;
  for (unsigned other = 0; other < axis; ++other)
    if (workload.axes[other].symbols == symbols)
      return other;
  return axis;
}

/// Sets the sizes of axes that follow another one.
static void followLeaders(const Workload &workload, unsigned mainAxis,
                          Shape &shape) {
  for (unsigned axis = 0; axis < shape.size(); ++axis) {
    unsigned leader = leadingAxis(workload, axis, mainAxis);
    if (leader != axis)
      shape[axis] =
          std::max<int64_t>(shape[leader] / workload.axes[leader].factor, 1) *
          workload.axes[axis].factor;
  }
}

namespace {
/// Sizes of one axis that are served alike.
struct AxisCell {
  int64_t representative = 1;
  SizeRange range;
  double weight = 1;
};
} // namespace

/// Number of cells of a dynamic axis other than the main one: if it is the only
/// such axis, and if there are several. With 12 cells instead of 3, products
/// with two dynamic axes are predicted 2 to 13 % faster over their ranges, and
/// a search takes 1.2 to 1.8 times as long.
static constexpr unsigned kCellsOfOne = 12, kCellsOfSeveral = 3;

/// Returns the sizes that have cells: the geometric means of neighbouring sizes
/// separate the cells of an axis. Listed sizes replace the representative sizes
/// nearest to them.
static std::vector<int64_t> cellSizes(const Axis &axis, unsigned count,
                                      llvm::ArrayRef<int64_t> listed) {
  std::vector<int64_t> sizes = representativeSizes(axis, count);
  std::set<int64_t> replaced;
  for (int64_t size : listed)
    replaced.insert(*std::min_element(
        sizes.begin(), sizes.end(), [&](int64_t a, int64_t b) {
          return std::abs(std::log(double(a) / size)) <
                 std::abs(std::log(double(b) / size));
        }));
  llvm::erase_if(sizes, [&](int64_t size) { return replaced.count(size) > 0; });
  sizes.insert(sizes.end(), listed.begin(), listed.end());
  llvm::sort(sizes);
  return sizes;
}

/// Returns the cells of a dynamic axis: at most `count`, and a cell for each of
/// `largerSizes` if the axis is open. The cells cover all sizes from 0 on;
/// their weights add up to about 1. Each size of a histogram of at most `count`
/// sizes has a cell in addition; a longer histogram would give too many cells,
/// since they multiply with the cells of other axes.
static std::vector<AxisCell> cellsOf(const Axis &axis, unsigned count,
                                     llvm::ArrayRef<int64_t> largerSizes) {
  std::vector<int64_t> sizes = cellSizes(axis, count, listedSizes(axis, count));
  if (axis.range.isOpen())
    for (int64_t size : largerSizes)
      if (int64_t next =
              ceilBy(size - axis.range.min, axis.range.step) + axis.range.min;
          next > 2 * sizes.back())
        sizes.push_back(next);
  auto middle = [&](size_t low) {
    return static_cast<int64_t>(
        std::sqrt(static_cast<double>(sizes[low]) * sizes[low + 1]));
  };
  std::vector<AxisCell> cells;
  std::vector<SizeSample> starts;
  for (size_t i = 0; i < sizes.size(); ++i) {
    SizeRange range{0, std::nullopt, 1};
    if (i > 0)
      range.min = middle(i - 1) + 1;
    if (i + 1 < sizes.size())
      range.max = middle(i);
    cells.push_back({sizes[i], range, 1.0 / sizes.size()});
    starts.push_back({range.min, 1.0 / sizes.size()});
  }
  applyHistogram(axis, starts);
  for (size_t i = 0; i < sizes.size(); ++i)
    cells[i].weight = starts[i].weight;
  return cells;
}

std::vector<ShapeCell> ftuner::shapeCells(const Workload &workload,
                                          unsigned mainAxis) {
  size_t rank = workload.axes.size();
  unsigned numOthers = 0;
  for (unsigned index = 0; index < rank; ++index)
    numOthers += index != mainAxis && workload.axes[index].isDynamic() &&
                 leadingAxis(workload, index, mainAxis) == index;
  unsigned count = numOthers > 1 ? kCellsOfSeveral : kCellsOfOne;
  std::optional<RowReductionView> rows = workload.asRowReduction();
  std::vector<ShapeCell> cells(1);
  cells[0].representative.resize(rank, 1);
  cells[0].box.resize(rank, SizeRange{0, std::nullopt, 1});
  for (unsigned index = 0; index < rank; ++index) {
    const Axis &axis = workload.axes[index];
    if (index == mainAxis)
      continue;
    if (!axis.isDynamic()) {
      for (ShapeCell &cell : cells) {
        cell.representative[index] = std::max<int64_t>(axis.range.min, 1);
        cell.box[index] = axis.range;
      }
      continue;
    }
    if (leadingAxis(workload, index, mainAxis) != index)
      continue;
    std::vector<ShapeCell> split;
    for (const ShapeCell &cell : cells)
      for (const AxisCell &part :
           cellsOf(axis, count,
                   rows && rows->row() == index && !workload.isContraction()
                       ? longRows
                       : llvm::ArrayRef<int64_t>())) {
        split.push_back(cell);
        split.back().representative[index] = part.representative;
        split.back().box[index] = part.range;
        split.back().weight *= part.weight;
      }
    cells = std::move(split);
  }
  for (ShapeCell &cell : cells)
    followLeaders(workload, mainAxis, cell.representative);
  return cells;
}

Shape ftuner::shapeAt(const Workload &workload, const ShapeCell &cell,
                      unsigned mainAxis, int64_t size) {
  Shape shape = cell.representative;
  shape[mainAxis] = size;
  followLeaders(workload, mainAxis, shape);
  return shape;
}
