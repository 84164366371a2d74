//===- MmaModelTest.cpp - Layout and model of the mma path ----------------===//
#include "FTuner/Codegen/Mma/MmaLayout.h"
#include "FTuner/CostModel/WarpAccess.h"
#include "FTuner/Schedule/CodegenModel.h"
#include "FTuner/Schedule/Grid.h"
#include "Products.h"

#include "gtest/gtest.h"
#include <algorithm>
#include <cmath>
#include <set>

using namespace ftuner;

namespace {

/// A product with factors of the type, and sums of another.
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

class MmaModelTest : public ::testing::Test {
protected:
  static DeviceSpec load(llvm::StringRef name) {
    return llvm::cantFail(loadDeviceSpec(name));
  }
  std::string refusal(const Workload &workload, llvm::StringRef device) {
    return llvm::toString(model.supports(workload, load(device)));
  }
  std::string error(const KernelFamily &family) {
    return llvm::toString(model.check(halfProduct(), family, device));
  }

  const CodegenModel &model = *findCodegenModel("mma");
  DeviceSpec device = load("a100");
};

TEST_F(MmaModelTest, PrologueTakesCopiesThroughRegisters) {
  // Weights of 8 bits by a scale for each column.
  Workload scaled = halfProduct(false, /*transposeRhs=*/false);
  Operand &rhs = scaled.operands[1];
  rhs.elementType = ElementType::I8;
  rhs.elementBytes = 1;
  scaled.operands.emplace_back(OperandRole::Input,
                               llvm::SmallVector<unsigned>{matmulAxes.n},
                               ElementType::F16);
  changeContraction(scaled, [](ContractionParts &parts) {
    parts.prologues[1] = {
        {OperationKind::Cast, ElementType::I8, ElementType::F16, 1},
        {OperationKind::Add, ElementType::F16, ElementType::F16, 1}};
  });
  EXPECT_EQ(refusal(scaled, "a100"), "");
  auto family = [](int64_t stages) {
    return mmaFamily({2, 2, stages, 16}, {32}, 32, 32);
  };
  EXPECT_EQ(llvm::toString(model.check(halfProduct(), family(3), device)), "");
  EXPECT_EQ(llvm::toString(model.check(scaled, family(2), device)), "");
  EXPECT_NE(llvm::toString(model.check(scaled, family(3), device)), "");
  // More instructions and registers, fewer bytes.
  Workload plain = halfProduct(false, false);
  BlockWork more = model.work(scaled, family(2), 0, device),
            less = model.work(plain, family(2), 0, device);
  EXPECT_GT(more.otherInstructions, less.otherInstructions);
  EXPECT_LT(more.globalBytes, less.globalBytes);
  EXPECT_GT(model.spillFreeRegisters(scaled, family(2)),
            model.spillFreeRegisters(plain, family(2)));
  // f32 that is rounded on the way has vectors half as wide.
  Workload rounded = halfProduct();
  rounded.operands[1].elementType = ElementType::F32;
  rounded.operands[1].elementBytes = 4;
  EXPECT_NE(refusal(rounded, "a100"), "");
  auto castFrom = [&](ElementType type) {
    changeContraction(rounded, [&](ContractionParts &parts) {
      parts.prologues[1] = {{OperationKind::Cast, type, ElementType::F16, 1}};
    });
  };
  castFrom(ElementType::F32);
  EXPECT_EQ(refusal(rounded, "a100"), "");
  EXPECT_EQ((MmaSchedule{2, 2, 2, 16}.copyWidth(4, 2)), 4);
  EXPECT_EQ((MmaSchedule{2, 2, 2, 16}.copyWidth(1, 2)), 8);
  castFrom(ElementType::F64);
  EXPECT_EQ(refusal(rounded, "a100"),
            "mma: expected prologues of f32, f16, bf16 and integers of up to "
            "32 bits, but got f64");
}

TEST_F(MmaModelTest, TakesWhatTheTensorCoresOfADeviceMultiply) {
  Workload half = halfProduct();
  Workload bf16 = productOf(ElementType::BF16, ElementType::F32);
  Workload tf32 = productOf(ElementType::TF32, ElementType::F32);
  Workload i8 = productOf(ElementType::I8, ElementType::I32);
  for (const char *name : {"a100", "rtx3090", "l4", "h200", "b200"})
    for (const Workload *workload : {&half, &bf16, &tf32, &i8})
      EXPECT_EQ(refusal(*workload, name), "") << name;
  EXPECT_EQ(refusal(half, "t4"), "");
  EXPECT_EQ(refusal(i8, "t4"), "");
  EXPECT_NE(refusal(bf16, "t4"), "");
  EXPECT_NE(refusal(tf32, "t4"), "");
  for (const char *name : {"v100", "p100", "k80"})
    EXPECT_NE(refusal(half, name), "") << name;
}

TEST_F(MmaModelTest, RoundsWhereFactorsMayNotBeTruncated) {
  Workload rounded = productOf(ElementType::TF32, ElementType::F32);
  Workload truncated = rounded;
  changeContraction(truncated, [](ContractionParts &parts) {
    parts.truncatesFactors = true;
  });
  KernelFamily family = mmaFamily({2, 2, 3, 16}, {32}, 32, 32);
  for (const Workload *workload : {&rounded, &truncated})
    EXPECT_EQ(llvm::toString(model.check(*workload, family, device)), "");
  BlockWork more = model.work(rounded, family, 0, device),
            less = model.work(truncated, family, 0, device);
  // Of each warp, two fragments of rows and four of columns at four depths.
  EXPECT_EQ(more.otherInstructions - less.otherInstructions,
            4 * 4 * (2 * 4 + 4 * 2));
  EXPECT_EQ(more.tensor[0].instructions, less.tensor[0].instructions);
}

TEST_F(MmaModelTest, RefusesOtherTypesSumsAndLayouts) {
  EXPECT_NE(refusal(Workload::matmul({1, 8, 1}, SizeRange::fixed(64),
                                     SizeRange::fixed(64)),
                    "a100"),
            "");
  EXPECT_NE(refusal(productOf(ElementType::F16, ElementType::F16), "a100"), "");
  EXPECT_NE(refusal(productOf(ElementType::I8, ElementType::F32), "a100"), "");
}

TEST_F(MmaModelTest, TransposesBytesOfTwoFragmentsOfColumns) {
  for (bool transposeLhs : {false, true})
    for (bool transposeRhs : {false, true}) {
      Workload workload = productOf(ElementType::I8, ElementType::I32,
                                    transposeLhs, transposeRhs);
      EXPECT_EQ(refusal(workload, "a100"), "");
      EXPECT_EQ(refusal(workload, "t4"), "");
      for (bool swaps : {false, true}) {
        // An odd number of fragments of columns, and an even one.
        for (int64_t extent : {24, 32}) {
          MmaSchedule schedule = {1, 1, 3, 16, swaps};
          KernelFamily family = mmaFamily(schedule, {swaps ? extent : 32},
                                          swaps ? 32 : extent, 64);
          bool isTransposed = swaps ? transposeLhs : !transposeRhs;
          EXPECT_EQ(!llvm::errorToBool(model.check(workload, family, device)),
                    extent == 32 || !isTransposed)
              << family.str() << transposeLhs << transposeRhs;
        }
      }
      auto space = model.createSpace(workload, device);
      space->forEachBlock(
          16, [&](const KernelFamily &block, const UKernel &, BlockKind) {
            space->forEachSchedule(block, [&](const KernelFamily &family) {
              llvm::Error error = model.check(workload, family, device);
              bool isLegal = !error;
              std::string text = llvm::toString(std::move(error));
              // Of blocks that do not fit there are some.
              EXPECT_TRUE(isLegal || llvm::StringRef(text).contains("at most"))
                  << text;
              return false;
            });
          });
    }
}

/// Pairs of rows alternate between halves of sixteen, and each row has its own.
TEST_F(MmaModelTest, FindsFourRowsOfBytesInTwoMatrices) {
  Workload workload = productOf(ElementType::I8, ElementType::I32,
                                /*transposeLhs=*/true, /*transposeRhs=*/false);
  MmaLayout layout = mmaLayout(workload, {64, 64, 64}, {1, 1, 3, 16});
  NumberMath math;
  for (const SharedTile *tile : {&layout.lhs(), &layout.rhs()}) {
    std::set<uint32_t> taken;
    for (uint32_t shared = 0; shared < tile->outer; ++shared) {
      uint32_t row = rowAt(math, *tile, shared);
      EXPECT_TRUE(taken.insert(row).second);
      EXPECT_LT(row, tile->outer);
    }
    // Registers 2i and 2i + 1 of lane 4g + q hold rows 2q and 2q + 1 of their
    // matrices: four neighbours.
    for (uint32_t half = 0; half < 2; ++half)
      for (uint32_t quad = 0; quad < 4; ++quad)
        for (uint32_t number = 0; number < 4; ++number) {
          uint32_t lane = 16 * half + 8 * (number / 2) + 2 * quad + number % 2;
          MatrixRow<NumberMath> at = tile == &layout.rows.tile
                                         ? rowsMatrixRow(math, layout, lane)
                                         : columnsMatrixRow(math, layout, lane);
          EXPECT_EQ(rowAt(math, *tile, at.row), 16 * half + 4 * quad + number);
          EXPECT_EQ(at.chunk, 0u);
        }
  }
}

TEST_F(MmaModelTest, TakesWeightsOfEightBitsBesideSixteen) {
  Workload mixed = halfProduct();
  for (Operand &operand : mixed.operands)
    if (operand.role == OperandRole::Rhs) {
      operand.elementType = ElementType::I8;
      operand.elementBytes = 1;
    }
  EXPECT_EQ(refusal(mixed, "a100"), "");
  // Cast on the way, so through registers, in two stages.
  KernelFamily family = mmaFamily({2, 2, 2, 16}, {64}, 64, 32);
  EXPECT_EQ(llvm::toString(model.check(mixed, family, device)), "");
  family = mmaFamily({2, 2, 3, 16}, {64}, 64, 32);
  EXPECT_NE(llvm::toString(model.check(mixed, family, device)), "");
}

TEST_F(MmaModelTest, ChecksFamilies) {
  EXPECT_EQ(error(mmaFamily({2, 2, 4, 16}, {64}, 64, 32)), "");
  EXPECT_EQ(error(mmaFamily({2, 2, 4, 16}, {48, 64}, 64, 32)), "");
  // Half a fragment of rows, of columns, of depth.
  EXPECT_NE(error(mmaFamily({2, 2, 4, 16}, {24}, 64, 32)), "");
  EXPECT_NE(error(mmaFamily({2, 2, 4, 16}, {64}, 60, 32)), "");
  EXPECT_NE(error(mmaFamily({2, 2, 4, 16}, {64}, 64, 8)), "");
  EXPECT_NE(error(mmaFamily({2, 2, 4, 2}, {64}, 64, 32)), "");
  EXPECT_NE(error(mmaFamily({2, 2, 1, 16}, {64}, 64, 32)), "");
  EXPECT_NE(error(mmaFamily({2, 2, 3, 1}, {64}, 64, 32)), "");
  EXPECT_NE(error(mmaFamily({8, 8, 2, 16}, {64}, 64, 32)), "");
  EXPECT_NE(error(mmaFamily({1, 1, 2, 16}, {128}, 128, 32)), "");
  EXPECT_NE(error(mmaFamily({2, 2, 4096, 16}, {64}, 64, 32)), "");
  EXPECT_NE(error(mmaFamily({0, 2, 4, 16}, {64}, 64, 32)), "");
}

/// A schedule with swapped operands.
MmaSchedule swapped(MmaSchedule schedule) {
  schedule.swapOperands = true;
  return schedule;
}

TEST_F(MmaModelTest, ChecksFamiliesOfSwappedOperands) {
  EXPECT_EQ(error(mmaFamily(swapped({1, 4, 4, 16}), {8}, 32, 32)), "");
  EXPECT_EQ(error(mmaFamily(swapped({2, 2, 4, 16}), {24, 40}, 48, 32)), "");
  // Half a fragment of rows, of columns.
  EXPECT_NE(error(mmaFamily(swapped({2, 2, 4, 16}), {12}, 64, 32)), "");
  EXPECT_NE(error(mmaFamily(swapped({2, 2, 4, 16}), {24}, 40, 32)), "");
  KernelFamily family = mmaFamily(swapped({2, 3, 4, 16}), {24}, 48, 32);
  EXPECT_EQ(model.heightGranule(family), 2 * 8);
  family.combineAxis = matmulAxes.n;
  EXPECT_EQ(model.heightGranule(family), 3 * 16);
  EXPECT_NE(family.str().find("swapped"), std::string::npos);
}

TEST_F(MmaModelTest, CombinesAlongBothSpaceAxes) {
  KernelFamily family = mmaFamily({2, 2, 4, 16}, {64}, 64, 32);
  family.combineAxis = matmulAxes.n;
  EXPECT_EQ(model.heightGranule(family), 2 * 8);
  family.tiles.insert(family.tiles.begin(), family.tiles.front());
  family.tiles.front()[matmulAxes.n] -= 16;
  EXPECT_EQ(error(family), "");
  auto space = model.createSpace(halfProduct(), device);
  for (unsigned axis : {matmulAxes.m, matmulAxes.n})
    EXPECT_TRUE(llvm::is_contained(space->combineAxes, axis));
}

/// With swapped operands a block is that of the transposed product.
TEST_F(MmaModelTest, SwapsTheRolesOfTheOperands) {
  for (bool transposeLhs : {false, true})
    for (bool transposeRhs : {false, true})
      for (ElementType type : {ElementType::F16, ElementType::TF32}) {
        Workload workload =
            productOf(type, ElementType::F32, transposeLhs, transposeRhs);
        Workload transposed =
            productOf(type, ElementType::F32, !transposeRhs, !transposeLhs);
        std::swap(transposed.axes[matmulAxes.m].range,
                  transposed.axes[matmulAxes.n].range);
        MmaSchedule schedule = {1, 4, 3, 16};
        BlockTile tile = {24, 128, 32}, mirrored = {128, 24, 32};
        MmaLayout layout = mmaLayout(workload, tile, swapped(schedule));
        MmaLayout other = mmaLayout(transposed, mirrored, {4, 1, 3, 16});
        EXPECT_TRUE(layout.isSwapped());
        EXPECT_EQ(layout.rows.fragments(), other.rows.fragments());
        EXPECT_EQ(layout.columns.fragments(), other.columns.fragments());
        EXPECT_EQ(layout.accumulators(), other.accumulators());
        EXPECT_EQ(layout.rhs().pitch, other.lhs().pitch);
        EXPECT_EQ(layout.lhs().swizzle, other.rhs().swizzle);
        KernelFamily family = mmaFamily(swapped(schedule), {24}, 32, 32);
        KernelFamily twin = mmaFamily({4, 1, 3, 16}, {32}, 24, 32);
        BlockWork work = model.work(workload, family, 0, device);
        BlockWork expected = model.work(transposed, twin, 0, device);
        EXPECT_EQ(work.tensor[0].instructions, expected.tensor[0].instructions);
        EXPECT_EQ(work.otherInstructions, expected.otherInstructions);
        EXPECT_EQ(work.loadedRegisters, expected.loadedRegisters);
        EXPECT_EQ(work.globalBytes, expected.globalBytes);
        EXPECT_EQ(work.registersPerThread, expected.registersPerThread);
        EXPECT_EQ(model.resources(workload, family).registersPerThread,
                  model.resources(transposed, twin).registersPerThread);
      }
}

/// Accumulators of a lane lie in pairs of rows of the staging tile, and are
/// written one by one.
TEST_F(MmaModelTest, WritesStagingOfSwappedOperandsWithoutConflicts) {
  for (int64_t rows : {8, 16, 24, 40, 48})
    for (int64_t columns : {16, 32, 48, 64}) {
      MmaLayout layout =
          mmaLayout(halfProduct(), {rows, columns, 32}, swapped({1, 1, 3, 16}));
      EXPECT_EQ(rows % layout.warpTile().stagingRows(), 0);
      EXPECT_EQ(layout.warpTile().stagingPitch() % 4, 0);
      EXPECT_GE(layout.warpTile().stagingPitch(), columns);
      EXPECT_GE(layout.sharedMemoryBytes(), layout.warpTile().stagingBytes());
      std::array<int64_t, 32> address;
      for (int64_t lane = 0; lane < 32; ++lane)
        address[lane] =
            lane % 4 * 2 * layout.warpTile().stagingPitch() + lane / 4;
      EXPECT_EQ(wavefronts(address, 1), 1);
    }
}

/// Where even and odd columns of bytes come from two fragments, a lane writes
/// four neighbours; with swapped operands from two halves of one, two.
TEST_F(MmaModelTest, WritesStagingOfTransposedBytesWithoutConflicts) {
  Workload workload = productOf(ElementType::I8, ElementType::I32,
                                /*transposeLhs=*/true, /*transposeRhs=*/false);
  for (bool swaps : {false, true})
    for (int64_t columns : {16, 32, 48, 64, 80, 128}) {
      MmaLayout layout =
          mmaLayout(workload, {32, columns, 32}, {1, 1, 3, 16, swaps});
      EXPECT_EQ(layout.warpTile().stagingRows(), 16);
      EXPECT_GE(layout.warpTile().stagingPitch(), columns);
      EXPECT_GE(layout.sharedMemoryBytes(), layout.warpTile().stagingBytes());
      std::array<int64_t, 32> address;
      for (int64_t lane = 0; lane < 32; ++lane)
        address[lane] =
            swaps
                ? lane % 4 * 2 * layout.warpTile().stagingPitch() + lane / 4 * 2
                : lane / 4 * layout.warpTile().stagingPitch() + lane % 4 * 4;
      EXPECT_EQ(wavefronts(address, swaps ? 2 : 4), swaps ? 2 : 4);
      NumberMath math;
      std::set<uint32_t> rows;
      for (uint32_t row = 0; row < 16; ++row)
        rows.insert(layout.warpTile().stagingRow(math, row));
      EXPECT_EQ(rows.size(), 16u);
      EXPECT_EQ(*rows.rbegin(), 15u);
    }
}

TEST_F(MmaModelTest, OffersHeightsOfEightsBySwappedOperands) {
  Workload workload = halfProduct();
  auto space = model.createSpace(workload, device);
  int64_t blocks = 0;
  space->forEachBlock(
      16, [&](const KernelFamily &block, const UKernel &ukernel, BlockKind) {
        MmaSchedule mma = MmaSchedule::of(block.schedule);
        if (!mma.swapOperands)
          return;
        ++blocks;
        EXPECT_EQ(block.tiles[0][matmulAxes.m] % 16, 8) << block.str();
        EXPECT_EQ(ukernel.blockTile, block.tiles[0]);
        EXPECT_EQ(ukernel.registerTile, block.ukernel(0).registerTile);
      });
  EXPECT_GT(blocks, 20);
}

TEST_F(MmaModelTest, RelaxesAccesses) {
  KernelFamily family = mmaFamily({2, 2, 4, 16}, {64}, 64, 32);
  EXPECT_EQ(model.relaxed(family, 16), family);
  for (int64_t alignment : {8, 4}) {
    KernelFamily narrow = model.relaxed(family, alignment);
    EXPECT_EQ(narrow.alignment(), alignment);
    EXPECT_EQ(error(narrow), "");
  }
  KernelFamily single = model.relaxed(family, 2);
  EXPECT_TRUE(single.takesAnyAlignment());
  EXPECT_EQ(single.alignment(), 1);
  EXPECT_EQ(error(single), "");
  EXPECT_EQ(model.unalignedVariants(family).front(), single);
}

TEST_F(MmaModelTest, CountsWhatABlockMultiplies) {
  KernelFamily family = mmaFamily({2, 2, 4, 16}, {64}, 64, 32);
  BlockWork work = model.work(halfProduct(), family, 0, device);
  ASSERT_EQ(work.tensor.size(), 1u);
  // 4 warps, 2 fragments along k, 4 × 8 of the warp tile.
  EXPECT_EQ(work.tensor[0].instructions, 4 * 2 * 4 * 8);
  EXPECT_EQ(work.tensor[0].operations, 2.0 * 128 * 128 * 32);
  EXPECT_EQ(work.globalBytes, 2 * 32 * (128 + 128));
  // Three steps, less the last of two k blocks.
  EXPECT_EQ(work.stepsAhead, 2.5);
  // Instructions of half the depth on a T4, in two stages.
  family = mmaFamily({2, 2, 2, 16}, {64}, 64, 32);
  work = model.work(halfProduct(), family, 0, load("t4"));
  EXPECT_EQ(work.tensor[0].instructions, 2 * 4 * 2 * 4 * 8);
}

/// A batch of small products, and a block of one warp for each of `elements`.
static std::pair<Workload, KernelFamily> smallBatch(int64_t elements) {
  Workload workload = Workload::batchMatmul(
      SizeRange::fixed(24), {1, 16, 1}, SizeRange::fixed(32),
      SizeRange::fixed(64), /*transposeLhs=*/false, /*transposeRhs=*/true);
  setTypes(workload, ElementType::F16, ElementType::F32);
  MmaSchedule schedule = {1, 1, 3, 16};
  schedule.warpsBatch = elements;
  KernelFamily family = mmaFamily(schedule, {16}, 32, 32, 4);
  family.tiles[0][3] = elements;
  return {workload, family};
}

TEST_F(MmaModelTest, ComputesAnElementOfABatchByEachGroup) {
  auto [workload, one] = smallBatch(1);
  BlockWork alone = model.work(workload, one, 0, device);
  KernelResources ofOne = model.resources(workload, one);
  for (int64_t elements : {2, 3, 4, 8}) {
    KernelFamily family = smallBatch(elements).second;
    EXPECT_EQ(llvm::toString(model.check(workload, family, device)), "");
    KernelResources needs = model.resources(workload, family);
    EXPECT_EQ(needs.threads, 32 * elements);
    EXPECT_EQ(needs.sharedMemoryBytes, elements * ofOne.sharedMemoryBytes);
    EXPECT_EQ(needs.registersPerThread, ofOne.registersPerThread);
    UKernel ukernel = family.ukernel(0);
    EXPECT_EQ(ukernel.workers, elements);
    EXPECT_EQ(ukernel.registerTile, (BlockTile{16, 32, 1, 1}));
    BlockWork work = model.work(workload, family, 0, device);
    EXPECT_EQ(work.warps, elements * alone.warps);
    EXPECT_EQ(work.tensor[0].instructions,
              double(elements) * alone.tensor[0].instructions);
    EXPECT_EQ(work.globalBytes, double(elements) * alone.globalBytes);
    EXPECT_EQ(work.epilogueInstructions,
              double(elements) * alone.epilogueInstructions);
    // A warp reads its matrix as if it were alone.
    auto loads = [](const BlockWork &work) {
      std::pair<double, double> countAndWavefronts;
      for (const WarpAccess &access : work.accesses)
        if (access.kind == WarpAccess::Kind::SharedLoad) {
          countAndWavefronts.first += access.count;
          countAndWavefronts.second +=
              access.count * wavefronts(access.address, access.width);
        }
      return countAndWavefronts;
    };
    auto [count, wavefrontsOfLoads] = loads(work);
    auto [countAlone, wavefrontsAlone] = loads(alone);
    EXPECT_EQ(count, double(elements) * countAlone);
    EXPECT_EQ(wavefrontsOfLoads, double(elements) * wavefrontsAlone);
  }
  // A factor that lacks the axis has one matrix.
  KernelFamily family = smallBatch(4).second;
  workload.operands[1].axes.erase(workload.operands[1].axes.begin());
  EXPECT_EQ(model.work(workload, family, 0, device).globalBytes,
            2 * 32 * (4 * 16 + 32));
}

TEST_F(MmaModelTest, AsksForOneElementOfABatchForEachGroup) {
  auto [workload, family] = smallBatch(4);
  family.tiles[0][3] = 8;
  EXPECT_EQ(llvm::toString(model.check(workload, family, device)),
            "mma: expected one element of batch axes for each of 4 groups of "
            "warps, but got 8");
  family.tiles[0][3] = 2;
  EXPECT_NE(llvm::toString(model.check(workload, family, device))
                .find("whose elements 4 workers share equally"),
            std::string::npos);
  family = smallBatch(33).second;
  EXPECT_NE(llvm::toString(model.check(workload, family, device)), "");
}

TEST_F(MmaModelTest, SuggestsSeveralElementsOfWholeProducts) {
  auto elementsOf = [&](const Workload &workload) {
    std::set<int64_t> found;
    model.createSpace(workload, device)
        ->forEachBlock(
            16, [&](const KernelFamily &block, const UKernel &, BlockKind) {
              int64_t elements = block.tiles[0][3];
              EXPECT_EQ(MmaSchedule::of(block.schedule).warpsBatch, elements);
              found.insert(elements);
            });
    return found;
  };
  Workload small = smallBatch(1).first;
  EXPECT_EQ(elementsOf(small), (std::set<int64_t>{1, 2, 4, 8}));
  // No more than there are.
  small.axes[3].range = SizeRange::fixed(4);
  EXPECT_EQ(elementsOf(small), (std::set<int64_t>{1, 2, 4}));
  small.axes[3].range = SizeRange::fixed(1);
  EXPECT_EQ(elementsOf(small), (std::set<int64_t>{1}));
  Workload large = smallBatch(1).first;
  large.axes[matmulAxes.m].range = SizeRange::fixed(1024);
  EXPECT_EQ(elementsOf(large), (std::set<int64_t>{1}));
}

TEST_F(MmaModelTest, CountsWhatKeepsProductsWaiting) {
  auto headOf = [&](int64_t rows, int64_t columns) {
    return model
        .work(halfProduct(), mmaFamily({2, 2, 4, 16}, {rows}, columns, 32), 0,
              device)
        .headCycles;
  };
  // 4 + 4 loads of fragments by each of 4 warps, 4 wavefronts each, hide behind
  // 32 products of 8 cycles: the barrier is left.
  double barrier = headOf(64, 64);
  EXPECT_GT(barrier, 0);
  // 2 + 2 of them and the latency of a load, 97 cycles, beside 8 products.
  EXPECT_EQ(headOf(32, 32), barrier + 2 * (97 - 64));
  // More rows for the same columns hide more.
  EXPECT_LE(headOf(64, 32), headOf(32, 32));
}

TEST_F(MmaModelTest, CountsEpilogues) {
  KernelFamily family = mmaFamily({2, 2, 4, 16}, {64}, 64, 32);
  Workload workload = halfProduct();
  double plain = model.work(workload, family, 0, device).epilogueInstructions;
  // 128 sums of a lane, in pairs to shared memory and back in fours.
  EXPECT_GT(plain, 4 * (128 / 2 + 128 / 4));
  changeContraction(workload, [](ContractionParts &parts) {
    parts.epilogue.push_back({OperationKind::Add});
  });
  EXPECT_EQ(model.work(workload, family, 0, device).epilogueInstructions,
            plain + 4 * 128);
}

/// Every block of the space, in every layout: fragments and copies of 16 bytes
/// touch all banks. Copies into padded tiles of few columns may not.
TEST_F(MmaModelTest, HasNoBankConflicts) {
  for (bool transposeLhs : {false, true})
    for (bool transposeRhs : {false, true})
      for (ElementType type :
           {ElementType::F16, ElementType::TF32, ElementType::I8}) {
        ElementType sum =
            type == ElementType::I8 ? ElementType::I32 : ElementType::F32;
        Workload workload = productOf(type, sum, transposeLhs, transposeRhs);
        auto space = model.createSpace(workload, device);
        int64_t blocks = 0;
        space->forEachBlock(16, [&](const KernelFamily &block, const UKernel &,
                                    BlockKind) {
          // One warp tile stands for all numbers of warps.
          if (MmaSchedule::of(block.schedule).warps() > 4)
            return;
          ++blocks;
          space->forEachSchedule(block, [&](const KernelFamily &family) {
            if (MmaSchedule::of(family.schedule).stages != 3)
              return true;
            for (const WarpAccess &access :
                 model.work(workload, family, 0, device).accesses) {
              bool isPadded =
                  type == ElementType::TF32 && (transposeLhs || !transposeRhs);
              if (access.kind == WarpAccess::Kind::GlobalLoad ||
                  (isPadded && access.kind == WarpAccess::Kind::SharedStore))
                continue;
              int64_t lanes = llvm::count_if(
                  access.address, [](int64_t word) { return word >= 0; });
              int64_t ideal = ceilDiv(lanes * access.width, 32);
              EXPECT_EQ(wavefronts(access.address, access.width), ideal)
                  << family.str() << " " << transposeLhs << transposeRhs << " "
                  << nameOf(type).str() << " width " << access.width;
            }
            return !::testing::Test::HasFailure();
          });
        });
        EXPECT_GT(blocks, 100);
      }
}

TEST_F(MmaModelTest, GroupsBlocksAboutSquare) {
  for (int64_t columns : {8, 16, 32, 64}) {
    KernelFamily family = mmaFamily({2, 2, 3, 16}, {64}, columns, 32);
    Grid grid = gridOf(family);
    EXPECT_GE(grid.swizzleRows, 1);
    EXPECT_LE(grid.swizzleRows, 16);
    // Wider tiles, more rows of them.
    double wanted = std::sqrt(128.0 * (2 * columns) / 128);
    EXPECT_NEAR(double(grid.swizzleRows), std::clamp(wanted, 1.0, 16.0), 1);
  }
}

} // namespace
