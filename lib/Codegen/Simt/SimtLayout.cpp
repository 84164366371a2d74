//===- SimtLayout.cpp - Thread and shared memory layout of SIMT -*- C++ -*-===//
#include "FTuner/Codegen/Simt/SimtLayout.h"
#include "FTuner/Codegen/ContractionModel.h"

#include <algorithm>

using namespace ftuner;

static constexpr int64_t kWarpSize = 32;

/// Most elements of a vector load.
static constexpr int64_t kWidestChunk = 4;

/// Splits `perThread` elements into strips of 4, 2 and 1 for `threads` threads,
/// each a chunk.
static llvm::SmallVector<LaneChunk> splitIntoChunks(int64_t perThread,
                                                    int64_t threads) {
  llvm::SmallVector<LaneChunk> chunks;
  int64_t base = 0;
  for (int64_t width : {4, 2, 1})
    for (; perThread >= width; perThread -= width, base += width * threads)
      chunks.push_back({base, width, /*stride=*/width});
  return chunks;
}

/// Chunks of up to `widest` elements of `strips` equal strips.
static llvm::SmallVector<LaneChunk> chunksOfStrips(int64_t perThread,
                                                   int64_t threads,
                                                   int64_t strips,
                                                   int64_t widest) {
  llvm::SmallVector<LaneChunk> chunks;
  int64_t strip = perThread / strips;
  int64_t width = std::min(widest, strip & -strip);
  for (int64_t first = 0; first < strips; ++first)
    for (int64_t element = 0; element < strip; element += width)
      chunks.push_back({first * threads * strip + element, width, strip});
  return chunks;
}

llvm::SmallVector<LaneChunk> SimtLayout::rowChunks() const {
  int64_t widest = lhs.reduceContiguous ? 1 : kWidestChunk;
  if (virtualM != 0)
    return chunksOfStrips(rm, gm, virtualM, widest);
  return lhs.reduceContiguous ? chunksOfStrips(rm, gm, /*strips=*/rm, widest)
                              : splitIntoChunks(rm, gm);
}

llvm::SmallVector<LaneChunk> SimtLayout::columnChunks() const {
  return virtualN != 0 ? chunksOfStrips(rn, gn, virtualN, kWidestChunk)
                       : splitIntoChunks(rn, gn);
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
  int64_t depth = sliceDepth();
  if (depth % 4 != 0)
    return depth;
  int64_t quads = depth / 4;
  int64_t unrolled = std::clamp<int64_t>(most / (4 * points()), 1, quads);
  while (quads % unrolled != 0)
    --unrolled;
  return 4 * unrolled;
}

/// Sets the lanes of a warp along m and n and their groups: as few groups as
/// have a warp.
static void setWarpShape(SimtLayout &layout) {
  for (int64_t wg : {1, 2, 4, 8, 16, 32})
    // Eight lanes along n read 128 contiguous bytes of the rhs in one phase.
    for (int64_t wn : {8, 16, 4, 32, 2, 1}) {
      int64_t wm = kWarpSize / wg / wn;
      if (wm == 0 || layout.groups() % wg != 0 || layout.gm % wm != 0 ||
          layout.gn % wn != 0)
        continue;
      layout.wm = wm;
      layout.wn = wn;
      layout.wg = wg;
      return;
    }
}

static SharedTile sharedTile(bool reduceContiguous, int64_t space,
                             int64_t reduce, llvm::ArrayRef<LaneChunk> chunks) {
  SharedTile tile;
  tile.reduceContiguous = reduceContiguous;
  tile.outer = reduceContiguous ? space : reduce;
  tile.inner = reduceContiguous ? reduce : space;
  tile.pitch = ceilBy(tile.inner, 4);
  // An odd number of quads: rows then start in all groups of four banks.
  if (reduceContiguous)
    tile.pitch += tile.pitch % 8 == 0 ? 4 : 8;
  // The patterns permute quads within groups of a power of two. Neighbouring
  // lanes whose rows are an odd number apart meet no bank twice without.
  int64_t quads = ceilDiv(reduce, 4);
  if (reduceContiguous && !chunks.empty() && chunks.front().stride % 4 == 0)
    tile.swizzle = std::min<int64_t>(4, quads & -quads);
  return tile;
}

/// Where a warp reads several matrices at once, moves these apart: what the
/// `lanes` of one read, `stride` rows or elements from each to the next, lies
/// in banks before those of the next.
static void spreadMatrices(SharedTile &tile, int64_t lanes, int64_t stride) {
  constexpr int64_t banks = 32;
  if (tile.matrices == 1)
    return;
  int64_t read = lanes * stride * (tile.reduceContiguous ? tile.pitch : 1);
  int64_t wanted = ceilBy(read, 4) - tile.sharedRows() * tile.pitch;
  tile.matrixPadding = (wanted % banks + banks) % banks;
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
  layout.gb = schedule.threadsBatch;
  layout.gk = schedule.threadsK;
  layout.stages = schedule.stages;
  for (int64_t &width : layout.copyWidths)
    width = schedule.vectorWidth;
  layout.virtualM = schedule.virtualThreadsM;
  layout.virtualN = schedule.virtualThreadsN;
  setWarpShape(layout);
  layout.lhs.reduceContiguous = lhsReduceContiguous;
  layout.lhs =
      sharedTile(lhsReduceContiguous, layout.bm, layout.bk, layout.rowChunks());
  layout.rhs = sharedTile(rhsReduceContiguous, layout.bn, layout.bk,
                          layout.columnChunks());
  return layout;
}

SimtLayout ftuner::simtLayout(const Workload &workload, const BlockTile &tile,
                              const SimtSchedule &schedule) {
  ContractionView view(workload);
  SimtLayout layout =
      simtLayout(view, view.lhs().contiguousAxis() == view.k,
                 view.rhs().contiguousAxis() == view.k, tile, schedule);
  for (unsigned factor : {0, 1})
    layout.copyWidths[factor] =
        elementsWithinRun(workload, view.factor(factor), schedule.vectorWidth);
  layout.batch = BatchTile::of(workload, tile);
  if (layout.batch.sides.empty())
    return layout;
  layout.rb = layout.batch.elements() / layout.gb;
  layout.lhs.matrices = layout.batch.matrices(0);
  layout.rhs.matrices = layout.batch.matrices(1);
  if (layout.wg > 1) {
    spreadMatrices(layout.lhs, layout.wm, layout.rowChunks().front().stride);
    spreadMatrices(layout.rhs, layout.wn, layout.columnChunks().front().stride);
  }
  return layout;
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
