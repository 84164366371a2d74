//===- ScheduleSpaceTest.cpp - What every path's space keeps to -----------===//
//
// The contract of `ScheduleSpace::forEachSchedule`, of every path.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Codegen/ContractionModel.h"
#include "FTuner/Schedule/CodegenModel.h"
#include "FTuner/Schedule/ScheduleTable.h"
#include "Products.h"
#include "llvm/ADT/STLExtras.h"
#include <gtest/gtest.h>

using namespace ftuner;

namespace {
/// Blocks that are visited, one in so many.
constexpr unsigned kEvery = 23;

class ScheduleSpaceTest : public ::testing::Test {
protected:
  /// A product, sums of rows, or a sum of vectors, that the path supports on
  /// the device.
  std::optional<Workload> workloadFor(const CodegenModel &path) {
    for (bool transposesRhs : {false, true})
      for (auto [type, sum] : {std::pair(ElementType::F32, ElementType::F32),
                               {ElementType::F16, ElementType::F32}}) {
        Workload workload =
            Workload::matmul({1, 512}, {1024, 1024}, {768, 768},
                             /*transposeLhs=*/false, transposesRhs);
        setTypes(workload, type, sum);
        if (!llvm::errorToBool(path.supports(workload, device)))
          return workload;
      }
    for (const Workload &workload :
         {Workload::rowSums({1, 512}, {1, std::nullopt}),
          Workload::vectorSum({1, std::nullopt})})
      if (!llvm::errorToBool(path.supports(workload, device)))
        return workload;
    return std::nullopt;
  }

  const DeviceSpec device = llvm::cantFail(loadDeviceSpec("h200"));
};
TEST_F(ScheduleSpaceTest, PointsHaveOperandsThatRegistersHold) {
  auto isSupported = [&](unsigned numInputs) {
    Workload workload = Workload::vectorSum({1, std::nullopt});
    workload.operands.insert(workload.operands.begin(), numInputs - 2,
                             workload.operands.front());
    workload.computations.front().writes = {numInputs};
    return llvm::any_of(codegenModels(), [&](const CodegenModel *path) {
      return !llvm::errorToBool(path->supports(workload, device));
    });
  };
  EXPECT_TRUE(isSupported(36));
  EXPECT_FALSE(isSupported(40));
}

} // namespace

TEST_F(ScheduleSpaceTest, SchedulesKeepWhatABlockComputes) {
  for (const CodegenModel *path : codegenModels()) {
    SCOPED_TRACE(path->name().str());
    std::optional<Workload> workload = workloadFor(*path);
    ASSERT_TRUE(workload);
    auto space = path->createSpace(*workload, device);
    unsigned number = 0, schedules = 0, legal = 0;
    for (int64_t alignment : {16, 1})
      space->forEachBlock(alignment, [&](const KernelFamily &block,
                                         const UKernel &ukernel, BlockKind) {
        if (number++ % kEvery != 0)
          return;
        EXPECT_EQ(llvm::toString(checkSchedule(block.schedule)), "");
        EXPECT_EQ(block.ukernel(0).registerTile, ukernel.registerTile);
        space->forEachSchedule(block, [&](const KernelFamily &family) {
          ++schedules;
          legal += !llvm::errorToBool(path->check(*workload, family, device));
          ClusterShape cluster = path->cluster(family.schedule);
          EXPECT_EQ(family.tiles.size(), 1u);
          BlockTile tile = family.tiles.front();
          tile[cluster.axis] /= cluster.blocks;
          for (unsigned axis : workload->spaceAxes().list())
            EXPECT_EQ(tile[axis], block.tiles.front()[axis]) << family.str();
          EXPECT_EQ(family.ukernel(0).registerTile, ukernel.registerTile);
          EXPECT_EQ(family.ukernel(0).workers,
                    ukernel.workers * cluster.blocks);
          EXPECT_EQ(family.alignment(), block.alignment());
          EXPECT_EQ(family.combineAxis, block.combineAxis);
          EXPECT_EQ(family.reduceAxes, block.reduceAxes);
          EXPECT_EQ(family.reduceSplit, block.reduceSplit);
          EXPECT_EQ(family.balancedSms, block.balancedSms);
          EXPECT_EQ(llvm::toString(checkSchedule(family.schedule)), "");
          return true;
        });
      });
    EXPECT_GT(schedules, number / kEvery);
    EXPECT_GT(legal, 0u);
  }
}

TEST_F(ScheduleSpaceTest, VisitsStopWhereTheyAreToldTo) {
  for (const CodegenModel *path : codegenModels()) {
    SCOPED_TRACE(path->name().str());
    std::optional<Workload> workload = workloadFor(*path);
    ASSERT_TRUE(workload);
    auto space = path->createSpace(*workload, device);
    std::optional<KernelFamily> first;
    space->forEachBlock(
        16, [&](const KernelFamily &block, const UKernel &, BlockKind) {
          if (!first)
            first = block;
        });
    ASSERT_TRUE(first);
    llvm::SmallVector<KernelFamily> all;
    auto visitAtMost = [&](size_t most) {
      llvm::SmallVector<KernelFamily> visited;
      space->forEachSchedule(*first, [&](const KernelFamily &family) {
        visited.push_back(family);
        return visited.size() < most;
      });
      return visited;
    };
    all = visitAtMost(std::numeric_limits<size_t>::max());
    for (size_t most = 1; most <= all.size(); ++most)
      EXPECT_TRUE(
          llvm::equal(visitAtMost(most), llvm::ArrayRef(all).take_front(most)));
    // No two are the same.
    for (size_t i = 0; i < all.size(); ++i)
      EXPECT_FALSE(
          llvm::is_contained(llvm::ArrayRef(all).take_front(i), all[i]))
          << all[i].str();
  }
}

/// What the work of a block leaves out costs nothing, and would win searches.
TEST_F(ScheduleSpaceTest, WorkLeavesNothingOut) {
  for (const CodegenModel *path : codegenModels()) {
    SCOPED_TRACE(path->name().str());
    std::optional<Workload> workload = workloadFor(*path);
    ASSERT_TRUE(workload);
    auto space = path->createSpace(*workload, device);
    bool isFound = false;
    space->forEachBlock(
        16, [&](const KernelFamily &block, const UKernel &, BlockKind) {
          if (isFound)
            return;
          space->forEachSchedule(block, [&](const KernelFamily &family) {
            if (llvm::errorToBool(path->check(*workload, family, device)))
              return true;
            isFound = true;
            BlockWork work = path->work(*workload, family, /*part=*/0, device);
            EXPECT_GT(work.warps, 0);
            EXPECT_GT(work.kTile, 0);
            EXPECT_GT(work.registersPerThread, 0);
            EXPECT_GT(work.otherInstructions, 0);
            EXPECT_GT(work.globalBytes, 0);
            EXPECT_FALSE(work.accesses.empty());
            return false;
          });
        });
    EXPECT_TRUE(isFound);
  }
}

/// Registers for accumulators are shared by all that a point has.
TEST_F(ScheduleSpaceTest, AccumulatorsOfAPointShareRegisters) {
  Workload workload = Workload::matmul({1, 512}, {1024, 1024}, {768, 768});
  EXPECT_EQ(pointsHeld(workload, 128), 128);
  State &state = *workload.reduction()->state;
  state.accumulators.push_back(Accumulator{"count", ElementType::I32});
  EXPECT_EQ(pointsHeld(workload, 128), 64);
  state.accumulators.push_back(Accumulator{"mean", ElementType::F32});
  EXPECT_EQ(pointsHeld(workload, 128), 42);
}
