//===- WgmmaSpace.cpp - What the wgmma path has to choose from ------------===//
#include "WgmmaSpace.h"
#include "FTuner/Codegen/Wgmma/WgmmaLayout.h"
#include "FTuner/Codegen/Wgmma/WgmmaRegisters.h"
#include "WgmmaTypes.h"
#include "llvm/ADT/STLExtras.h"

using namespace ftuner;

/// Instructions of a warpgroup at one depth, and columns of one.
static constexpr int64_t kInstructions[] = {1, 2};
static constexpr int64_t kColumns[] = {8,   16,  24,  32,  48,  64,  80,  96,
                                       112, 128, 144, 160, 176, 192, 224, 256};
/// With swapped operands.
static constexpr int64_t kSwappedColumns[] = {8,   16,  24,  32,  40,  48,  56,
                                              64,  80,  96,  112, 128, 144, 160,
                                              176, 192, 208, 224, 240, 256};
static constexpr int64_t kStages[] = {4, 3, 5, 6, 8, 10, 12, 16};
/// Blocks of clusters along m and n.
static constexpr std::pair<int64_t, int64_t> kClusters[] = {
    {1, 1}, {2, 1}, {1, 2}};
/// Of copies through registers.
static constexpr int64_t kStagedStages[] = {2};

WgmmaSpace::WgmmaSpace(const Workload &workload, const DeviceSpec &device)
    : ContractionSpace(workload, device),
      elementBytes(bytesOf(multipliedType(workload))),
      canHaveMaps(hasWgmmaMap(*workload.find(OperandRole::Lhs)) &&
                  hasWgmmaMap(*workload.find(OperandRole::Rhs))),
      canBeSmall(
          llvm::any_of(llvm::ArrayRef({axes.m, axes.n}), [&](unsigned axis) {
            return workload.axes[axis].range.min < kMaxTensorMapBox;
          })) {
  combineAxes = {axes.m, axes.n};
  reduceGranule = kWgmmaStepBytes / elementBytes;
  workerGranule = 1;
  maxWorkers = kWgmmaMaxWarpgroups;
  minRowBytes = 2 * kWgmmaStepBytes;
  mostPoints = pointsHeld(workload, kWgmmaAccumulatorRegisters);
}

llvm::ArrayRef<int64_t>
WgmmaSpace::stagesOf(const WgmmaSchedule &schedule) const {
  bool isCast = convertsWgmmaFactors(workload, schedule.tma);
  return copiesAsynchronously(device, schedule.accessBytes, isCast)
             ? llvm::ArrayRef(kStages)
             : llvm::ArrayRef(kStagedStages);
}

void WgmmaSpace::visitTiles(const WgmmaSchedule &schedule,
                            BlockVisitor visit) const {
  size_t numAxes = workload.axes.size();
  KernelFamily family;
  family.schedule = schedule.pack();
  BlockTile &tile = family.tiles.emplace_back(numAxes, 1);
  tile[axes.k] = reduceGranule;
  UKernel ukernel;
  ukernel.registerTile.assign(numAxes, 1);
  ukernel.workers = schedule.warpgroups();
  // A warpgroup, or an instruction of each, that has nothing to do for any
  // size. Where single elements are copied, such a warpgroup takes its share of
  // them: one alone may have too few registers.
  bool copiesElements = schedule.accessBytes == 1;
  auto isOversized = [&](unsigned factor, int64_t ofWarpgroup,
                         int64_t granule) {
    int64_t warpgroups = schedule.warpgroupsAlong(factor),
            extent = extents[factor];
    return (warpgroups > 1 && !copiesElements &&
            (warpgroups - 1) * ofWarpgroup >= extent) ||
           (ofWarpgroup > granule &&
            warpgroups * (ofWarpgroup - granule) >= extent);
  };
  auto place = [&](unsigned factor, int64_t extent) {
    unsigned axis = axes.space(factor);
    ukernel.registerTile[axis] = extent;
    tile[axis] = schedule.warpgroupsAlong(factor) * extent;
  };
  unsigned rowFactor = schedule.rowFactor(),
           columnFactor = schedule.columnFactor();
  llvm::ArrayRef<int64_t> ofColumns = kColumns;
  if (schedule.swapOperands)
    ofColumns = kSwappedColumns;
  for (int64_t instructions : kInstructions) {
    int64_t rows = instructions * kWgmmaRows;
    if (isOversized(rowFactor, rows, kWgmmaRows))
      continue;
    for (int64_t columns : ofColumns) {
      if (instructions * columns / 2 > mostPoints ||
          isOversized(columnFactor, columns, kWgmmaColumns))
        continue;
      place(rowFactor, rows);
      place(columnFactor, columns);
      ukernel.blockTile = tile;
      visit(family, ukernel, BlockKind::Suited);
    }
  }
}

void WgmmaSpace::forEachBlock(int64_t alignment, BlockVisitor visit) const {
  WgmmaSchedule schedule;
  schedule.accessBytes = widestAccess(alignment);
  // The fewest, which fit if any do.
  schedule.stages = *llvm::min_element(stagesOf(schedule));
  for (int64_t warpgroups = 1; warpgroups <= kWgmmaMaxWarpgroups;
       ++warpgroups) {
    schedule.swapOperands = false;
    schedule.warpgroupsM = warpgroups;
    schedule.warpgroupsN = 1;
    visitTiles(schedule, visit);
    if (warpgroups > 1) {
      schedule.warpgroupsM = 1;
      schedule.warpgroupsN = warpgroups;
      visitTiles(schedule, visit);
    }
    // Few rows, which every warpgroup has all of.
    schedule.swapOperands = true;
    schedule.warpgroupsM = 1;
    schedule.warpgroupsN = warpgroups;
    visitTiles(schedule, visit);
  }
}

void WgmmaSpace::forEachSchedule(const KernelFamily &block,
                                 FamilyVisitor visit) const {
  KernelFamily family = block;
  WgmmaSchedule schedule = WgmmaSchedule::of(block.schedule);
  for (bool tma : {true, false}) {
    schedule.tma = tma;
    schedule.fitBoxes = tma && canBeSmall;
    bool isAsynchronous = stagesOf(schedule).size() > 1;
    bool isWide = isAsynchronous && schedule.accessBytes == kWgmmaProducedBytes;
    if (tma && !(isWide && canHaveMaps))
      continue;
    for (int64_t producers : {1, 0}) {
      if (producers && !(isWide && schedule.warpgroups() < kWgmmaMaxWarpgroups))
        continue;
      schedule.producerWarpgroups = producers;
      for (auto [clusterM, clusterN] : kClusters) {
        schedule.clusterM = clusterM;
        schedule.clusterN = clusterN;
        if (schedule.clusterBlocks() > 1 && !canShareCopies(workload, schedule))
          continue;
        family.tiles = block.tiles;
        family.tiles.front()[axes.m] *= clusterM;
        family.tiles.front()[axes.n] *= clusterN;
        // A share that has nothing to do for any size.
        if ((clusterM > 1 && block.tiles.front()[axes.m] >= extents[0]) ||
            (clusterN > 1 && block.tiles.front()[axes.n] >= extents[1]))
          continue;
        for (int64_t stages : stagesOf(schedule)) {
          schedule.stages = stages;
          schedule.persistentBlocks = 0;
          family.schedule = schedule.pack();
          if (!visit(family))
            return;
          if (!(producers && tma))
            continue;
          for (auto [pingPong, bulkStores] :
               {std::pair(false, false), {false, true}, {true, false}}) {
            WgmmaSchedule persistent = schedule;
            persistent.pingPong = pingPong;
            persistent.bulkStores = bulkStores;
            if (bulkStores && !canStoreInBulk(workload, persistent))
              continue;
            family.schedule = persistent.pack();
            if (persistent.consumerWarpgroups() < kWgmmaMaxWarpgroups &&
                makePersistent(family) && !visit(family))
              return;
          }
        }
      }
    }
  }
}

/// As many blocks as run at once, if a size of the range has more tiles.
bool WgmmaSpace::makePersistent(KernelFamily &family) const {
  WgmmaSchedule schedule = WgmmaSchedule::of(family.schedule);
  schedule.persistentBlocks = schedule.clusterBlocks();
  family.schedule = schedule.pack();
  std::optional<WgmmaRegisters> registers = wgmmaRegisters(workload, family);
  if (!registers)
    return false;
  schedule.persistentBlocks = registers->blocks * device.smCount /
                              schedule.clusterBlocks() *
                              schedule.clusterBlocks();
  family.schedule = schedule.pack();
  double tiles = 1;
  for (unsigned axis : workload.spaceAxes().list())
    tiles *= double(
        ceilDiv(largestSize(workload.axes[axis]), family.tiles.front()[axis]));
  return tiles * double(schedule.clusterBlocks()) >
         double(schedule.persistentBlocks);
}

ScheduleSpace::Preference
WgmmaSpace::preference(const KernelFamily &family) const {
  WgmmaSchedule schedule = WgmmaSchedule::of(family.schedule);
  const BlockTile &tile = family.tiles.back();
  int64_t bm = tile[axes.m], bn = tile[axes.n];
  // Two warpgroups: while one waits at the barrier, the other's products run.
  int64_t distance = schedule.warpgroups() > 2 ? schedule.warpgroups() - 2
                                               : 2 - schedule.warpgroups();
  return {distance,
          -bm * bn,
          bm + bn,
          bm,
          bn,
          schedule.swapOperands,
          -schedule.producerWarpgroups,
          -int64_t(schedule.tma)};
}
