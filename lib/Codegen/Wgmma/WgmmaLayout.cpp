//===- WgmmaLayout.cpp - Warpgroups and shared memory of wgmma ------------===//
#include "FTuner/Codegen/Wgmma/WgmmaLayout.h"
#include "FTuner/Codegen/FragmentEpilogueWork.h"

using namespace ftuner;

/// Bytes that the swizzle keeps together, and patterns of it.
static constexpr int64_t kChunkBytes = 16, kPatterns = 8;

static SharedTile sharedTile(const Operand &factor, bool reduceContiguous,
                             int64_t space, int64_t reduce,
                             int64_t elementBytes, bool copiesElements) {
  SharedTile tile;
  tile.reduceContiguous = reduceContiguous;
  tile.pitch = kWgmmaRowBytes / elementBytes;
  tile.outer = tile.reduceContiguous ? space : reduce;
  tile.inner = tile.reduceContiguous ? reduce : ceilBy(space, tile.pitch);
  // Element by element a thread has many slots of a panel, so what no
  // instruction reads of the only one is left out.
  if (!tile.reduceContiguous && copiesElements && space < tile.pitch)
    tile.inner = space;
  tile.panels = ceilDiv(tile.inner, tile.pitch);
  tile.isPadded = !tile.reduceContiguous && tile.inner != space;
  tile.chunk = kChunkBytes / elementBytes;
  tile.swizzle = factor.isPacked ? 1 : kPatterns;
  tile.patternRows = 1;
  return tile;
}

WgmmaLayout ftuner::wgmmaLayout(const Workload &workload, const BlockTile &tile,
                                const WgmmaSchedule &schedule) {
  ContractionView view(workload);
  int64_t elementBytes = bytesOf(view.multipliedType());
  int64_t depth = tile[view.k];
  auto side = [&](unsigned number) {
    const Operand &factor = view.factor(number);
    int64_t extent = tile[view.space(number)] / schedule.clusterAlong(number);
    return WgmmaSide{number,
                     sharedTile(factor, factor.contiguousAxis() == view.k,
                                extent, depth, elementBytes,
                                /*copiesElements=*/schedule.accessBytes == 1),
                     extent, schedule.warpgroupsAlong(number), factor.isPacked};
  };
  WgmmaLayout layout{side(schedule.rowFactor()),
                     side(schedule.columnFactor()),
                     depth,
                     schedule.stages,
                     elementBytes,
                     schedule.producerWarpgroups,
                     schedule.tma,
                     schedule.clusterM,
                     schedule.clusterN,
                     schedule.persistentBlocks > 0,
                     schedule.consumerSets(),
                     schedule.fitBoxes};
  if (schedule.bulkStores) {
    layout.bulkElementBytes = workload.find(OperandRole::Output)->elementBytes;
    layout.storesSums = storesSums(workload);
  }
  for (unsigned factor : {0, 1})
    layout.stageStrides[factor] = layout.stageBytes(layout.tileOf(factor));
  layout.stagingStride =
      layout.warpTile().stagingBytes() + layout.warpTile().bulkBytes();
  layout.barriersOffset = ceilBy(layout.tileBytes(), kBarrierBytes);
  return layout;
}

WgmmaLayout ftuner::wgmmaLayout(const Workload &workload,
                                const KernelFamily &family, unsigned part) {
  WgmmaSchedule schedule = WgmmaSchedule::of(family.schedule);
  WgmmaLayout layout = wgmmaLayout(workload, family.tiles[part], schedule);
  if (family.tiles.size() == 1)
    return layout;
  WgmmaLayout other = wgmmaLayout(workload, family.tiles[1 - part], schedule);
  if (layout.isPersistent) {
    for (unsigned factor : {0, 1})
      layout.stageStrides[factor] =
          std::max(layout.stageStrides[factor], other.stageStrides[factor]);
    layout.stagingStride = std::max(layout.stagingStride, other.stagingStride);
  }
  layout.barriersOffset =
      std::max(ceilBy(layout.tileBytes(), kBarrierBytes), other.barriersOffset);
  return layout;
}
