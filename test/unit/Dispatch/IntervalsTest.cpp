//===- IntervalsTest.cpp - Plans as cells and intervals -------------------===//
#include "FTuner/Dispatch/Intervals.h"
#include "../RandomSeed.h"
#include <gtest/gtest.h>
#include <random>

using namespace ftuner;

static SizeRange range(int64_t lo, std::optional<int64_t> hi) {
  return SizeRange{lo, hi, 1};
}

static DispatchEntry entry(int64_t lo, std::optional<int64_t> hi,
                           unsigned family) {
  return {{range(lo, hi), SizeRange::fixed(64)}, family};
}

/// The family that serves a shape, by cells.
static unsigned familyByCells(llvm::ArrayRef<PlanCell> cells, unsigned axis,
                              llvm::ArrayRef<int64_t> shape,
                              unsigned generalFamily) {
  for (const PlanCell &cell : cells) {
    bool inside = true;
    for (unsigned i = 0; i < shape.size(); ++i)
      inside &= i == axis || cell.box[i].contains(shape[i]);
    if (inside)
      return familyForSize(cell.intervals, shape[axis], generalFamily);
  }
  return generalFamily;
}

static SizeRange randomRange(std::mt19937 &random, int64_t sizes) {
  int64_t lo = random() % sizes;
  if (random() % 8 == 0)
    return range(lo, std::nullopt);
  return range(lo, lo + random() % (1 + sizes / 2));
}

TEST(PlanCells, MergesNeighbours) {
  Plan plan;
  plan.entries = {entry(1, 4, 2), entry(5, 9, 2), entry(10, std::nullopt, 0)};
  auto cells = planCells(plan.entries, 0);
  ASSERT_TRUE(cells.has_value());
  ASSERT_EQ(cells->size(), 1u);
  const std::vector<Interval> &intervals = cells->front().intervals;
  ASSERT_EQ(intervals.size(), 2u);
  EXPECT_EQ(intervals[0].lo, 1);
  EXPECT_EQ(intervals[0].hi, 9);
  EXPECT_EQ(intervals[0].family, 2u);
  EXPECT_FALSE(intervals[1].hi.has_value());
}

TEST(PlanCells, SeparatesOtherAxes) {
  Plan plan;
  plan.entries = {entry(1, 4, 0), entry(5, 9, 1), entry(5, 9, 2)};
  plan.entries[1].box[1] = SizeRange::fixed(65);
  auto cells = planCells(plan.entries, 0);
  ASSERT_TRUE(cells.has_value());
  ASSERT_EQ(cells->size(), 2u);
  EXPECT_EQ(cells->front().intervals.size(), 2u);
  EXPECT_EQ(cells->back().box[1].min, 65);
}

TEST(PlanCells, RefusesPartialOverlaps) {
  Plan plan;
  plan.entries = {entry(1, 4, 0), entry(5, 9, 1)};
  plan.entries[1].box[1] = range(64, 65);
  EXPECT_FALSE(planCells(plan.entries, 0).has_value());
  EXPECT_TRUE(planCells(plan.entries, 1).has_value());
}

TEST(PlanCells, RefusesAnAxisThatThePlanLacks) {
  Plan plan;
  plan.entries = {entry(1, 4, 0)};
  EXPECT_FALSE(planCells(plan.entries, 7).has_value());
}

TEST(PlanCells, EmptyPlanHasNone) {
  auto cells = planCells({}, 0);
  ASSERT_TRUE(cells.has_value());
  EXPECT_TRUE(cells->empty());
  EXPECT_EQ(familyForSize({}, 5, 3), 3u);
}

TEST(PlanCells, AgreeWithThePlanOnRandomBoxes) {
  RandomSeed seed;
  std::mt19937 random(seed);
  int split = 0;
  for (int round = 0; round < 400; ++round) {
    Plan plan;
    plan.generalFamily = 9;
    // Boxes of the second axis are mostly equal or apart.
    unsigned kinds = 1 + random() % 3;
    int count = 1 + random() % 8;
    for (int i = 0; i < count; ++i) {
      int64_t kind = random() % kinds;
      SizeRange other = range(10 * kind, 10 * kind + 9);
      if (random() % 20 == 0)
        other = randomRange(random, 30);
      plan.entries.push_back(
          {{randomRange(random, 50), other}, unsigned(random() % 4)});
    }
    unsigned axis = random() % 2;
    auto cells = planCells(plan.entries, axis);
    if (!cells)
      continue;
    split += cells->size() > 1;
    for (const PlanCell &cell : *cells)
      for (size_t i = 1; i < cell.intervals.size(); ++i) {
        ASSERT_TRUE(cell.intervals[i - 1].hi.has_value());
        EXPECT_LT(*cell.intervals[i - 1].hi, cell.intervals[i].lo);
      }
    for (int64_t m = 0; m < 80; ++m)
      for (int64_t n = 0; n < 50; ++n) {
        auto entry = entryFor(plan.entries, {m, n});
        ASSERT_EQ(familyByCells(*cells, axis, {m, n}, plan.generalFamily),
                  entry ? plan.entries[*entry].family : plan.generalFamily);
      }
  }
  EXPECT_GT(split, 50);
}
