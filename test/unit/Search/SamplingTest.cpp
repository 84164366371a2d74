//===- SamplingTest.cpp - Sizes that a search looks at --------------------===//
#include "FTuner/Search/Sampling.h"
#include "FamilySelection.h"
#include <gtest/gtest.h>

using namespace ftuner;

static Axis axis(SizeRange range) { return {"M", AxisKind::Space, range, {}}; }

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
}

TEST(SampleSizes, GivesWeightsToTheSampleBelow) {
  Axis weighted = axis({1, 1000000});
  weighted.weights = {{1, 3.0}, {999999, 5.0}};
  std::vector<SizeSample> samples = sampleSizes(weighted, 64);
  EXPECT_DOUBLE_EQ(samples.front().weight, 3);
  EXPECT_DOUBLE_EQ(samples[samples.size() - 2].weight, 5);
  for (const SizeSample &sample : samples)
    EXPECT_GT(sample.weight, 0);
}

TEST(CombineShapes, TakesAllCombinations) {
  Workload workload =
      Workload::matmul({1, 4}, {16, 1024}, SizeRange::fixed(768));
  std::vector<ShapeSample> shapes =
      combineShapes(workload, Workload::kM, sampleSizes(workload.axes[0], 16));
  ASSERT_EQ(shapes.size(), 12u);
  EXPECT_EQ(shapes[0].shape, (Shape{1, 16, 768}));
  EXPECT_EQ(shapes[1].shape, (Shape{1, 128, 768}));
  EXPECT_EQ(shapes[11].shape, (Shape{4, 1024, 768}));
  EXPECT_NEAR(shapes[0].weight + shapes[1].weight + shapes[2].weight, 1, 1e-12);
}

TEST(ChooseFamilies, LosesLeast) {
  ScoreMatrix scores(3, 4);
  const double values[3][4] = {{9, 9, 1, 1}, {1, 1, 9, 9}, {6, 6, 6, 6}};
  for (int family = 0; family < 3; ++family)
    for (int shape = 0; shape < 4; ++shape)
      scores.at(family, shape) = values[family][shape];
  std::vector<unsigned> chosen;
  chooseFamilies(scores, {1, 1, 1, 1}, 1, chosen);
  EXPECT_EQ(chosen, std::vector<unsigned>{2});
  chosen.clear();
  chooseFamilies(scores, {1, 1, 0.001, 0.001}, 1, chosen);
  EXPECT_EQ(chosen, std::vector<unsigned>{0});
  chosen = {0};
  chooseFamilies(scores, {1, 1, 1, 1}, 5, chosen);
  EXPECT_EQ(chosen, (std::vector<unsigned>{0, 1}));
}
