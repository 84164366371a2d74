//===- VerifyTest.cpp - Bad problems and corrupted plans ------------------===//
#include "../DeviceTest.h"
#include "../StubModel.h"
#include "FTuner/Search/Problem/SearchStrategy.h"
#include "FTuner/Search/Setup/StrategyRegistry.h"
#include <functional>
#include <gtest/gtest.h>
#include <limits>

using namespace ftuner;

class VerifyTest : public DeviceTest {
protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (HasFatalFailure())
      return;
    llvm::Expected<Plan> found =
        solve(problem(), *findSearchStrategy("ftuner"));
    ASSERT_TRUE(static_cast<bool>(found)) << llvm::toString(found.takeError());
    plan = *found;
    // A pair to corrupt, whatever the search found.
    StubSchedule schedule;
    schedule.workersM = 4;
    plan.families[0] = stubFamily(stub, schedule, {7, 8}, 4);
    ASSERT_EQ(plan.families[0].str(),
              "stub [28,128,16]/[7,4,1] + [32,128,16]/[8,4,1] axis 0 depth 2 "
              "bytes 16");
  }
  SearchProblem problem() {
    return {workload, device, path, *findCostModel("sia"), options};
  }
  std::string errorOf(const Plan &candidate) {
    llvm::Error error = problem().verify(candidate);
    return error ? llvm::toString(std::move(error)) : "no error";
  }
  /// The error after one change.
  std::string corrupted(const std::function<void(Plan &)> &change) {
    Plan copy = plan;
    change(copy);
    return errorOf(copy);
  }
  void expectError(const std::function<void(Plan &)> &change,
                   const std::string &part) {
    std::string error = corrupted(change);
    EXPECT_NE(error.find(part), std::string::npos) << error;
  }

  /// Changes a family's schedule.
  void reschedule(KernelFamily &family,
                  const std::function<void(StubSchedule &)> &change) {
    StubSchedule schedule = StubSchedule::unpack(family.schedule);
    change(schedule);
    family.schedule = schedule.pack(stub);
  }

  Workload workload = Workload::matmul({16, 2048, 16}, SizeRange::fixed(2304),
                                       SizeRange::fixed(768));
  StubModel stub;
  const CodegenModel *path = &stub;
  SearchOptions options;
  Plan plan;
};

TEST_F(VerifyTest, AcceptsTheSoundPlan) {
  EXPECT_EQ(errorOf(plan), "no error");
}

TEST_F(VerifyTest, RefusesFamilyIndices) {
  expectError([](Plan &p) { p.entries[0].family = 99; },
              "entry 0: expected a family below");
  expectError([](Plan &p) { p.generalFamily = 99; },
              "expected a general and an unaligned general family below");
  expectError([](Plan &p) { p.unalignedGeneralFamily = 99; },
              "expected a general and an unaligned general family below");
  expectError([](Plan &p) { p.unalignedGeneralFamily = 0; },
              "expected an unaligned general family of any alignment");
  expectError(
      [&](Plan &p) {
        p.unalignedGeneralFamily = 0;
        reschedule(p.families[0], [](StubSchedule &s) { s.accessBytes = 4; });
      },
      "expected an unaligned general family of one part");
  expectError(
      [](Plan &p) {
        p.unalignedEntries = {p.entries[0]};
        p.unalignedEntries[0].family = 99;
      },
      "expected a family below");
  expectError(
      [](Plan &p) {
        p.unalignedEntries = {p.entries[0]};
        p.unalignedEntries[0].family = 0;
      },
      "entry 0 for unaligned operands: expected a family for operands of any "
      "alignment");
  expectError([](Plan &p) { p.families.clear(); },
              "expected at least one kernel family");
  expectError(
      [&](Plan &p) {
        while (p.families.size() <= 24)
          p.families.push_back(p.families[0]);
      },
      "expected at most 24 kernel families, but got 25");
}

TEST_F(VerifyTest, RefusesUncoveredSizes) {
  expectError([](Plan &p) { p.entries.clear(); },
              "none holds the sizes from M = 16, N = 2304, K = 768");
  expectError([](Plan &p) { p.entries.erase(p.entries.begin()); },
              "expected an entry for every declared shape");
  expectError([](Plan &p) { p.entries.pop_back(); },
              "expected an entry for every declared shape");
  expectError(
      [](Plan &p) {
        p.entries.resize(1);
        p.entries[0].box[0] = {16, 2047, 1};
      },
      "none holds the sizes from M = 2048, N = 2304, K = 768");
  // A hole without a declared size is not an error.
  EXPECT_EQ(corrupted([](Plan &p) {
              p.entries.resize(1);
              p.entries.push_back(p.entries[0]);
              p.entries[0].box[0] = {16, 160, 1};
              p.entries[1].box[0] = {170, 2048, 1};
            }),
            "no error");
  expectError([](Plan &p) { p.entries.front().box[0].min = 17; },
              "expected an entry for every declared shape");
  expectError([](Plan &p) { p.entries[0].box.pop_back(); },
              "entry 0: expected 3 ranges, but got 2");
  expectError([](Plan &p) { p.entries[0].box[0].step = 2; },
              "expected ranges with 0 <= min <= max <= 2147483647 and step 1");
  expectError([](Plan &p) { p.entries[0].box[0] = {20, 19, 1}; },
              "entry 0: expected ranges with 0 <= min <= max");
  expectError([](Plan &p) { p.entries[0].box[0].min = -1; },
              "entry 0: expected ranges with 0 <= min <= max");
  expectError(
      [](Plan &p) {
        p.entries[0].box[0].max = std::numeric_limits<int64_t>::max();
      },
      "entry 0: expected ranges with 0 <= min <= max <= 2147483647");
}

TEST_F(VerifyTest, RefusesIllegalTiles) {
  auto tile = [](Plan &p) -> BlockTile & { return p.families[0].tiles[0]; };
  expectError([&](Plan &p) { tile(p)[1] = 0; },
              "axis 1: expected a block tile of 1 to 1048576, but got 0");
  expectError([&](Plan &p) { tile(p)[0] = 0; },
              "axis 0: expected a block tile of 1 to 1048576, but got 0");
  expectError([&](Plan &p) { tile(p)[2] = -16; },
              "axis 2: expected a block tile of 1 to 1048576, but got -16");
  // Products of such tiles would not fit in 64 bits.
  expectError([&](Plan &p) { tile(p)[1] = int64_t{1} << 62; },
              "axis 1: expected a block tile of 1 to 1048576, but got "
              "4611686018427387904");
  expectError([&](Plan &p) { tile(p).pop_back(); },
              "expected tiles of 3 axes, but got [28,128]");
  expectError([&](Plan &p) { tile(p).clear(); },
              "expected tiles of 3 axes, but got []");
  expectError([&](Plan &p) { tile(p).push_back(1); },
              "expected tiles of 3 axes, but got [28,128,16,1]");
  expectError(
      [](Plan &p) {
        p.families[0].tiles.push_back(p.families[0].tiles.back());
      },
      "expected one or two parts, but got 3");
  expectError([](Plan &p) { p.families[0].tiles.clear(); },
              "expected one or two parts, but got 0");
  expectError([](Plan &p) { p.families[0].combineAxis = 3; },
              "expected parts along a space axis, but got axis 3");
  expectError([](Plan &p) { p.families[0].combineAxis = 2; },
              "expected parts along a space axis, but got axis 2");
  // Blocks step through the axes that the workload sums along.
  for (uint32_t axes : {0u, 1u << 0, 1u << 0 | 1u << 2})
    expectError([&](Plan &p) { p.families[0].reduceAxes = axes; },
                "expected a family of the workload's reduce axes");
  expectError([](Plan &p) { p.families[0].reduceSplit = 0; },
              "expected a split-K factor of 1 to 2147483647, but got 0");
  expectError(
      [](Plan &p) { p.families[0].reduceSplit = maxExtent + 1; },
      "expected a split-K factor of 1 to 2147483647, but got 2147483648");
}

TEST_F(VerifyTest, RefusesSchedulesThatThePathDoesNotHave) {
  auto expectRefused = [&](const std::function<void(StubSchedule &)> &change,
                           const std::string &part) {
    expectError([&](Plan &p) { reschedule(p.families[0], change); }, part);
  };
  expectError([](Plan &p) { p.families[0].tiles[0][0] = 27; },
              "stub: expected block tiles that are multiples of the workers, "
              "but got [27,128,16]");
  expectRefused([](StubSchedule &s) { s.stages = 7; },
                "stub: expected stages of 2 or 3, but got 7");
  expectRefused([](StubSchedule &s) { s.accessBytes = 8; },
                "stub: expected access_bytes of 4 or 16, but got 8");
  expectRefused([](StubSchedule &s) { s.workersN = 30; },
                "expected whole warps of 32 threads, but got 4 by 30 workers");
  expectRefused([](StubSchedule &s) { s.workersM = 0; },
                "expected workers_m of 1 to 1024, but got 0");
  // With one part it does not matter along which axis another would lie.
  auto alongN = [](Plan &p) {
    p.families[0].combineAxis = 1;
    p.families[0].tiles.pop_back();
  };
  EXPECT_EQ(corrupted(alongN), "no error");
  expectError(
      [](Plan &p) {
        p.families[0].combineAxis = 1;
        p.families[0].tiles[0] = {28, 128, 16};
        p.families[0].tiles[1] = {28, 256, 16};
      },
      "stub: expected parts along an axis that it combines");
}

TEST_F(VerifyTest, RefusesFamiliesOfOtherPaths) {
  expectError([](Plan &p) { p.families[0].schedule = Schedule(); },
              "family 0 (without a schedule): expected the schedule of a "
              "codegen path");
  StubModel other;
  expectError(
      [&](Plan &p) {
        p.families[0].schedule =
            StubSchedule::unpack(p.families[0].schedule).pack(other);
      },
      "expected a family of the paths stub, but got stub");
  const CodegenModel *simt = findCodegenModel("simt");
  auto useSimt = [&](Plan &p) {
    // 4 × 32 threads in two stages with vectors of four elements.
    p.families[0].schedule = Schedule(*simt, {4, 32, 2, 4, 1, 0, 0, 1});
  };
  expectError(useSimt, "expected a family of the paths stub, but got simt");
  // Where both may serve, each is checked by its own path.
  Plan both = plan;
  useSimt(both);
  const CodegenModel *paths[] = {simt, path};
  SearchProblem wide{workload, device, paths, *findCostModel("sia"), options};
  EXPECT_EQ(llvm::toString(wide.verify(both)), "");
  both.families[0].schedule = Schedule(*simt, {4, 32, 2, 3, 1, 0, 0, 1});
  std::string error = llvm::toString(wide.verify(both));
  EXPECT_NE(error.find("simt: expected vector_width of 1 or 4, but got 3"),
            std::string::npos)
      << error;
}

TEST_F(VerifyTest, RefusesPartitionsThatAreNotExact) {
  auto high = [](Plan &p) -> BlockTile & { return p.families[0].tiles[1]; };
  // Any two heights under one schedule make a pair.
  EXPECT_EQ(corrupted([&](Plan &p) { high(p)[0] = 44; }), "no error");
  expectError([&](Plan &p) { high(p)[0] = 28; },
              "axis 0: expected ascending heights on the combine axis and "
              "equal tiles elsewhere, but got [28,128,16] and [28,128,16]");
  expectError([&](Plan &p) { high(p)[0] = 30; },
              "expected block tiles that are multiples of the workers, but got "
              "[30,128,16]");
  expectError([&](Plan &p) { high(p)[1] = 256; },
              "axis 1: expected ascending heights on the combine axis and "
              "equal tiles elsewhere, but got [28,128,16] and [32,256,16]");
  expectError([&](Plan &p) { high(p)[2] = 8; },
              "axis 2: expected ascending heights on the combine axis and "
              "equal tiles elsewhere, but got [28,128,16] and [32,128,8]");
  expectError(
      [](Plan &p) {
        std::swap(p.families[0].tiles[0], p.families[0].tiles[1]);
      },
      "axis 0: expected ascending heights on the combine axis");
}

TEST_F(VerifyTest, RefusesWrongBalancedFamilies) {
  EXPECT_EQ(corrupted([](Plan &p) { p.families[0].balancedSms = 132; }),
            "no error");
  std::string message =
      "expected balanced partitions of two ascending heights over "
      "a positive number of SMs, but got ";
  expectError([](Plan &p) { p.families[0].balancedSms = -1; },
              message + "-1 for 2 tiles");
  expectError([](Plan &p) { p.families[0].balancedSms = maxBalancedSms + 1; },
              message + "65537 for 2 tiles");
  expectError(
      [](Plan &p) {
        p.families[0].balancedSms = 132;
        p.families[0].tiles.pop_back();
      },
      message + "132 for 1 tiles");
  // The higher part first.
  expectError(
      [](Plan &p) {
        p.families[0].balancedSms = 132;
        std::swap(p.families[0].tiles[0], p.families[0].tiles[1]);
      },
      "expected ascending heights on the combine axis");
}

TEST_F(VerifyTest, RefusesBlocksOfSeveralBatchElements) {
  workload = Workload::batchMatmul({1, 8}, SizeRange::fixed(64),
                                   SizeRange::fixed(64), SizeRange::fixed(64));
  llvm::Expected<Plan> found = solve(problem(), *findSearchStrategy("ftuner"));
  ASSERT_TRUE(static_cast<bool>(found)) << llvm::toString(found.takeError());
  plan = *found;
  EXPECT_EQ(errorOf(plan), "no error");
  expectError(
      [](Plan &p) {
        for (BlockTile &tile : p.families[0].tiles)
          tile[3] = 2;
      },
      "stub: expected tiles of 1 on batch axes, but got [");
  // Parts that differ there are an error even if the path does not say so.
  expectError(
      [&](Plan &p) {
        StubSchedule schedule;
        schedule.workersM = 4;
        p.families[0] = stubFamily(stub, schedule, {7, 8}, 4, 16, 4);
        p.families[0].tiles[1][3] = 2;
      },
      "axis 3: expected ascending heights on the combine axis and equal tiles "
      "elsewhere, but got [28,128,16,1] and [32,128,16,2]");
  expectError([](Plan &p) { p.entries.back().box[3] = SizeRange::fixed(9); },
              "expected an entry for every declared shape");
}

TEST_F(VerifyTest, RefusesRejectedFamilies) {
  SearchProblem p = problem();
  p.rejected = {plan.families[1]};
  llvm::Error error = p.verify(plan);
  EXPECT_NE(llvm::toString(std::move(error)).find("that was not rejected"),
            std::string::npos);
}

TEST_F(VerifyTest, RefusesWhatTheDeviceCannotHold) {
  auto resize = [&](Plan &p, int64_t workersN, int64_t depth) {
    reschedule(p.families[0], [&](StubSchedule &s) { s.workersN = workersN; });
    for (BlockTile &tile : p.families[0].tiles) {
      tile[1] = 4 * workersN;
      tile[2] = depth;
    }
  };
  expectError([&](Plan &p) { resize(p, 512, 16); },
              "expected 1 to 1024 threads, but got 2048");
  expectError([&](Plan &p) { resize(p, 32, 128); },
              "bytes of shared memory, but got");
  device.registersPerBlock = 8192;
  expectError([](Plan &) {}, "64 registers per thread in blocks of");
}

TEST_F(VerifyTest, ChecksTheProblem) {
  auto problemError = [&] {
    llvm::Error error = problem().check();
    return error ? llvm::toString(std::move(error)) : "no error";
  };
  EXPECT_EQ(problemError(), "no error");
  SearchOptions defaults = options;
  auto expectOption = [&](const std::string &part) {
    EXPECT_NE(problemError().find(part), std::string::npos) << problemError();
    options = defaults;
  };
  options.minGain = std::numeric_limits<double>::quiet_NaN();
  expectOption("option --least-gain: expected 0 to 1");
  options.maxKernels = 0;
  expectOption("option --max-kernels: expected 1 to 1024, but got 0");
  options.zeta = -1;
  expectOption("option --zeta");
  workload.axes[0].range = {9, 3};
  EXPECT_EQ(problemError(), "axis 'M': expected min <= max, but got 9 > 3");
  workload.axes[0].range = {1, 3, int64_t{1} << 31};
  EXPECT_EQ(problemError(), "axis 'M': expected a step up to 2147483647, but "
                            "got 2147483648");
  workload.axes[0].range = {1, 3};
  workload.axes[0].factor = 0;
  EXPECT_EQ(problemError(), "axis 'M': expected a factor from 1 to 2147483647, "
                            "but got 0");
  workload.axes[0].factor = 1;
  workload.axes.insert(workload.axes.end(), 4, workload.axes[0]);
  EXPECT_EQ(problemError(), "stub: expected at most six axes");
  workload.axes.resize(3);
  workload.reduction()->reduce = {};
  workload.operands.back().axes = {0, 1, 2};
  EXPECT_EQ(problemError(), "axis 'K': expected a reduce axis, since axes are "
                            "M, N, K, then batch axes");
}
