//===- MmaLayout.cpp - Warp and shared memory layout of mma ---------------===//
#include "FTuner/Codegen/Mma/MmaLayout.h"
#include "MmaTypes.h"

#include <algorithm>

using namespace ftuner;

/// Rows that a phase of ldmatrix reads at once.
static constexpr int64_t kPhaseRows = 8;

static SharedTile sharedTile(bool reduceContiguous, int64_t space,
                             int64_t reduce, int64_t elementBytes) {
  SharedTile tile;
  tile.reduceContiguous = reduceContiguous;
  tile.outer = reduceContiguous ? space : reduce;
  tile.inner = reduceContiguous ? reduce : space;
  tile.pitch = tile.inner;
  tile.chunk = kMmaChunkBytes / elementBytes;
  if (!reduceContiguous && elementBytes == 4) {
    tile.pitch = ceilBy(tile.inner - 8, 16) + 8;
    return tile;
  }
  tile.alternatesPairs = !reduceContiguous && elementBytes == 1;
  int64_t chunks = ceilDiv(tile.inner, tile.chunk);
  tile.swizzle = std::min(kPhaseRows, chunks & -chunks);
  tile.patternRows = kPhaseRows / tile.swizzle;
  return tile;
}

MmaLayout ftuner::mmaLayout(const Workload &workload, const BlockTile &tile,
                            const MmaSchedule &schedule) {
  ContractionView view(workload);
  int64_t depth = tile[view.k], elementBytes = bytesOf(view.multipliedType());
  BatchTile batch = BatchTile::of(workload, tile);
  auto side = [&](unsigned factor) {
    bool reduceContiguous = view.factor(factor).contiguousAxis() == view.k;
    int64_t extent = tile[view.space(factor)];
    MmaSide result = {
        factor, sharedTile(reduceContiguous, extent, depth, elementBytes),
        extent, schedule.warpsAlong(factor), schedule.fragmentAlong(factor)};
    result.tile.matrices = batch.matrices(factor);
    return result;
  };
  return {side(schedule.rowFactor()),
          side(schedule.columnFactor()),
          depth,
          schedule.stages,
          elementBytes,
          schedule.warpsBatch,
          std::move(batch)};
}

int64_t ftuner::mmaColumnStep(const Workload &workload,
                              const MmaSchedule &schedule) {
  ContractionView view(workload);
  const Operand &factor = view.factor(schedule.columnFactor());
  return bytesOf(view.multipliedType()) == 1 &&
                 factor.contiguousAxis() != view.k
             ? 2
             : 1;
}
