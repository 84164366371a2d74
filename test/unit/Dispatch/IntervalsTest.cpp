//===- IntervalsTest.cpp - Plans as intervals of one axis -----------------===//
#include "FTuner/Dispatch/Intervals.h"
#include <gtest/gtest.h>
#include <random>

using namespace ftuner;

static DispatchEntry entry(int64_t lo, std::optional<int64_t> hi,
                           unsigned family) {
  return {{SizeRange{lo, hi, 1}, SizeRange::fixed(64)}, family};
}

TEST(MainAxisIntervals, MergesNeighbours) {
  Plan plan;
  plan.entries = {entry(1, 4, 2), entry(5, 9, 2), entry(10, std::nullopt, 0)};
  auto intervals = mainAxisIntervals(plan, 0);
  ASSERT_TRUE(intervals.has_value());
  ASSERT_EQ(intervals->size(), 2u);
  EXPECT_EQ((*intervals)[0].lo, 1);
  EXPECT_EQ((*intervals)[0].hi, 9);
  EXPECT_EQ((*intervals)[0].family, 2u);
  EXPECT_FALSE((*intervals)[1].hi.has_value());
}

TEST(MainAxisIntervals, RefusesPlansOverSeveralAxes) {
  Plan plan;
  plan.entries = {entry(1, 4, 0), entry(5, 9, 1)};
  plan.entries[1].box[1] = SizeRange::fixed(65);
  EXPECT_FALSE(mainAxisIntervals(plan, 0).has_value());
  EXPECT_FALSE(mainAxisIntervals(plan, 7).has_value());
}

TEST(MainAxisIntervals, EmptyPlanHasNone) {
  auto intervals = mainAxisIntervals(Plan(), 0);
  ASSERT_TRUE(intervals.has_value());
  EXPECT_EQ(familyForSize(*intervals, 5, 3), 3u);
}

TEST(MainAxisIntervals, AgreeWithThePlanOnRandomBoxes) {
  std::mt19937 random(std::random_device{}());
  for (int round = 0; round < 200; ++round) {
    Plan plan;
    plan.generalFamily = 9;
    int count = 1 + random() % 8;
    for (int i = 0; i < count; ++i) {
      int64_t lo = random() % 50;
      std::optional<int64_t> hi = lo + random() % 20;
      if (random() % 8 == 0)
        hi = std::nullopt;
      plan.entries.push_back(entry(lo, hi, random() % 4));
    }
    auto intervals = mainAxisIntervals(plan, 0);
    ASSERT_TRUE(intervals.has_value());
    for (size_t i = 1; i < intervals->size(); ++i) {
      ASSERT_TRUE((*intervals)[i - 1].hi.has_value());
      EXPECT_LT(*(*intervals)[i - 1].hi, (*intervals)[i].lo);
    }
    for (int64_t size = 0; size < 90; ++size)
      EXPECT_EQ(familyForSize(*intervals, size, plan.generalFamily),
                plan.familyFor({size, 64}));
  }
}
