//===- MmaSpace.cpp - What the mma path has to choose from ----------------===//
#include "MmaSpace.h"
#include "FTuner/Codegen/Mma/MmaLayout.h"
#include "FTuner/Workload/Sampling.h"
#include "MmaTypes.h"
#include <algorithm>

using namespace ftuner;

static constexpr int64_t kMaxWarps = 8;
/// Accumulators of a lane that leave room for fragments and addresses.
static constexpr int64_t kMaxAccumulators = 128;
/// Fragments of a warp tile along m and n.
static constexpr int64_t kRowFragments[] = {1, 2, 3, 4, 5, 6, 7, 8};
static constexpr int64_t kColumnFragments[] = {1, 2, 3,  4,  5,  6,
                                               7, 8, 10, 12, 14, 16};
/// Bytes of a step along the reduce axis, preferred ones first, and stages.
static constexpr int64_t kStepBytes[] = {64, 128, 32};
static constexpr int64_t kStages[] = {3, 4, 2, 5, 6};

MmaSpace::MmaSpace(const Workload &workload, const DeviceSpec &device)
    : workload(workload), device(device),
      elementBytes(bytesOf(multipliedType(workload))),
      extents{largestSize(workload.axes[Workload::kM]),
              largestSize(workload.axes[Workload::kN])} {
  combineAxes = {Workload::kM};
  reduceGranule = kMmaFragmentBytes / elementBytes;
  workerGranule = 1;
  maxWorkers = kMaxWarps;
  leastRowBytes = elementBytes * reduceGranule * 2;
}

void MmaSpace::visitWarpTiles(const MmaSchedule &schedule, KernelFamily &family,
                              UKernel &ukernel, BlockVisitor visit) const {
  family.schedule = schedule.pack();
  ukernel.workers = schedule.warps();
  // A warp, or a fragment of each warp, that has nothing to do for any size.
  auto isOversized = [&](unsigned axis, int64_t warps, int64_t fragments,
                         int64_t fragment) {
    int64_t extent = extents[axis];
    return (warps > 1 && (warps - 1) * fragments * fragment >= extent) ||
           (fragments > 1 && warps * (fragments - 1) * fragment >= extent);
  };
  for (int64_t rows : kRowFragments) {
    if (isOversized(Workload::kM, schedule.warpsM, rows, kMmaRows))
      continue;
    for (int64_t columns : kColumnFragments) {
      if (4 * rows * columns > kMaxAccumulators ||
          isOversized(Workload::kN, schedule.warpsN, columns, kMmaColumns))
        continue;
      BlockTile &tile = family.tiles.front();
      ukernel.registerTile[Workload::kM] = rows * kMmaRows;
      ukernel.registerTile[Workload::kN] = columns * kMmaColumns;
      tile[Workload::kM] = schedule.warpsM * rows * kMmaRows;
      tile[Workload::kN] = schedule.warpsN * columns * kMmaColumns;
      ukernel.blockTile = tile;
      visit(family, ukernel, /*isSuited=*/true);
    }
  }
}

void MmaSpace::forEachBlock(int64_t alignment, BlockVisitor visit) const {
  MmaSchedule schedule;
  schedule.accessBytes = widestAccess(alignment);
  size_t numAxes = workload.axes.size();
  KernelFamily family;
  family.tiles.emplace_back(numAxes, 1);
  family.tiles.front()[Workload::kK] = reduceGranule;
  UKernel ukernel;
  ukernel.registerTile.assign(numAxes, 1);
  for (int64_t m = 1; m <= kMaxWarps; ++m)
    for (int64_t n = 1; m * n <= kMaxWarps; ++n) {
      schedule.warpsM = m;
      schedule.warpsN = n;
      visitWarpTiles(schedule, family, ukernel, visit);
    }
}

void MmaSpace::forEachStep(
    const KernelFamily &block,
    llvm::function_ref<bool(const KernelFamily &)> visit) const {
  KernelFamily family = block;
  MmaSchedule schedule = MmaSchedule::of(block.schedule);
  bool isAsynchronous = copiesAsynchronously(
      device, schedule.vectorWidth(elementBytes) * elementBytes,
      convertsFactors(workload));
  for (int64_t bytes : kStepBytes) {
    for (BlockTile &tile : family.tiles)
      tile[Workload::kK] = bytes / elementBytes;
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
  int64_t bm = tile[Workload::kM], bn = tile[Workload::kN];
  int64_t rows = schedule.rowsOf(tile), columns = schedule.columnsOf(tile);
  // One warp for each scheduler, or two.
  int64_t distance = schedule.warps() < 4 ? 4 / schedule.warps() : 0;
  // ldmatrix loads two fragments along n at once.
  int64_t isOdd = columns / kMmaColumns % 2;
  return {distance, isOdd, -rows * columns, bm + bn, bm, bn, rows};
}
