//===- ChainsModelTest.cpp --------------------------------------*- C++ -*-===//
#include "FTuner/Codegen/Chains/ChainsSchedule.h"
#include "FTuner/Workload/Contraction.h"
#include "FTuner/Workload/RowReduction.h"

#include "gtest/gtest.h"

using namespace ftuner;

namespace {

constexpr int64_t kImage = 32, kChannels = 8, kTaps = 9;

AffineForm loop(unsigned number) { return {{{0, 1, number}}, 0}; }
/// A position along a window of stride 1 with padding of one element.
AffineForm window(unsigned number, unsigned tap) {
  return {{{0, 1, number}, {1, 1, tap}}, -1};
}

/// Sums of windows of 3 × 3 in f32, padded, of images with channels first or
/// last; with `hasFilter` products with a filter of each channel.
Workload windows(bool isLast, bool hasFilter = false) {
  Workload workload;
  Axis &points = workload.axes.emplace_back();
  points.name = "P";
  int64_t sizes[] = {4, isLast ? kImage : kChannels, kImage,
                     isLast ? kChannels : kImage};
  int64_t all = 1;
  for (int64_t size : sizes) {
    points.loops.push_back({"D", SizeRange::fixed(size)});
    all *= size;
  }
  points.range = SizeRange::fixed(all);
  Axis &taps = workload.axes.emplace_back();
  taps.name = "T";
  taps.range = SizeRange::fixed(kTaps);
  taps.loops = {{"T0", SizeRange::fixed(3)}, {"T1", SizeRange::fixed(3)}};

  Operand &image = workload.operands.emplace_back(
      OperandRole::Input, llvm::SmallVector<unsigned>{0, 0, 0, 0});
  image.outside = Identity::Zero;
  if (isLast)
    image.windows = {loop(0), window(1, 0), window(2, 1), loop(3)};
  else
    image.windows = {loop(0), loop(1), window(2, 0), window(3, 1)};
  if (hasFilter) {
    Operand &filter = workload.operands.emplace_back(
        OperandRole::Input, llvm::SmallVector<unsigned>{1, 0});
    filter.windows = {AffineForm::ofAxis(1), loop(isLast ? 3 : 1)};
  }
  workload.operands.emplace_back(OperandRole::Output,
                                 llvm::SmallVector<unsigned>{0});
  Computation reduce, map;
  reduce.name = "reduce";
  reduce.axes = {0, 1};
  reduce.reduce = {1};
  reduce.reads = {Read::operand(0)};
  reduce.operations = {
      {hasFilter ? OperationKind::MultiplyAdd : OperationKind::Add}};
  reduce.state.emplace();
  map.name = "map";
  map.axes = {0};
  map.reads = {Read::computation(0)};
  map.writes = {static_cast<unsigned>(workload.operands.size()) - 1};
  workload.computations = {reduce, map};
  return workload;
}

/// Work of a block of 128 threads with a vector of 4 points each.
BlockWork workOf(const Workload &workload) {
  ChainsSchedule schedule;
  schedule.threads = 128;
  schedule.access = 16;
  ChainsLayout layout(workload, schedule);
  KernelFamily family;
  family.combineAxis = 0;
  family.reduceAxes = workload.reduceAxes().mask();
  family.tiles = {layout.tiles(workload)};
  family.schedule = schedule.pack();
  DeviceSpec device = llvm::cantFail(loadDeviceSpec("a100"));
  EXPECT_FALSE(bool(chainsModel().check(workload, family, device)));
  return chainsModel().work(workload, family, 0, device);
}

/// Accesses of each thread to an operand.
double accessesOf(const BlockWork &work, unsigned operand) {
  return work.accesses[operand].count / static_cast<double>(work.warps);
}

TEST(ChainsModel, DescribesWindows) {
  Workload workload = windows(/*isLast=*/false, /*hasFilter=*/true);
  EXPECT_FALSE(bool(workload.check()));
  ASSERT_TRUE(workload.asPointwise());
  EXPECT_FALSE(workload.asRowReduction());
  EXPECT_FALSE(workload.asContraction());
  EXPECT_EQ(workload.asPointwise()->numTaps(), kTaps);
  int64_t points = workload.axes[0].range.min;
  EXPECT_EQ(workload.flops({points, kTaps}),
            2.0 * static_cast<double>(points * kTaps));
}

TEST(ChainsModel, NeighboursShareElements) {
  BlockWork work = workOf(windows(/*isLast=*/false));
  // Six elements in each of three rows of taps, and one store of a vector.
  EXPECT_EQ(accessesOf(work, 0), 18);
  EXPECT_EQ(work.accesses[0].width, 1);
  EXPECT_EQ(accessesOf(work, 1), 1);
  // Neighbouring threads have neighbouring vectors.
  EXPECT_EQ(work.accesses[0].address[1] - work.accesses[0].address[0], 4);
  EXPECT_EQ(work.fma, 4.0 * 4 * kTaps);
  // 512 points are 16 rows of 32, and their halo.
  EXPECT_EQ(work.globalBytes, 4.0 * 18 * 34);
}

TEST(ChainsModel, ReadsVectorsOfChannels) {
  BlockWork work = workOf(windows(/*isLast=*/true, /*hasFilter=*/true));
  EXPECT_EQ(accessesOf(work, 0), kTaps);
  EXPECT_EQ(work.accesses[0].width, 4);
  EXPECT_EQ(accessesOf(work, 1), kTaps);
  EXPECT_EQ(work.accesses[1].width, 4);
  // A multiply-add is one instruction of a lane.
  EXPECT_EQ(work.fma, 4.0 * 4 * kTaps);
  // 512 points are 2 rows of 32 places, and their halo; all blocks share the
  // filter.
  EXPECT_EQ(work.commonBytes, 4.0 * kTaps * kChannels);
  EXPECT_EQ(work.globalBytes, 4.0 * 4 * 34 * kChannels + work.commonBytes);
}

TEST(ChainsModel, HasOneFilterElementForAPlane) {
  BlockWork work = workOf(windows(/*isLast=*/false, /*hasFilter=*/true));
  EXPECT_EQ(accessesOf(work, 1), kTaps);
  EXPECT_EQ(work.accesses[1].address[31], work.accesses[1].address[0]);
}

TEST(ChainsModel, BoundsCostInstructions) {
  Workload padded = windows(/*isLast=*/false), inside = padded;
  inside.operands[0].outside.reset();
  for (AffineForm &form : inside.operands[0].windows)
    form.constant = 0;
  EXPECT_GT(workOf(padded).otherInstructions, workOf(inside).otherInstructions);
}

TEST(ChainsModel, RefusesPositionsBeforeAnOperand) {
  Workload workload = windows(/*isLast=*/false);
  workload.operands[0].outside.reset();
  DeviceSpec device = llvm::cantFail(loadDeviceSpec("a100"));
  EXPECT_TRUE(llvm::errorToBool(chainsModel().supports(workload, device)));
}

} // namespace
