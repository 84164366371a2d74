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
#include <gtest/gtest.h>

using namespace ftuner;

static Operations operations(OperationKind kind, double count = 1) {
  return {kind, ElementType::F32, ElementType::F32, count};
}
static Operations arithmetic(double count) {
  return operations(OperationKind::Add, count);
}

namespace {
/// Rows of fixed sizes, to which computations are added in their order.
struct RowsBuilder {
  Workload workload;

  explicit RowsBuilder(int64_t rows, int64_t length) {
    workload.axes = {{"M", SizeRange::fixed(rows)},
                     {"R", SizeRange::fixed(length)}};
  }
  unsigned operand(OperandRole role, llvm::SmallVector<unsigned> axes) {
    workload.operands.emplace_back(role, std::move(axes));
    return static_cast<unsigned>(workload.operands.size() - 1);
  }
  unsigned add(Computation computation) {
    workload.computations.push_back(std::move(computation));
    return static_cast<unsigned>(workload.computations.size() - 1);
  }
  /// Adds a reduction of each row to one number.
  unsigned reduce(std::vector<Read> reads, std::vector<Operations> operations,
                  Merge merge = Merge::Sum) {
    Computation computation;
    computation.axes = {0, 1};
    computation.reduce = {1};
    computation.reads = std::move(reads);
    computation.operations = std::move(operations);
    computation.state.emplace();
    computation.state->merge = merge;
    return add(computation);
  }
  /// Adds a computation of each row or of each element.
  unsigned compute(AxisSet axes, std::vector<Read> reads,
                   std::vector<Operations> operations) {
    Computation computation;
    computation.axes = axes;
    computation.reads = std::move(reads);
    computation.operations = std::move(operations);
    return add(computation);
  }
};
} // namespace

static Workload softmax(int64_t rows, int64_t length) {
  RowsBuilder builder(rows, length);
  Read x = Read::operand(builder.operand(OperandRole::Input, {0, 1}));
  unsigned output = builder.operand(OperandRole::Output, {0, 1});
  Read greatest = Read::computation(builder.reduce(
      {x}, {operations(OperationKind::Extreme)}, Merge::Maximum));
  Read sum = Read::computation(builder.reduce(
      {x, greatest}, {arithmetic(2), operations(OperationKind::Function)}));
  unsigned values = builder.compute({0, 1}, {x, greatest, sum},
                                    {arithmetic(1),
                                     operations(OperationKind::Function),
                                     operations(OperationKind::Divide)});
  builder.workload.computations[values].writes = {output};
  return builder.workload;
}

static Workload layerNorm(int64_t rows, int64_t length) {
  RowsBuilder builder(rows, length);
  Read x = Read::operand(builder.operand(OperandRole::Input, {0, 1}));
  Read scale = Read::operand(builder.operand(OperandRole::Input, {1}));
  Read shift = Read::operand(builder.operand(OperandRole::Input, {1}));
  unsigned output = builder.operand(OperandRole::Output, {0, 1});
  Read sum = Read::computation(builder.reduce({x}, {arithmetic(1)}));
  Read mean = Read::computation(
      builder.compute({0}, {sum}, {operations(OperationKind::Divide)}));
  Read squares =
      Read::computation(builder.reduce({x, mean}, {arithmetic(3)}));
  Read deviation = Read::computation(builder.compute(
      {0}, {squares},
      {operations(OperationKind::Divide, 2),
       operations(OperationKind::Function)}));
  unsigned values = builder.compute({0, 1}, {x, mean, deviation, scale, shift},
                                    {arithmetic(4)});
  builder.workload.computations[values].writes = {output};
  return builder.workload;
}

static Workload sums(int64_t rows, int64_t length) {
  return Workload::rowSums(SizeRange::fixed(rows), SizeRange::fixed(length));
}

namespace {
class RowOrder : public testing::Test {
protected:
  RowOrder() : device(llvm::cantFail(loadDeviceSpec("v100"))) {
    device.smCount = 5;
    device.dramGbps = 54.5;
    device.l2Mib = 0.375;
    device.fp32Tflops /= 16;
    options.calibration =
        defaultCalibration(device);
  }

  CostBreakdown explain(const Workload &workload, int64_t blocks,
                        RowsSchedule schedule) {
    schedule.blockRows =
        ceilDiv(workload.axes.front().range.min, blocks);
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
  void show(const char *name, const Workload &w, int64_t blocks, RowsSchedule s, double sim) {
    CostBreakdown b = explain(w, blocks, s);
    printf("%-40s pred %.2f sim %.2f |", name, -b.score - 2, sim);
    for (auto &t : b.terms) if (t.value > .001 && t.name != "launch") printf(" %s %.2f", t.name.c_str(), t.value);
    for (auto &t : b.figures) if (t.name=="sm_time" || t.name=="dram_time") printf(" %s %.2f", t.name.c_str(), t.value);
    printf("\n");
  }

  DeviceSpec device;
  CostModelOptions options;
};
} // namespace

static RowsSchedule along(int64_t lanes, int64_t warps, int64_t held, int64_t loop = 1, int64_t access = 16) {
  RowsSchedule schedule;
  schedule.lanes = lanes;
  schedule.warps = warps;
  schedule.heldUnits = held;
  schedule.rowLoop = loop;
  schedule.access = access;
  return schedule;
}

TEST_F(RowOrder, Table) {
  show("softmax 128x768 loop 8, 4 blocks", softmax(128, 768), 4, along(32, 1, 6, 8), 18.15);
  show("softmax 128x768 no loop 128", softmax(128, 768), 128, along(32, 1, 6), 19.9);
  show("softmax 128x768 no loop 64", softmax(128, 768), 64, along(32, 1, 6), 19.9);
  show("ln 128x768 loop 8, 4 blocks", layerNorm(128, 768), 4, along(32, 1, 6, 8), 18.61);
  show("ln 128x768 4 warps 128 blocks", layerNorm(128, 768), 128, along(32, 4, 2), 15.66);
  show("softmax 128x197 8 lanes loop 2 4 blocks", softmax(128, 197), 4, along(8, 1, 8, 2, 1), 5.50);
  show("softmax 128x197 2 warps loop 2 32", softmax(128, 197), 32, along(32, 2, 1, 2, 1), 5.16);
  show("softmax 16x4096 4 warps loop 4 4 blocks", softmax(16, 4096), 4, along(32, 4, 8, 4), 16.09);
  show("softmax 16x4096 4 warps 4 blocks", softmax(16, 4096), 4, along(32, 4, 8), 14.10);
  show("softmax 32x768 1 warp loop 2 4 blocks", softmax(32, 768), 4, along(32, 1, 6, 2), 3.04);
  show("softmax 32x768 2 warps 32 blocks", softmax(32, 768), 32, along(32, 2, 3), 2.61);
  show("softmax 128x128 4 lanes 4 blocks", softmax(128, 128), 4, along(4, 1, 8), 2.18);
  show("softmax 128x128 32 lanes 128 blocks", softmax(128, 128), 128, along(32, 1, 1), 1.42);
  show("softmax 128x64 32 lanes 128 blocks", softmax(128, 64), 128, along(32, 1, 1), 1.40);
  show("softmax 128x64 4 lanes 4 blocks", softmax(128, 64), 4, along(4, 1, 4), 2);
  show("sum 128x768 4 warps loop 4, 32 blocks", sums(128, 768), 32, along(32, 4, 2, 4), 3.87);
  show("sum 128x768 1 warp 128 blocks", sums(128, 768), 128, along(32, 1, 6), 3.41);
}
