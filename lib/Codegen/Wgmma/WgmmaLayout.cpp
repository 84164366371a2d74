//===- WgmmaLayout.cpp - Groups and shared memory of wgmma ----------------===//
#include "FTuner/Codegen/Wgmma/WgmmaLayout.h"

using namespace ftuner;

/// Bytes that the swizzle keeps together, and patterns of it.
static constexpr int64_t kChunkBytes = 16, kPatterns = 8;

static SharedTile sharedTile(bool reduceContiguous, int64_t space,
                             int64_t reduce, int64_t elementBytes) {
  SharedTile tile;
  tile.reduceContiguous = reduceContiguous;
  tile.pitch = kWgmmaRowBytes / elementBytes;
  tile.outer = reduceContiguous ? space : reduce;
  tile.inner = reduceContiguous ? reduce : ceilBy(space, tile.pitch);
  tile.panels = ceilDiv(tile.inner, tile.pitch);
  tile.isPadded = !reduceContiguous && tile.inner != space;
  tile.chunk = kChunkBytes / elementBytes;
  tile.swizzle = kPatterns;
  tile.patternRows = 1;
  return tile;
}

WgmmaLayout ftuner::wgmmaLayout(bool lhsReduceContiguous,
                                bool rhsReduceContiguous, int64_t elementBytes,
                                const BlockTile &tile,
                                const WgmmaSchedule &schedule) {
  auto side = [&](unsigned axis) {
    bool reduceContiguous =
        axis == Workload::kM ? lhsReduceContiguous : rhsReduceContiguous;
    int64_t extent = tile[axis] / schedule.clusterAlong(axis);
    return WgmmaSide{
        axis,
        sharedTile(reduceContiguous, extent, tile[Workload::kK], elementBytes),
        extent, schedule.groupsAlong(axis)};
  };
  WgmmaLayout layout{side(schedule.rowAxis()),
                     side(schedule.columnAxis()),
                     tile[Workload::kK],
                     schedule.stages,
                     elementBytes,
                     schedule.producers,
                     schedule.tensorMaps,
                     schedule.clusterM,
                     schedule.clusterN,
                     schedule.persistentBlocks > 0,
                     schedule.turns};
  for (unsigned factor : {0, 1})
    layout.stageStrides[factor] = layout.stageBytes(layout.tileOf(factor));
  layout.slabStride = layout.warpTile().slabBytes();
  layout.barriersOffset = ceilBy(layout.tileBytes(), kBarrierBytes);
  return layout;
}

WgmmaLayout ftuner::wgmmaLayout(const Workload &workload, const BlockTile &tile,
                                const WgmmaSchedule &schedule) {
  const Operand *lhs = workload.find(OperandRole::Lhs);
  const Operand *rhs = workload.find(OperandRole::Rhs);
  return wgmmaLayout(lhs->contiguousAxis() == Workload::kK,
                     rhs->contiguousAxis() == Workload::kK,
                     bytesOf(multipliedType(workload)), tile, schedule);
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
    layout.slabStride = std::max(layout.slabStride, other.slabStride);
  }
  layout.barriersOffset =
      std::max(ceilBy(layout.tileBytes(), kBarrierBytes), other.barriersOffset);
  return layout;
}
