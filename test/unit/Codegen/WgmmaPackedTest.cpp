//===- WgmmaPackedTest.cpp - Packed weights of the wgmma path -------------===//
#include "FTuner/Codegen/Wgmma/WgmmaLayout.h"
#include "FTuner/Schedule/CodegenModel.h"
#include "FTuner/Workload/Contraction.h"
#include "Products.h"

#include "gtest/gtest.h"
#include <set>

using namespace ftuner;

namespace {

constexpr int64_t kN = 136, kK = 256;

Workload packedProduct(ElementType type = ElementType::F16,
                       bool transposeRhs = false) {
  Workload workload =
      Workload::matmul({1, 512, 1}, SizeRange::fixed(kN), SizeRange::fixed(kK),
                       /*transposeLhs=*/false, transposeRhs);
  setTypes(workload, type,
           type == ElementType::I8 ? ElementType::I32 : ElementType::F32);
  workload.operands[1].isPacked = true;
  return workload;
}

class WgmmaPackedTest : public ::testing::Test {
protected:
  std::string refusal(const Workload &workload, llvm::StringRef path) {
    return llvm::toString(findCodegenModel(path)->supports(workload, device));
  }
  std::string error(const KernelFamily &family,
                    const Workload &workload = packedProduct()) {
    return llvm::toString(model.check(workload, family, device));
  }

  const CodegenModel &model = *findCodegenModel("wgmma");
  DeviceSpec device = llvm::cantFail(loadDeviceSpec("h100"));
};

TEST_F(WgmmaPackedTest, PutsEachElementSomewhere) {
  for (int64_t bytes : {1, 2, 4}) {
    PackedOrder order{/*k=*/384, /*n=*/24, bytes};
    ASSERT_TRUE(order.isWhole());
    std::set<int64_t> positions;
    for (int64_t k = 0; k < order.k; ++k)
      for (int64_t n = 0; n < order.n; ++n)
        EXPECT_TRUE(positions.insert(order.positionOf(k, n)).second);
    EXPECT_EQ(*positions.begin(), 0);
    EXPECT_EQ(*positions.rbegin(), order.k * order.n - 1);
  }
  EXPECT_FALSE((PackedOrder{96, 8, 2}.isWhole()));
  EXPECT_FALSE((PackedOrder{64, 12, 2}.isWhole()));
  EXPECT_FALSE((PackedOrder{0, 8, 2}.isWhole()));
}

TEST_F(WgmmaPackedTest, IsOfNoOtherPath) {
  EXPECT_EQ(refusal(packedProduct(), "wgmma"), "");
  EXPECT_NE(refusal(packedProduct(), "mma"), "");
  EXPECT_NE(refusal(packedProduct(), "simt"), "");
  // Bytes need not lie along k in the program.
  Workload bytes = packedProduct(ElementType::I8);
  EXPECT_EQ(refusal(bytes, "wgmma"), "");
  bytes.operands[1].isPacked = false;
  EXPECT_NE(refusal(bytes, "wgmma"), "");
  // What copies would have to round or to compute.
  Workload words = packedProduct(ElementType::TF32);
  EXPECT_NE(refusal(words, "wgmma").find("rounded"), std::string::npos);
  changeContraction(
      words, [](ContractionParts &parts) { parts.truncatesFactors = true; });
  EXPECT_EQ(refusal(words, "wgmma"), "");
  Workload computed = packedProduct();
  changeContraction(computed, [](ContractionParts &parts) {
    parts.prologues[1] = {Operations()};
  });
  EXPECT_NE(refusal(computed, "wgmma").find("prologue"), std::string::npos);
  Workload narrow = packedProduct();
  narrow.operands[1].elementType = ElementType::I8;
  narrow.operands[1].elementBytes = 1;
  EXPECT_NE(refusal(narrow, "wgmma"), "");
  // Not whole, not fixed, not the rhs.
  Workload ragged = packedProduct();
  ragged.axes[matmulAxes.n].range = SizeRange::fixed(kN + 4);
  EXPECT_NE(refusal(ragged, "wgmma").find("packed"), std::string::npos);
  ragged.axes[matmulAxes.n].range = {8, kN, 8};
  EXPECT_NE(refusal(ragged, "wgmma").find("packed"), std::string::npos);
  Workload left = packedProduct();
  std::swap(left.operands[0].isPacked, left.operands[1].isPacked);
  EXPECT_NE(refusal(left, "wgmma").find("packed"), std::string::npos);
}

/// A block's part of a step is one piece of memory, in which instructions find
/// each element: eight rows of 16 bytes are a core matrix (PTX ISA, "Strides",
/// without a swizzle).
TEST_F(WgmmaPackedTest, ReadsWhatLiesInMemory) {
  for (ElementType type : {ElementType::F16, ElementType::I8})
    for (bool swaps : {false, true}) {
      Workload workload = packedProduct(type);
      int64_t bytes = bytesOf(type), step = 128 / bytes;
      WgmmaSchedule schedule = {1, 2, 4, 16, swaps, 1, true};
      KernelFamily family = wgmmaFamily(schedule, {swaps ? 24 : 64}, 64, step);
      ASSERT_EQ(error(family, workload), "");
      WgmmaLayout layout = wgmmaLayout(workload, family, 0);
      const WgmmaSide &side = layout.sideOf(1);
      EXPECT_TRUE(side.isPacked);
      EXPECT_EQ(side.tile.swizzle, 1);
      PackedOrder order = workload.packedOrder();
      int64_t firstColumn = 8, stepNumber = 1;
      int64_t begin = order.positionOf(stepNumber * step, firstColumn) * bytes;
      int64_t depthElements = 32 / bytes;
      for (int64_t column = 0; column < side.extent; ++column)
        for (int64_t k = 0; k < step; ++k) {
          int64_t inDepth = k % depthElements * bytes;
          int64_t address =
              layout.offsetOf(side, column / 8 * 8, k / depthElements) +
              column % 8 * 16 + inDepth / 16 * WgmmaLayout::packedStride() +
              inDepth % 16;
          EXPECT_EQ(begin + address, order.positionOf(stepNumber * step + k,
                                                      firstColumn + column) *
                                         bytes);
          ASSERT_LT(address, layout.stageBytes(side.tile));
        }
      EXPECT_EQ(layout.rowStride(), 1024);
    }
}

TEST_F(WgmmaPackedTest, NeedsNoMap) {
  Workload workload = packedProduct();
  KernelFamily family =
      wgmmaFamily({2, 1, 4, 16, false, 1, true}, {64}, 64, 64);
  auto maps = model.tensorMaps(workload, family, 0);
  ASSERT_EQ(maps.size(), 1u);
  EXPECT_EQ(workload.operands[maps[0].operand].role, OperandRole::Lhs);
  WgmmaLayout layout = wgmmaLayout(workload, family, 0);
  EXPECT_TRUE(layout.hasTma(0) && layout.hasBulkCopies(1));
  EXPECT_FALSE(layout.copiesByThreads(0) || layout.copiesByThreads(1));
  // Without barriers of stages, threads copy.
  family = wgmmaFamily({2, 1, 4, 16}, {64}, 64, 64);
  layout = wgmmaLayout(workload, family, 0);
  EXPECT_TRUE(layout.copiesByThreads(1));
}

TEST_F(WgmmaPackedTest, SharesCopiesWithoutMaps) {
  WgmmaSchedule schedule = {2, 1, 4, 16, false, 1};
  schedule.clusterM = 2;
  KernelFamily family = wgmmaFamily(schedule, {64}, 64, 64);
  EXPECT_EQ(error(family), "");
  Workload plain = packedProduct();
  plain.operands[1].isPacked = false;
  EXPECT_NE(error(family, plain), "");
  // Each block has half of the columns copied, in whole warpgroups.
  EXPECT_NE(error(wgmmaFamily(schedule, {64}, 72, 64)), "");
  std::swap(schedule.clusterM, schedule.clusterN);
  EXPECT_NE(error(wgmmaFamily(schedule, {64}, 64, 64)), "");
  schedule = {2, 1, 4, 16};
  schedule.clusterM = 2;
  EXPECT_NE(error(wgmmaFamily(schedule, {64}, 64, 64)), "");
  // The search offers them.
  for (bool isPacked : {false, true}) {
    Workload workload = packedProduct();
    workload.operands[1].isPacked = isPacked;
    auto space = model.createSpace(workload, device);
    bool hasClusters = false;
    space->forEachSchedule(wgmmaFamily({2, 1, 3, 16}, {64}, 64, 64),
                           [&](const KernelFamily &family) {
                             WgmmaSchedule schedule =
                                 WgmmaSchedule::of(family.schedule);
                             hasClusters |=
                                 schedule.clusterM > 1 && !schedule.tma;
                             return true;
                           });
    EXPECT_EQ(hasClusters, isPacked);
  }
}

} // namespace
