//===- TileRules.cpp - Tile sizes from the extents of a range -------------===//
#include "FTuner/Search/Ranking/TileRules.h"
#include "FTuner/Search/Problem/SearchTuning.h"
#include "FTuner/Workload/Sampling.h"
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
  int64_t maxReduceTiles =
      ceilDiv(largestSize(workload.axes[axes.k]), reduceGranule);
  // Reduce tiles that fit beside a block tile of M and N, by the bytes of these
  // for one element of the reduce axis.
  int64_t maxBytes = device.sharedMemoryPerBlockBytes / reduceGranule;
  std::vector<int64_t> tilesByBytes(maxBytes + 1);
  for (int64_t bytes = 1; bytes <= maxBytes; ++bytes)
    tilesByBytes[bytes] = std::min(maxBytes / bytes, maxReduceTiles);
  // The number of elements of batch axes.
  int64_t elements = 1;
  auto reduceTiles = [&](int64_t blockM, int64_t blockN) -> int64_t {
    int64_t bytes = elements * (blockM * lhsBytes + blockN * rhsBytes);
    return bytes <= maxBytes ? tilesByBytes[bytes] : 0;
  };
  auto countTiles = [&](const std::vector<int64_t> &blocksM,
                        const std::vector<int64_t> &blocksN) {
    int64_t count = 0;
    for (int64_t blockM : blocksM)
      for (int64_t blockN : blocksN) {
        int64_t tiles = reduceTiles(blockM, blockN);
        if (tiles == 0)
          break;
        count += tiles;
      }
    return count;
  };

  // Register tiles of each block tile: its divisors in F.
  auto registerTiles = [](const TileFactors &factors) {
    const std::vector<int64_t> &sizes = factors.sizes();
    std::vector<int64_t> counts(sizes.empty() ? 0 : sizes.back() + 1);
    for (int64_t reg : sizes)
      for (int64_t block = reg; block <= sizes.back(); block += reg)
        ++counts[block];
    return counts;
  };
  const std::vector<int64_t> &blocksM = factors[0].sizes();
  const std::vector<int64_t> &blocksN = factors[1].sizes();
  std::vector<int64_t> countsM = registerTiles(factors[0]);
  std::vector<int64_t> countsN = registerTiles(factors[1]);
  std::map<int64_t, int64_t> waysOfElements;
  for (const BatchChoice &batch : batches)
    waysOfElements[batch.elements] += batch.ways;
  for (auto [count, ways] : waysOfElements) {
    elements = count;
    for (size_t m = 0; m < blocksM.size(); ++m)
      for (size_t n = 0; n < blocksN.size(); ++n) {
        int64_t tiles = reduceTiles(blocksM[m], blocksN[n]);
        if (tiles == 0)
          break;
        numCandidates +=
            ways * tiles * countsM[blocksM[m]] * countsN[blocksN[n]];
      }
  }

  auto byWorkersM = blocksByWorkers(factors[0], space.maxWorkers);
  auto byWorkersN = blocksByWorkers(factors[1], space.maxWorkers);
  for (const BatchChoice &batch : batches) {
    elements = batch.elements;
    for (int64_t m = 1; m * batch.workers <= space.maxWorkers; ++m) {
      if (byWorkersM[m].empty())
        continue;
      int64_t granule = space.workerGranule /
                        std::gcd(m * batch.workers, space.workerGranule);
      for (int64_t n = granule; m * n * batch.workers <= space.maxWorkers;
           n += granule)
        numWholeWarps += batch.ways * countTiles(byWorkersM[m], byWorkersN[n]);
    }
  }
}
