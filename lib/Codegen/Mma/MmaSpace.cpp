//===- MmaSpace.cpp - What the mma path has to choose from ----------------===//
#include "MmaSpace.h"
#include "FTuner/Codegen/Mma/MmaLayout.h"
#include "MmaTypes.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace ftuner;

static constexpr int64_t kMaxWarps = 8;
/// Registers of a lane for accumulators that leave room for fragments and
/// addresses.
static constexpr int64_t kAccumulatorRegisters = 128;
/// Fragments of a warp tile along the rows and columns of instructions.
static constexpr int64_t kRowFragments[] = {1, 2, 3, 4, 5, 6, 7, 8};
static constexpr int64_t kColumnFragments[] = {1, 2, 3,  4,  5,  6,
                                               7, 8, 10, 12, 14, 16};
/// The same with swapped operands: along columns, heights that rows of 16
/// cannot have. Few others, for such blocks compete where there are few rows.
static constexpr int64_t kSwappedRowFragments[] = {1, 2, 4};
static constexpr int64_t kSwappedColumnFragments[] = {1, 3, 5, 7};
static constexpr int64_t kMaxSwappedWarps = 4;
/// Most elements of batch axes in a block, and most warps of each. Together
/// these are a warp for each scheduler of an SM, or two: what a block with one
/// element lacks.
static constexpr int64_t kMostBatchElements = 8, kMostGroup = 2;
static constexpr int64_t kBatchWarps[] = {4, 8};
/// Bytes of a step along the reduce axis, preferred ones first, and stages.
static constexpr int64_t kStepBytes[] = {64, 128, 32};
static constexpr int64_t kStages[] = {3, 4, 2, 5, 6};

MmaSpace::MmaSpace(const Workload &workload, const DeviceSpec &device)
    : ContractionSpace(workload, device),
      elementBytes(bytesOf(multipliedType(workload))) {
  combineAxes = {axes.m, axes.n};
  reduceGranule = kMmaFragmentBytes / elementBytes;
  workerGranule = 1;
  maxWorkers = kMaxWarps;
  minRowBytes = elementBytes * reduceGranule * 2;
  mostPoints = pointsHeld(workload, kAccumulatorRegisters);
  takeBatchElements(kMostBatchElements);
}

void MmaSpace::visitWarpTiles(const MmaSchedule &schedule, KernelFamily &family,
                              UKernel &ukernel, BlockVisitor visit) const {
  family.schedule = schedule.pack();
  ukernel.workers = schedule.warps();
  // A warp, or a fragment of each warp, that has nothing to do for any size.
  auto isOversized = [&](unsigned factor, int64_t warps, int64_t fragments,
                         int64_t fragment) {
    int64_t extent = extents[factor];
    return (warps > 1 && (warps - 1) * fragments * fragment >= extent) ||
           (fragments > 1 && warps * (fragments - 1) * fragment >= extent);
  };
  unsigned rowFactor = schedule.rowFactor();
  unsigned columnFactor = schedule.columnFactor();
  int64_t columnStep = mmaColumnStep(workload, schedule);
  auto place = [&](unsigned factor, int64_t extent) {
    unsigned axis = axes.space(factor);
    ukernel.registerTile[axis] = extent;
    family.tiles.front()[axis] = schedule.warpsAlong(factor) * extent;
  };
  llvm::ArrayRef<int64_t> ofRows = kRowFragments, ofColumns = kColumnFragments;
  if (schedule.swapOperands) {
    ofRows = kSwappedRowFragments;
    ofColumns = kSwappedColumnFragments;
  }
  for (int64_t rows : ofRows) {
    if (isOversized(rowFactor, schedule.warpsAlong(rowFactor), rows, kMmaRows))
      continue;
    for (int64_t columns : ofColumns) {
      if (columns % columnStep != 0 || 4 * rows * columns > mostPoints ||
          isOversized(columnFactor, schedule.warpsAlong(columnFactor),
                      columns / columnStep, columnStep * kMmaColumns))
        continue;
      place(rowFactor, rows * kMmaRows);
      place(columnFactor, columns * kMmaColumns);
      // Several elements where a block has all of each.
      const BlockTile &tile = family.tiles.front();
      if (schedule.warpsBatch > 1 &&
          (tile[axes.m] < extents[0] || tile[axes.n] < extents[1]))
        continue;
      ukernel.blockTile = family.tiles.front();
      visit(family, ukernel, BlockKind::Suited);
    }
  }
}

void MmaSpace::forEachBlock(int64_t alignment, BlockVisitor visit) const {
  MmaSchedule schedule;
  schedule.accessBytes = widestAccess(alignment);
  size_t numAxes = workload.axes.size();
  KernelFamily family;
  family.tiles.emplace_back(numAxes, 1);
  family.tiles.front()[axes.k] = reduceGranule;
  UKernel ukernel;
  ukernel.registerTile.assign(numAxes, 1);
  visitWarps(schedule, family, ukernel, visit);
  // Along one batch axis at a time.
  BlockTile &tile = family.tiles.front();
  for (unsigned axis : batchAxes) {
    int64_t most = mostBatchElementsAlong(axis);
    for (int64_t elements = 2; elements <= most; ++elements) {
      tile[axis] = schedule.warpsBatch = elements;
      visitWarps(schedule, family, ukernel, visit);
    }
    tile[axis] = 1;
  }
}

void MmaSpace::visitWarps(MmaSchedule schedule, KernelFamily &family,
                          UKernel &ukernel, BlockVisitor visit) const {
  auto visitBlock = [&](int64_t m, int64_t n) {
    schedule.warpsM = m;
    schedule.warpsN = n;
    if (schedule.warpsBatch == 1 ||
        (m * n <= kMostGroup &&
         llvm::is_contained(kBatchWarps, schedule.warps())))
      visitWarpTiles(schedule, family, ukernel, visit);
  };
  for (int64_t m = 1; m <= kMaxWarps; ++m)
    for (int64_t n = 1; m * n <= kMaxWarps; ++n)
      visitBlock(m, n);
  // Few rows, which one warp along m has all of.
  schedule.swapOperands = true;
  for (int64_t n = 1; n <= kMaxSwappedWarps; ++n)
    visitBlock(1, n);
}

void MmaSpace::forEachSchedule(const KernelFamily &block,
                               FamilyVisitor visit) const {
  KernelFamily family = block;
  MmaSchedule schedule = MmaSchedule::of(block.schedule);
  bool isAsynchronous =
      copiesAsynchronously(device, workload, schedule.accessBytes);
  for (int64_t bytes : kStepBytes) {
    for (BlockTile &tile : family.tiles)
      tile[axes.k] = bytes / elementBytes;
    for (int64_t stages : kStages) {
      if (!isAsynchronous && stages != 2)
        continue;
      schedule.stages = stages;
      family.schedule = schedule.pack();
      if (!visit(family))
        return;
    }
  }
}

ScheduleSpace::Preference
MmaSpace::preference(const KernelFamily &family) const {
  MmaSchedule schedule = MmaSchedule::of(family.schedule);
  const BlockTile &tile = family.tiles.back();
  int64_t bm = tile[axes.m], bn = tile[axes.n];
  int64_t rows = bm / schedule.warpsM;
  int64_t columns = bn / schedule.warpsN;
  // One warp for each scheduler, or two.
  int64_t distance = schedule.warps() < 4 ? 4 / schedule.warps() : 0;
  // ldmatrix loads two fragments of instructions' columns at once.
  int64_t alongColumns = schedule.swapOperands ? rows : columns;
  int64_t isOdd = alongColumns / kMmaColumns % 2;
  return {distance, isOdd, -rows * columns,      bm + bn, bm,
          bn,       rows,  schedule.swapOperands};
}
