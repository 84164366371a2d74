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

MmaLayout ftuner::mmaLayout(const ContractionAxes &axes,
                            bool lhsReduceContiguous, bool rhsReduceContiguous,
                            int64_t elementBytes, const BlockTile &tile,
                            const MmaSchedule &schedule) {
  int64_t depth = tile[axes.k];
  auto side = [&](unsigned factor) {
    bool reduceContiguous =
        factor == 0 ? lhsReduceContiguous : rhsReduceContiguous;
    int64_t extent = tile[axes.space(factor)];
    return MmaSide{
        factor, sharedTile(reduceContiguous, extent, depth, elementBytes),
        extent, schedule.warpsAlong(factor), schedule.fragmentAlong(factor)};
  };
  return {side(schedule.rowFactor()), side(schedule.columnFactor()), depth,
          schedule.stages, elementBytes};
}

MmaLayout ftuner::mmaLayout(const Workload &workload, const BlockTile &tile,
                            const MmaSchedule &schedule) {
  ContractionView view(workload);
  return mmaLayout(view, view.lhs().contiguousAxis() == view.k,
                   view.rhs().contiguousAxis() == view.k,
                   bytesOf(view.multipliedType()), tile, schedule);
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
