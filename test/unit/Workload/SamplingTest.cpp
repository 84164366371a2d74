//===- SamplingTest.cpp - Sizes that a search looks at --------------------===//
#include "FTuner/Workload/Sampling.h"
#include "FTuner/Workload/Contraction.h"
#include "llvm/ADT/STLExtras.h"
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

TEST(SampleSizes, HoldCommonSizes) {
  auto holds = [](SizeRange range, int64_t limit, int64_t size) {
    return llvm::any_of(
        sampleSizes(axis(range), limit),
        [&](const SizeSample &sample) { return sample.size == size; });
  };
  for (int64_t size : {128, 255, 256, 257, 640, 1023, 1024, 1025, 2048, 3968})
    EXPECT_TRUE(holds({1, 4096}, 256, size)) << size;
  EXPECT_TRUE(holds({1, std::nullopt}, 256, 32769));
  // Few samples have room for powers of two alone.
  EXPECT_TRUE(holds({1, 4096}, 24, 1024));
  EXPECT_FALSE(holds({1, 4096}, 24, 1025));
  // They are sizes of the range.
  EXPECT_FALSE(holds({7, 1000000, 13}, 256, 1024));
  EXPECT_LE(sampleSizes(axis({1, 4096}), 24).size(), 24u);
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

TEST(SampleSizes, HoldTheSizesOfAShortHistogram) {
  Axis weighted = axis({1, 1000000});
  weighted.weights = {{1000, 1}, {2303, 0}, {123457, 1}};
  std::vector<SizeSample> samples = sampleSizes(weighted, 16);
  EXPECT_LE(samples.size(), 16u);
  EXPECT_EQ(samples.front().size, 1);
  EXPECT_EQ(samples.back().size, 1000000);
  double listed = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    EXPECT_TRUE(i == 0 || samples[i - 1].size < samples[i].size);
    EXPECT_NE(samples[i].size, 2303);
    if (samples[i].size == 1000 || samples[i].size == 123457)
      listed += samples[i].weight;
  }
  EXPECT_DOUBLE_EQ(listed, 1);
  // There are as many as without a histogram where it has too many sizes.
  weighted.weights.clear();
  for (int64_t size = 1; size < 100; ++size)
    weighted.weights.push_back({size, 1});
  EXPECT_EQ(sampleSizes(weighted, 16).size(),
            sampleSizes(axis({1, 1000000}), 16).size());
}

TEST(ShapeCells, WeighAsTheHistograms) {
  // Cells of N: to 45, to 362, and beyond; of K three equal ones.
  Workload workload = Workload::matmul({1, 4}, {16, 1024}, {1, std::nullopt});
  for (int64_t i = 0; i < 20; ++i)
    workload.axes[1].weights.push_back({16 + i, 0.15});
  for (SizeWeight entry : {SizeWeight{46, 3}, {362, 4}, {1024, 30}})
    workload.axes[1].weights.push_back(entry);
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

TEST(ShapeCells, SizesOfAShortHistogramStandForThemselves) {
  Workload workload =
      Workload::matmul({1, 4}, {100, 4096}, SizeRange::fixed(64));
  workload.axes[1].weights = {{768, 1}, {1000, 1}, {3072, 2}};
  std::vector<int64_t> sizes;
  std::vector<ShapeCell> cells = shapeCells(workload, matmulAxes.m);
  for (const ShapeCell &cell : cells) {
    int64_t n = cell.representative[1];
    sizes.push_back(n);
    EXPECT_TRUE(cell.box[1].contains(n));
    double weight = n == 3072 ? 0.5 : n == 768 || n == 1000 ? 0.25 : 0;
    EXPECT_NEAR(cell.weight, weight, 1e-3) << n;
  }
  EXPECT_TRUE(llvm::is_sorted(sizes));
  for (int64_t size : {100, 768, 1000, 3072, 4096})
    EXPECT_TRUE(llvm::is_contained(sizes, size)) << size;
  for (int64_t n : {0, 1, 876, 877, 2000, 3072, 10000})
    EXPECT_EQ(llvm::count_if(cells,
                             [&](const ShapeCell &cell) {
                               return cell.box[1].contains(n);
                             }),
              1)
        << n;
}
