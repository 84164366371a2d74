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
  return {side(schedule.rowAxis()), side(schedule.columnAxis()),
          tile[Workload::kK], schedule.stages, elementBytes};
}

MmaLayout ftuner::mmaLayout(const Workload &workload, const BlockTile &tile,
                            const MmaSchedule &schedule) {
  const Operand *lhs = workload.find(OperandRole::Lhs);
  const Operand *rhs = workload.find(OperandRole::Rhs);
  return mmaLayout(lhs->contiguousAxis() == Workload::kK,
                   rhs->contiguousAxis() == Workload::kK,
                   bytesOf(multipliedType(workload)), tile, schedule);
}

int64_t ftuner::mmaColumnStep(const Workload &workload,
                              const MmaSchedule &schedule) {
  const Operand *factor =
      workload.find(schedule.columnAxis() == Workload::kM ? OperandRole::Lhs
                                                          : OperandRole::Rhs);
  return bytesOf(multipliedType(workload)) == 1 &&
                 factor->contiguousAxis() != Workload::kK
             ? 2
             : 1;
}
