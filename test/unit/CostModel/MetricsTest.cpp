//===- MetricsTest.cpp - Equations 2, 3, 6 and 7 by hand ------------------===//
#include "FTuner/CostModel/Metrics.h"
#include "../RandomSeed.h"
#include "FTuner/Codegen/Simt/SimtSchedule.h"
#include "FTuner/Workload/Contraction.h"
#include <gtest/gtest.h>
#include <random>

using namespace ftuner;

/// Ten SMs at 1 GHz: 1280 GB/s of shared memory, 100 GB/s of DRAM, 2 TFLOP/s.
static DeviceSpec testDevice() {
  DeviceSpec device;
  device.smCount = 10;
  device.clockMhz = 1000;
  device.fp32Tflops = 2;
  device.dramGbps = 100;
  return device;
}

/// A family of one part on the CUDA cores.
static KernelFamily tile(int64_t bm, int64_t bn, int64_t bk, int64_t rm,
                         int64_t rn, unsigned numAxes = 3) {
  return simtFamily({bm / rm, bn / rn, 2, 4}, rm, rn, bk, numAxes);
}

/// Its metrics over the whole shape.
static Metrics metricsOf(const Workload &workload, const Shape &shape,
                         const KernelFamily &family, const DeviceSpec &device) {
  return ukernelMetrics(workload, shape, family, 0, device);
}

static Workload matmul() {
  return Workload::matmul({1, 4096}, {1, 4096}, {1, 4096});
}

TEST(Metrics, PaddingIsUsefulOverAllPoints) {
  // 53 rows in tiles of 8 take 56, 96 columns in tiles of 64 take 128, depth
  // 20 in tiles of 8 takes 24.
  Metrics m =
      metricsOf(matmul(), {53, 96, 20}, tile(8, 64, 8, 1, 4), testDevice());
  EXPECT_DOUBLE_EQ(m.pad, (53.0 / 56) * (96.0 / 128) * (20.0 / 24));
  EXPECT_EQ(m.blocks, 7 * 2);
}

TEST(Metrics, OccupancyIsTheFillOfWaves) {
  // 14 blocks on 10 SMs: two waves of 10.
  Metrics m =
      metricsOf(matmul(), {53, 96, 20}, tile(8, 64, 8, 1, 4), testDevice());
  EXPECT_DOUBLE_EQ(m.occ, 14.0 / 20);
  EXPECT_DOUBLE_EQ(
      metricsOf(matmul(), {80, 64, 8}, tile(8, 64, 8, 1, 4), testDevice()).occ,
      1);
}

TEST(Metrics, ComputeToMemoryByHand) {
  // 64 × 64 × 32 in tiles of 32 × 32, register tile 4 × 4: 64 threads, 4
  // blocks. Compute: 2 · 131072 / 2e12 = 131.072 ns.
  // Global: 2 · |A| + 2 · |B| + |C| = (2 · 2048 + 2 · 2048 + 4096) · 4 B =
  // 49152 B at 100 GB/s = 491.52 ns.
  // Shared: 4 · (64 + 64 · 8) · 32 · 4 B = 294912 B at 1280 GB/s = 230.4 ns.
  DeviceSpec device = testDevice();
  KernelFamily family = tile(32, 32, 8, 4, 4);
  Metrics m = metricsOf(matmul(), {64, 64, 32}, family, device);
  EXPECT_NEAR(m.cmr, 131.072 / 491.52, 1e-12);
  // With ten times the DRAM, shared memory is the bound.
  device.dramGbps = 1000;
  m = metricsOf(matmul(), {64, 64, 32}, family, device);
  EXPECT_NEAR(m.cmr, 131.072 / 230.4, 1e-12);
}

TEST(Metrics, OtherOperandsAreReadOnce) {
  Workload workload = matmul();
  workload.operands.push_back({OperandRole::Extra, {matmulAxes.n}});
  workload.operands.push_back(
      {OperandRole::Init, {matmulAxes.m, matmulAxes.n}});
  // 49152 B as above, and 64 · 4 B and 4096 · 4 B.
  Metrics m =
      metricsOf(workload, {64, 64, 32}, tile(32, 32, 8, 4, 4), testDevice());
  EXPECT_NEAR(m.cmr, 131.072 / 657.92, 1e-12);
}

TEST(Metrics, SplitMultipliesBlocksAndWrites) {
  KernelFamily family = tile(32, 32, 8, 4, 4);
  family.reduceSplit = 3;
  // Slices of ceil(32 / 3) = 11 pad to 16 each; |C| is written three times.
  Metrics m = metricsOf(matmul(), {64, 64, 32}, family, testDevice());
  EXPECT_EQ(m.blocks, 12);
  EXPECT_DOUBLE_EQ(m.pad, 32.0 / 48);
  EXPECT_NEAR(m.cmr, 131.072 / 819.2, 1e-12);
}

TEST(Metrics, ExactPartitionHasNoPaddingOnItsAxis) {
  KernelFamily family = simtFamily({1, 32, 2, 4}, {7, 8}, 2, 8);
  Partition partition = partitionExtent(family, 53, 1);
  EXPECT_EQ(partition.first, 3);
  EXPECT_EQ(partition.second, 4);
  EXPECT_EQ(partition.padded, 0);
  Metrics m = programMetrics(matmul(), {53, 128, 16}, {&family, partition},
                             testDevice());
  EXPECT_DOUBLE_EQ(m.pad, 1);
  EXPECT_EQ(m.blocks, 14);
  EXPECT_DOUBLE_EQ(m.occ, 0.7);
  // The parts' traffic over their own rows. Compute 217088 / 2e12 = 108.544
  // ns. Global: |A| twice, |B| seven times, |C| once:
  // (2 · 848 + 7 · 2048 + 6784) · 4 B = 91264 B, 912.64 ns.
  EXPECT_NEAR(m.cmr, 108.544 / 912.64, 1e-12);
}

TEST(Metrics, ProgramOfOnePartEqualsItsUKernel) {
  RandomSeed seed;
  std::mt19937 random(seed);
  auto pick = [&](int64_t maximum) -> int64_t {
    return 1 + random() % maximum;
  };
  for (int round = 0; round < 500; ++round) {
    int64_t rm = pick(8), rn = pick(8);
    KernelFamily family =
        tile(rm * pick(16), rn * pick(16), 8 * pick(4), rm, rn);
    family.combineAxis = random() % 2;
    Shape shape = {pick(3000), pick(3000), pick(3000)};
    Program program{&family, partitionShape(family, shape)};
    Metrics whole = metricsOf(matmul(), shape, family, testDevice());
    Metrics real = programMetrics(matmul(), shape, program, testDevice());
    EXPECT_NEAR(whole.pad, real.pad, 1e-12);
    EXPECT_NEAR(whole.occ, real.occ, 1e-12);
    EXPECT_NEAR(whole.cmr, real.cmr, 1e-12 * whole.cmr);
    EXPECT_EQ(whole.blocks, real.blocks);
    EXPECT_GT(whole.pad, 0);
    EXPECT_LE(whole.pad, 1);
    EXPECT_LE(whole.occ, 1);
  }
}

TEST(Metrics, HugeShapesDoNotOverflow) {
  Metrics m = metricsOf(matmul(), {2147483647, 2147483647, 2147483647},
                        tile(1, 32, 8, 1, 1), testDevice());
  EXPECT_GT(m.blocks, 0);
  EXPECT_GT(m.pad, 0.99);
  EXPECT_TRUE(std::isfinite(m.cmr) && m.cmr > 0);
}

TEST(Metrics, CountsOfBlocksHaveAnEnd) {
  // 2^31 · 2^26 blocks, for each of 2^31 elements of the batch.
  SizeRange any{1, std::nullopt};
  Workload batched = Workload::batchMatmul(any, any, any, any);
  KernelFamily family = tile(1, 32, 8, 1, 1, /*numAxes=*/4);
  Shape shape(4, maxExtent);
  Metrics m = metricsOf(batched, shape, family, testDevice());
  EXPECT_EQ(m.blocks, maxBlocks);
  EXPECT_GT(m.occ, 0.99);
  EXPECT_TRUE(std::isfinite(m.cmr) && m.cmr > 0);
  DeviceSpec device = testDevice();
  std::vector<Metrics> values;
  FactoredMetrics(batched, device, family.path(), family.ukernel(0))
      .evaluate(shape, values);
  EXPECT_EQ(values.front().blocks, maxBlocks);
}

TEST(FactoredMetrics, EqualTheMetricsOfEachUKernel) {
  RandomSeed seed;
  std::mt19937 random(seed);
  auto pick = [&](int64_t maximum) -> int64_t {
    return 1 + random() % maximum;
  };
  SizeRange any{1, std::nullopt};
  Workload batched = Workload::batchMatmul(any, any, any, any, true, true);
  // The right operand is shared by the whole batch.
  Workload shared = Workload::batchMatmul(any, any, any, any);
  shared.operands[1].axes = {matmulAxes.k, matmulAxes.n};
  shared.operands.push_back({OperandRole::Extra, {matmulAxes.n}});
  for (const Workload &workload : {matmul(), batched, shared}) {
    std::vector<KernelFamily> families;
    std::vector<UKernel> ukernels;
    for (int i = 0; i < 100; ++i) {
      int64_t rm = pick(8), rn = pick(8);
      KernelFamily family =
          tile(rm * pick(16), rn * pick(16), 8 * pick(4), rm, rn,
               static_cast<unsigned>(workload.axes.size()));
      family.reduceSplit = pick(3);
      ukernels.push_back(family.ukernel(0));
      families.push_back(std::move(family));
    }
    DeviceSpec device = testDevice();
    FactoredMetrics factored(workload, device, families.front().path(),
                             ukernels);
    std::vector<Metrics> values;
    for (int round = 0; round < 20; ++round) {
      Shape shape;
      for (size_t axis = 0; axis < workload.axes.size(); ++axis)
        shape.push_back(pick(axis < 3 ? 3000 : 50));
      factored.evaluate(shape, values);
      ASSERT_EQ(values.size(), ukernels.size());
      for (size_t i = 0; i < ukernels.size(); ++i) {
        Metrics expected = metricsOf(workload, shape, families[i], device);
        EXPECT_NEAR(values[i].pad, expected.pad, 1e-12);
        EXPECT_NEAR(values[i].occ, expected.occ, 1e-12);
        EXPECT_NEAR(values[i].cmr, expected.cmr, 1e-12 * expected.cmr);
        EXPECT_EQ(values[i].blocks, expected.blocks);
      }
    }
  }
}
