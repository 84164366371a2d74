//===- RowOrderTest.cpp - Order of families of rows -----------------------===//
//
// Families that a cycle-level simulation of a sixteenth of a V100 compared:
// where its times differ by more than a tenth, predicted ones have the same
// order (docs/latency-memory.md, "Beside a simulation").
//
//===----------------------------------------------------------------------===//
#include "FTuner/Codegen/Rows/RowsSchedule.h"
#include "FTuner/CostModel/CostModel.h"
#include "FTuner/Workload/RowReduction.h"
#include "RowWorkloads.h"
#include <gtest/gtest.h>

using namespace ftuner;

namespace {
class RowOrder : public testing::Test {
protected:
  RowOrder() : device(llvm::cantFail(loadDeviceSpec("v100"))) {
    device.smCount = 5;
    device.dramGbps = 54.5;
    device.l2Mib = 0.375;
    device.fp32Tflops /= 16;
    options.calibration = defaultCalibration(device);
  }

  /// The launch of so many blocks, which share the rows equally.
  CostBreakdown explain(const Workload &workload, int64_t blocks,
                        RowsSchedule schedule) {
    schedule.blockRows = ceilDiv(workload.axes.front().range.min, blocks);
    RowsLayout layout(workload, schedule);
    KernelFamily family;
    family.combineAxis = layout.blockAxis(RowReductionView(workload));
    family.reduceAxes = workload.reduceAxes().mask();
    family.tiles.emplace_back(2, 1);
    family.tiles.front()[family.combineAxis] = schedule.blockRows;
    family.tiles.front()[layout.rowAxis] = layout.round();
    family.schedule = schedule.pack();
    llvm::cantFail(rowsModel().check(workload, family, device));
    Shape shape;
    for (const Axis &axis : workload.axes)
      shape.push_back(axis.range.min);
    return findCostModel("latency")->evaluate(
        workload, shape, {&family, partitionShape(family, shape)}, device,
        options);
  }
  /// Predicted microseconds without the launch.
  double time(const Workload &workload, int64_t blocks, RowsSchedule schedule) {
    return -explain(workload, blocks, schedule).score -
           options.calibration.constants.launch;
  }

  DeviceSpec device;
  CostModelOptions options;
};
} // namespace

/// Returns a schedule for rows along memory: lanes and warps of a row, units
/// that a lane holds, and rows that a block computes one after the other.
static RowsSchedule rowSchedule(int64_t lanes, int64_t warps, int64_t heldUnits,
                                int64_t rowLoop = 1) {
  RowsSchedule schedule;
  schedule.lanes = lanes;
  schedule.warps = warps;
  schedule.heldUnits = heldUnits;
  schedule.rowLoop = rowLoop;
  schedule.access = 16;
  return schedule;
}

/// Lanes of four rows that share a warp have several rows' work each, and four
/// warps are alone on their schedulers: simulated 1.42 and 2.18 us.
TEST_F(RowOrder, ShortRowsPreferAWarpEach) {
  for (int64_t length : {64, 128}) {
    Workload workload = softmax(128, length);
    int64_t units = length / 16;
    EXPECT_LT(1.2 * time(workload, 128, rowSchedule(32, 1, 1)),
              time(workload, 4, rowSchedule(4, 1, units)))
        << length;
  }
}

/// Simulated 2.61 and 3.04 us: four blocks leave most schedulers to one warp.
TEST_F(RowOrder, FewRowsPreferManyBlocks) {
  Workload workload = softmax(32, 768);
  EXPECT_LT(time(workload, 32, rowSchedule(32, 2, 3)),
            time(workload, 4, rowSchedule(32, 1, 6, 2)));
}

/// Simulated 14.10 and 16.09 us: in a loop of four rows, the first row's load
/// and the last row's work hide nothing.
TEST_F(RowOrder, ShortLoopsHideLessThanManyWarps) {
  Workload workload = softmax(16, 4096);
  EXPECT_LT(time(workload, 4, rowSchedule(32, 4, 8)),
            time(workload, 4, rowSchedule(32, 4, 8, 4)));
}

/// Simulated 15.66 and 18.61 us: scale and shift hit L1, so no loop is needed
/// to load them once.
TEST_F(RowOrder, NormsWithoutALoopFindScaleAndShiftInL1) {
  Workload workload = layerNorm(128, 768);
  EXPECT_LT(time(workload, 128, rowSchedule(32, 4, 2)),
            time(workload, 4, rowSchedule(32, 1, 6, 8)));
}

/// Simulated 3.41 and 3.87 us.
TEST_F(RowOrder, SumsPreferAWarpARow) {
  Workload workload =
      Workload::rowSums(SizeRange::fixed(128), SizeRange::fixed(768));
  EXPECT_LT(time(workload, 128, rowSchedule(32, 1, 6)),
            time(workload, 32, rowSchedule(32, 4, 2, 4)));
}

/// Predictions differ by less than a tenth if simulated times do: softmax of
/// 128 x 768 takes 18.15 us in 4 blocks with a loop of 8, and 19.90 us in 128
/// blocks without a loop; cold, 12.7 and 11.3 us.
TEST_F(RowOrder, LongLoopsNeitherWinNorLose) {
  Workload workload = softmax(128, 768);
  double looped = time(workload, 4, rowSchedule(32, 1, 6, 8));
  EXPECT_NEAR(time(workload, 128, rowSchedule(32, 1, 6)) / looped, 1, 0.1);
}

/// Times of SMs with a memory that never waits, simulated: 9.4 and 7.8 us of
/// loops over rows, and 6.5 of many blocks.
TEST_F(RowOrder, LoneWarpsTakeAsLongAsSimulated) {
  auto smTime = [&](const Workload &workload, int64_t blocks,
                    RowsSchedule schedule) {
    for (const CostTerm &figure : explain(workload, blocks, schedule).figures)
      if (figure.name == "sm_time")
        return figure.value;
    return 0.0;
  };
  EXPECT_NEAR(smTime(softmax(128, 768), 4, rowSchedule(32, 1, 6, 8)) / 9.4, 1,
              0.3);
  EXPECT_NEAR(smTime(softmax(16, 4096), 4, rowSchedule(32, 4, 8, 4)) / 7.8, 1,
              0.2);
  EXPECT_NEAR(smTime(softmax(128, 768), 64, rowSchedule(32, 1, 6)) / 6.5, 1,
              0.2);
}
