//===- DietCodeSpace.cpp - Micro-kernels without a shape ------------------===//
#include "DietCodeSpace.h"
#include "DietCodeTuning.h"
#include "FTuner/Support/RandomDraws.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace ftuner;

static constexpr int64_t warpSize = 32;
/// Tiles are divisors of extents up to `smallExtent`, and of others that have
/// at least `fewDivisors` usable divisors.
static constexpr int64_t smallExtent = 16;
static constexpr size_t fewDivisors = 4;

DietCodeSpace::DietCodeSpace(const Workload &workload, const DeviceSpec &device,
                             Shape largest, const DietCodeSpaceOptions &options)
    : largest(std::move(largest)),
      axes(ContractionAxes::forReduceAxes(workload.reduceAxes())),
      options(options), numAxes(workload.axes.size()),
      maxThreads(device.maxThreadsPerBlock) {
  for (unsigned axis = 0; axis < numAxes; ++axis)
    if (axis != axes.k && axis != axes.n)
      spaceAxes.push_back(axis);
  spaceAxes.push_back(axes.n);
}

bool DietCodeSpace::hasInner(unsigned axis) const { return axis != axes.n; }

/// Returns the maximum number of threads along an axis of this extent.
static int64_t maxThreadsAlong(int64_t extent) { return extent + extent / 10; }

bool DietCodeSpace::mayHave(unsigned axis, int64_t threads) const {
  return threads <= maxThreadsAlong(largest[axis]) &&
         (!options.onlyDivisors || largest[axis] % threads == 0);
}

int64_t DietCodeSpace::drawInner(unsigned axis, int64_t threads,
                                 int64_t maxSize,
                                 std::mt19937_64 &random) const {
  int64_t extent = largest[axis];
  if (options.onlyDivisors)
    extent = std::max<int64_t>(1, extent / threads);
  if (options.perfectTiles || options.onlyDivisors) {
    std::vector<int64_t> divisors;
    for (int64_t size = 1; size <= maxSize; ++size)
      if (extent % size == 0)
        divisors.push_back(size);
    if (options.onlyDivisors || divisors.size() >= fewDivisors ||
        extent <= smallExtent)
      return divisors[drawBelow(divisors.size(), random)];
  }
  return 1 + drawBelow(maxSize, random);
}

std::optional<MicroKernel>
DietCodeSpace::sample(std::mt19937_64 &random) const {
  int64_t left = warpSize * (1 + drawBelow(maxThreads / warpSize, random));
  MicroKernel kernel(numAxes);
  // Each axis except the last gets a divisor of the threads that are left. The
  // order of axes is drawn, too, so that no axis is favoured.
  std::vector<unsigned> order = spaceAxes;
  for (size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[drawBelow(i, random)]);
  for (size_t i = 0; i + 1 < order.size(); ++i) {
    std::vector<int64_t> divisors;
    for (int64_t size = 1; size <= left; ++size)
      if (left % size == 0 && mayHave(order[i], size))
        divisors.push_back(size);
    kernel[order[i]].threads = divisors[drawBelow(divisors.size(), random)];
    left /= kernel[order[i]].threads;
  }
  if (!mayHave(order.back(), left))
    return std::nullopt;
  kernel[order.back()].threads = left;
  for (unsigned axis = 0; axis < numAxes; ++axis) {
    ThreadTile &tile = kernel[axis];
    int64_t rows = ceilDiv(largest[axis], tile.threads);
    if (hasStrips(axis))
      tile.strips =
          drawInner(axis, tile.threads,
                    std::min(tuning::maxDietCodeStrips, rows), random);
    else if (hasInner(axis))
      tile.inner = drawInner(axis, tile.threads,
                             std::min(tuning::maxDietCodeInner, rows), random);
  }
  return kernel;
}

bool DietCodeSpace::isLegal(const MicroKernel &kernel) const {
  int64_t threads = 1;
  for (unsigned axis = 0; axis < numAxes; ++axis) {
    const ThreadTile &tile = kernel[axis];
    threads *= tile.threads;
    if (!mayHave(axis, tile.threads) ||
        (options.onlyDivisors && largest[axis] % tile.elements() != 0) ||
        tile.strips > (hasStrips(axis) ? tuning::maxDietCodeStrips : 1) ||
        tile.inner > (hasInner(axis) ? tuning::maxDietCodeInner : 1))
      return false;
  }
  return threads <= maxThreads && threads % warpSize == 0;
}

/// Prime factors, ascending.
static std::vector<int64_t> primeFactors(int64_t value) {
  std::vector<int64_t> factors;
  for (int64_t prime = 2; prime * prime <= value; ++prime)
    for (; value % prime == 0; value /= prime)
      factors.push_back(prime);
  if (value > 1)
    factors.push_back(value);
  return factors;
}

MicroKernel DietCodeSpace::mutate(const MicroKernel &kernel,
                                  llvm::ArrayRef<int64_t> bounds,
                                  std::mt19937_64 &random) const {
  MicroKernel result = kernel;
  unsigned axis = drawBelow(numAxes, random);
  ThreadTile &tile = result[axis];
  if (drawUnit(random) < tuning::dietCodeRedraw) {
    int64_t rows = std::max<int64_t>(1, ceilDiv(bounds[axis], tile.threads));
    if (hasStrips(axis))
      tile.strips =
          drawInner(axis, tile.threads,
                    std::min(tuning::maxDietCodeStrips, rows), random);
    else
      tile.inner = drawInner(axis, tile.threads,
                             std::min(tuning::maxDietCodeInner, rows), random);
    return result;
  }
  // Levels that a factor may move between; blocks follow from the others.
  int64_t blocks = ceilDiv(bounds[axis], tile.elements());
  std::vector<int64_t *> levels = {&blocks, hasStrips(axis) ? &tile.strips
                                                            : &tile.inner};
  if (options.mutateThreads && axis != axes.k)
    levels.push_back(&tile.threads);
  std::vector<int64_t *> donors;
  for (int64_t *level : levels)
    if (*level > 1)
      donors.push_back(level);
  if (donors.empty())
    return result;
  int64_t *from = donors[drawBelow(donors.size(), random)];
  levels.erase(llvm::find(levels, from));
  int64_t *to = levels[drawBelow(levels.size(), random)];
  std::vector<int64_t> factors = primeFactors(*from);
  int64_t factor = factors[drawBelow(factors.size(), random)];
  *from /= factor;
  *to *= factor;
  while (tile.threads > maxThreadsAlong(largest[axis]) && tile.threads % 2 == 0)
    tile.threads /= 2;
  // A move beyond a limit is not made. The number of threads may no longer be a
  // multiple of a warp: `isLegal` tests that.
  if (tile.strips > tuning::maxDietCodeStrips ||
      tile.inner > tuning::maxDietCodeInner)
    return kernel;
  return result;
}
