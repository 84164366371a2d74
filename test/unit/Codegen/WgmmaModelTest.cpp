//===- WgmmaModelTest.cpp - Layout and model of the wgmma path ------------===//
#include "FTuner/Codegen/Wgmma/WgmmaLayout.h"
#include "FTuner/Codegen/Wgmma/WgmmaRegisters.h"
#include "FTuner/CostModel/WarpAccess.h"
#include "FTuner/Schedule/CodegenModel.h"
#include "FTuner/Workload/Contraction.h"
#include "Products.h"

#include "llvm/ADT/STLExtras.h"
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
  EXPECT_EQ(namesOf(codegenGates(), ","), "wgmma.fit_boxes,wgmma.bulk_stores");
  Workload half = halfProduct();
  Workload bf16 = productOf(ElementType::BF16, ElementType::F32);
  Workload tf32 = productOf(ElementType::TF32, ElementType::F32);
  Workload i8 = productOf(ElementType::I8, ElementType::I32);
  for (const Workload *workload : {&half, &bf16, &tf32, &i8}) {
    for (const char *name : {"h100", "h200"})
      EXPECT_EQ(refusal(*workload, name), "") << name;
    for (const char *name : {"t4", "a100", "l4", "b200"})
      EXPECT_NE(refusal(*workload, name), "") << name;
  }
  EXPECT_NE(refusal(productOf(ElementType::F32, ElementType::F32), "h200"), "");
  // Bytes and words are not transposed on the way from shared memory.
  EXPECT_NE(refusal(productOf(ElementType::I8, ElementType::I32, true), "h200"),
            "");
  for (bool transposeLhs : {false, true})
    EXPECT_EQ(refusal(productOf(ElementType::TF32, ElementType::F32,
                                transposeLhs, transposeLhs),
                      "h200"),
              "wgmma: expected factors of tf32 that are contiguous along k");
}

/// Instructions ignore the bits that tf32 lacks: threads round in registers,
/// and maps on the way, unless bits may be cut off.
TEST_F(WgmmaModelTest, RoundsWordsBeforeInstructionsReadThem) {
  Workload rounded = productOf(ElementType::TF32, ElementType::F32);
  Workload truncated = rounded;
  changeContraction(truncated, [](ContractionParts &parts) {
    parts.truncatesFactors = true;
  });
  auto family = [](int64_t stages, int64_t access, int64_t producers,
                   bool maps) {
    return wgmmaFamily({2, 1, stages, access, false, producers, maps}, {64},
                       128, 32);
  };
  auto takes = [&](const Workload &workload, const KernelFamily &given) {
    return !llvm::errorToBool(model.check(workload, given, device));
  };
  for (int64_t producers : {0, 1}) {
    KernelFamily mapped = family(4, 16, producers, true),
                 copied = family(4, 16, producers, false);
    for (const Workload *workload : {&rounded, &truncated}) {
      EXPECT_TRUE(takes(*workload, mapped));
      for (const TensorMap &map : model.tensorMaps(*workload, mapped, 0)) {
        EXPECT_EQ(map.box.sizes[0], 32);
        EXPECT_FALSE(bool(checkTensorMapRows(map.box, 4)));
        EXPECT_EQ(map.roundsToTF32, workload == &rounded);
      }
    }
    EXPECT_FALSE(takes(rounded, copied));
    EXPECT_TRUE(takes(truncated, copied));
  }
  for (int64_t access : {16, 8, 4}) {
    EXPECT_TRUE(takes(rounded, family(2, access, 0, false)));
    EXPECT_FALSE(takes(truncated, family(2, access, 0, false)));
    EXPECT_TRUE(takes(truncated, family(3, access, 0, false)));
  }
  // Single words pass through registers, as single elements do.
  for (const Workload *workload : {&rounded, &truncated}) {
    EXPECT_TRUE(takes(*workload, family(2, 1, 0, false)));
    EXPECT_FALSE(takes(*workload, family(3, 1, 0, false)));
  }
  // A step of 128 bytes, and a conversion for each element.
  BlockWork more = model.work(rounded, family(2, 16, 0, false), 0, device),
            same = model.work(truncated, family(4, 16, 0, false), 0, device);
  EXPECT_EQ(more.tensor[0].pipe, TensorPipe::TF32);
  EXPECT_EQ(more.tensor[0].instructions, 8 * 4);
  EXPECT_EQ(more.tensor[0].operations, 2.0 * 128 * 128 * 32);
  EXPECT_EQ(more.globalBytes, same.globalBytes);
  // Asynchronous copies ask whether rows are there: two tiles in words of 16.
  double asked = 2.0 * 128 * 32 / 4 / 32;
  EXPECT_GE(more.otherInstructions - same.otherInstructions + asked,
            2 * 128 * 32 / 32);
  EXPECT_EQ(more.stepsAhead, 1);
}

/// Every family of the space for operands of an alignment, and what narrower
/// accesses make of it, is legal for that alignment.
TEST_F(WgmmaModelTest, RelaxesFamiliesOfWords) {
  Workload rounded = productOf(ElementType::TF32, ElementType::F32);
  Workload truncated = rounded;
  changeContraction(truncated, [](ContractionParts &parts) {
    parts.truncatesFactors = true;
  });
  for (const Workload *workload : {&rounded, &truncated}) {
    auto space = model.createSpace(*workload, device);
    int64_t mapped = 0, staged = 0;
    space->forEachBlock(16, [&](const KernelFamily &block, const UKernel &,
                                BlockKind) {
      space->forEachSchedule(block, [&](const KernelFamily &family) {
        WgmmaSchedule schedule = WgmmaSchedule::of(family.schedule);
        if (llvm::errorToBool(model.check(*workload, family, device)))
          return true;
        mapped += schedule.tma;
        staged += schedule.stages == 2;
        for (int64_t alignment : {8, 4, 1}) {
          KernelFamily narrow = model.relaxed(family, alignment);
          EXPECT_LE(narrow.alignment(), alignment);
          EXPECT_EQ(llvm::toString(model.check(*workload, narrow, device)), "");
        }
        return !::testing::Test::HasFailure();
      });
    });
    EXPECT_GT(mapped, 100);
    EXPECT_EQ(staged > 0, workload == &rounded);
  }
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

/// Elements of a tile in shared memory by address: along the space axis and
/// along k.
using Written = std::map<int64_t, std::pair<int64_t, int64_t>>;

/// Instructions of all warpgroups and depths read each element at its place.
void expectReads(const WgmmaLayout &layout, const WgmmaSide &side,
                 const Written &written) {
  bool areRows = &side == &layout.rows;
  int64_t ofMatrix = areRows ? kWgmmaRows : side.warpgroupExtent();
  for (int64_t first = 0; first < side.extent; first += ofMatrix)
    for (int64_t depth = 0; depth < layout.depths(); ++depth) {
      int64_t start = layout.offsetOf(side, first, depth);
      for (int64_t space = 0; space < ofMatrix; ++space)
        for (int64_t k = 0; k < 16; ++k) {
          auto it =
              written.find(readAddress(layout, side.tile, start, space, k));
          ASSERT_NE(it, written.end());
          EXPECT_EQ(it->second, std::pair(first + space, 16 * depth + k));
        }
    }
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
              Written written;
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
              expectReads(layout, *side, written);
            }
          }
}

/// The same of boxes, whose rows the device swizzles by their addresses (PTX
/// ISA, "Swizzling Modes").
TEST_F(WgmmaModelTest, ReadsWhatBoxesWrite) {
  for (bool transposeLhs : {false, true})
    for (bool transposeRhs : {false, true})
      for (bool swaps : {false, true})
        for (auto [block, clusterM, clusterN] :
             {std::tuple(BlockTile{128, 128, 64}, 1, 1),
              {BlockTile{256, 64, 64}, 1, 1},
              {BlockTile{384, 64, 64}, 1, 1},
              {BlockTile{64, 512, 64}, 1, 1},
              {BlockTile{128, 128, 64}, 2, 1},
              {BlockTile{256, 64, 64}, 1, 2},
              {BlockTile{64, 512, 64}, 2, 1}}) {
          Workload workload = halfProduct(transposeLhs, transposeRhs);
          WgmmaSchedule schedule = {1, 1, 4, 16, swaps, 1, true};
          schedule.clusterM = clusterM;
          schedule.clusterN = clusterN;
          (swaps ? schedule.warpgroupsN : schedule.warpgroupsM) =
              block[swaps ? 1 : 0] / 64;
          // A height that only instructions' columns can have.
          if (block[swaps ? 0 : 1] == 128 && clusterM * clusterN == 1)
            block[swaps ? 0 : 1] -= 24;
          KernelFamily family;
          family.schedule = schedule.pack();
          family.tiles.push_back(block);
          family.tiles[0][matmulAxes.m] *= clusterM;
          family.tiles[0][matmulAxes.n] *= clusterN;
          WgmmaLayout layout = wgmmaLayout(workload, family, 0);
          auto maps = model.tensorMaps(workload, family, 0);
          ASSERT_EQ(maps.size(), 2u);
          for (unsigned factor : {0, 1}) {
            const TensorMap &map = maps[factor];
            EXPECT_FALSE(bool(checkTensorMapBox(map.box)));
            EXPECT_FALSE(bool(checkTensorMapRows(map.box, 2)));
            const SharedTile &tile = layout.tileOf(factor);
            int64_t width = map.box.sizes[0], rows = map.box.sizes[1];
            ASSERT_EQ(width, 64);
            int64_t boxBytes = rows * 128;
            int64_t sharers = layout.sharersOf(factor);
            EXPECT_EQ(sharers, factor == 0 ? clusterN : clusterM);
            EXPECT_EQ(sharers * layout.boxesOf(factor) * boxBytes,
                      layout.stageBytes(tile));
            EXPECT_EQ(boxBytes % 1024, 0);
            Written written;
            for (int64_t rank = 0; rank < sharers; ++rank)
              for (int64_t box = 0; box < layout.boxesOf(factor); ++box)
                for (int64_t ofBox = 0; ofBox < rows; ++ofBox)
                  for (int64_t i = 0; i < width; ++i) {
                    // Along the axis whose rows blocks share, and in memory.
                    int64_t row = rank * layout.copiedRows(factor) + ofBox;
                    int64_t inTile = tile.reduceContiguous
                                         ? row + box * rows
                                         : row + box * tile.outer;
                    int64_t address = inTile * 128 + i * 2;
                    address ^= (address >> 7 & 7) << 4;
                    bool isNew =
                        written
                            .insert({address,
                                     tile.reduceContiguous
                                         ? std::pair(inTile, i)
                                         : std::pair(box * width + i, row)})
                            .second;
                    EXPECT_TRUE(isNew);
                  }
            expectReads(layout, layout.sideOf(factor), written);
          }
        }
}

TEST_F(WgmmaModelTest, MapsDescribeBatches) {
  Workload workload =
      Workload::batchMatmul(SizeRange::fixed(12), {1, 512, 1},
                            SizeRange::fixed(2304), SizeRange::fixed(768));
  setTypes(workload, ElementType::F16, ElementType::F32);
  KernelFamily family =
      wgmmaFamily({2, 1, 4, 16, false, 1, true}, {64}, 128, 64, 4);
  ASSERT_EQ(llvm::toString(model.check(workload, family, device)), "");
  auto maps = model.tensorMaps(workload, family, 0);
  ASSERT_EQ(maps.size(), 2u);
  for (const TensorMap &map : maps) {
    const Operand &operand = workload.operands[map.operand];
    ASSERT_EQ(map.dims.size(), operand.rank());
    for (auto [number, dim] : llvm::enumerate(map.dims)) {
      if (operand.axes[dim] >= 3) {
        EXPECT_EQ(map.box.sizes[number], 1);
      }
    }
  }
}

TEST_F(WgmmaModelTest, ChecksClustersAndPersistentBlocks) {
  auto family = [](int64_t clusterM, int64_t clusterN, int64_t persistent,
                   int64_t producers = 1, bool maps = true,
                   int64_t columns = 128) {
    WgmmaSchedule schedule = {2, 1, 4, 16, false, producers, maps};
    schedule.clusterM = clusterM;
    schedule.clusterN = clusterN;
    schedule.persistentBlocks = persistent;
    return wgmmaFamily(schedule, {64}, columns, 64);
  };
  for (int64_t persistent : {0, 2, 132}) {
    EXPECT_EQ(error(family(1, 1, persistent)), "");
    EXPECT_EQ(error(family(2, 1, persistent)), "");
    EXPECT_EQ(error(family(1, 2, persistent)), "");
  }
  // Too many blocks, or none; half a cluster; nobody who copies alone; halves
  // of 20 rows.
  EXPECT_NE(error(family(2, 2, 0)), "");
  EXPECT_NE(error(family(4, 1, 0)), "");
  EXPECT_NE(error(family(0, 1, 0)), "");
  EXPECT_NE(error(family(-2, -1, 0)), "");
  EXPECT_NE(error(family(2, 1, 3)), "");
  EXPECT_NE(error(family(1, 1, -1)), "");
  EXPECT_NE(error(family(1, 1, int64_t(1) << 40)), "");
  EXPECT_NE(error(family(2, 1, 0, 0)), "");
  EXPECT_NE(error(family(1, 1, 132, 0)), "");
  EXPECT_NE(error(family(1, 1, 132, 1, false)), "");
  EXPECT_EQ(error(family(1, 1, 0, 1, true, 40)), "");
  EXPECT_NE(error(family(2, 1, 0, 1, true, 40)), "");
}

/// Both parts of a family go through the same stages, staging tiles and
/// barriers.
TEST_F(WgmmaModelTest, PersistentPartsShareMemory) {
  WgmmaSchedule schedule = {2, 1, 4, 16, false, 1, true};
  for (int64_t persistent : {0, 132}) {
    schedule.persistentBlocks = persistent;
    KernelFamily family = wgmmaFamily(schedule, {64, 128}, 64, 64);
    ASSERT_EQ(error(family), "");
    WgmmaLayout low = wgmmaLayout(halfProduct(), family, 0),
                high = wgmmaLayout(halfProduct(), family, 1);
    EXPECT_EQ(low.barriersOffset, high.barriersOffset);
    EXPECT_EQ(low.sharedMemoryBytes(), high.sharedMemoryBytes());
    EXPECT_EQ(low.stageStrides[0] == high.stageStrides[0], persistent != 0);
    for (const WgmmaLayout &layout : {low, high}) {
      EXPECT_GE(layout.stageStrides[0], layout.stageBytes(layout.lhs()));
      EXPECT_GE(layout.stagingStride, layout.warpTile().stagingBytes());
      EXPECT_GE(layout.barriersOffset, layout.tileBytes());
      if (persistent) {
        EXPECT_EQ(layout.stagingOffset(),
                  4 * (layout.stageStrides[0] + layout.stageStrides[1]));
        EXPECT_GE(layout.barriersOffset,
                  layout.stagingOffset() + 8 * layout.stagingStride);
      }
    }
  }
}

/// Rows that bulk copies store lie in shared memory of the warp's own, each at
/// an address that copies can read; sums alone need no staging tile beside.
TEST_F(WgmmaModelTest, BulkStoresKeepResultsInSharedMemory) {
  WgmmaSchedule schedule = {2, 1, 3, 16, false, 1, true};
  schedule.persistentBlocks = 132;
  schedule.bulkStores = true;
  KernelFamily family = wgmmaFamily(schedule, {64}, 128, 64);
  ASSERT_EQ(error(family), "");
  Workload sums = halfProduct();
  sums.operands.insert(sums.operands.end() - 1, Operand(OperandRole::Init, {}));
  Workload biased = sums;
  changeContraction(biased, [](ContractionParts &parts) {
    parts.epilogue.push_back({OperationKind::Add});
  });
  for (const Workload *workload : {&sums, &biased}) {
    WgmmaLayout layout = wgmmaLayout(*workload, family, 0);
    FragmentTile warp = layout.warpTile();
    EXPECT_EQ(warp.bulkPitch() * warp.bulkElementBytes % 32, 16);
    EXPECT_EQ(warp.bulkBytes(),
              warp.outputRows() * warp.bulkPitch() * warp.bulkElementBytes);
    EXPECT_EQ(warp.stagingBytes() == 0, workload == &sums);
    EXPECT_EQ(layout.stagingStride, warp.stagingBytes() + warp.bulkBytes());
    EXPECT_GE(layout.barriersOffset,
              layout.stagingOffset() + 8 * layout.stagingStride);
  }
  // Slices of k, swapped operands and blocks of one tile store by lanes.
  family.reduceSplit = 2;
  EXPECT_NE(error(family), "");
  schedule.swapOperands = true;
  EXPECT_NE(error(wgmmaFamily(schedule, {64}, 128, 64)), "");
  schedule.swapOperands = false;
  schedule.persistentBlocks = 0;
  EXPECT_NE(error(wgmmaFamily(schedule, {64}, 128, 64)), "");
}

/// What blocks of a cluster share arrives at each of them.
TEST_F(WgmmaModelTest, ClustersReceiveWhatTheyShare) {
  auto bytesOf = [&](int64_t clusterM, int64_t clusterN) {
    WgmmaSchedule schedule = {2, 1, 4, 16, false, 1, true};
    schedule.clusterM = clusterM;
    schedule.clusterN = clusterN;
    return model
        .work(halfProduct(), wgmmaFamily(schedule, {64}, 256, 64), 0, device)
        .globalBytes;
  };
  EXPECT_EQ(bytesOf(1, 1), (128 + 256) * 128);
  EXPECT_EQ(bytesOf(2, 1), (128 + 256) * 128);
  EXPECT_EQ(bytesOf(1, 2), (128 + 256) * 128);
}

TEST_F(WgmmaModelTest, ChecksProducersAndMaps) {
  auto family = [](int64_t warpgroups, int64_t access, int64_t producers,
                   bool maps, int64_t columns = 128, int64_t stages = 4) {
    return wgmmaFamily({warpgroups, 1, stages, access, false, producers, maps},
                       {64}, columns, 64);
  };
  for (bool maps : {false, true})
    for (int64_t warpgroups : {1, 2, 3})
      EXPECT_EQ(error(family(warpgroups, 16, 1, maps)), "");
  EXPECT_EQ(error(family(4, 16, 0, true)), "");
  // Five warpgroups, two producers, narrow copies, few stages.
  EXPECT_NE(error(family(4, 16, 1, true)), "");
  EXPECT_NE(error(family(2, 16, 2, true)), "");
  EXPECT_NE(error(family(2, 16, -1, true)), "");
  EXPECT_NE(error(family(2, 8, 1, false)), "");
  EXPECT_NE(error(family(2, 1, 1, false, 128, 2)), "");
  EXPECT_NE(error(family(2, 16, 1, false, 128, 2)), "");
  // Three warpgroups of 128 accumulators beside threads with 24 copies each.
  EXPECT_NE(error(family(3, 16, 1, false, 256, 3)), "");
  // 37 times eight rows make no equal boxes of up to 256.
  Workload workload = halfProduct();
  KernelFamily odd = wgmmaFamily({1, 4, 3, 16, true, 0, true}, {296}, 64, 64);
  EXPECT_NE(llvm::toString(model.check(workload, odd, device)), "");
  // Factors that are cast on the way.
  Workload cast = workload;
  cast.operands[1].elementType = ElementType::I8;
  cast.operands[1].elementBytes = 1;
  EXPECT_NE(llvm::toString(model.check(cast, family(2, 16, 0, true), device)),
            "");
}

/// Registers of all roles come from the pool that a block starts with.
TEST_F(WgmmaModelTest, SharesRegistersOut) {
  for (bool transposeRhs : {false, true}) {
    Workload workload = halfProduct(false, transposeRhs);
    auto space = model.createSpace(workload, device);
    int64_t moved = 0, kept = 0, several = 0;
    space->forEachBlock(16, [&](const KernelFamily &block, const UKernel &,
                                BlockKind) {
      space->forEachSchedule(block, [&](const KernelFamily &family) {
        WgmmaSchedule schedule = WgmmaSchedule::of(family.schedule);
        if (schedule.producerWarpgroups == 0 ||
            bool(llvm::errorToBool(model.check(workload, family, device))))
          return true;
        auto registers = wgmmaRegisters(workload, family);
        WgmmaLayout layout = wgmmaLayout(workload, family, 0);
        EXPECT_TRUE(registers.has_value());
        KernelResources needs = model.resources(workload, family);
        EXPECT_EQ(needs.threads, 128 * (schedule.consumerWarpgroups() + 1));
        EXPECT_LE(registers->blocks * needs.threads * registers->entry, 65536);
        EXPECT_LE(registers->blocks * (needs.sharedMemoryBytes + 1024),
                  228 * 1024);
        for (int64_t count :
             {registers->entry, registers->producer, registers->consumer}) {
          EXPECT_EQ(count % 8, 0);
          EXPECT_GE(count, 24);
          EXPECT_LE(count, 240);
        }
        EXPECT_GE(registers->consumer, layout.warpTile().accumulators() + 32);
        if (registers->areMoved) {
          EXPECT_LE(registers->producer +
                        schedule.consumerWarpgroups() * registers->consumer,
                    registers->entry * (schedule.consumerWarpgroups() + 1));
          EXPECT_LE(registers->producer, registers->entry);
          EXPECT_GT(registers->consumer, registers->entry);
        } else {
          EXPECT_LE(std::max(registers->producer, registers->consumer),
                    registers->entry);
        }
        ++(registers->areMoved ? moved : kept);
        several += registers->blocks > 1;
        return true;
      });
    });
    EXPECT_GT(moved, 0);
    EXPECT_GT(kept, 0);
    EXPECT_GT(several, 0);
  }
}

TEST_F(WgmmaModelTest, CountsWhatProducersExecute) {
  auto workOf = [&](int64_t producers, bool maps) {
    return model.work(
        halfProduct(),
        wgmmaFamily({2, 1, 4, 16, false, producers, maps}, {64}, 128, 64), 0,
        device);
  };
  for (bool maps : {false, true}) {
    BlockWork together = workOf(0, maps), apart = workOf(1, maps);
    EXPECT_EQ(together.warps, 8);
    EXPECT_EQ(apart.warps, 12);
    EXPECT_EQ(apart.tensor[0].instructions, together.tensor[0].instructions);
    EXPECT_EQ(apart.globalBytes, together.globalBytes);
    EXPECT_EQ(together.stepsAhead, 2);
    EXPECT_EQ(apart.stepsAhead, 3);
  }
  EXPECT_LT(workOf(1, true).otherInstructions,
            workOf(1, false).otherInstructions);
  // Two blocks of few accumulators on an SM, by registers.
  EXPECT_LE(model.work(halfProduct(),
                       wgmmaFamily({1, 1, 4, 16, false, 1, true}, {64}, 64, 64),
                       0, device)
                    .registersPerThread *
                256,
            65536 / 2);
}

TEST_F(WgmmaModelTest, CountsWhatABlockMultiplies) {
  KernelFamily family = wgmmaFamily({2, 1, 4, 16}, {64}, 128, 64);
  BlockWork work = model.work(halfProduct(), family, 0, device);
  ASSERT_EQ(work.tensor.size(), 1u);
  EXPECT_TRUE(work.tensor[0].hasPeakRate);
  EXPECT_EQ(work.warps, 8);
  // Four depths, which each of eight warps issues.
  EXPECT_EQ(work.tensor[0].instructions, 8 * 4);
  EXPECT_EQ(work.tensor[0].operations, 2.0 * 128 * 128 * 64);
  EXPECT_EQ(work.globalBytes, 2 * 64 * (128 + 128));
  EXPECT_EQ(work.stepsAhead, 2);
  // Each warpgroup reads its 64 rows and all columns, 512 bytes an access.
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
      space->forEachBlock(16, [&](const KernelFamily &block,
                                  const UKernel &ukernel, BlockKind) {
        EXPECT_EQ(ukernel.blockTile, block.tiles[0]);
        EXPECT_EQ(ukernel.registerTile, block.ukernel(0).registerTile);
        space->forEachSchedule(block, [&](const KernelFamily &family) {
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
  // Warps that only copy, and maps, move 16 bytes.
  KernelFamily mapped =
      wgmmaFamily({1, 1, 4, 16, false, 1, true}, {64}, 32, 64);
  EXPECT_EQ(model.relaxed(mapped, 16), mapped);
  for (int64_t alignment : {8, 4, 2})
    EXPECT_EQ(model.relaxed(mapped, alignment),
              model.relaxed(family, alignment));
  EXPECT_EQ(model.unalignedVariants(mapped), model.unalignedVariants(family));
  KernelFamily single = model.relaxed(family, 2);
  EXPECT_TRUE(single.takesAnyAlignment());
  EXPECT_EQ(error(single), "");
  EXPECT_EQ(model.unalignedVariants(family).front(), single);
}

TEST(CodegenModelsTest, ReadsNamesOfPaths) {
  auto named = llvm::cantFail(parseCodegenModels("wgmma, simt"));
  EXPECT_EQ(namesOf(named, ","), "simt,wgmma");
  EXPECT_EQ(namesOf(defaultCodegenModels(), ","), "simt,mma,wgmma,rows,chains");
  for (const char *wrong : {"", "simt,", "fma"}) {
    auto models = parseCodegenModels(wrong);
    ASSERT_FALSE(bool(models));
    EXPECT_NE(llvm::toString(models.takeError()).find("simt, mma, wgmma"),
              std::string::npos);
  }
}

} // namespace
