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
  int64_t chunks = tile.inner / tile.chunk;
  tile.swizzle = std::min(kPhaseRows, chunks & -chunks);
  tile.patternRows = kPhaseRows / tile.swizzle;
  return tile;
}

MmaLayout ftuner::mmaLayout(bool lhsReduceContiguous, bool rhsReduceContiguous,
                            int64_t elementBytes, const BlockTile &tile,
                            const MmaSchedule &schedule) {
  auto side = [&](unsigned axis) {
    bool reduceContiguous =
        axis == Workload::kM ? lhsReduceContiguous : rhsReduceContiguous;
    return MmaSide{axis,
                   sharedTile(reduceContiguous, tile[axis], tile[Workload::kK],
                              elementBytes),
                   tile[axis], schedule.warpsAlong(axis),
                   schedule.fragmentAlong(axis)};
  };
  unsigned rows = schedule.rowAxis();
  unsigned columns = rows == Workload::kM ? Workload::kN : Workload::kM;
  return {side(rows), side(columns), tile[Workload::kK], schedule.stages,
          elementBytes};
}

MmaLayout ftuner::mmaLayout(const Workload &workload, const BlockTile &tile,
                            const MmaSchedule &schedule) {
  const Operand *lhs = workload.find(OperandRole::Lhs);
  const Operand *rhs = workload.find(OperandRole::Rhs);
  return mmaLayout(lhs->contiguousAxis() == Workload::kK,
                   rhs->contiguousAxis() == Workload::kK,
                   bytesOf(multipliedType(workload)), tile, schedule);
}
