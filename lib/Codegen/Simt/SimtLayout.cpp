//===- SimtLayout.cpp - Thread and shared memory layout of SIMT -*- C++ -*-===//
#include "FTuner/Codegen/Simt/SimtLayout.h"
#include "FTuner/Codegen/ContractionModel.h"

#include <algorithm>
#include <tuple>

using namespace ftuner;

static constexpr int64_t kWarpSize = 32;

/// Splits `perThread` elements into chunks of 4, 2 and 1 for `threads` threads.
static llvm::SmallVector<LaneChunk> splitIntoChunks(int64_t perThread,
                                                    int64_t threads) {
  llvm::SmallVector<LaneChunk> chunks;
  int64_t base = 0;
  for (int64_t width : {4, 2, 1})
    for (; perThread >= width; perThread -= width, base += width * threads)
      chunks.push_back({base, width});
  return chunks;
}

llvm::SmallVector<LaneChunk> SimtLayout::rowChunks() const {
  if (!lhs.reduceContiguous)
    return splitIntoChunks(rm, gm);
  llvm::SmallVector<LaneChunk> chunks;
  for (int64_t row = 0; row < rm; ++row)
    chunks.push_back({row * gm, 1});
  return chunks;
}

llvm::SmallVector<LaneChunk> SimtLayout::columnChunks() const {
  return splitIntoChunks(rn, gn);
}

int64_t SimtLayout::copySlots(int64_t vectorWidth) const {
  return lhs.copySlots(threads(), vectorWidth) +
         rhs.copySlots(threads(), vectorWidth);
}

/// Most products of a thread in one run of code, each an instruction of 16
/// bytes. On an H200 blocks of 12 × 8 products a thread and step 32 took 343 µs
/// with 3072 in a run and 188 µs with 768, as warps waited for instructions;
/// pairs of blocks of 8 × 8 and 6 × 8 on an SM 115 and 81 µs with 2048 and
/// 1024. Where one block of enough warps has an SM for itself, 2048 are faster
/// than 1024 by 2 to 7 % (benchmarks/results/h200-2026-11-26, unrolling.md).
static constexpr int64_t kMostUnrolled = 1024, kMostUnrolledAlone = 2048;
static constexpr int64_t kLeastWarpsAlone = 8;

int64_t SimtLayout::unrolledDepth(const DeviceSpec &device) const {
  int64_t bytes = sharedMemoryBytes() + device.reservedSharedMemoryBytes();
  bool isAlone = 2 * bytes > device.sharedMemoryPerSmBytes;
  int64_t most = isAlone && threads() >= kLeastWarpsAlone * kWarpSize
                     ? kMostUnrolledAlone
                     : kMostUnrolled;
  int64_t quads = bk / 4;
  int64_t unrolled = std::clamp<int64_t>(most / (4 * rm * rn), 1, quads);
  while (quads % unrolled != 0)
    --unrolled;
  return 4 * unrolled;
}

/// Lanes of a warp along m and n, or 0, 0.
static std::pair<int64_t, int64_t> warpShape(int64_t gm, int64_t gn) {
  // Eight lanes along n read 128 contiguous bytes of the rhs in one phase.
  for (int64_t wn : {8, 16, 4, 32, 2, 1}) {
    int64_t wm = 32 / wn;
    if (gm % wm == 0 && gn % wn == 0)
      return {wm, wn};
  }
  return {0, 0};
}

static SharedTile sharedTile(bool reduceContiguous, int64_t space,
                             int64_t reduce, int64_t chunkWidth) {
  SharedTile tile;
  tile.reduceContiguous = reduceContiguous;
  tile.outer = reduceContiguous ? space : reduce;
  tile.inner = reduceContiguous ? reduce : space;
  tile.pitch = ceilBy(tile.inner, 4) + (reduceContiguous ? 4 : 0);
  // The patterns permute quads within groups of a power of two.
  int64_t quads = reduce / 4;
  if (reduceContiguous && chunkWidth == 4)
    tile.swizzle = std::min<int64_t>(4, quads & -quads);
  return tile;
}

SimtLayout ftuner::simtLayout(const ContractionAxes &axes,
                              bool lhsReduceContiguous,
                              bool rhsReduceContiguous, const BlockTile &tile,
                              const SimtSchedule &schedule) {
  SimtLayout layout;
  layout.gm = schedule.threadsM;
  layout.gn = schedule.threadsN;
  layout.bm = tile[axes.m];
  layout.bn = tile[axes.n];
  layout.bk = tile[axes.k];
  layout.rm = layout.bm / layout.gm;
  layout.rn = layout.bn / layout.gn;
  layout.stages = schedule.stages;
  std::tie(layout.wm, layout.wn) = warpShape(layout.gm, layout.gn);
  layout.lhs = sharedTile(lhsReduceContiguous, layout.bm, layout.bk, 1);
  layout.rhs = sharedTile(rhsReduceContiguous, layout.bn, layout.bk,
                          std::min<int64_t>(layout.rn, 4));
  return layout;
}

SimtLayout ftuner::simtLayout(const Workload &workload, const BlockTile &tile,
                              const SimtSchedule &schedule) {
  ContractionView view(workload);
  return simtLayout(view, view.lhs().contiguousAxis() == view.k,
                    view.rhs().contiguousAxis() == view.k, tile, schedule);
}

bool ftuner::simtCopiesAsynchronously(const Workload &workload,
                                      const DeviceSpec &device) {
  auto isConverted = [&](OperandRole role) {
    return workload.find(role)->elementType != workload.accumulatorType() ||
           hasPrologue(workload, /*factor=*/role == OperandRole::Rhs);
  };
  return device.hasAsyncCopy() && !isConverted(OperandRole::Lhs) &&
         !isConverted(OperandRole::Rhs);
}
