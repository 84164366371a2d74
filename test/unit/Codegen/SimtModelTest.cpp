//===- SimtModelTest.cpp ----------------------------------------*- C++ -*-===//
#include "FTuner/Codegen/Simt/SimtSchedule.h"
#include "FTuner/Schedule/Alignment.h"
#include "FTuner/Schedule/CodegenModel.h"
#include "FTuner/Workload/Contraction.h"

#include "llvm/ADT/STLExtras.h"
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
    family = withRows({7, 8});
  }

  /// Heights 16 · rows, 128 columns, 8 columns of each thread.
  KernelFamily withRows(llvm::ArrayRef<int64_t> rows) const {
    return simtFamily(schedule, rows, /*columns=*/8, /*depth=*/16);
  }

  std::string error(const KernelFamily &family) {
    return llvm::toString(model.check(workload, family, device));
  }

  const CodegenModel &model;
  DeviceSpec device;
  Workload workload;
  SimtSchedule schedule = {16, 16, 3, 4};
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
  EXPECT_EQ(error(withRows({3, 8})), "");
  EXPECT_NE(error(withRows({8, 8})).find("heights"), std::string::npos);
  EXPECT_NE(error(withRows({8, 6})).find("heights"), std::string::npos);
}

TEST_F(SimtModelTest, RefusesHeightsThatAreNotRowsOfThreads) {
  // 88 rows are eleven of 8 threads, but not of 16.
  family.tiles[0][matmulAxes.m] = 88;
  EXPECT_EQ(error(family),
            "simt: expected tiles of multiples of 16 elements along axis 0, "
            "but got [88,128,16]");
  family = withRows({7, 8});
  for (BlockTile &tile : family.tiles)
    tile[matmulAxes.n] = 120;
  EXPECT_NE(error(family).find("multiples of 16 elements along axis 1"),
            std::string::npos);
}

TEST_F(SimtModelTest, SaysWhatAScheduleMakesOfATile) {
  EXPECT_EQ(family.str(), "simt [112,128,16]/[7,8,1] + [128,128,16]/[8,8,1] "
                          "axis 0 stages 3 vector 4");
  UKernel ukernel = family.ukernel(1);
  EXPECT_EQ(ukernel.workers, 256);
  EXPECT_EQ(ukernel.reduceSplit, 1);
  EXPECT_EQ(model.heightGranule(family), 16);
  EXPECT_EQ(family.alignment(), 16);
  EXPECT_FALSE(family.takesAnyAlignment());
  SimtSchedule read = SimtSchedule::of(family.schedule);
  EXPECT_EQ(read.pack(), family.schedule);
  EXPECT_EQ(read.threadsM, 16);
  EXPECT_EQ(read.stages, 3);
  // The names of the fields are in the order of the numbers.
  std::vector<std::pair<std::string, int64_t>> named;
  for (auto [field, number] :
       llvm::zip_first(model.scheduleFields(), family.schedule.fields()))
    named.emplace_back(field.name.str(), number);
  EXPECT_EQ(named, (std::vector<std::pair<std::string, int64_t>>{
                       {"threads_m", 16},
                       {"threads_n", 16},
                       {"stages", 3},
                       {"vector_width", 4},
                       {"threads_batch", 1},
                       {"virtual_threads_m", 0},
                       {"virtual_threads_n", 0},
                       {"threads_k", 1}}));
}

TEST_F(SimtModelTest, RelaxesVectorsWhereOperandsAreNotAligned) {
  EXPECT_EQ(model.relaxed(family, 16), family);
  EXPECT_EQ(model.relaxed(family, 64), family);
  for (int64_t alignment : {4, 8}) {
    KernelFamily scalar = model.relaxed(family, alignment);
    EXPECT_EQ(scalar.tiles, family.tiles);
    EXPECT_EQ(scalar.alignment(), 1);
    EXPECT_TRUE(scalar.takesAnyAlignment());
    EXPECT_EQ(SimtSchedule::of(scalar.schedule).stages, 3);
    EXPECT_EQ(model.relaxed(scalar, 4), scalar);
  }
  // The closest first, then those with smaller steps, which spill less.
  KernelFamily deep = simtFamily(schedule, {7, 8}, 8, /*depth=*/32);
  llvm::SmallVector<KernelFamily> variants = model.unalignedVariants(deep);
  ASSERT_GT(variants.size(), 1u);
  EXPECT_EQ(variants.front(), model.relaxed(deep, 4));
  int64_t depth = 32;
  for (const KernelFamily &variant : llvm::drop_begin(variants)) {
    EXPECT_TRUE(variant.takesAnyAlignment());
    for (const BlockTile &tile : variant.tiles)
      EXPECT_LT(tile[matmulAxes.k], depth);
    depth = variant.tiles.front()[matmulAxes.k];
  }
}

TEST_F(SimtModelTest, RefusesThreadsThatAreNone) {
  for (SimtSchedule bad :
       {SimtSchedule{0, 32, 3, 4}, SimtSchedule{32, -1, 3, 4},
        SimtSchedule{int64_t{1} << 40, 32, 3, 4}}) {
    family.schedule = bad.pack();
    EXPECT_NE(error(family).find("of 1 to 1024, but got"), std::string::npos)
        << error(family);
    // Messages show the family.
    EXPECT_FALSE(family.str().empty());
  }
}

/// The family with tiles of 1 on batch axes.
static KernelFamily batched(KernelFamily family, unsigned batchAxes) {
  for (BlockTile &tile : family.tiles)
    tile.append(batchAxes, 1);
  return family;
}

TEST_F(SimtModelTest, AcceptsBatchesOfProducts) {
  workload = Workload::batchMatmul(SizeRange::fixed(12), {1, 128, 1},
                                   SizeRange::fixed(64), SizeRange::fixed(64));
  EXPECT_NE(error(family).find("tiles of 4 axes"), std::string::npos);
  KernelFamily family = batched(this->family, 1);
  EXPECT_EQ(error(family), "");
  // An element of a batch for each block.
  KernelResources needs = model.resources(workload, family);
  EXPECT_EQ(needs.threads, 256);
  EXPECT_EQ(needs.sharedMemoryBytes, 3 * (128 * 20 + 16 * 128) * 4);
}

TEST_F(SimtModelTest, ComputesSeveralElementsOfABatch) {
  workload = Workload::batchMatmul(SizeRange::fixed(12), {1, 128, 1},
                                   SizeRange::fixed(64), SizeRange::fixed(64));
  SimtSchedule schedule{4, 8, 2, 4};
  schedule.threadsBatch = 3;
  KernelFamily family = simtFamily(schedule, {2}, 4, 16, 4);
  family.tiles[0][3] = 6;
  EXPECT_EQ(error(family), "");
  KernelResources needs = model.resources(workload, family);
  EXPECT_EQ(needs.threads, 3 * 4 * 8);
  // Rows of 16 and 4 elements of each lhs, 16 rows of 32 of each rhs: nothing
  // between, since a warp reads one element's.
  EXPECT_EQ(needs.sharedMemoryBytes, 2 * 6 * (8 * 20 + 16 * 32) * 4);
  UKernel ukernel = family.ukernel(0);
  EXPECT_EQ(ukernel.workers, 96);
  EXPECT_EQ(ukernel.registerTile, (BlockTile{2, 4, 1, 2}));
  // Twice the sums of one, by each of three groups.
  KernelFamily one = simtFamily({4, 8, 2, 4}, {2}, 4, 16, 4);
  EXPECT_EQ(model.work(workload, family, 0, device).fma,
            6 * model.work(workload, one, 0, device).fma);
  EXPECT_EQ(model.work(workload, family, 0, device).globalBytes,
            6 * model.work(workload, one, 0, device).globalBytes);

  family.tiles[0][3] = 4;
  EXPECT_NE(error(family).find("whose elements 3 workers share equally"),
            std::string::npos);
  // Two heights along the batch.
  family.tiles = {family.tiles[0], family.tiles[0]};
  family.tiles[0][3] = 3;
  family.tiles[1][3] = 6;
  family.combineAxis = 3;
  EXPECT_EQ(error(family), "");
  EXPECT_EQ(model.heightGranule(family), 3);
}

TEST_F(SimtModelTest, SharesStepsOutAmongSlices) {
  KernelFamily whole = simtFamily({2, 16, 3, 4}, {2}, 4, 16);
  llvm::SmallVector<KernelFamily> variants = model.slicedVariants(whole);
  EXPECT_TRUE(llvm::any_of(variants, [&](const KernelFamily &variant) {
    return error(variant).empty();
  }));
  for (const KernelFamily &variant : variants) {
    EXPECT_GT(model.threads(variant), model.threads(whole));
    EXPECT_TRUE(model.slicedVariants(variant).empty());
  }
  SimtSchedule schedule{2, 16, 3, 4};
  schedule.threadsK = 4;
  KernelFamily sliced = simtFamily(schedule, {2}, 4, 64);
  EXPECT_EQ(error(sliced), "");
  EXPECT_EQ(model.threads(sliced), 128);
  // The same products, and sums of three slices more.
  BlockWork work = model.work(workload, sliced, 0, device);
  KernelFamily deep = simtFamily({2, 16, 3, 4}, {2}, 4, 64);
  EXPECT_EQ(work.fma, model.work(workload, deep, 0, device).fma);
  EXPECT_EQ(work.epilogueInstructions, 3 * (2 * 2 + 8));

  sliced.tiles[0][2] = 24;
  EXPECT_NE(error(sliced).find("expected steps of multiples of 16 elements "
                               "along k for 4 slices, but got 24"),
            std::string::npos);
  // Sums of 15 slices take more than stages do.
  schedule = {2, 16, 2, 4};
  schedule.threadsK = 16;
  sliced = simtFamily(schedule, {8}, 4, 64);
  EXPECT_EQ(model.resources(workload, sliced).sharedMemoryBytes,
            15 * 32 * 32 * 4);
}

TEST_F(SimtModelTest, TakesVirtualThreadsThatDivideTheTile) {
  SimtSchedule schedule{8, 16, 3, 4};
  schedule.virtualThreadsM = 3;
  EXPECT_EQ(error(simtFamily(schedule, {6}, 4, 16)), "");
  EXPECT_NE(error(simtFamily(schedule, {7}, 4, 16))
                .find("virtual threads that divide the 7 elements of a thread "
                      "along m, but got 3"),
            std::string::npos);
  schedule.virtualThreadsN = 8;
  EXPECT_NE(error(simtFamily(schedule, {6}, 4, 16)).find("along n, but got 8"),
            std::string::npos);
}

TEST_F(SimtModelTest, AcceptsUpToThreeBatchAxes) {
  while (workload.axes.size() < 6)
    workload.axes.push_back({"B", SizeRange::fixed(2)});
  EXPECT_EQ(error(batched(family, 3)), "");
  workload.axes.push_back({"B", SizeRange::fixed(2)});
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
  family = simtFamily({1, 5, 3, 4}, 7, 4, 16);
  EXPECT_NE(error(family).find("multiple of 32 threads"), std::string::npos);
}

TEST_F(SimtModelTest, RefusesTooMuchSharedMemory) {
  schedule.stages = 6;
  family = simtFamily(schedule, 8, 8, 32);
  EXPECT_NE(error(family).find("shared memory"), std::string::npos);
}

TEST_F(SimtModelTest, RefusesTooManyRegisters) {
  family = simtFamily({32, 32, 2, 4}, 16, 8, 8);
  EXPECT_NE(error(family).find("registers"), std::string::npos);
}

TEST_F(SimtModelTest, RefusesMoreStagesThanTheDeviceCanFill) {
  device = llvm::cantFail(loadDeviceSpec("t4"));
  EXPECT_NE(error(family).find("pipeline stages"), std::string::npos);
}

TEST_F(SimtModelTest, RefusesStagesWhoseBytesOverflow) {
  for (int64_t stages : {int64_t{1025}, std::numeric_limits<int64_t>::max()}) {
    schedule.stages = stages;
    family.schedule = schedule.pack();
    EXPECT_NE(error(family).find("expected stages of 2 to 1024"),
              std::string::npos);
  }
}

TEST_F(SimtModelTest, VectorsNeedDivisibleContiguousExtents) {
  EXPECT_EQ(guaranteedAlignment(workload), family.alignment());
  EXPECT_EQ(alignmentOf(workload, {53, 2304, 768}), family.alignment());
  EXPECT_LT(alignmentOf(workload, {53, 2303, 768}), family.alignment());
  EXPECT_LT(alignmentOf(workload, {53, 2304, 766}), family.alignment());
  // With the lhs stored as K × M, the dynamic M is contiguous.
  Workload transposed = Workload::matmul({1, 128, 1}, SizeRange::fixed(2304),
                                         SizeRange::fixed(768), true);
  EXPECT_LT(guaranteedAlignment(transposed), family.alignment());
  Workload steps = Workload::matmul({16, 2048, 16}, SizeRange::fixed(2304),
                                    SizeRange::fixed(768), true);
  EXPECT_EQ(guaranteedAlignment(steps), family.alignment());
}

TEST_F(SimtModelTest, RefusesVectorsOfUnalignedTiles) {
  workload = Workload::matmul({16, 2048, 16}, SizeRange::fixed(2304),
                              SizeRange::fixed(768), /*transposeLhs=*/true);
  family = simtFamily({1, 32, 3, 4}, 7, 4, 16);
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
    KernelFamily family = simtFamily(
        {pair.threadsM, pair.threadsN, pair.stages, pair.vectorWidth},
        {pair.rows, pair.moreRows}, 8, pair.reduceTile);
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
    KernelFamily family = simtFamily(
        {kernel.threadsM, kernel.threadsN, kernel.stages, kernel.vectorWidth},
        kernel.rows, kernel.columns, kernel.reduceTile);
    ASSERT_EQ(llvm::toString(model.check(product, family, device)), "")
        << family.str();
    int64_t registers = model.spillFreeRegisters(product, family);
    EXPECT_EQ(registers > device.registersPerThreadOf(family.threads()),
              kernel.spills)
        << family.str() << ": " << registers;
  }
}

/// The workload with factors, a sum and a result of these types.
static Workload withTypes(Workload workload, ElementType lhs, ElementType rhs,
                          ElementType accumulator, ElementType output) {
  for (Operand &operand : workload.operands) {
    ElementType type = operand.role == OperandRole::Lhs   ? lhs
                       : operand.role == OperandRole::Rhs ? rhs
                                                          : output;
    operand = Operand(operand.role, operand.axes, type);
  }
  changeContraction(workload, [&](ContractionParts &parts) {
    parts.accumulatorType = accumulator;
  });
  return workload;
}

// What a kernel asks for leaves it the registers with which it does not spill,
// and is what the cost model counts on.
TEST_F(SimtModelTest, AsksForTheBlocksThatItIsPricedWith) {
  for (int64_t threadsM : {4, 8, 16})
    for (int64_t rows : {2, 4, 6, 9, 12}) {
      schedule.threadsM = threadsM;
      KernelFamily family =
          simtFamily(schedule, {rows}, /*columns=*/4, /*depth=*/16);
      int64_t threads = model.threads(family);
      int64_t blocks = model.minBlocksPerSm(workload, family, device);
      int64_t left = device.registersPerThreadOf(threads, blocks);
      double priced =
          model.work(workload, family, 0, device).registersPerThread;
      EXPECT_EQ(blocks,
                device.blocksPerSm(
                    threads, static_cast<int64_t>(priced),
                    model.resources(workload, family).sharedMemoryBytes))
          << threadsM << " x " << rows;
      if (blocks > 1) {
        EXPECT_LE(model.spillFreeRegisters(workload, family), left);
        EXPECT_LE(priced, static_cast<double>(left));
      }
      // Of single elements one block is all that is asked for.
      SimtSchedule scalar = schedule;
      scalar.vectorWidth = 1;
      EXPECT_EQ(model.minBlocksPerSm(workload,
                                     simtFamily(scalar, {rows}, 4, 16), device),
                1);
    }
}

TEST_F(SimtModelTest, SaysWhichTypesItComputes) {
  using T = ElementType;
  auto reason = [&](T lhs, T rhs, T accumulator, T output) {
    return llvm::toString(model.supports(
        withTypes(workload, lhs, rhs, accumulator, output), device));
  };
  for (T factor : {T::F32, T::F16, T::BF16, T::I8})
    for (T output : {T::F32, T::F16, T::BF16, T::I8})
      EXPECT_EQ(reason(factor, T::BF16, T::F32, output), "");
  for (T factor : {T::I32, T::I8})
    EXPECT_EQ(reason(factor, T::I8, T::I32, T::I8), "");
  EXPECT_NE(reason(T::F16, T::F16, T::F16, T::F16).find("accumulator"),
            std::string::npos);
  EXPECT_NE(reason(T::F64, T::F64, T::F64, T::F64).find("got f64"),
            std::string::npos);
  // No float is exact in an integer, and no i32 in f32.
  EXPECT_NE(reason(T::F16, T::I8, T::I32, T::I32).find("got f16"),
            std::string::npos);
  EXPECT_NE(reason(T::I32, T::F32, T::F32, T::F32).find("got i32"),
            std::string::npos);
  EXPECT_NE(reason(T::F16, T::F16, T::F32, T::F64).find("got f64"),
            std::string::npos);
}

TEST_F(SimtModelTest, CopiesWhatItCastsThroughRegisters) {
  using T = ElementType;
  Workload half = withTypes(workload, T::F16, T::F16, T::F32, T::F16);
  llvm::Error error = model.check(half, family, device);
  EXPECT_NE(llvm::toString(std::move(error))
                .find("exactly 2 pipeline stages for factors that are cast"),
            std::string::npos);
  SimtSchedule two = SimtSchedule::of(family.schedule);
  two.stages = 2;
  family.schedule = two.pack();
  ASSERT_EQ(llvm::toString(model.check(half, family, device)), "");
  model.createSpace(half, device)
      ->forEachSchedule(family, [&](const KernelFamily &step) {
        EXPECT_EQ(SimtSchedule::of(step.schedule).stages, 2);
        return true;
      });

  // Half the bytes from global memory, as many in shared memory, and a cast for
  // each element.
  BlockWork wide = model.work(workload, family, 0, device);
  BlockWork narrow = model.work(half, family, 0, device);
  EXPECT_DOUBLE_EQ(narrow.globalBytes, wide.globalBytes / 2);
  EXPECT_EQ(narrow.fma, wide.fma);
  EXPECT_EQ(model.resources(half, family).sharedMemoryBytes,
            model.resources(workload, family).sharedMemoryBytes);
  const BlockTile &tile = family.tiles.front();
  double elements = static_cast<double>(
      tile[matmulAxes.k] * (tile[matmulAxes.m] + tile[matmulAxes.n]));
  DeviceSpec old = llvm::cantFail(loadDeviceSpec("v100"));
  BlockWork staged = model.work(workload, family, 0, old);
  BlockWork casting = model.work(half, family, 0, old);
  EXPECT_GE(casting.otherInstructions - staged.otherInstructions,
            elements / 32);
  EXPECT_EQ(casting.stepsAhead, staged.stepsAhead);
}

} // namespace
