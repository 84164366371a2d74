//===- TileRules.cpp - Tile sizes from the extents of a range -------------===//
#include "FTuner/Search/Ranking/TileRules.h"
#include "FTuner/Search/Problem/SearchTuning.h"
#include "FTuner/Workload/Sampling.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <map>
#include <numeric>

using namespace ftuner;

static bool isPrime(int64_t value) {
  if (value < 4)
    return value >= 2;
  if (value % 2 == 0 || value % 3 == 0)
    return false;
  for (int64_t divisor = 5; divisor * divisor <= value; divisor += 6)
    if (value % divisor == 0 || value % (divisor + 2) == 0)
      return false;
  return true;
}

/// Returns whether `divisor` divides a size ≥ 1 of the range.
static bool dividesSome(const SizeRange &range, int64_t divisor) {
  int64_t common = std::gcd(divisor, range.step);
  if (range.min % common != 0)
    return false;
  // min + i · step ≡ 0 modulo divisor, for the least i; sizes repeat after
  // `period` steps.
  int64_t period = divisor / common;
  int64_t inverse = modularInverse(range.step / common % period, period);
  int64_t first = (period - range.min / common % period) % period;
  int64_t size = range.min + first * inverse % period * range.step;
  if (size == 0)
    size += period * range.step;
  return !range.max || size <= *range.max;
}

TileFactors::TileFactors(const SizeRange &range, int64_t limit)
    : member(limit + 1, false) {
  std::optional<int64_t> count = range.count();
  if (count && *count <= tuning::maxTriedSizes) {
    for (int64_t size = range.min; size <= *range.max; size += range.step)
      if (size >= 1)
        addDivisors(size);
  } else {
    for (int64_t divisor = 1; divisor <= limit; ++divisor)
      member[divisor] = dividesSome(range, divisor);
  }
  if (limit >= 1)
    member[1] = true; // Also of a range with size 0 alone.
  int64_t size = range.min;
  for (int64_t tried = 0; tried < tuning::maxTriedSizes;
       ++tried, size += range.step) {
    if (range.max && size > *range.max)
      break;
    if (!isPrime(size))
      continue;
    addDivisors(size - 1);
    addDivisors(size + 1);
  }
  for (int64_t size = 1; size <= limit; ++size)
    if (member[size])
      list.push_back(size);
}

void TileFactors::addDivisors(int64_t size) {
  int64_t limit = member.size() - 1;
  for (int64_t divisor = 1; divisor <= limit && divisor * divisor <= size;
       ++divisor) {
    if (size % divisor != 0)
      continue;
    member[divisor] = true;
    if (size / divisor <= limit)
      member[size / divisor] = true;
  }
}

/// Returns, by the number of workers, the tiles along one axis: block sizes in
/// F whose register tile is in F too, ascending.
static std::vector<std::vector<int64_t>>
blocksByWorkers(const TileFactors &factors, int64_t maxWorkers) {
  std::vector<std::vector<int64_t>> result(maxWorkers + 1);
  for (int64_t workers = 1; workers <= maxWorkers; ++workers)
    for (int64_t reg : factors.sizes())
      if (factors.contains(reg * workers))
        result[workers].push_back(reg * workers);
  return result;
}

namespace {
/// A number of elements of batch axes in a block, the number of groups of
/// workers that share them, and the number of tiles that give both.
struct BatchChoice {
  int64_t elements = 1, workers = 1, ways = 1;
};
} // namespace

/// Returns the choices of tiles along all batch axes.
static std::vector<BatchChoice>
batchChoices(llvm::ArrayRef<std::pair<unsigned, TileFactors>> batchFactors) {
  std::map<std::pair<int64_t, int64_t>, int64_t> ways = {{{1, 1}, 1}};
  for (const auto &[axis, factors] : batchFactors) {
    std::map<std::pair<int64_t, int64_t>, int64_t> next;
    for (const auto &[choice, count] : ways)
      for (int64_t block : factors.sizes())
        for (int64_t reg : factors.sizes())
          if (block % reg == 0)
            next[{choice.first * block, choice.second * (block / reg)}] +=
                count;
    ways = std::move(next);
  }
  std::vector<BatchChoice> choices;
  for (const auto &[choice, count] : ways)
    choices.push_back({choice.first, choice.second, count});
  return choices;
}

namespace {
/// Block sizes along one axis, ascending, each counted some number of times.
class CountedBlocks {
public:
  /// `counts` has a count for each size from 0 on.
  explicit CountedBlocks(llvm::ArrayRef<int64_t> counts)
      : numAtMost(counts.size()), sums{0} {
    for (auto [size, count] : llvm::enumerate(counts)) {
      if (count > 0) {
        sizes.push_back(size);
        sums.push_back(sums.back() + count);
      }
      numAtMost[size] = sizes.size();
    }
  }

  size_t numSizes() const { return sizes.size(); }
  int64_t size(size_t index) const { return sizes[index]; }
  /// Returns the number of sizes up to `limit`.
  size_t countSizes(int64_t limit) const {
    return numAtMost[std::min<int64_t>(limit, numAtMost.size() - 1)];
  }
  /// Returns the sum of the counts of sizes in a range of indices.
  int64_t sum(size_t begin, size_t end) const {
    return sums[end] - sums[begin];
  }

private:
  std::vector<size_t> numAtMost;
  std::vector<int64_t> sizes;
  /// Sums of the counts of all sizes before each one.
  std::vector<int64_t> sums;
};

/// Counts the reduce tiles that fit beside block tiles of M and N.
class ReduceTiles {
public:
  /// `maxBytes` are the bytes of shared memory for one element of the reduce
  /// granule.
  ReduceTiles(int64_t maxBytes, int64_t maxTiles, int64_t lhsBytes,
              int64_t rhsBytes)
      : maxBytes(maxBytes), maxTiles(maxTiles), lhsBytes(lhsBytes),
        rhsBytes(rhsBytes) {}

  /// Returns the sum over the blocks along N of the number of tiles beside
  /// each, in blocks of `elements` elements of batch axes. Many neighbours have
  /// the same number of tiles.
  int64_t count(int64_t elements, int64_t blockM,
                const CountedBlocks &blocksN) const {
    int64_t count = 0;
    for (size_t begin = 0; begin < blocksN.numSizes();) {
      int64_t bytes =
          elements * (blockM * lhsBytes + blocksN.size(begin) * rhsBytes);
      int64_t tiles = std::min(maxBytes / bytes, maxTiles);
      if (tiles == 0)
        break;
      int64_t last =
          (maxBytes / tiles / elements - blockM * lhsBytes) / rhsBytes;
      size_t end = blocksN.countSizes(last);
      count += tiles * blocksN.sum(begin, end);
      begin = end;
    }
    return count;
  }

private:
  int64_t maxBytes, maxTiles, lhsBytes, rhsBytes;
};
} // namespace

static int64_t elementBytes(const Workload &workload, OperandRole role) {
  return workload.find(role)->elementBytes;
}

TileRules::TileRules(const Workload &workload, const DeviceSpec &device,
                     const ScheduleSpace &space)
    : axes(ContractionAxes::forReduceAxes(workload.reduceAxes())),
      factors{{workload.axes[axes.m].range,
               device.sharedMemoryPerBlockBytes /
                   (space.reduceGranule *
                    elementBytes(workload, OperandRole::Lhs))},
              {workload.axes[axes.n].range,
               device.sharedMemoryPerBlockBytes /
                   (space.reduceGranule *
                    elementBytes(workload, OperandRole::Rhs))}} {
  if (space.mostBatchElements > 1)
    for (unsigned axis : ContractionView(workload).batchAxes().list())
      batchFactors.emplace_back(axis, TileFactors(workload.axes[axis].range,
                                                  space.mostBatchElements));
  std::vector<BatchChoice> batches = batchChoices(batchFactors);
  int64_t reduceGranule = space.reduceGranule;
  int64_t lhsBytes = elementBytes(workload, OperandRole::Lhs);
  int64_t rhsBytes = elementBytes(workload, OperandRole::Rhs);
  ReduceTiles reduceTiles(
      device.sharedMemoryPerBlockBytes / reduceGranule,
      ceilDiv(largestSize(workload.axes[axes.k]), reduceGranule), lhsBytes,
      rhsBytes);

  // Register tiles of each block tile: its divisors in F.
  auto registerTiles = [](const TileFactors &factors) {
    const std::vector<int64_t> &sizes = factors.sizes();
    std::vector<int64_t> counts(sizes.empty() ? 1 : sizes.back() + 1);
    for (int64_t reg : sizes)
      for (int64_t block = reg; block <= sizes.back(); block += reg)
        if (factors.contains(block))
          ++counts[block];
    return counts;
  };
  std::vector<int64_t> countsM = registerTiles(factors[0]);
  std::vector<int64_t> countsN = registerTiles(factors[1]);
  CountedBlocks blocksN(countsN);
  std::map<int64_t, int64_t> waysOfElements;
  for (const BatchChoice &batch : batches)
    waysOfElements[batch.elements] += batch.ways;
  for (auto [elements, ways] : waysOfElements)
    for (int64_t blockM : factors[0].sizes())
      numCandidates +=
          ways * countsM[blockM] * reduceTiles.count(elements, blockM, blocksN);

  auto byWorkersM = blocksByWorkers(factors[0], space.maxWorkers);
  auto byWorkersN = blocksByWorkers(factors[1], space.maxWorkers);
  // Blocks along N by the granule and the maximum of the workers along N.
  std::map<std::pair<int64_t, int64_t>, CountedBlocks> builtN;
  auto blocksOf = [&](int64_t granule,
                      int64_t maxWorkers) -> const CountedBlocks & {
    auto it = builtN.find({granule, maxWorkers});
    if (it != builtN.end())
      return it->second;
    std::vector<int64_t> counts(countsN.size());
    for (int64_t workers = granule; workers <= maxWorkers; workers += granule)
      for (int64_t block : byWorkersN[workers])
        ++counts[block];
    return builtN.insert({{granule, maxWorkers}, CountedBlocks(counts)})
        .first->second;
  };
  for (const BatchChoice &batch : batches) {
    for (int64_t m = 1; m * batch.workers <= space.maxWorkers; ++m) {
      if (byWorkersM[m].empty())
        continue;
      int64_t workers = m * batch.workers;
      int64_t granule =
          space.workerGranule / std::gcd(workers, space.workerGranule);
      const CountedBlocks &blocks =
          blocksOf(granule, space.maxWorkers / workers);
      for (int64_t blockM : byWorkersM[m])
        numWholeWarps +=
            batch.ways * reduceTiles.count(batch.elements, blockM, blocks);
    }
  }
}
