//===- SimtModelTest.cpp ----------------------------------------*- C++ -*-===//
#include "FTuner/Codegen/CodegenModel.h"

#include "gtest/gtest.h"
#include <algorithm>
#include <limits>

using namespace ftuner;

namespace {

class SimtModelTest : public ::testing::Test {
protected:
  SimtModelTest()
      : model(*findCodegenModel("simt")),
        device(llvm::cantFail(loadDeviceSpec("a100"))),
        workload(Workload::matmul({1, 128, 1}, SizeRange::fixed(2304),
                                  SizeRange::fixed(768))) {
    family.stages = 3;
    family.vectorWidth = 4;
    family.parts = {part(7), part(8)};
  }

  /// Height 16 · rows, 128 columns, 8 columns of each thread.
  static UKernel part(int64_t rows) {
    UKernel result;
    result.smemTile = {16 * rows, 128, 16};
    result.regTile = {rows, 8, 1};
    return result;
  }

  std::string error(const KernelFamily &family) {
    return llvm::toString(model.check(workload, family, device));
  }

  const CodegenModel &model;
  DeviceSpec device;
  Workload workload;
  KernelFamily family;
};

TEST_F(SimtModelTest, AcceptsAFamilyOfTwoHeights) {
  EXPECT_EQ(error(family), "");
  KernelResources needs = model.resources(workload, family);
  EXPECT_EQ(needs.threads, 256);
  EXPECT_EQ(needs.sharedMemoryBytes, 3 * (128 * 20 + 16 * 128) * 4);
  // 64 accumulators, fragments of 8 · 4 + 8, addresses.
  EXPECT_GT(needs.registersPerThread, 104);
  EXPECT_LE(needs.registersPerThread, 168);
}

TEST_F(SimtModelTest, AcceptsAnyTwoHeightsInAscendingOrder) {
  family.parts = {part(3), part(8)};
  EXPECT_EQ(error(family), "");
  family.parts = {part(8), part(8)};
  EXPECT_NE(error(family).find("heights"), std::string::npos);
  family.parts = {part(8), part(6)};
  EXPECT_NE(error(family).find("heights"), std::string::npos);
}

TEST_F(SimtModelTest, RefusesHeightsOfDifferentThreadLayouts) {
  // 8 threads along m with 10 rows each beside 16 with 12.
  UKernel other{{80, 128, 16}, {10, 8, 1}};
  family.parts = {other, part(12)};
  EXPECT_NE(error(family).find("heights"), std::string::npos);
}

/// The family with tiles of 1 on batch axes.
static KernelFamily batched(KernelFamily family, unsigned batchAxes) {
  for (UKernel &part : family.parts) {
    part.smemTile.append(batchAxes, 1);
    part.regTile.append(batchAxes, 1);
  }
  return family;
}

TEST_F(SimtModelTest, AcceptsBatchesOfProducts) {
  workload = Workload::batchMatmul(SizeRange::fixed(12), {1, 128, 1},
                                   SizeRange::fixed(64), SizeRange::fixed(64));
  EXPECT_NE(error(family).find("tiles of 4 axes"), std::string::npos);
  KernelFamily family = batched(this->family, 1);
  EXPECT_EQ(error(family), "");
  // A batch is no part of a block.
  KernelResources needs = model.resources(workload, family);
  EXPECT_EQ(needs.threads, 256);
  EXPECT_EQ(needs.sharedMemoryBytes, 3 * (128 * 20 + 16 * 128) * 4);
  family.parts[1].smemTile[Workload::kFirstBatch] = 2;
  EXPECT_NE(error(family).find("tiles of 1 on batch axes"), std::string::npos);
}

TEST_F(SimtModelTest, AcceptsUpToThreeBatchAxes) {
  while (workload.axes.size() < 6)
    workload.axes.push_back({"B", AxisKind::Space, SizeRange::fixed(2), {}});
  EXPECT_EQ(error(batched(family, 3)), "");
  workload.axes.push_back({"B", AxisKind::Space, SizeRange::fixed(2), {}});
  EXPECT_NE(error(batched(family, 4)).find("up to 3 batch axes"),
            std::string::npos);
}

TEST_F(SimtModelTest, RefusesOperandsThatAreContiguousAlongABatchAxis) {
  workload = Workload::batchMatmul(SizeRange::fixed(12), {1, 128, 1},
                                   SizeRange::fixed(64), SizeRange::fixed(64));
  KernelFamily family = batched(this->family, 1);
  for (unsigned operand = 0; operand < 3; ++operand) {
    Workload other = workload;
    std::reverse(other.operands[operand].axes.begin(),
                 other.operands[operand].axes.end());
    EXPECT_NE(
        llvm::toString(model.check(other, family, device)).find("contiguous"),
        std::string::npos);
  }
  // Batch axes inside are only strides.
  for (Operand &operand : workload.operands)
    std::swap(operand.axes[0], operand.axes[1]);
  EXPECT_EQ(error(family), "");
}

TEST_F(SimtModelTest, RefusesPartialWarps) {
  family.parts = {UKernel{{7, 20, 16}, {7, 4, 1}}};
  EXPECT_NE(error(family).find("multiple of 32 threads"), std::string::npos);
}

TEST_F(SimtModelTest, RefusesTooMuchSharedMemory) {
  family.parts = {UKernel{{128, 128, 32}, {8, 8, 1}}};
  family.stages = 6;
  EXPECT_NE(error(family).find("shared memory"), std::string::npos);
}

TEST_F(SimtModelTest, RefusesTooManyRegisters) {
  family.parts = {UKernel{{512, 256, 8}, {16, 8, 1}}};
  family.stages = 2;
  EXPECT_NE(error(family).find("registers"), std::string::npos);
}

TEST_F(SimtModelTest, RefusesMoreStagesThanTheDeviceCanFill) {
  device = llvm::cantFail(loadDeviceSpec("t4"));
  EXPECT_NE(error(family).find("pipeline stages"), std::string::npos);
}

TEST_F(SimtModelTest, RefusesStagesWhoseBytesOverflow) {
  for (int64_t stages : {int64_t{1025}, std::numeric_limits<int64_t>::max()}) {
    family.stages = stages;
    EXPECT_NE(error(family).find("at most 1024 pipeline stages"),
              std::string::npos);
  }
}

TEST_F(SimtModelTest, VectorsNeedDivisibleContiguousExtents) {
  EXPECT_EQ(model.guaranteedVectorWidth(workload), 4);
  EXPECT_EQ(model.vectorWidth(workload, {53, 2304, 768}), 4);
  EXPECT_EQ(model.vectorWidth(workload, {53, 2303, 768}), 1);
  EXPECT_EQ(model.vectorWidth(workload, {53, 2304, 766}), 1);
  // With the lhs stored as K × M, the dynamic M is contiguous.
  Workload transposed = Workload::matmul({1, 128, 1}, SizeRange::fixed(2304),
                                         SizeRange::fixed(768), true);
  EXPECT_EQ(model.guaranteedVectorWidth(transposed), 1);
  Workload steps = Workload::matmul({16, 2048, 16}, SizeRange::fixed(2304),
                                    SizeRange::fixed(768), true);
  EXPECT_EQ(model.guaranteedVectorWidth(steps), 4);
}

TEST_F(SimtModelTest, RefusesVectorsOfUnalignedTiles) {
  workload = Workload::matmul({16, 2048, 16}, SizeRange::fixed(2304),
                              SizeRange::fixed(768), /*transposeLhs=*/true);
  UKernel odd;
  odd.smemTile = {7, 128, 16};
  odd.regTile = {7, 4, 1};
  family.parts = {odd};
  EXPECT_NE(error(family).find("vector width"), std::string::npos);
}

/// A pair of 8 columns a thread, and what ptxas 13.0 made of it, on a100.
struct CompiledPair {
  int64_t threadsM, threadsN, rows, moreRows, reduceTile, stages, vectorWidth;
  bool isRhsTransposed;
  int64_t n, k;
  bool spills;
};

TEST_F(SimtModelTest, SpillFreeRegistersTellKernelsThatSpill) {
  const CompiledPair pairs[] = {
      // Slots of the copy that are no whole rows.
      {5, 32, 12, 14, 24, 3, 4, false, 2304, 768, true},
      {16, 8, 11, 14, 24, 4, 4, false, 2304, 768, true},
      {8, 16, 11, 14, 16, 3, 4, false, 2304, 768, false},
      {4, 16, 11, 14, 32, 3, 4, false, 2304, 768, false},
      // The same, swizzled.
      {8, 8, 7, 10, 24, 4, 4, true, 2304, 768, true},
      // A reduce axis with a rest, of which every slot has a condition.
      {16, 6, 9, 11, 32, 4, 4, true, 2308, 772, true},
      // Scalars.
      {6, 16, 11, 14, 16, 4, 1, false, 4097, 1024, true},
      {8, 16, 8, 11, 32, 3, 1, true, 4097, 768, true},
      {8, 32, 10, 12, 8, 3, 1, false, 4097, 1024, false},
  };
  for (const CompiledPair &pair : pairs) {
    Workload product = Workload::matmul({1, 128, 1}, SizeRange::fixed(pair.n),
                                        SizeRange::fixed(pair.k));
    if (pair.isRhsTransposed)
      for (Operand &operand : product.operands)
        if (operand.role == OperandRole::Rhs)
          std::swap(operand.axes[0], operand.axes[1]);
    KernelFamily family;
    family.path = "simt";
    family.stages = pair.stages;
    family.vectorWidth = pair.vectorWidth;
    for (int64_t rows : {pair.rows, pair.moreRows})
      family.parts.push_back(
          {{pair.threadsM * rows, pair.threadsN * 8, pair.reduceTile},
           {rows, 8, 1}});
    ASSERT_EQ(llvm::toString(model.check(product, family, device)), "");
    int64_t registers = model.spillFreeRegisters(product, family);
    EXPECT_GE(registers, model.resources(product, family).registersPerThread);
    EXPECT_EQ(registers > device.registersPerThreadOf(family.threads()),
              pair.spills)
        << family.str() << ": " << registers;
  }
}

/// A kernel as EmittedCase prints it, and what ptxas 13.0 made of it.
struct CompiledKernel {
  const char *device;
  bool transposeLhs, transposeRhs;
  int64_t n, k, reduceTile, stages, vectorWidth;
  int64_t threadsM, threadsN, columns;
  llvm::SmallVector<int64_t> rows;
  bool spills;
};

TEST_F(SimtModelTest, SpillFreeRegistersTellOtherLayoutsToo) {
  const CompiledKernel kernels[] = {
      // Scalars with rows that are clamped to N, and to N and M.
      {"a100", false, true, 130, 2304, 16, 3, 1, 32, 7, 8, {9}, true},
      {"b200", true, true, 770, 2304, 32, 4, 1, 8, 16, 4, {5, 9}, true},
      {"rtx3090", true, true, 2308, 1536, 32, 4, 1, 8, 16, 4, {5, 9}, true},
      {"h200", false, false, 2308, 148, 24, 4, 1, 16, 6, 2, {8, 10}, true},
      // Vectors in slots that are no whole rows.
      {"rtx3090", false, false, 2308, 1152, 24, 3, 4, 16, 2, 8, {2, 10}, true},
      {"h200", true, false, 2304, 768, 32, 4, 4, 12, 24, 8, {11}, true},
      // As large, but in whole rows.
      {"h200", true, false, 2304, 768, 32, 4, 4, 8, 24, 8, {10, 14}, false},
      {"h200", true, false, 2304, 768, 32, 3, 4, 8, 16, 8, {8, 13}, false},
      {"t4", true, true, 53, 64, 16, 2, 1, 16, 8, 2, {2, 3}, false},
  };
  for (const CompiledKernel &kernel : kernels) {
    DeviceSpec device = llvm::cantFail(loadDeviceSpec(kernel.device));
    Workload product = Workload::matmul(
        {1, std::nullopt, 1}, SizeRange::fixed(kernel.n),
        SizeRange::fixed(kernel.k), kernel.transposeLhs, kernel.transposeRhs);
    KernelFamily family;
    family.stages = kernel.stages;
    family.vectorWidth = kernel.vectorWidth;
    for (int64_t rows : kernel.rows)
      family.parts.push_back(
          {{kernel.threadsM * rows, kernel.threadsN * kernel.columns,
            kernel.reduceTile},
           {rows, kernel.columns, 1}});
    ASSERT_EQ(llvm::toString(model.check(product, family, device)), "")
        << family.str();
    int64_t registers = model.spillFreeRegisters(product, family);
    EXPECT_EQ(registers > device.registersPerThreadOf(family.threads()),
              kernel.spills)
        << family.str() << ": " << registers;
  }
}

} // namespace
