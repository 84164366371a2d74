//===- FamilySelectionTest.cpp - Few families for many shapes -------------===//
#include "FamilySelection.h"
#include "FTuner/Search/Planning/RangePlanner.h"
#include "llvm/ADT/STLExtras.h"
#include <gtest/gtest.h>

using namespace ftuner;

TEST(RangeSamples, WeighAsBothAxes) {
  Workload workload =
      Workload::matmul({1, 4}, SizeRange::fixed(64), {16, 1024, 504});
  RangeSamples uniform(workload);
  ASSERT_EQ(uniform.shapes.size(), 12u);
  ASSERT_EQ(uniform.sizes.size(), 4u);
  ASSERT_EQ(uniform.cells.size(), 3u);
  for (double weight : uniform.weights)
    EXPECT_DOUBLE_EQ(weight, 1.0 / 3);
  workload.axes[0].weights = {{1, 1}, {2, 1}, {3, 2}, {4, 4}};
  workload.axes[2].weights = {{16, 1}, {520, 1}, {1024, 6}};
  RangeSamples weighted(workload);
  ASSERT_EQ(weighted.shapes, uniform.shapes);
  for (size_t size = 0; size < 4; ++size)
    for (size_t cell = 0; cell < 3; ++cell) {
      size_t sample = size * 3 + cell;
      EXPECT_EQ(weighted.shapes[sample][0], static_cast<int64_t>(size + 1));
      EXPECT_EQ(weighted.shapes[sample][2],
                weighted.cells[cell].representative[2]);
      EXPECT_DOUBLE_EQ(weighted.weights[sample],
                       workload.axes[0].weights[size].weight / 8 *
                           workload.axes[2].weights[cell].weight / 8);
    }
}

TEST(ChooseFamilies, MinimizesTheLoss) {
  ScoreMatrix scores(3, 4);
  const double values[3][4] = {{9, 9, 1, 1}, {1, 1, 9, 9}, {6, 6, 6, 6}};
  for (int family = 0; family < 3; ++family)
    for (int shape = 0; shape < 4; ++shape)
      scores.at(family, shape) = values[family][shape];
  std::vector<unsigned> chosen;
  chooseFamilies(scores, {1, 1, 1, 1}, 1, 1e-4, {}, chosen);
  EXPECT_EQ(chosen, std::vector<unsigned>{2});
  chosen.clear();
  chooseFamilies(scores, {1, 1, 0.001, 0.001}, 1, 1e-4, {}, chosen);
  EXPECT_EQ(chosen, std::vector<unsigned>{0});
  chosen = {0};
  chooseFamilies(scores, {1, 1, 1, 1}, 5, 1e-4, {}, chosen);
  EXPECT_EQ(chosen, (std::vector<unsigned>{0, 1}));
}

/// A matrix of negated times, families by shapes.
template <size_t Families, size_t Shapes>
static ScoreMatrix negatedTimes(const double (&times)[Families][Shapes]) {
  ScoreMatrix scores(Families, Shapes);
  for (size_t family = 0; family < Families; ++family)
    for (size_t shape = 0; shape < Shapes; ++shape)
      scores.at(family, shape) = -times[family][shape];
  return scores;
}

TEST(ChooseFamilies, WeighsRelativeLosses) {
  // The long shape's second family is 20 us and 1 % slower, the short ones'
  // first family 1 us and 50 %: microseconds would choose the first.
  const double times[2][3] = {{2000, 3, 3}, {2020, 2, 2}};
  std::vector<unsigned> chosen;
  ScoreMatrix scores = negatedTimes(times);
  chooseFamilies(scores, {1, 1, 1}, 1, 1e-4, {}, chosen);
  EXPECT_EQ(chosen, std::vector<unsigned>{1});
  // What is left in the matrix is the negated regret.
  EXPECT_DOUBLE_EQ(scores.at(1, 0), -0.01);
  EXPECT_DOUBLE_EQ(scores.at(0, 1), -0.5);
  EXPECT_EQ(scores.at(0, 0), 0);
  EXPECT_EQ(scores.at(1, 2), 0);
  // Weights count all the same.
  chosen.clear();
  scores = negatedTimes(times);
  chooseFamilies(scores, {1000, 1, 1}, 1, 1e-4, {}, chosen);
  EXPECT_EQ(chosen, std::vector<unsigned>{0});
}

TEST(ChooseFamilies, ServesALightlyWeighedShapeBeside) {
  // As a planner weighs a shape beyond a range: it decides between families
  // that serve the range alike, and takes none from it.
  const double times[3][3] = {{10, 10, 900}, {10, 10, 300}, {13, 13, 100}};
  for (double weight : {0.02, 1e-3}) {
    std::vector<unsigned> chosen;
    ScoreMatrix scores = negatedTimes(times);
    chooseFamilies(scores, {1, 1, weight}, 1, 1e-4, {}, chosen);
    EXPECT_EQ(chosen, std::vector<unsigned>{1}) << weight;
  }
  // With room for two it gets its own.
  std::vector<unsigned> chosen;
  ScoreMatrix scores = negatedTimes(times);
  chooseFamilies(scores, {1, 1, 0.02}, 2, 1e-4, {}, chosen);
  llvm::sort(chosen);
  EXPECT_EQ(chosen.back(), 2u);
  EXPECT_EQ(chosen.size(), 2u);
}

TEST(ChooseFamilies, BoundsWhatAShapeLoses) {
  // The mean is served by the first two; the last shape, one of many, loses a
  // tenth. The third family serves it, the fourth one better, but not within
  // the bound.
  const double times[4][5] = {{10, 10, 20, 20, 11},
                              {20, 20, 10, 10, 13},
                              {30, 30, 30, 30, 10},
                              {30, 30, 30, 30, 10.5}};
  auto chosenOf = [&](std::vector<double> lossBounds, size_t limit) {
    std::vector<unsigned> chosen;
    ScoreMatrix scores = negatedTimes(times);
    chooseFamilies(scores, {1, 1, 1, 1, 0.02}, limit, 0.01, lossBounds, chosen);
    llvm::sort(chosen);
    return chosen;
  };
  std::vector<unsigned> two = {0, 1}, three = {0, 1, 2};
  EXPECT_EQ(chosenOf({}, 4), two);
  EXPECT_EQ(chosenOf({0.02, 0.02, 0.02, 0.02, 0.02}, 4), three);
  EXPECT_EQ(chosenOf({0.02, 0.02, 0.02, 0.02, 0.11}, 4), two);
  EXPECT_EQ(chosenOf({0.02, 0.02, 0.02, 0.02, 0.02}, 2), two);
}

TEST(ChooseFamilies, StopsWhereAFamilySavesTooLittle) {
  // The second family saves a fifth of the time of one shape in four, a share
  // of 0.05 of the mean; the third a hundredth of another.
  const double times[3][4] = {
      {10, 10, 10, 12}, {20, 20, 20, 10}, {20, 20, 9.9, 20}};
  auto count = [&](double minGain) {
    std::vector<unsigned> chosen;
    ScoreMatrix scores = negatedTimes(times);
    chooseFamilies(scores, {1, 1, 1, 1}, 3, minGain, {}, chosen);
    return chosen.size();
  };
  EXPECT_EQ(count(0), 3u);
  EXPECT_EQ(count(0.0024), 3u);
  EXPECT_EQ(count(0.0026), 2u);
  EXPECT_EQ(count(0.049), 2u);
  EXPECT_EQ(count(0.051), 1u);
}

TEST(ChooseFamilies, ExchangesWhatTheFirstChoiceMissed) {
  // The best compromise joins first, but two specialists are better still.
  ScoreMatrix scores(3, 4);
  const double values[3][4] = {{6, 6, 6, 6}, {9, 9, 1, 1}, {1, 1, 9, 9}};
  for (int family = 0; family < 3; ++family)
    for (int shape = 0; shape < 4; ++shape)
      scores.at(family, shape) = values[family][shape];
  std::vector<unsigned> chosen;
  chooseFamilies(scores, {1, 1, 1, 1}, 2, 1e-4, {}, chosen);
  llvm::sort(chosen);
  EXPECT_EQ(chosen, (std::vector<unsigned>{1, 2}));
  // What is taken in any case stays.
  chosen = {0};
  chooseFamilies(scores, {1, 1, 1, 1}, 1, 1e-4, {}, chosen);
  EXPECT_EQ(chosen.front(), 0u);
  EXPECT_EQ(chosen.size(), 2u);
}
