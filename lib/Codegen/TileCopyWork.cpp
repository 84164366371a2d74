//===- TileCopyWork.cpp - What copies of tiles execute --------------------===//
//
// Counts what IR/TileCopy.cpp emits for a step of the main loop. Vectors are
// handed out in order to consecutive threads, so warps take runs of 32 of them.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Codegen/TileCopyWork.h"

#include <algorithm>
#include <numeric>

using namespace ftuner;

static constexpr int64_t kLanes = 32;
static constexpr int64_t kWordBytes = 4;
/// Bytes of a line of global memory.
static constexpr int64_t kLineBytes = 128;

void ftuner::addAccess(BlockWork &work, WarpAccess::Kind kind, int64_t width,
                       const std::array<int64_t, 32> &address, double count) {
  for (WarpAccess &other : work.accesses)
    if (other.kind == kind && other.width == width &&
        other.address == address) {
      other.count += count;
      return;
    }
  work.accesses.push_back({kind, width, address, count});
}

namespace {
/// What all copies of a tile have in common.
struct Copies {
  const SharedTile &tile;
  int64_t threads, vectorWidth;
  ElementBytes bytes;
};
} // namespace

/// Copies of the vectors from `firstVector` on, one for each of `lanes` lanes,
/// `count` times.
static void addCopy(BlockWork &work, const Copies &copies, int64_t firstVector,
                    int64_t lanes, double count) {
  NumberMath math;
  const SharedTile &tile = copies.tile;
  // Rows in global memory start at lines: how long they are, shapes decide.
  int64_t lineElements = kLineBytes / copies.bytes.global;
  int64_t globalPitch = ceilBy(tile.inner, lineElements);
  std::array<int64_t, kLanes> global, shared;
  global.fill(-1);
  shared.fill(-1);
  int64_t slot = firstVector / copies.threads * copies.threads;
  int64_t globalOrigin = 0, sharedOrigin = 0;
  for (int64_t lane = 0; lane < lanes; ++lane) {
    CopiedVector<NumberMath> vector =
        copiedVector(math, tile, firstVector - slot + lane, slot,
                     copies.threads, copies.vectorWidth);
    // Matrices lie one behind the other, as if each began behind the rows of
    // the one before.
    int64_t row = vector.outer;
    if (vector.matrix)
      row += *vector.matrix * tile.outer;
    int64_t place = sharedElement(math, tile, vector);
    if (lane == 0) {
      // Patterns are relative to the first lane's line (of the first row of
      // those among which pairs alternate), and to its row or, in order of
      // addresses, itself.
      int64_t firstRow = row;
      if (tile.alternatesPairs)
        firstRow -= row % SharedTile::kPairRows;
      globalOrigin =
          firstRow * globalPitch + vector.inner / lineElements * lineElements;
      sharedOrigin = place - (tile.swizzle == 1 ? 0 : vector.sharedInner);
    }
    global[lane] = (row * globalPitch + vector.inner - globalOrigin) *
                   copies.bytes.global / kWordBytes;
    shared[lane] = (place - sharedOrigin) * copies.bytes.shared / kWordBytes;
  }
  auto width = [&](int64_t bytes) {
    return std::max<int64_t>(copies.vectorWidth * bytes / kWordBytes, 1);
  };
  addAccess(work, WarpAccess::Kind::GlobalLoad, width(copies.bytes.global),
            global, count);
  addAccess(work, WarpAccess::Kind::SharedStore, width(copies.bytes.shared),
            shared, count);
}

double ftuner::addTileCopies(BlockWork &work, const SharedTile &tile,
                             int64_t threads, int64_t vectorWidth,
                             ElementBytes bytes) {
  Copies copies{tile, threads, vectorWidth, bytes};
  int64_t vectorsPerRow = tile.vectorsPerRow(vectorWidth);
  int64_t vectors = tile.vectors(vectorWidth);
  // Runs repeat themselves, shifted, after whole rows, or whole sequences of
  // swizzle patterns.
  int64_t sequence = tile.matrices > 1 ? tile.vectorsOfMatrix(vectorWidth)
                                       : vectorsPerRow * tile.patternPeriod();
  int64_t period = sequence / std::gcd(kLanes, sequence);
  int64_t runs = vectors / kLanes;
  for (int64_t run = 0; run < std::min(runs, period); ++run)
    addCopy(work, copies, run * kLanes, kLanes,
            double(ceilDiv(runs - run, period)));
  if (vectors % kLanes != 0)
    addCopy(work, copies, runs * kLanes, vectors % kLanes, 1);
  return double(ceilDiv(vectors, kLanes));
}
