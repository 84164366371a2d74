//===- BoxRowsTest.cpp - Rows that tensor maps copy in plans --------------===//
//
// Rows of boxes that lie outside of operands cost time
// (docs/latency-tensor-cores.md). The products come from Llama-2-7B and from a
// dense layer. FTUNER_TEST_SCALE above 1 takes all of them, on two devices.
//
//===----------------------------------------------------------------------===//
#include "../../Codegen/Products.h"
#include "../../Scale.h"
#include "../DeviceTest.h"
#include "FTuner/Search/Problem/SearchStrategy.h"
#include "FTuner/Search/Setup/StrategyRegistry.h"
#include "llvm/ADT/STLExtras.h"
#include <gtest/gtest.h>

using namespace ftuner;

namespace {
struct Product {
  const char *name;
  int64_t n, k;
  ElementType type = ElementType::F16;
};
constexpr Product kProducts[] = {
    {"out", 4096, 4096},   {"dense", 2304, 768},
    {"qkv", 12288, 4096},  {"up", 22016, 4096},
    {"down", 4096, 11008}, {"out", 4096, 4096, ElementType::BF16}};
} // namespace

static Workload workloadOf(const Product &product, bool isWeightTransposed) {
  Workload workload = Workload::matmul(
      {1, 4096}, SizeRange::fixed(product.n), SizeRange::fixed(product.k),
      /*transposeLhs=*/false, isWeightTransposed);
  setTypes(workload, product.type, ElementType::F32);
  return workload;
}

/// Returns the maximum number of rows outside of a program's operands that
/// rounding to whole patterns of eight leaves.
static int64_t maxRowsOutside(const KernelFamily &family, const Shape &shape) {
  auto [m, n, k] = family.contractionAxes();
  int64_t maxOutside = 0;
  for (const BlockTile &tile : family.tiles) {
    int64_t steps = (shape[k] + tile[k] - 1) / tile[k] + family.reduceSplit,
            columns = (shape[n] + tile[n] - 1) / tile[n];
    if (shape[m] < tile[m])
      maxOutside += 7 * family.clusterBlocks() * steps * columns;
  }
  return maxOutside;
}

static void checkPlans(llvm::StringRef deviceName, const Product &product,
                       bool isWeightTransposed) {
  SCOPED_TRACE(deviceName.str() + " " + product.name);
  DeviceSpec device = llvm::cantFail(loadDeviceSpec(deviceName));
  Workload workload = workloadOf(product, isWeightTransposed);
  const CodegenModel *paths[] = {findCodegenModel("wgmma")};
  for (bool isOpen : {true, false}) {
    SearchProblem problem{workload, device, paths, *findCostModel("latency"),
                          SearchOptions()};
    if (!isOpen)
      for (const Gate &gate : codegenGates())
        if (gate.field)
          problem.options.closedFields.push_back(gate.field);
    llvm::Expected<Plan> plan = solve(problem, *findSearchStrategy("ftuner"));
    ASSERT_TRUE(static_cast<bool>(plan)) << llvm::toString(plan.takeError());
    int64_t numFitted = 0;
    auto check = [&](int64_t rows) {
      Shape shape = {rows, product.n, product.k};
      const KernelFamily &family = plan->families[plan->familyFor(shape)];
      BoxRows counted = family.path().boxRows(workload, family, shape);
      int64_t maxOutside = maxRowsOutside(family, shape);
      // Full boxes of fewer rows lie outside, except for these rows.
      if (isOpen || maxOutside == 0)
        EXPECT_LE(counted.outside, maxOutside)
            << rows << " rows, " << family.str();
      numFitted += maxOutside > 0 && counted.outside <= maxOutside;
      EXPECT_GE(counted.copied, counted.outside);
    };
    for (int64_t rows = 1; rows <= 300; ++rows)
      check(rows);
    for (int64_t rows = 1000; rows <= 1100; ++rows)
      check(rows);
    if (isOpen)
      EXPECT_GT(numFitted, 0) << "expected families with tiles above a size";
  }
}

TEST(BoxRows, PlansCopyFewRowsOutsideOfOperands) {
  for (const char *device : {"h200", "h100"})
    for (const Product &product : kProducts)
      for (bool isWeightTransposed : {false, true}) {
        bool isFew =
            device == llvm::StringRef("h200") && &product == &kProducts[1];
        if (isFew || runsEverything())
          checkPlans(device, product, isWeightTransposed);
      }
}
