//===- ProductPricesTest.cpp - Prices of products on every device ---------===//
//
// A contract of the cost model `latency` on every built-in device: the price of
// the program that a plan takes for a product lies above the roofline, and,
// where there is a block for each SM, below a stated multiple of it.
//
//===----------------------------------------------------------------------===//
#include "../../Scale.h"
#include "FTuner/CostModel/Calibration.h"
#include "FTuner/CostModel/CostModel.h"
#include "FTuner/Search/Problem/SearchStrategy.h"
#include "FTuner/Search/Setup/StrategyRegistry.h"
#include "FTuner/Workload/Contraction.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <gtest/gtest.h>

using namespace ftuner;

namespace {
/// Bounds of a product's time in microseconds.
struct Roofline {
  /// Time at the peak rate, and time to move all bytes at the DRAM bandwidth.
  double compute = 0, memory = 0;
  /// True if L2 cannot hold the bytes, so that DRAM must move them.
  bool exceedsL2 = false;

  double lowest() const {
    return exceedsL2 ? std::max(compute, memory) : compute;
  }
  double highest() const { return std::max(compute, memory); }
};

class ProductPrices : public testing::TestWithParam<std::string> {
protected:
  void SetUp() override {
    llvm::Expected<DeviceSpec> loaded = loadDeviceSpec(GetParam());
    ASSERT_TRUE(static_cast<bool>(loaded));
    device = *loaded;
    options.cost.calibration = kernelCalibration(device);
  }

  /// TFLOP/s that the instructions of the family's path reach for the type at
  /// most.
  double peak(const KernelFamily &family, ElementType type) const {
    if (type == ElementType::F32 || family.path().name() == "simt")
      return device.fp32Tflops;
    // `wgmma` exists on compute capability 9.0 only and reaches the peak.
    bool hasWgmma = device.computeCapabilityMajor == 9;
    return *device.f16Tflops *
           (hasWgmma ? 1 : device.smFacts().warpTensorShare);
  }
  Roofline roofline(const Workload &workload, const Shape &shape,
                    const KernelFamily &family, ElementType type) const {
    double bytes = 0;
    for (const Operand &operand : workload.operands)
      bytes += static_cast<double>(operand.elementBytes) *
               workload.elements(operand, shape);
    double operations =
        2.0 * double(shape[0]) * double(shape[1]) * double(shape[2]);
    return {operations / (peak(family, type) * 1e6),
            bytes / (device.dramGbps * 1e3), bytes > device.l2Mib * 1048576};
  }
  /// Microseconds in which a block, DRAM and a launch start.
  double starts(ElementType type) const {
    const LatencyConstants &constants = options.cost.calibration.constants;
    double cycles =
        type == ElementType::F32 ? constants.blockStart : constants.tensorStart;
    return cycles / device.clockMhz + constants.dramStart + constants.launch;
  }
  void checkPrices(int64_t n, int64_t k, ElementType type);

  DeviceSpec device;
  SearchOptions options;
};
} // namespace

static Workload productOf(int64_t n, int64_t k, ElementType type) {
  Workload workload = Workload::matmul({1, 4096}, SizeRange::fixed(n),
                                       SizeRange::fixed(k), false, true);
  if (type == ElementType::F32)
    return workload;
  for (Operand &operand : workload.operands) {
    operand.elementType = type;
    operand.elementBytes = bytesOf(type);
  }
  changeContraction(
      workload, [&](ContractionParts &parts) { parts.multipliedType = type; });
  return workload;
}

void ProductPrices::checkPrices(int64_t n, int64_t k, ElementType type) {
  Workload workload = productOf(n, k, type);
  const CostModel &model = *findCostModel("latency");
  SearchProblem problem{workload, device, codegenModels(), model, options};
  // Few candidates are enough: a plan near the best is wanted, not the best.
  problem.options.own["max-candidates"] = int64_t(64);
  problem.options.maxKernels = 8;
  llvm::Expected<Plan> plan = solve(problem, *searchStrategies().front());
  ASSERT_TRUE(static_cast<bool>(plan)) << llvm::toString(plan.takeError());
  for (int64_t m : {1, 16, 100, 256, 1024, 4096}) {
    Shape shape{m, n, k};
    const KernelFamily &family = plan->families[plan->familyFor(shape)];
    Program program{&family, partitionShape(family, shape)};
    double time =
        -model.evaluate(workload, shape, program, device, options.cost).score;
    Roofline bounds = roofline(workload, shape, family, type);
    SCOPED_TRACE(device.name + ": " + std::to_string(m) + " x " +
                 std::to_string(n) + " x " + std::to_string(k) + " " +
                 family.str());
    EXPECT_GT(time, bounds.lowest());
    double blocks = static_cast<double>(ceilDiv(n, family.tiles[0][1])) *
                    static_cast<double>(program.partition.blocks());
    if (family.combineAxis == 0 && blocks >= double(device.smCount)) {
      EXPECT_LT(time, 2.5 * (bounds.highest() + starts(type)));
    }
    if (type == ElementType::F32 && m == 1024 && n == 1024 && k == 1024) {
      EXPECT_LT(time, 2.5 * bounds.highest());
    }
  }
}

TEST_P(ProductPrices, LieNearTheRoofline) {
  checkPrices(1024, 1024, ElementType::F32);
  if (device.f16Tflops)
    checkPrices(4096, 2048, ElementType::F16);
  if (!runsEverything())
    return;
  checkPrices(4096, 4096, ElementType::F32);
  if (device.f16Tflops)
    checkPrices(2304, 768, ElementType::F16);
}

INSTANTIATE_TEST_SUITE_P(Devices, ProductPrices,
                         testing::ValuesIn(builtinDeviceNames()),
                         [](const auto &info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });
