//===- DecisionForestTest.cpp - Sums of decision trees --------------------===//
#include "FTuner/CostModel/DecisionForest.h"
#include <gtest/gtest.h>

using namespace ftuner;

static constexpr float unknown = std::numeric_limits<float>::quiet_NaN();

/// A decision on input 1 with leaves 10 and 20.
static std::vector<DecisionForest::Node> stump(float threshold,
                                               bool unknownGoesLeft = false) {
  return {{1, threshold, 1, 2, unknownGoesLeft}, {-1, 10}, {-1, 20}};
}

TEST(DecisionForest, InputsBelowTheThresholdGoLeft) {
  DecisionForest forest;
  forest.add(stump(0.5f));
  EXPECT_EQ(forest.sum({9, 0.4f}, 0.0), 10);
  EXPECT_EQ(forest.sum({9, 0.5f}, 0.0), 20);
  EXPECT_EQ(forest.sum({9, unknown}, 0.0), 20);
}

TEST(DecisionForest, AThresholdUpToANumberIncludesIt) {
  DecisionForest forest;
  forest.add(stump(DecisionForest::thresholdUpTo(0.5f)));
  EXPECT_EQ(forest.sum({9, 0.5f}, 0.0), 10);
  EXPECT_EQ(forest.sum({9, std::nextafter(0.5f, 1.0f)}, 0.0), 20);
  // The greatest number has no finite one after it.
  constexpr float greatest = std::numeric_limits<float>::max();
  DecisionForest all;
  all.add(stump(DecisionForest::thresholdUpTo(greatest)));
  EXPECT_EQ(all.sum({9, greatest}, 0.0), 10);
}

TEST(DecisionForest, TreesAddUpInTheTypeOfTheBase) {
  DecisionForest forest;
  forest.add(stump(0, /*unknownGoesLeft=*/true));
  forest.add(stump(0));
  EXPECT_EQ(forest.numTrees(), 2u);
  EXPECT_EQ(forest.sum({0, unknown}, 1e9), 1e9 + 30);
  // Ulps of f32 are 64 there: 10 is lost, and 20 too.
  EXPECT_EQ(forest.sum({0, unknown}, 1e9f), 1e9f);
}
