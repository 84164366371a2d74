//===- SimtWork.cpp - What a block of the SIMT path executes --------------===//
//
// Counts what SimtMainLoop.cpp and TileCopy.cpp emit for a step of the main
// loop.
//
//===----------------------------------------------------------------------===//
#include "SimtWork.h"
#include "FTuner/Codegen/TileCopyWork.h"
#include "SimtAddresses.h"

using namespace ftuner;

namespace {

constexpr int64_t kLanes = 32;

/// Threads of a warp along one axis, how many warps lie beside each other, the
/// matrix that each lane reads, and its first element of a step along k.
struct WarpSpan {
  std::array<uint32_t, kLanes> lanes;
  int64_t threads, warps;
  std::array<uint32_t, kLanes> matrices = {}, firsts = {};
};

class WorkCounter {
public:
  WorkCounter(const SimtLayout &layout, const SimtCode &code);
  BlockWork count();

private:
  void countFragments(const SharedTile &tile, llvm::ArrayRef<LaneChunk> chunks,
                      const WarpSpan &span);
  void countFragment(const SharedTile &tile, const LaneChunk &chunk,
                     const WarpSpan &span, double count);
  void countCopies(const SharedTile &tile, unsigned factor);
  double overheadInstructions() const;
  double sliceInstructions() const;

  const SimtLayout &layout;
  const SimtCode &code;
  int64_t warps;
  NumberMath math;
  /// Warp instructions that load fragments, that copy, and that cast.
  double fragmentLoads = 0, copies = 0, casts = 0;
  BlockWork work;
};

WorkCounter::WorkCounter(const SimtLayout &layout, const SimtCode &code)
    : layout(layout), code(code), warps(layout.threads() / kLanes) {
  work.accesses.reserve(16);
}

/// Loads of an operand's fragments by all warps.
void WorkCounter::countFragments(const SharedTile &tile,
                                 llvm::ArrayRef<LaneChunk> chunks,
                                 const WarpSpan &span) {
  // Chunks of one width, and warps beside each other, differ by a shift of
  // rows or words, which matters up to the period alone.
  struct Group {
    LaneChunk chunk;
    int64_t count;
  };
  llvm::SmallVector<Group, 8> groups;
  int64_t period = tile.patternPeriod();
  for (const LaneChunk &chunk : chunks)
    for (int64_t warp = 0; warp < span.warps; ++warp) {
      int64_t first = chunk.base + warp * span.threads * chunk.stride;
      auto isAlike = [&](const Group &group) {
        return group.chunk.width == chunk.width &&
               group.chunk.stride == chunk.stride &&
               group.chunk.base == first % period;
      };
      if (auto it = llvm::find_if(groups, isAlike); it != groups.end())
        ++it->count;
      else
        groups.push_back({{first % period, chunk.width, chunk.stride}, 1});
    }
  for (const Group &group : groups) {
    int64_t loads = layout.rb * group.count * warps / span.warps;
    countFragment(tile, group.chunk, span, double(loads));
  }
}

/// Loads of one chunk by one warp in a whole step, `count` times.
void WorkCounter::countFragment(const SharedTile &tile, const LaneChunk &chunk,
                                const WarpSpan &span, double count) {
  std::array<int64_t, kLanes> address;
  if (!tile.reduceContiguous) {
    for (int64_t lane = 0; lane < kLanes; ++lane)
      address[lane] = span.matrices[lane] * tile.matrixPitch() +
                      span.firsts[lane] * tile.pitch +
                      firstOfChunk(math, chunk, span.lanes[lane]);
    double loads = count * double(layout.sliceDepth());
    addAccess(work, WarpAccess::Kind::SharedLoad, chunk.width, address, loads);
    fragmentLoads += loads;
    work.loadedRegisters += loads * double(chunk.width);
    return;
  }
  // Each quad of each row of the chunk is a load; the quad's low bits decide
  // the pattern.
  int64_t quads = chunk.width * ceilDiv(layout.sliceDepth(), kQuad);
  double loads = count * double(quads);
  for (int64_t quad = 0; quad < tile.swizzle; ++quad) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      uint32_t first = firstOfChunk(math, chunk, span.lanes[lane]);
      address[lane] = span.matrices[lane] * tile.matrixPitch() +
                      int64_t(first) * tile.pitch +
                      reduceElementInRow(math, tile, first,
                                         span.firsts[lane] + kQuad * quad);
    }
    addAccess(work, WarpAccess::Kind::SharedLoad, kQuad, address,
              loads / double(tile.swizzle));
  }
  fragmentLoads += loads;
  work.loadedRegisters += loads * double(kQuad);
}

/// Copies of a factor's tile by all warps.
void WorkCounter::countCopies(const SharedTile &tile, unsigned factor) {
  int64_t bytes = code.elementBytes[factor], width = layout.copyWidths[factor];
  double count =
      addTileCopies(work, tile, layout.threads(), width,
                    {/*global=*/bytes, /*shared=*/kSharedElementBytes});
  copies += count;
  if (code.isConverted[factor])
    casts += count * double(width);
  casts += count * double(width) * code.prologues[factor].instructions;
  if (!code.isAsynchronous)
    work.loadedRegisters +=
        count * double(ceilDiv(width * bytes, kSharedElementBytes));
}

/// What a warp executes in a step beside multiplications and accesses: loop and
/// stages, addresses of the slots, whether each takes part. Rounded from fits
/// to main loops of random kernels as ptxas assembles them. A few constants for
/// all are coarse: benchmarks/register_model/results.md says how far what they
/// add up to is off, most where slots are many.
double WorkCounter::overheadInstructions() const {
  double ofLoop = 35, ofSlot = code.isAsynchronous ? 3 : 1;
  if (!code.isReduceExact) {
    ofLoop += 10;
    ofSlot += 6;
  }
  return ofLoop + ofSlot * double(layout.copySlots()) +
         code.windowInstructions[0] + code.windowInstructions[1];
}

/// Instructions that add up the sums of slices: each slice but the first stores
/// its sums, and the first slice loads and adds them.
double WorkCounter::sliceInstructions() const {
  int64_t vectors =
      layout.rb * layout.rm * int64_t(layout.columnChunks().size());
  return double(warps) * double(layout.gk - 1) / double(layout.gk) *
         double(2 * vectors + layout.points());
}

BlockWork WorkCounter::count() {
  work.warps = warps;
  work.kTile = layout.bk;
  work.fma = double(warps * layout.sliceDepth() * layout.points());
  WarpSpan rows{{}, layout.wm, layout.gm / layout.wm};
  WarpSpan columns{{}, layout.wn, layout.gn / layout.wn};
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    ThreadCoordinates<NumberMath> thread =
        threadCoordinates(math, layout, lane);
    rows.lanes[lane] = thread.m;
    columns.lanes[lane] = thread.n;
    rows.firsts[lane] = columns.firsts[lane] =
        firstOfSlice(math, layout, thread);
    if (!thread.batch)
      continue;
    rows.matrices[lane] = matrixOf(math, layout.batch, 0, *thread.batch);
    columns.matrices[lane] = matrixOf(math, layout.batch, 1, *thread.batch);
  }
  llvm::SmallVector<LaneChunk> rowChunks = layout.rowChunks();
  // The last three rows of a single thread are neighbours, which LLVM reads at
  // once, with what pads them.
  if (!layout.lhs.reduceContiguous && layout.virtualM == 0 && layout.gm == 1 &&
      layout.rm % 4 == 3) {
    rowChunks.pop_back();
    rowChunks.back().width = 4;
  }
  countFragments(layout.lhs, rowChunks, rows);
  countFragments(layout.rhs, layout.columnChunks(), columns);
  countCopies(layout.lhs, 0);
  countCopies(layout.rhs, 1);
  work.otherInstructions = fragmentLoads + casts +
                           copies * (code.isAsynchronous ? 1 : 2) +
                           double(warps) * overheadInstructions();
  auto bytesOf = [&](unsigned factor) {
    return code.elementBytes[factor] + code.prologues[factor].globalBytes;
  };
  work.globalBytes =
      double(layout.bk * (bytesOf(0) * layout.bm * layout.lhs.matrices +
                          bytesOf(1) * layout.bn * layout.rhs.matrices));
  work.epilogueInstructions = sliceInstructions();
  work.stepsAhead = double(code.isAsynchronous ? layout.stages - 1 : 1);
  return std::move(work);
}

} // namespace

BlockWork ftuner::simtWork(const SimtLayout &layout, const SimtCode &code) {
  return WorkCounter(layout, code).count();
}
