//===- SimtSpace.cpp - What the SIMT path has to choose from --------------===//
#include "SimtSpace.h"
#include "FTuner/Codegen/Simt/SimtLayout.h"
#include "FTuner/Schedule/Alignment.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <tuple>

using namespace ftuner;

static constexpr int64_t kWarpSize = 32;
/// Largest step along the reduce axis; where one factor is a vector, whose
/// blocks have no other use of shared memory than to read long pieces of the
/// matrix's rows, of 512 bytes.
static constexpr int64_t kMaxDepth = 32, kMaxDepthOfVector = 128;
/// Depth and stages that hide the latency of copies at little shared memory.
static constexpr int64_t kPreferredDepth = 16;
static constexpr int64_t kPreferredStages = 3;
/// Elements of a row that make one 64-byte access of DRAM in f32.
static constexpr int64_t kLeastRow = 16;
/// Elements of the widest vector.
static constexpr int64_t kWidestVector = 4;
/// Most elements of batch axes in a block.
static constexpr int64_t kMostBatchElements = 32;
/// Of blocks with several that the path suggests: most elements, and most
/// threads for each. Together these are a warp for each scheduler of an SM, or
/// two: what a block with one element lacks.
static constexpr int64_t kMostSuitedBatch = 8, kMostGroup = 64;

SimtSpace::SimtSpace(const Workload &workload, const DeviceSpec &device)
    : ContractionSpace(workload, device) {
  combineAxes = {axes.m, axes.n};
  reduceGranule = 8;
  workerGranule = kWarpSize;
  maxWorkers = device.maxThreadsPerBlock;
  for (int64_t rows = 1; rows <= 16; ++rows)
    registerTiles[0].push_back(rows);
  for (int64_t columns = 1; columns <= 8; ++columns)
    registerTiles[1].push_back(columns);
  takeBatchElements(kMostBatchElements);
  llvm::append_range(combineAxes, batchAxes);
  // Measured with ptxas 13.0 on sm_75 to sm_90, alone and in pairs: 14 × 8
  // never spills, but where the right operand is contiguous along the reduce
  // axis, though 255 registers should hold it. There 13 × 8 spills in steps of
  // 32, 12 × 8 may (8 bytes on sm_86), and 11 × 8 was not seen to.
  bool isRhsReduceContiguous =
      workload.find(OperandRole::Rhs)->contiguousAxis() == axes.k;
  mostPoints = pointsHeld(workload, isRhsReduceContiguous ? 88 : 112);
  for (const Operand &operand : workload.operands) {
    std::optional<unsigned> axis = operand.contiguousAxis();
    if (axis && (*axis == axes.m || *axis == axes.n))
      contiguousAxes.push_back(*axis);
  }
  orderSteps();
  minRowBytes = kSharedElementBytes * reduceGranule * leastStep.stages;
}

void SimtSpace::orderSteps() {
  llvm::SmallVector<int64_t> stages = simtCopiesAsynchronously(workload, device)
                                          ? llvm::SmallVector<int64_t>{2, 3, 4}
                                          : llvm::SmallVector<int64_t>{2};
  bool hasVector = std::min(extents[0], extents[1]) == 1;
  for (int64_t depth = reduceGranule;
       depth <= (hasVector ? kMaxDepthOfVector : kMaxDepth);
       depth = depth < kMaxDepth ? depth + reduceGranule : 2 * depth)
    for (int64_t count : stages)
      steps.push_back({depth, count});
  leastStep = steps.front();
  // The smallest size of a range would favour the smallest step always.
  std::vector<int64_t> sizes = representativeSizes(workload.axes[axes.k]);
  if (sizes.size() > 1)
    sizes.erase(sizes.begin());
  auto padding = [&](int64_t depth) {
    double sum = 0;
    for (int64_t size : sizes)
      sum += 1 - static_cast<double>(size) / ceilBy(size, depth);
    return std::llround(100 * sum / sizes.size());
  };
  auto key = [&](const Step &step) {
    return std::make_tuple(
        padding(step.depth), std::abs(step.depth - kPreferredDepth),
        -step.depth, std::abs(step.stages - kPreferredStages), step.stages);
  };
  llvm::sort(steps,
             [&](const Step &a, const Step &b) { return key(a) < key(b); });
}

/// Whether a number of threads along an axis is 2^a · {1, 3, 5, 9}.
static bool isSuitedThreadCount(int64_t threads) {
  int64_t odd = threads / (threads & -threads);
  return odd == 1 || odd == 3 || odd == 5 || odd == 9;
}

bool SimtSpace::isOversized(unsigned factor, int64_t threads,
                            int64_t elements) const {
  llvm::ArrayRef<int64_t> legal = registerTiles[factor];
  const int64_t *tile = llvm::lower_bound(legal, elements);
  // The next smaller legal register tile would do.
  bool tileIsOversized =
      tile != legal.begin() && *std::prev(tile) >= extents[factor];
  bool threadsAreIdle = (threads - 1) * elements >= extents[factor];
  return tileIsOversized || threadsAreIdle;
}

bool SimtSpace::isAligned(const BlockTile &tile) const {
  for (unsigned axis : contiguousAxes) {
    int64_t extent = extents[axis == axes.m ? 0 : 1], size = tile[axis];
    bool isPartial = extent >= reduceGranule && size % reduceGranule != 0;
    if (isPartial || size < std::min(extent, kLeastRow))
      return false;
  }
  return true;
}

/// Whether the path suggests so many columns of a thread: chunks of the vectors
/// that copies move. Six, a chunk of four and one of two, lie between two
/// powers of two: with them BatchMatmul of the paper's lengths is predicted 1
/// to 4 % faster on v100, a100 and h200, and a search takes 1.1 to 1.4 times as
/// long.
static bool isSuitedWidth(int64_t columns, int64_t vectorWidth) {
  return columns == 6 || (columns % vectorWidth == 0 &&
                          (columns <= 2 || columns % kWidestVector == 0));
}

void SimtSpace::visitThreads(const SimtSchedule &schedule, KernelFamily &family,
                             UKernel &ukernel, BlockVisitor visit) const {
  int64_t threads = schedule.threads();
  int64_t ofThread = 1, elements = 1;
  for (unsigned axis : batchAxes) {
    ofThread *= ukernel.registerTile[axis];
    elements *= ukernel.blockTile[axis];
  }
  bool isSuited = isSuitedThreadCount(schedule.threadsM) &&
                  isSuitedThreadCount(schedule.threadsN);
  if (elements > 1)
    isSuited &= ofThread == 1 && elements <= kMostSuitedBatch &&
                threads / elements <= kMostGroup &&
                (threads == 128 || threads == 256);
  family.schedule = schedule.pack();
  ukernel.workers = threads;
  // The smallest block is kept whatever the size: some block must serve shapes
  // with fewer elements than a warp has lanes.
  auto isTooLarge = [&](unsigned factor, int64_t along, int64_t elements) {
    return threads > kWarpSize && isOversized(factor, along, elements);
  };
  for (int64_t rm : registerTiles[0]) {
    if (isTooLarge(0, schedule.threadsM, rm))
      continue;
    for (int64_t rn : registerTiles[1]) {
      int64_t points = ofThread * rm * rn;
      if (isTooLarge(1, schedule.threadsN, rn) || points > mostPoints ||
          points * threads >= device.registersPerBlock)
        continue;
      BlockTile &tile = family.tiles.front();
      tile[axes.m] = schedule.threadsM * rm;
      tile[axes.n] = schedule.threadsN * rn;
      bool isOdd = !isAligned(tile) ||
                   !isSuitedWidth(rn, schedule.vectorWidth) ||
                   (elements > 1 && !isSuited);
      ukernel.blockTile = tile;
      ukernel.registerTile[axes.m] = rm;
      ukernel.registerTile[axes.n] = rn;
      visit(family, ukernel,
            isOdd      ? BlockKind::Odd
            : isSuited ? BlockKind::Suited
                       : BlockKind::Plain);
    }
  }
}

void SimtSpace::forEachBlock(int64_t alignment, BlockVisitor visit) const {
  SimtSchedule schedule;
  schedule.stages = leastStep.stages;
  schedule.vectorWidth = alignment >= widestAccessBytes ? kWidestVector : 1;
  size_t numAxes = workload.axes.size();
  KernelFamily family;
  family.tiles.emplace_back(numAxes, 1);
  family.tiles.front()[axes.k] = leastStep.depth;
  UKernel ukernel;
  ukernel.registerTile.assign(numAxes, 1);
  ukernel.blockTile.assign(numAxes, 1);
  visitBatch(family, ukernel, schedule, visit);
  // Along one batch axis at a time.
  BlockTile &tile = family.tiles.front();
  for (unsigned axis : batchAxes) {
    int64_t most = mostBatchElementsAlong(axis);
    for (int64_t threads = 1; threads <= most; ++threads)
      for (int64_t ofThread = 1; ofThread * threads <= most; ++ofThread) {
        if (threads * ofThread == 1)
          continue;
        schedule.threadsBatch = threads;
        tile[axis] = threads * ofThread;
        ukernel.registerTile[axis] = ofThread;
        ukernel.blockTile = tile;
        visitBatch(family, ukernel, schedule, visit);
      }
    tile[axis] = ukernel.registerTile[axis] = 1;
  }
}

void SimtSpace::visitBatch(KernelFamily &family, UKernel &ukernel,
                           SimtSchedule schedule, BlockVisitor visit) const {
  int64_t batch = schedule.threadsBatch;
  for (int64_t m = 1; m * batch <= maxWorkers; ++m)
    for (int64_t n = 1; m * n * batch <= maxWorkers; ++n)
      if (m * n * batch % kWarpSize == 0) {
        schedule.threadsM = m;
        schedule.threadsN = n;
        visitThreads(schedule, family, ukernel, visit);
      }
}

void SimtSpace::forEachSchedule(const KernelFamily &block,
                                FamilyVisitor visit) const {
  KernelFamily family = block;
  SimtSchedule schedule = SimtSchedule::of(block.schedule);
  for (const Step &step : steps) {
    for (BlockTile &tile : family.tiles)
      tile[axes.k] = step.depth;
    schedule.stages = step.stages;
    family.schedule = schedule.pack();
    if (!visit(family))
      return;
  }
}

ScheduleSpace::Preference
SimtSpace::preference(const KernelFamily &family) const {
  SimtSchedule schedule = SimtSchedule::of(family.schedule);
  const BlockTile &tile = family.tiles.back();
  int64_t threads = schedule.threads();
  int64_t bm = tile[axes.m], bn = tile[axes.n], bk = tile[axes.k];
  int64_t distance = threads < 128   ? 128 / threads
                     : threads > 256 ? threads / 256
                                     : 0;
  int64_t uneven = (bm * bk % (kWidestVector * threads) != 0) +
                   (bn * bk % (kWidestVector * threads) != 0);
  // Eight threads along the contiguous axis read 128 bytes at once.
  bool isNarrow = schedule.threadsN % 8 != 0;
  int64_t rows = bm / schedule.threadsM;
  int64_t elements = rows * (bn / schedule.threadsN);
  return {distance, isNarrow, uneven, -elements, bm + bn, bm, bn, rows};
}
