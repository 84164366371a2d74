//===- RowsModelTest.cpp ----------------------------------------*- C++ -*-===//
#include "FTuner/Codegen/Rows/RowsSchedule.h"

#include "gtest/gtest.h"

using namespace ftuner;

namespace {

/// Sums of rows of f32, in f64 if `isDouble`.
Workload sums(bool isDouble) {
  Workload workload = Workload::rowSums({1, 4096, 1}, SizeRange::fixed(512));
  if (!isDouble)
    return workload;
  Computation &sum = workload.computations.front();
  sum.state->accumulators.front().type = ElementType::F64;
  sum.operations = {{OperationKind::Cast, ElementType::F32, ElementType::F64},
                    {OperationKind::Add, ElementType::F64, ElementType::F64}};
  return workload;
}

/// A row of each block of two warps, which hold it.
KernelFamily twoWarps() {
  RowsSchedule schedule;
  schedule.warps = 2;
  schedule.heldUnits = 2;
  schedule.access = 16;
  KernelFamily family;
  family.combineAxis = 0;
  family.reduceAxes = sums(false).reduceAxes().mask();
  family.tiles = {{1, 256}};
  family.schedule = schedule.pack();
  return family;
}

/// Instructions that a block in a round takes more for sums in f64, beside
/// those of the lanes of f32.
double addedByF64(llvm::StringRef name) {
  DeviceSpec device = llvm::cantFail(loadDeviceSpec(name));
  auto instructions = [&](bool isDouble) {
    return rowsModel()
        .work(sums(isDouble), twoWarps(), 0, device)
        .otherInstructions;
  };
  return instructions(true) - instructions(false);
}

TEST(RowsModel, TakesAccumulatorsOfF64) {
  DeviceSpec device = llvm::cantFail(loadDeviceSpec("a100"));
  for (bool isDouble : {false, true}) {
    EXPECT_EQ(
        llvm::toString(rowsModel().check(sums(isDouble), twoWarps(), device)),
        "");
    // The numbers of 32 slots.
    EXPECT_EQ(
        rowsModel().resources(sums(isDouble), twoWarps()).sharedMemoryBytes,
        32 * (isDouble ? 8 : 4));
  }
}

TEST(RowsModel, PricesF64ByTheRateOfItsUnits) {
  // Two warps, and four elements of a lane. Four schedulers issue 128 lanes of
  // a cycle, in which units of f64 start 32 additions and 16 casts, or two.
  constexpr double elements = 2 * 4, lanes = 128;
  EXPECT_DOUBLE_EQ(addedByF64("a100"), elements * (lanes / 32 + lanes / 16));
  EXPECT_DOUBLE_EQ(addedByF64("h100"), elements * (lanes / 64 + lanes / 16));
  EXPECT_DOUBLE_EQ(addedByF64("t4"), elements * (lanes / 2 + lanes / 2));
}

TEST(RowsModel, HoldsFewerElementsThatAreConvertedToF64) {
  // 16 units of four elements: 64 registers, and 128 for them in f64.
  RowsSchedule schedule = RowsSchedule::of(twoWarps().schedule);
  schedule.heldUnits = 16;
  KernelFamily family = twoWarps();
  family.schedule = schedule.pack();
  DeviceSpec device = llvm::cantFail(loadDeviceSpec("a100"));
  Workload wide = sums(true), narrow = sums(false);
  for (Workload *workload : {&wide, &narrow})
    workload->axes[1].range = {1, std::nullopt, 1};
  EXPECT_EQ(llvm::toString(rowsModel().check(narrow, family, device)), "");
  EXPECT_EQ(llvm::toString(rowsModel().check(wide, family, device)),
            "rows: expected up to 96 registers that hold a row, but got 192");
}

} // namespace
