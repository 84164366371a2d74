//===- RowContractTest.cpp - Prices of rows on every device ---------------===//
//
// The fastest family of rows, by the model, against what is known of cards: it
// moves no more bytes than the bandwidth allows, none is faster than
// elementwise kernels of its card were measured, and none is slower than a
// multiple of its roofline, launch and start.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Codegen/Rows/RowsSchedule.h"
#include "FTuner/CostModel/CostModel.h"
#include "RowWorkloads.h"
#include <cmath>
#include <gtest/gtest.h>
#include <limits>

using namespace ftuner;

namespace {
/// The fastest family of a workload of fixed sizes.
struct Fastest {
  double microseconds = std::numeric_limits<double>::infinity();
  int64_t blocks = 0;
};

class RowContract : public testing::Test {
protected:
  void load(llvm::StringRef name) {
    device = llvm::cantFail(loadDeviceSpec(name));
    options.calibration = defaultCalibration(device);
    launch = options.calibration.constants.launch;
  }

  Fastest fastest(const Workload &workload) const {
    Shape shape;
    for (const Axis &axis : workload.axes)
      shape.push_back(axis.range.min);
    auto evaluator =
        findCostModel("latency")->createEvaluator(workload, device, options);
    auto space = rowsModel().createSpace(workload, device);
    Fastest fastest;
    space->forEachBlock(
        16, [&](const KernelFamily &block, const UKernel &, BlockKind) {
          space->forEachSchedule(block, [&](const KernelFamily &family) {
            Program program = {&family, partitionShape(family, shape)};
            double time = -evaluator->score(shape, program);
            if (time < fastest.microseconds)
              fastest = {time, program.partition.blocks()};
            return true;
          });
        });
    return fastest;
  }

  /// Microseconds in which DRAM moves so many bytes at its peak.
  double roofline(double bytes) const { return bytes / device.dramGbps / 1e3; }
  double l2Bytes() const { return device.l2Mib * 1048576; }

  DeviceSpec device;
  CostModelOptions options;
  double launch = 0;
};
} // namespace

/// Rows of a softmax that reads and writes so many bytes.
static int64_t rowsOf(double bytes, int64_t length) {
  return std::max<int64_t>(std::llround(bytes / 8 / double(length)), 1);
}

TEST_F(RowContract, NoneIsFasterThanTheBestMeasuredOfItsCardAndSize) {
  // Of the shares below.
  constexpr double kRounding = 0.0005;
  // Shares of the bandwidth that 95 of 100 elementwise kernels (add of
  // memory_ops_f32 and memory_ops_f16) were below, by bytes over the L2.
  struct Measured {
    const char *device;
    double overL2, share;
  };
  for (auto [name, overL2, share] : std::initializer_list<Measured>{
           {"a100-pcie", 6, 0.950},  {"a100-pcie", 12, 0.917},
           {"p100-pcie", 12, 0.782}, {"p100-pcie", 24, 0.775},
           {"p100-pcie", 64, 0.769}, {"p4", 6, 0.788},
           {"p4", 12, 0.773},        {"p4", 24, 0.762},
           {"p4", 64, 0.760},        {"t4", 6, 0.817},
           {"t4", 12, 0.794},        {"t4", 24, 0.776},
           {"t4", 64, 0.769},        {"v100-pcie", 6, 0.975},
           {"v100-pcie", 12, 0.960}, {"v100-pcie", 24, 0.942},
           {"v100-pcie", 64, 0.933}, {"a100-80gb", 6, 0.884},
           {"a100-80gb", 12, 0.852}, {"a100-80gb", 24, 0.845},
           {"a100-80gb", 64, 0.842}, {"a40", 6, 0.884},
           {"a40", 12, 0.862},       {"a40", 24, 0.840}}) {
    load(name);
    for (int64_t length : {768, 2048, 8192}) {
      int64_t rows = rowsOf(overL2 * l2Bytes(), length);
      double bytes = 8.0 * double(rows * length);
      double reached = roofline(bytes) /
                       (fastest(softmax(rows, length)).microseconds - launch);
      EXPECT_LE(reached, share + kRounding)
          << name << " " << rows << " x " << length;
    }
  }
}

TEST_F(RowContract, LiesBetweenItsRooflineAndAMultipleOfRooflineAndStart) {
  for (const std::string &name : builtinDeviceNames()) {
    load(name);
    // A block's start, its first load and its last store.
    double start = 2000 / device.clockMhz;
    for (double overL2 : {0.001, 0.1, 1.0, 10.0, 100.0})
      for (int64_t length : {64, 1024, 16384}) {
        int64_t rows = rowsOf(overL2 * l2Bytes(), length);
        double bytes = 8.0 * double(rows * length);
        Fastest found = fastest(softmax(rows, length));
        std::string text =
            name + " " + std::to_string(rows) + " x " + std::to_string(length);
        // L2 may hold shorter ones.
        if (overL2 >= 10)
          EXPECT_GT(found.microseconds, launch + roofline(bytes)) << text;
        if (found.blocks >= device.smCount)
          EXPECT_LT(found.microseconds,
                    2.5 * (roofline(bytes) + launch + start))
              << text;
      }
  }
}
