//===- KernelFamilyTest.cpp - Schedules, families and their checks --------===//
#include "../Search/StubModel.h"
#include "FTuner/Codegen/Simt/SimtSchedule.h"
#include <functional>
#include <gtest/gtest.h>
#include <numeric>
#include <set>

using namespace ftuner;

//===----------------------------------------------------------------------===//
// Schedules
//===----------------------------------------------------------------------===//

TEST(Schedule, IsOfNoPathUntilOneMakesIt) {
  Schedule none;
  EXPECT_FALSE(none.isSet());
  EXPECT_EQ(none, Schedule());
  StubModel stub;
  Schedule zeros(stub, {});
  EXPECT_TRUE(zeros.isSet());
  EXPECT_EQ(&zeros.path(), &stub);
  EXPECT_NE(zeros, none);
}

TEST(Schedule, FieldsThatAreNotGivenAreZero) {
  StubModel stub;
  Schedule schedule(stub, {3, 16});
  EXPECT_EQ(schedule.fields(),
            (std::array<int32_t, Schedule::capacity>{3, 16}));
  EXPECT_EQ(schedule, Schedule(stub, {3, 16, 0, 0, 0, 0}));
}

TEST(Schedule, DiffersByEachFieldAndByPath) {
  StubModel stub, other;
  std::array<int64_t, Schedule::capacity> numbers;
  std::iota(numbers.begin(), numbers.end(), 1);
  auto make = [&](const CodegenModel &path) { return Schedule(path, numbers); };
  Schedule schedule = make(stub), copy = schedule;
  EXPECT_EQ(copy, schedule);
  EXPECT_NE(make(other), schedule);
  for (int64_t &number : numbers) {
    int64_t before = number;
    number = 99;
    EXPECT_NE(make(stub), schedule);
    number = before;
  }
  EXPECT_EQ(make(stub), schedule);
}

TEST(Schedule, PathsNameTheirFields) {
  llvm::SmallVector<const CodegenModel *> paths(codegenModels());
  ASSERT_FALSE(paths.empty());
  StubModel stub;
  paths.push_back(&stub);
  std::set<std::string> names;
  for (const CodegenModel *path : paths) {
    SCOPED_TRACE(path->name().str());
    EXPECT_TRUE(names.insert(path->name().str()).second);
  }
  for (const CodegenModel *path : codegenModels())
    EXPECT_EQ(findCodegenModel(path->name()), path);
  EXPECT_EQ(findCodegenModel("nonsense"), nullptr);
}

//===----------------------------------------------------------------------===//
// Paths that support a workload
//===----------------------------------------------------------------------===//

TEST(SupportingModels, LeaveOutThoseThatRefuse) {
  DeviceSpec device = llvm::cantFail(loadDeviceSpec("a100"));
  StubModel stub;
  const CodegenModel *paths[] = {findCodegenModel("simt"), &stub};
  Workload workload = Workload::matmul({1, 8}, {1, 8}, {1, 8});
  EXPECT_EQ(llvm::cantFail(supportingModels(paths, workload, device)),
            llvm::SmallVector<const CodegenModel *>(llvm::ArrayRef(paths)));
  // SIMT wants an output that is contiguous along n; the stub takes all.
  std::swap(workload.operands.back().axes[0], workload.operands.back().axes[1]);
  EXPECT_EQ(llvm::cantFail(supportingModels(paths, workload, device)),
            (llvm::SmallVector<const CodegenModel *>{&stub}));
  // Every path's reason, if there is none.
  while (workload.axes.size() <= 6)
    workload.axes.push_back({"B", SizeRange::fixed(2)});
  std::string error =
      llvm::toString(supportingModels(paths, workload, device).takeError());
  EXPECT_NE(error.find("simt: expected"), std::string::npos) << error;
  EXPECT_NE(error.find("stub: expected at most six axes"), std::string::npos)
      << error;
  EXPECT_EQ(llvm::toString(supportingModels({}, workload, device).takeError()),
            "expected a codegen path");
}

//===----------------------------------------------------------------------===//
// Families
//===----------------------------------------------------------------------===//

namespace {
class CheckTiles : public ::testing::Test {
protected:
  std::string errorOf(const KernelFamily &family) {
    return llvm::toString(checkTiles(workload, family));
  }
  /// The error after one change.
  std::string changed(const std::function<void(KernelFamily &)> &change) {
    KernelFamily copy = family;
    change(copy);
    return errorOf(copy);
  }

  Workload workload =
      Workload::batchMatmul({1, 8}, {1, 128}, {1, 128}, {1, 64});
  /// Heights of 28 and 32 rows.
  KernelFamily family = simtFamily({4, 32, 2, 4}, {7, 8}, 4, 16, 4);
};
} // namespace

TEST_F(CheckTiles, AcceptsOneTileAndTwo) {
  EXPECT_EQ(errorOf(family), "");
  EXPECT_EQ(changed([](KernelFamily &f) { f.tiles.pop_back(); }), "");
  EXPECT_EQ(changed([](KernelFamily &f) { f.balancedSms = 132; }), "");
  EXPECT_EQ(changed([](KernelFamily &f) { f.reduceSplit = 4; }), "");
  // Along another space axis.
  EXPECT_EQ(changed([](KernelFamily &f) {
              f.combineAxis = 3;
              f.tiles[1] = f.tiles[0];
              f.tiles[1][3] = 2;
            }),
            "");
}

TEST_F(CheckTiles, RefusesWrongNumbersOfTiles) {
  EXPECT_EQ(changed([](KernelFamily &f) { f.tiles.clear(); }),
            "expected one or two parts, but got 0");
  EXPECT_EQ(changed([](KernelFamily &f) { f.tiles.push_back(f.tiles[1]); }),
            "expected one or two parts, but got 3");
}

TEST_F(CheckTiles, RefusesCombineAxesThatAreNotSpace) {
  EXPECT_EQ(changed([](KernelFamily &f) { f.combineAxis = 2; }),
            "expected parts along a space axis, but got axis 2");
  EXPECT_EQ(changed([](KernelFamily &f) { f.combineAxis = 4; }),
            "expected parts along a space axis, but got axis 4");
}

TEST_F(CheckTiles, RefusesTilesOfOtherRanks) {
  EXPECT_EQ(changed([](KernelFamily &f) { f.tiles[1].pop_back(); }),
            "expected tiles of 4 axes, but got [32,128,16]");
  EXPECT_EQ(changed([](KernelFamily &f) { f.tiles[0].push_back(1); }),
            "expected tiles of 4 axes, but got [28,128,16,1,1]");
  EXPECT_EQ(changed([](KernelFamily &f) { f.tiles[0].clear(); }),
            "expected tiles of 4 axes, but got []");
}

TEST_F(CheckTiles, RefusesSizesOutOfBounds) {
  for (unsigned axis = 0; axis < 4; ++axis)
    for (int64_t size : {int64_t(0), int64_t(-1), int64_t(1 << 20) + 1,
                         std::numeric_limits<int64_t>::max()})
      EXPECT_EQ(changed([&](KernelFamily &f) {
                  for (BlockTile &tile : f.tiles)
                    tile[axis] = size;
                }),
                "axis " + std::to_string(axis) +
                    ": expected a block tile of 1 to 1048576, but got " +
                    std::to_string(size));
}

TEST_F(CheckTiles, RefusesTilesThatMakeNoPair) {
  auto message = [](unsigned axis, const std::string &tiles) {
    return "axis " + std::to_string(axis) +
           ": expected ascending heights on the combine axis and equal tiles "
           "elsewhere, but got " +
           tiles;
  };
  EXPECT_EQ(changed([](KernelFamily &f) { f.tiles[1] = f.tiles[0]; }),
            message(0, "[28,128,16,1] and [28,128,16,1]"));
  EXPECT_EQ(changed([](KernelFamily &f) { std::swap(f.tiles[0], f.tiles[1]); }),
            message(0, "[32,128,16,1] and [28,128,16,1]"));
  EXPECT_EQ(changed([](KernelFamily &f) { f.tiles[1][1] = 256; }),
            message(1, "[28,128,16,1] and [32,256,16,1]"));
  EXPECT_EQ(changed([](KernelFamily &f) { f.tiles[1][2] = 8; }),
            message(2, "[28,128,16,1] and [32,128,8,1]"));
  EXPECT_EQ(changed([](KernelFamily &f) { f.tiles[1][3] = 2; }),
            message(3, "[28,128,16,1] and [32,128,16,2]"));
}

TEST_F(CheckTiles, RefusesOtherReduceAxes) {
  EXPECT_EQ(changed([](KernelFamily &f) { f.reduceAxes = 0; }),
            "axis 2: expected a family of the workload's reduce axes");
  EXPECT_EQ(changed([](KernelFamily &f) { f.reduceAxes = 1 << 2 | 1 << 3; }),
            "axis 3: expected a family of the workload's reduce axes");
}

TEST_F(CheckTiles, RefusesWrongSplitsAndBalances) {
  for (int64_t split : {int64_t(0), int64_t(-3), maxExtent + 1})
    EXPECT_EQ(changed([&](KernelFamily &f) { f.reduceSplit = split; }),
              "expected a split-K factor of 1 to 2147483647, but got " +
                  std::to_string(split));
  std::string message = "expected balanced partitions of two ascending heights "
                        "over a positive number of SMs, but got ";
  EXPECT_EQ(changed([](KernelFamily &f) { f.balancedSms = -1; }),
            message + "-1 for 2 tiles");
  EXPECT_EQ(
      changed([](KernelFamily &f) { f.balancedSms = maxBalancedSms + 1; }),
      message + "65537 for 2 tiles");
  EXPECT_EQ(changed([](KernelFamily &f) {
              f.balancedSms = 132;
              f.tiles.pop_back();
            }),
            message + "132 for 1 tiles");
}

TEST(KernelFamily, DiffersByEachMember) {
  KernelFamily family = simtFamily({4, 32, 2, 4}, {7, 8}, 4, 16);
  const std::function<void(KernelFamily &)> changes[] = {
      [](KernelFamily &f) { f.tiles[0][0] = 24; },
      [](KernelFamily &f) { f.tiles.pop_back(); },
      [](KernelFamily &f) {
        SimtSchedule schedule = SimtSchedule::of(f.schedule);
        schedule.stages = 3;
        f.schedule = schedule.pack();
      },
      [](KernelFamily &f) { f.schedule = Schedule(); },
      [](KernelFamily &f) { f.combineAxis = 1; },
      [](KernelFamily &f) { f.reduceAxes = 0; },
      [](KernelFamily &f) { f.reduceSplit = 2; },
      [](KernelFamily &f) { f.balancedSms = 132; },
  };
  EXPECT_EQ(family, KernelFamily(family));
  for (const auto &change : changes) {
    KernelFamily other = family;
    change(other);
    EXPECT_FALSE(other == family) << other.str();
  }
}

TEST(KernelFamily, AsksItsPath) {
  StubModel stub;
  stub.threadsPerWorker = 32;
  StubSchedule schedule;
  schedule.workersM = 2;
  schedule.workersN = 4;
  KernelFamily family = stubFamily(stub, schedule, {16, 24}, 32, 32);
  EXPECT_EQ(family.threads(), 256);
  EXPECT_EQ(family.lowHeight(), 32);
  EXPECT_EQ(family.highHeight(), 48);
  EXPECT_EQ(family.alignment(), 16);
  EXPECT_FALSE(family.takesAnyAlignment());
  EXPECT_EQ(family.ukernel(1).workers, 8);
  EXPECT_EQ(family.str(), "stub [32,128,32]/[16,32,1] + [48,128,32]/[24,32,1] "
                          "axis 0 depth 2 bytes 16");
}
