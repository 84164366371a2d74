//===- SamplingTest.cpp - Sizes that a search looks at --------------------===//
#include "FTuner/Workload/Sampling.h"
#include "FTuner/Workload/Contraction.h"
#include <gtest/gtest.h>

using namespace ftuner;

static Axis axis(SizeRange range) { return {"M", range}; }

TEST(SampleSizes, EnumeratesSmallRanges) {
  std::vector<SizeSample> samples = sampleSizes(axis({16, 2048, 16}), 128);
  ASSERT_EQ(samples.size(), 128u);
  for (size_t i = 0; i < samples.size(); ++i)
    EXPECT_EQ(samples[i].size, static_cast<int64_t>(16 * (i + 1)));
}

TEST(SampleSizes, SamplesLargeAndOpenRanges) {
  for (SizeRange range : {SizeRange{1, 10000000}, SizeRange{1, std::nullopt},
                          SizeRange{7, 1000000, 13}, SizeRange{5, 70000},
                          SizeRange{100000, std::nullopt}}) {
    std::vector<SizeSample> samples = sampleSizes(axis(range), 256);
    ASSERT_FALSE(samples.empty());
    EXPECT_LE(samples.size(), 256u);
    EXPECT_EQ(samples.front().size, range.min);
    EXPECT_EQ(samples.back().size, largestSize(axis(range)));
    for (size_t i = 0; i < samples.size(); ++i) {
      EXPECT_TRUE(range.contains(samples[i].size));
      EXPECT_TRUE(i == 0 || samples[i - 1].size < samples[i].size);
    }
  }
}

TEST(SampleSizes, LeavesOutZero) {
  EXPECT_EQ(sampleSizes(axis({0, 4}), 16).front().size, 1);
  EXPECT_EQ(sampleSizes(axis({0, 32, 8}), 16).front().size, 8);
  EXPECT_EQ(sampleSizes(axis(SizeRange::fixed(0)), 16).front().size, 1);
  // Of 0, 8, … up to 6 only 0 is declared.
  EXPECT_EQ(sampleSizes(axis({0, 6, 8}), 16).front().size, 1);
  EXPECT_EQ(largestSize(axis({0, 6, 8})), 1);
}

TEST(SampleSizes, GivesWeightsToTheSampleBelow) {
  Axis weighted = axis({1, 1000000});
  weighted.weights = {{1, 3.0}, {999999, 5.0}};
  std::vector<SizeSample> samples = sampleSizes(weighted, 64);
  EXPECT_DOUBLE_EQ(samples.front().weight, 3.0 / 8);
  EXPECT_DOUBLE_EQ(samples[samples.size() - 2].weight, 5.0 / 8);
  for (const SizeSample &sample : samples)
    EXPECT_GT(sample.weight, 0);
  // Only shares count, however small or large the weights are.
  for (double unit : {5e-324, 1e307}) {
    weighted.weights = {{1, 3 * unit}, {999999, 5 * unit}};
    samples = sampleSizes(weighted, 64);
    EXPECT_DOUBLE_EQ(samples.front().weight, 3.0 / 8);
  }
}

TEST(SampleSizes, KeepsBothEndsHoweverFewAreAskedFor) {
  for (int64_t limit : {-1, 0, 1, 2}) {
    std::vector<SizeSample> samples = sampleSizes(axis({3, 1000}), limit);
    ASSERT_EQ(samples.size(), 2u);
    EXPECT_EQ(samples[0].size, 3);
    EXPECT_EQ(samples[1].size, 1000);
  }
}

TEST(ShapeCells, FillEveryAxisAndHoldTheirRepresentative) {
  Workload workload = Workload::matmul({1, 4}, {16, 1024}, {1, std::nullopt});
  std::vector<ShapeCell> cells = shapeCells(workload, matmulAxes.m);
  ASSERT_EQ(cells.size(), 9u);
  EXPECT_EQ(cells[0].representative, (Shape{1, 16, 64}));
  EXPECT_EQ(cells[8].representative, (Shape{1, 1024, 4096}));
  for (int64_t n : {0, 1, 16, 45, 46, 128, 362, 363, 1024, 100000})
    for (int64_t k : {0, 1, 64, 181, 182, 512, 4096, 1 << 20}) {
      int holding = 0;
      for (const ShapeCell &cell : cells)
        holding += cell.box[1].contains(n) && cell.box[2].contains(k);
      EXPECT_EQ(holding, 1) << n << " " << k;
    }
  for (const ShapeCell &cell : cells)
    for (unsigned axis : {1u, 2u})
      EXPECT_TRUE(cell.box[axis].contains(cell.representative[axis]));
  EXPECT_EQ(shapeAt(workload, cells[4], 0, 3), (Shape{3, 128, 512}));
}

TEST(ShapeCells, AxesOfOneSymbolFollowEachOther) {
  // Scores of attention: 12 heads of T x T products.
  Workload workload =
      Workload::batchMatmul({1, 64}, {1, 128}, {1, 128}, SizeRange::fixed(64));
  workload.axes[0].symbols = workload.axes[1].symbols = {"T"};
  std::vector<ShapeCell> cells = shapeCells(workload, matmulAxes.m);
  // Sizes of constant ratio from 1 to 64, each once.
  ASSERT_EQ(cells.size(), 11u);
  EXPECT_EQ(shapeAt(workload, cells[0], 0, 53), (Shape{53, 53, 64, 1}));
  EXPECT_EQ(cells.back().representative[3], 64);
  EXPECT_TRUE(cells[0].box[1].isOpen());
  // M = 16 · T, N = T.
  workload.axes[0].range = {16, 2048, 16};
  workload.axes[0].factor = 16;
  cells = shapeCells(workload, matmulAxes.m);
  EXPECT_EQ(shapeAt(workload, cells.back(), 0, 16 * 53),
            (Shape{848, 53, 64, 64}));
}

TEST(ShapeCells, WeighAsTheHistograms) {
  // Cells of N: to 45, to 362, and beyond; of K three equal ones.
  Workload workload = Workload::matmul({1, 4}, {16, 1024}, {1, std::nullopt});
  workload.axes[1].weights = {{16, 1}, {45, 2}, {46, 3}, {362, 4}, {1024, 30}};
  double total = 0;
  for (const ShapeCell &cell : shapeCells(workload, matmulAxes.m)) {
    total += cell.weight;
    int64_t n = cell.representative[1];
    EXPECT_DOUBLE_EQ(cell.weight, (n == 16 ? 3 : n == 128 ? 7 : 30) / 40.0 / 3);
  }
  EXPECT_DOUBLE_EQ(total, 1);
  // A cell without declared weights counts, but hardly.
  workload.axes[1].weights = {{16, 1}};
  for (const ShapeCell &cell : shapeCells(workload, matmulAxes.m)) {
    EXPECT_GT(cell.weight, 0);
    EXPECT_TRUE(cell.representative[1] == 16 || cell.weight < 0.001);
  }
}
