//===- SimtLayoutTest.cpp ---------------------------------------*- C++ -*-===//
#include "FTuner/Codegen/Simt/SimtLayout.h"
#include "FTuner/Workload/Contraction.h"

#include "gtest/gtest.h"
#include <set>

using namespace ftuner;

namespace {

/// The layout of gm × gn threads with rm × rn elements each.
SimtLayout layoutOf(bool isLhsReduceContiguous, bool isRhsReduceContiguous,
                    int64_t gm, int64_t rm, int64_t gn, int64_t rn, int64_t bk,
                    int64_t stages) {
  return simtLayout(matmulAxes, isLhsReduceContiguous, isRhsReduceContiguous,
                    {gm * rm, gn * rn, bk}, {gm, gn, stages, 4});
}

/// Elements that `threads` threads own through chunks, each exactly once.
void expectPartition(llvm::ArrayRef<LaneChunk> chunks, int64_t threads,
                     int64_t extent) {
  std::set<int64_t> seen;
  for (const LaneChunk &chunk : chunks)
    for (int64_t thread = 0; thread < threads; ++thread)
      for (int64_t i = 0; i < chunk.width; ++i) {
        int64_t element = chunk.base + thread * chunk.stride + i;
        EXPECT_GE(element, 0);
        EXPECT_LT(element, extent);
        EXPECT_TRUE(seen.insert(element).second) << element << " twice";
      }
  EXPECT_EQ(static_cast<int64_t>(seen.size()), extent);
}

TEST(SimtLayout, ThreadsOwnEveryElementOnce) {
  for (int64_t gm : {1, 4, 7, 16})
    for (int64_t rm = 1; rm <= 16; ++rm)
      for (int64_t gn : {8, 32})
        for (int64_t rn : {1, 2, 4, 8})
          for (bool lhsReduceContiguous : {false, true}) {
            SimtLayout layout =
                layoutOf(lhsReduceContiguous, false, gm, rm, gn, rn, 16,
                         /*stages=*/2);
            expectPartition(layout.rowChunks(), gm, gm * rm);
            expectPartition(layout.columnChunks(), gn, gn * rn);
          }
}

TEST(SimtLayout, ChunksAreAlignedToTheirWidth) {
  for (int64_t rm = 1; rm <= 16; ++rm)
    for (const LaneChunk &chunk :
         layoutOf(false, false, 8, rm, 16, 4, 16, 2).rowChunks())
      EXPECT_EQ(chunk.base % chunk.width, 0);
}

/// Number of passes that the lanes of one 128-bit phase need: the largest
/// number of distinct quads in one of the eight 16-byte bank groups.
int64_t passes(const std::set<int64_t> &quads) {
  int64_t perBank[8] = {}, worst = 0;
  for (int64_t quad : quads)
    worst = std::max(worst, ++perBank[quad % 8]);
  return worst;
}

/// Address in quads of quad `quad` of row `row`.
int64_t sharedQuad(const SharedTile &tile, int64_t row, int64_t quad) {
  return row * tile.pitch / 4 + (quad ^ ((row / 8) % tile.swizzle));
}

TEST(SimtLayout, SwizzleStaysInsideTheRow) {
  for (int64_t bk = 8; bk <= 64; bk += 8) {
    SimtLayout layout = layoutOf(true, true, 8, 8, 16, 8, bk, 2);
    for (int64_t row = 0; row < layout.rhs.outer; ++row) {
      std::set<int64_t> seen;
      for (int64_t quad = 0; quad < bk / 4; ++quad)
        seen.insert(quad ^ ((row / 8) % layout.rhs.swizzle));
      EXPECT_EQ(static_cast<int64_t>(seen.size()), bk / 4);
      EXPECT_LT(*seen.rbegin(), bk / 4);
    }
  }
}

TEST(SimtLayout, ReduceContiguousRhsIsReadWithoutBankConflicts) {
  // bk = 16: eight lanes along n, each the same element of its chunk of four.
  SimtLayout layout = layoutOf(true, true, 16, 8, 16, 8, 16, 3);
  ASSERT_EQ(layout.wn, 8);
  for (const LaneChunk &chunk : layout.columnChunks())
    for (int64_t element = 0; element < chunk.width; ++element)
      for (int64_t quad = 0; quad < 4; ++quad)
        for (int64_t warp = 0; warp < layout.gn / layout.wn; ++warp) {
          std::set<int64_t> quads;
          for (int64_t lane = 0; lane < 8; ++lane) {
            int64_t column =
                chunk.base + (warp * 8 + lane) * chunk.width + element;
            quads.insert(sharedQuad(layout.rhs, column, quad));
          }
          EXPECT_EQ(passes(quads), 1);
        }
}

TEST(SimtLayout, ReduceContiguousLhsIsReadWithoutBankConflicts) {
  for (int64_t bk : {8, 16, 32}) {
    SimtLayout layout = layoutOf(true, false, 16, 8, 16, 8, bk, 3);
    // The four rows that a warp reads at once, of interleaved threads.
    for (int64_t row : {0, 4, 8, 12}) {
      std::set<int64_t> quads;
      for (int64_t lane = 0; lane < layout.wm; ++lane)
        quads.insert(sharedQuad(layout.lhs, row + lane, 0));
      EXPECT_EQ(passes(quads), 1);
    }
  }
}

TEST(SimtLayout, SharedMemoryIsWhatTheStagesHold) {
  // 3 stages of 128 rows of 16 + 4, and of 16 rows of 128 elements of 4 bytes.
  SimtLayout layout = layoutOf(true, false, 16, 8, 16, 8, 16, 3);
  EXPECT_EQ(layout.sharedMemoryBytes(), 3 * (128 * 20 + 16 * 128) * 4);
  EXPECT_EQ(layout.threads(), 256);
}

} // namespace
