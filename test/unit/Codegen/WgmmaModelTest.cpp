//===- WgmmaModelTest.cpp - Layout and model of the wgmma path ------------===//
#include "FTuner/Codegen/Wgmma/WgmmaLayout.h"
#include "FTuner/CostModel/LatencyFormulas.h"
#include "FTuner/Schedule/CodegenModel.h"
#include "Products.h"

#include "gtest/gtest.h"
#include <map>

using namespace ftuner;

namespace {

Workload productOf(ElementType type, ElementType sum, bool transposeLhs = false,
                   bool transposeRhs = true) {
  Workload workload =
      Workload::matmul({1, 512, 1}, SizeRange::fixed(2304),
                       SizeRange::fixed(768), transposeLhs, transposeRhs);
  setTypes(workload, type, sum);
  return workload;
}

Workload halfProduct(bool transposeLhs = false, bool transposeRhs = true) {
  return productOf(ElementType::F16, ElementType::F32, transposeLhs,
                   transposeRhs);
}

class WgmmaModelTest : public ::testing::Test {
protected:
  static DeviceSpec load(llvm::StringRef name) {
    return llvm::cantFail(loadDeviceSpec(name));
  }
  std::string refusal(const Workload &workload, llvm::StringRef device) {
    return llvm::toString(model.supports(workload, load(device)));
  }
  std::string error(const KernelFamily &family, bool transposeRhs = true) {
    return llvm::toString(
        model.check(halfProduct(false, transposeRhs), family, device));
  }

  const CodegenModel &model = *findCodegenModel("wgmma");
  DeviceSpec device = load("h200");
};

TEST_F(WgmmaModelTest, TakesProductsOfHopperAlone) {
  EXPECT_TRUE(model.needsExactArchitecture());
  EXPECT_FALSE(model.isDefault());
  Workload half = halfProduct();
  Workload bf16 = productOf(ElementType::BF16, ElementType::F32);
  Workload i8 = productOf(ElementType::I8, ElementType::I32);
  for (const Workload *workload : {&half, &bf16, &i8}) {
    for (const char *name : {"h100", "h200"})
      EXPECT_EQ(refusal(*workload, name), "") << name;
    for (const char *name : {"t4", "a100", "l4", "b200"})
      EXPECT_NE(refusal(*workload, name), "") << name;
  }
  EXPECT_NE(refusal(productOf(ElementType::F32, ElementType::F32), "h200"), "");
  // Bytes are not transposed on the way from shared memory.
  EXPECT_NE(refusal(productOf(ElementType::I8, ElementType::I32, true), "h200"),
            "");
}

TEST_F(WgmmaModelTest, ChecksFamilies) {
  EXPECT_EQ(error(wgmmaFamily({2, 1, 4, 16}, {64}, 128, 64)), "");
  EXPECT_EQ(error(wgmmaFamily({2, 1, 3, 8}, {64, 128}, 128, 64)), "");
  EXPECT_EQ(error(wgmmaFamily({1, 1, 2, 1}, {64}, 8, 64)), "");
  // Half an instruction of rows, of columns; half a step; few stages, many.
  EXPECT_NE(error(wgmmaFamily({2, 1, 4, 16}, {32}, 128, 64)), "");
  EXPECT_NE(error(wgmmaFamily({2, 1, 4, 16}, {64}, 124, 64)), "");
  EXPECT_NE(error(wgmmaFamily({2, 1, 4, 16}, {64}, 128, 32)), "");
  EXPECT_NE(error(wgmmaFamily({2, 1, 2, 16}, {64}, 128, 64)), "");
  EXPECT_NE(error(wgmmaFamily({2, 1, 3, 1}, {64}, 128, 64)), "");
  EXPECT_NE(error(wgmmaFamily({2, 1, 4096, 16}, {64}, 128, 64)), "");
  EXPECT_NE(error(wgmmaFamily({2, 1, 4, 2}, {64}, 128, 64)), "");
  EXPECT_NE(error(wgmmaFamily({5, 1, 4, 16}, {64}, 8, 64)), "");
  EXPECT_NE(error(wgmmaFamily({0, 1, 4, 16}, {64}, 8, 64)), "");
  // 264 columns, 256 accumulators.
  EXPECT_NE(error(wgmmaFamily({1, 1, 3, 16}, {64}, 264, 64)), "");
  EXPECT_NE(error(wgmmaFamily({1, 1, 3, 16}, {128}, 256, 64)), "");
  // Matrices begin with panels.
  EXPECT_EQ(error(wgmmaFamily({1, 1, 4, 16}, {64}, 96, 64), false), "");
  EXPECT_EQ(error(wgmmaFamily({1, 2, 4, 16}, {64}, 96, 64)), "");
  EXPECT_NE(error(wgmmaFamily({1, 2, 4, 16}, {64}, 96, 64), false), "");
  WgmmaSchedule swapped = {1, 2, 4, 16, true};
  EXPECT_EQ(error(wgmmaFamily(swapped, {24, 40}, 64, 64)), "");
  EXPECT_NE(error(wgmmaFamily(swapped, {24, 40}, 32, 64)), "");
}

/// Where the hardware reads an element of a matrix, in bytes from the tile's
/// beginning (PTX ISA, "Matrix Descriptor Format" and "Strides"): of a row of
/// 64, or of the columns, and along k.
int64_t readAddress(const WgmmaLayout &layout, const SharedTile &tile,
                    int64_t start, int64_t space, int64_t reduce) {
  int64_t bytes = layout.elementBytes, address = start;
  if (tile.reduceContiguous)
    address +=
        space % 8 * 128 + space / 8 * WgmmaLayout::rowStride() + reduce * bytes;
  else
    address += reduce % 8 * 128 + reduce / 8 * WgmmaLayout::rowStride() +
               space * bytes / 128 * layout.panelStride(tile) +
               space * bytes % 128;
  // Bits 4 to 6 are permuted by bits 7 to 9 of the address.
  return address ^ (address >> 7 & 7) << 4;
}

/// What copies write is what instructions read, each element at its place.
TEST_F(WgmmaModelTest, ReadsWhatCopiesWrite) {
  for (bool transposeLhs : {false, true})
    for (bool transposeRhs : {false, true})
      for (bool swaps : {false, true})
        for (int64_t width : {1, 2, 8})
          for (BlockTile block :
               {BlockTile{128, 128, 64}, BlockTile{256, 64, 64},
                BlockTile{64, 64, 64}}) {
            WgmmaSchedule schedule = {swaps ? 1 : block[0] / 64,
                                      swaps ? block[1] / 64 : 1, 4, 16, swaps};
            // A height that only instructions' columns can have.
            block[swaps ? 0 : 1] -= 24;
            WgmmaLayout layout = wgmmaLayout(
                halfProduct(transposeLhs, transposeRhs), block, schedule);
            NumberMath math;
            for (const WgmmaSide *side : {&layout.rows, &layout.columns}) {
              const SharedTile &tile = side->tile;
              EXPECT_EQ(layout.stageBytes(tile) % kWgmmaPatternBytes, 0);
              // Element of the tile by address.
              std::map<int64_t, std::pair<int64_t, int64_t>> written;
              int64_t threads = layout.threads();
              for (int64_t first = 0; first < tile.vectors(width);
                   first += threads)
                for (int64_t thread = 0;
                     thread < threads && first + thread < tile.vectors(width);
                     ++thread) {
                  auto vector = copiedVector(math, tile, uint32_t(thread),
                                             first, threads, width);
                  for (int64_t i = 0; i < width; ++i) {
                    int64_t outer = vector.outer, inner = vector.inner + i;
                    bool isNew = written
                                     .insert({(vector.sharedOuter * tile.pitch +
                                               vector.sharedInner + i) *
                                                  2,
                                              tile.reduceContiguous
                                                  ? std::pair(outer, inner)
                                                  : std::pair(inner, outer)})
                                     .second;
                    EXPECT_TRUE(isNew);
                  }
                }
              bool areRows = side == &layout.rows;
              int64_t ofMatrix = areRows ? kWgmmaRows : side->groupExtent();
              for (int64_t first = 0; first < side->extent; first += ofMatrix)
                for (int64_t depth = 0; depth < layout.depths(); ++depth) {
                  int64_t start = layout.offsetOf(tile, first, depth);
                  for (int64_t space = 0; space < ofMatrix; ++space)
                    for (int64_t k = 0; k < 16; ++k) {
                      auto it = written.find(
                          readAddress(layout, tile, start, space, k));
                      ASSERT_NE(it, written.end());
                      EXPECT_EQ(it->second,
                                std::pair(first + space, 16 * depth + k));
                    }
                }
            }
          }
}

TEST_F(WgmmaModelTest, CountsWhatABlockMultiplies) {
  KernelFamily family = wgmmaFamily({2, 1, 4, 16}, {64}, 128, 64);
  BlockWork work = model.work(halfProduct(), family, 0, device);
  ASSERT_EQ(work.tensor.size(), 1u);
  EXPECT_TRUE(work.tensor[0].isWarpgroup);
  EXPECT_EQ(work.warps, 8);
  // Four depths, which each of eight warps issues.
  EXPECT_EQ(work.tensor[0].instructions, 8 * 4);
  EXPECT_EQ(work.tensor[0].operations, 2.0 * 128 * 128 * 64);
  EXPECT_EQ(work.globalBytes, 2 * 64 * (128 + 128));
  EXPECT_EQ(work.stepsAhead, 2);
  // Each group reads its 64 rows and all columns, 512 bytes an access.
  double reads = 0;
  for (const WarpAccess &access : work.accesses)
    if (access.kind == WarpAccess::Kind::SharedLoad)
      reads += access.count;
  EXPECT_EQ(reads, 2 * (64 + 128) * 128 / 512);
}

TEST_F(WgmmaModelTest, OffersLegalBlocksWithoutBankConflicts) {
  for (bool transposeLhs : {false, true})
    for (bool transposeRhs : {false, true}) {
      Workload workload = halfProduct(transposeLhs, transposeRhs);
      auto space = model.createSpace(workload, device);
      int64_t blocks = 0;
      space->forEachBlock(
          16, [&](const KernelFamily &block, const UKernel &ukernel, bool) {
            EXPECT_EQ(ukernel.blockTile, block.tiles[0]);
            EXPECT_EQ(ukernel.registerTile, block.ukernel(0).registerTile);
            space->forEachStep(block, [&](const KernelFamily &family) {
              if (llvm::Error error = model.check(workload, family, device)) {
                llvm::consumeError(std::move(error));
                return true;
              }
              ++blocks;
              for (const WarpAccess &access :
                   model.work(workload, family, 0, device).accesses)
                if (access.kind != WarpAccess::Kind::GlobalLoad) {
                  EXPECT_EQ(wavefronts(access.address, access.width), 4)
                      << family.str();
                }
              return false;
            });
          });
      EXPECT_GT(blocks, 50);
    }
}

TEST_F(WgmmaModelTest, RelaxesAccesses) {
  KernelFamily family = wgmmaFamily({1, 1, 4, 16}, {64}, 32, 64);
  EXPECT_EQ(model.relaxed(family, 16), family);
  for (int64_t alignment : {8, 4}) {
    KernelFamily narrow = model.relaxed(family, alignment);
    EXPECT_EQ(narrow.alignment(), alignment);
    EXPECT_EQ(error(narrow), "");
  }
  KernelFamily single = model.relaxed(family, 2);
  EXPECT_TRUE(single.takesAnyAlignment());
  EXPECT_EQ(error(single), "");
  EXPECT_EQ(model.unalignedVariants(family).front(), single);
}

TEST(CodegenModelsTest, ReadsNamesOfPaths) {
  auto named = llvm::cantFail(parseCodegenModels("wgmma, simt"));
  EXPECT_EQ(namesOf(named, ","), "simt,wgmma");
  EXPECT_EQ(namesOf(defaultCodegenModels(), ","), "simt,mma");
  for (const char *wrong : {"", "simt,", "fma"}) {
    auto models = parseCodegenModels(wrong);
    ASSERT_FALSE(bool(models));
    EXPECT_NE(llvm::toString(models.takeError()).find("simt, mma, wgmma"),
              std::string::npos);
  }
}

} // namespace
