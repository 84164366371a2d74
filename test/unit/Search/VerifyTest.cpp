//===- VerifyTest.cpp - Bad problems and corrupted plans ------------------===//
#include "DeviceTest.h"
#include "FTuner/Search/SearchStrategy.h"
#include "StubCodegen.h"
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
    UKernel low, high;
    low.smemTile = {28, 128, 16};
    low.regTile = {7, 4, 1};
    high.smemTile = {32, 128, 16};
    high.regTile = {8, 4, 1};
    KernelFamily pair;
    pair.parts = {low, high};
    pair.path = "stub";
    plan.families[0] = pair;
  }
  SearchProblem problem() {
    return {workload, device, codegen, *findCostModel("sia"), options};
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

  Workload workload = Workload::matmul({16, 2048, 16}, SizeRange::fixed(2304),
                                       SizeRange::fixed(768));
  StubCodegen codegen;
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
              "expected a general and a fallback family below");
  expectError([](Plan &p) { p.fallbackFamily = 99; },
              "expected a general and a fallback family below");
  expectError([](Plan &p) { p.fallbackFamily = 0; },
              "expected a fallback with vector width 1");
  expectError(
      [](Plan &p) {
        p.fallbackFamily = 0;
        p.families[0].vectorWidth = 1;
      },
      "expected a fallback of one part");
  expectError(
      [](Plan &p) {
        p.unalignedEntries = {p.entries[0]};
        p.unalignedEntries[0].family = 99;
      },
      "expected a family below");
  expectError(
      [](Plan &p) {
        p.unalignedEntries = {p.entries[0]};
        p.families[p.entries[0].family].vectorWidth = 4;
      },
      "entry 0 for unaligned operands: expected a family with vector width 1");
  expectError([](Plan &p) { p.families.clear(); },
              "expected at least one kernel family");
  expectError(
      [&](Plan &p) {
        while (p.families.size() <= 16)
          p.families.push_back(p.families[0]);
      },
      "expected at most 16 kernel families, but got 17");
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
  // A hole without a declared size is none.
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
  auto part = [](Plan &p) -> UKernel & { return p.families[0].parts[0]; };
  expectError([&](Plan &p) { part(p).smemTile[0] = 27; },
              "axis 0: expected a block tile that is a multiple of a positive "
              "register tile, but got 27 and 7");
  expectError([&](Plan &p) { part(p).regTile[1] = 0; },
              "expected a block tile that is a multiple");
  expectError([&](Plan &p) { part(p).regTile[2] = 2; },
              "expected register tile 1 on a reduce axis");
  expectError([&](Plan &p) { part(p).smemTile.pop_back(); },
              "expected tiles of 3 axes");
  expectError([&](Plan &p) { part(p).smemTile[0] = 0; },
              "expected a block tile that is a multiple of a positive");
  expectError([&](Plan &p) { part(p).smemTile[2] = -16; },
              "expected a block tile that is a multiple of a positive");
  // Products of such tiles would not fit in 64 bits.
  expectError([&](Plan &p) { part(p).smemTile[1] = int64_t{1} << 62; },
              "axis 1: expected a block tile of at most 1048576, but got "
              "4611686018427387904");
  expectError([&](Plan &p) { part(p).regTile.push_back(1); },
              "expected tiles of 3 axes, but got 3 and 4");
  expectError([](Plan &p) { p.families[0].combineAxis = 3; },
              "expected parts along a space axis, but got axis 3");
  expectError(
      [](Plan &p) {
        p.families[0].parts.push_back(p.families[0].parts.back());
      },
      "expected one or two parts, but got 3");
  expectError([&](Plan &p) { part(p).reduceSplit = 0; },
              "expected a split of at least 1");
  expectError([&](Plan &p) { part(p).smemTile[1] = 120; },
              "expected whole warps of 32 threads, but got 120");
  expectError([](Plan &p) { p.families[0].parts.clear(); },
              "expected one or two parts, but got 0");
  expectError([](Plan &p) { p.families[0].combineAxis = 2; },
              "expected parts along a space axis, but got axis 2");
  expectError([](Plan &p) { p.families[0].combineAxis = 1; },
              "expected parts along an axis that the path combines");
  expectError([](Plan &p) { p.families[0].path = "other"; },
              "expected path 'stub'");
  expectError([](Plan &p) { p.families[0].stages = 7; },
              "expected a number of stages that the path has, but got 7");
  expectError([](Plan &p) { p.families[0].vectorWidth = 0; },
              "expected a positive vector width");
  expectError([](Plan &p) { p.families[0].vectorWidth = 2; },
              "stub: expected vector width 1 or 4");
}

TEST_F(VerifyTest, RefusesCoversThatAreNotExact) {
  auto high = [](Plan &p) -> UKernel & { return p.families[0].parts[1]; };
  // Any two heights of one layout make a pair.
  EXPECT_EQ(corrupted([&](Plan &p) {
              high(p).smemTile[0] = 44;
              high(p).regTile[0] = 11;
            }),
            "no error");
  expectError(
      [&](Plan &p) {
        high(p).smemTile[0] = 28;
        high(p).regTile[0] = 7;
      },
      "expected heights g·a and g·b, a < b, on the combine axis");
  expectError(
      [&](Plan &p) {
        high(p).smemTile[0] = 64;
        high(p).regTile[0] = 8;
      },
      "expected heights g·a and g·b, a < b, on the combine axis");
  expectError([&](Plan &p) { high(p).smemTile[1] = 256; },
              "equal tiles elsewhere");
  expectError([&](Plan &p) { high(p).smemTile[2] = 8; },
              "equal tiles elsewhere");
  expectError(
      [](Plan &p) {
        std::swap(p.families[0].parts[0], p.families[0].parts[1]);
      },
      "expected heights g·a and g·b, a < b, on the combine axis");
  expectError([&](Plan &p) { high(p).reduceSplit = 2; },
              "expected equal splits of the reduce axis");
}

TEST_F(VerifyTest, RefusesWrongBalancedFamilies) {
  EXPECT_EQ(corrupted([](Plan &p) { p.families[0].balancedSms = 132; }),
            "no error");
  const char *message =
      "expected balanced covers of two ascending heights over "
      "a positive number of SMs";
  expectError([](Plan &p) { p.families[0].balancedSms = -1; }, message);
  expectError(
      [](Plan &p) {
        p.families[0].balancedSms = 132;
        p.families[0].parts.pop_back();
      },
      message);
  // The higher part first.
  expectError(
      [](Plan &p) {
        p.families[0].balancedSms = 132;
        std::swap(p.families[0].parts[0], p.families[0].parts[1]);
      },
      "expected heights g·a and g·b, a < b");
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
        p.families[0].parts[0].smemTile[3] = 2;
        p.families[0].parts[0].regTile[3] = 2;
      },
      "axis 3: expected block tile 1 on a batch axis, but got 2");
  expectError([](Plan &p) { p.entries.back().box[3] = SizeRange::fixed(8); },
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
  auto resize = [](Plan &p, int64_t threadsAlongN, int64_t reduce) {
    for (UKernel &part : p.families[0].parts) {
      part.smemTile[1] = 4 * threadsAlongN;
      part.smemTile[2] = reduce;
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
  options.epsilonMin = 1.5;
  expectOption("option 'epsilon-min': expected 0 to 1");
  options.epsilonMax = 0.4;
  expectOption("option 'epsilon-max'");
  options.lambdaStep = 0;
  expectOption("option 'lambda-step'");
  options.psi = std::numeric_limits<double>::quiet_NaN();
  expectOption("option 'psi'");
  options.cost.c1 = std::numeric_limits<double>::infinity();
  expectOption("option 'c1'");
  options.maxKernels = 0;
  expectOption("option 'max-kernels': expected 1 to 1024, but got 0");
  options.zeta = -1;
  expectOption("option 'zeta'");
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
  workload.axes[2].kind = AxisKind::Space;
  EXPECT_EQ(problemError(), "axis 'K': expected a reduce axis, since axes are "
                            "M, N, K, then batch axes");
}
