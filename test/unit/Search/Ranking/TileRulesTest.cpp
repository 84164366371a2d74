//===- TileRulesTest.cpp - RegTileRule and SmemTileRule -------------------===//
#include "FTuner/Search/Ranking/TileRules.h"
#include "../../RandomSeed.h"
#include "../StubModel.h"
#include <gtest/gtest.h>
#include <random>
#include <set>

using namespace ftuner;

/// F by enumeration.
static std::set<int64_t> factorsOf(const SizeRange &range, int64_t limit) {
  auto isPrime = [](int64_t value) {
    for (int64_t divisor = 2; divisor * divisor <= value; ++divisor)
      if (value % divisor == 0)
        return false;
    return value > 1;
  };
  std::set<int64_t> result = {1};
  auto add = [&](int64_t size) {
    for (int64_t divisor = 1; divisor <= std::min(size, limit); ++divisor)
      if (size % divisor == 0)
        result.insert(divisor);
  };
  for (int64_t size = range.min; size <= *range.max; size += range.step) {
    add(size);
    if (isPrime(size)) {
      add(size - 1);
      add(size + 1);
    }
  }
  return result;
}

static std::set<int64_t> sizesOf(const TileFactors &factors) {
  return {factors.sizes().begin(), factors.sizes().end()};
}

TEST(TileFactors, PrimesTakeTheDivisorsOfTheirNeighbours) {
  EXPECT_EQ(sizesOf(TileFactors(SizeRange::fixed(53), 1000)),
            (std::set<int64_t>{1, 2, 3, 4, 6, 9, 13, 18, 26, 27, 52, 53, 54}));
  EXPECT_EQ(sizesOf(TileFactors(SizeRange::fixed(12), 6)),
            (std::set<int64_t>{1, 2, 3, 4, 6}));
}

TEST(TileFactors, EqualEnumeration) {
  RandomSeed seed;
  std::mt19937 random(seed);
  for (int round = 0; round < 200; ++round) {
    SizeRange range;
    range.min = random() % 200;
    range.step = 1 + random() % 40;
    range.max = range.min + random() % 3000;
    int64_t limit = 1 + random() % 400;
    ASSERT_EQ(sizesOf(TileFactors(range, limit)), factorsOf(range, limit))
        << range.min << " " << *range.max << " " << range.step;
  }
}

TEST(TileFactors, LongAndOpenRangesCostNoEnumeration) {
  // All sizes ≡ 1 modulo 16 are odd; the neighbours of primes are even.
  SizeRange odd{1, std::nullopt, 16};
  TileFactors factors(odd, 100);
  EXPECT_TRUE(factors.contains(99));
  EXPECT_TRUE(factors.contains(2)); // 17 + 1
  TileFactors all(SizeRange{1, std::nullopt}, 7000);
  EXPECT_EQ(all.sizes().size(), 7000u);
  // Multiples of 16 hold every divisor, except beyond their end.
  SizeRange rows{16, 1 << 20, 16};
  EXPECT_EQ(TileFactors(rows, 7000).sizes().size(), 7000u);
  // Sizes ≡ 3 modulo 6 above 3 are not primes, so no even size gets in.
  SizeRange threes{9, 60009, 6};
  TileFactors noEven(threes, 50);
  for (int64_t size = 1; size <= 50; ++size)
    EXPECT_EQ(noEven.contains(size), size % 2 == 1) << size;
}

/// The rules step by step, as defined in TileRules.h.
static std::pair<int64_t, int64_t> countByWalking(const Workload &workload,
                                                  const DeviceSpec &device) {
  std::set<int64_t> m = factorsOf(workload.axes[0].range, 4096);
  std::set<int64_t> n = factorsOf(workload.axes[1].range, 4096);
  int64_t k = *workload.axes[2].range.max, all = 0, wholeWarps = 0;
  for (int64_t bm : m)
    for (int64_t rm : m)
      for (int64_t bn : n)
        for (int64_t rn : n) {
          if (bm % rm != 0 || bn % rn != 0)
            continue;
          int64_t threads = bm / rm * (bn / rn);
          for (int64_t bk = 8; bk < k + 8; bk += 8) {
            if (4 * bk * (bm + bn) > device.sharedMemoryPerBlockBytes)
              break;
            ++all;
            wholeWarps +=
                threads % 32 == 0 && threads <= device.maxThreadsPerBlock;
          }
        }
  return {all, wholeWarps};
}

TEST(TileRules, CountWhatTheyDefine) {
  llvm::Expected<DeviceSpec> device = loadDeviceSpec("v100");
  ASSERT_TRUE(static_cast<bool>(device));
  device->sharedMemoryPerBlockBytes = 16384;
  for (const Workload &workload :
       {Workload::matmul({1, 24}, SizeRange::fixed(96), SizeRange::fixed(60)),
        Workload::matmul({16, 160, 16}, SizeRange::fixed(53),
                         SizeRange::fixed(768)),
        Workload::matmul(SizeRange::fixed(7), {3, 40, 5},
                         SizeRange::fixed(5))}) {
    TileRules rules(workload, *device, StubSpace(StubModel(), workload));
    auto [all, wholeWarps] = countByWalking(workload, *device);
    EXPECT_EQ(rules.numCandidates, all);
    EXPECT_EQ(rules.numWholeWarps, wholeWarps);
    EXPECT_GT(wholeWarps, 0);
  }
}

TEST(TileRules, ThePapersWorkloadHasMillions) {
  // Dense for 128 shapes on V100: about two million in the paper, 1.4 to 3.5
  // million by this reading, depending on the memory limit and on M.
  llvm::Expected<DeviceSpec> device = loadDeviceSpec("v100");
  ASSERT_TRUE(static_cast<bool>(device));
  SizeRange n = SizeRange::fixed(2304), k = SizeRange::fixed(768);
  for (int64_t bytes : {49152, 98304})
    for (SizeRange m : {SizeRange{1, 128}, SizeRange{16, 2048, 16}}) {
      device->sharedMemoryPerBlockBytes = bytes;
      Workload workload = Workload::matmul(m, n, k);
      TileRules rules(workload, *device, StubSpace(StubModel(), workload));
      EXPECT_GT(rules.numCandidates, 1300000);
      EXPECT_LT(rules.numCandidates, 10000000);
    }
}
