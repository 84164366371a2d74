//===- WorkloadTest.cpp - Workloads and their ranges ----------------------===//
#include "FTuner/Workload/Workload.h"
#include "FTuner/Workload/Contraction.h"
#include <gtest/gtest.h>
#include <limits>

using namespace ftuner;

static std::string errorOf(const Workload &workload) {
  llvm::Error error = workload.check();
  return error ? llvm::toString(std::move(error)) : "no error";
}

static Workload dense(SizeRange m) {
  return Workload::matmul(m, SizeRange::fixed(2304), SizeRange::fixed(768));
}

TEST(SizeRange, KnowsItsSizes) {
  SizeRange range{16, 2048, 16};
  EXPECT_EQ(range.count(), 128);
  EXPECT_TRUE(range.contains(16) && range.contains(2048));
  EXPECT_FALSE(range.contains(17) || range.contains(0) || range.contains(2064));
  SizeRange open{3, std::nullopt, 2};
  EXPECT_TRUE(open.isOpen() && open.contains(1000001));
  EXPECT_FALSE(open.contains(4));
  EXPECT_TRUE(SizeRange::fixed(7).isFixed());
}

TEST(Workload, MainAxisIsTheLargestDynamicSpaceAxis) {
  SizeRange fixed = SizeRange::fixed(4096), small{1, 128}, large{1, 512},
            open{1, std::nullopt};
  EXPECT_EQ(Workload::matmul(small, fixed, fixed).mainAxis(), matmulAxes.m);
  EXPECT_EQ(Workload::matmul(fixed, small, fixed).mainAxis(), matmulAxes.n);
  EXPECT_EQ(Workload::matmul(small, large, open).mainAxis(), matmulAxes.n);
  EXPECT_EQ(Workload::matmul(open, large, fixed).mainAxis(), matmulAxes.m);
  EXPECT_EQ(Workload::matmul(small, small, fixed).mainAxis(), matmulAxes.m);
  EXPECT_EQ(Workload::matmul(SizeRange::fixed(8), fixed, open).mainAxis(),
            matmulAxes.n);
}

TEST(Workload, CountsWorkAndFindsOperands) {
  Workload workload = dense({1, 128});
  Shape shape = {53, 2304, 768};
  EXPECT_DOUBLE_EQ(workload.flops(shape), 2.0 * 53 * 2304 * 768);
  EXPECT_EQ(workload.find(OperandRole::Init), nullptr);
  Workload transposed = Workload::matmul({1, 128}, SizeRange::fixed(64),
                                         SizeRange::fixed(32), true, true);
  EXPECT_EQ(transposed.find(OperandRole::Lhs)->contiguousAxis(), matmulAxes.m);
  EXPECT_EQ(transposed.find(OperandRole::Rhs)->contiguousAxis(), matmulAxes.k);
}

TEST(Workload, RefusesBadRanges) {
  EXPECT_EQ(errorOf(dense({1, 128})), "no error");
  EXPECT_EQ(errorOf(dense({0, std::nullopt})), "no error");
  EXPECT_EQ(errorOf(dense({128, 1})),
            "axis 'M': expected min <= max, but got 128 > 1");
  EXPECT_EQ(errorOf(dense({-1, 4})),
            "axis 'M': expected a least size from 0 to 2147483647, but got -1");
  EXPECT_EQ(errorOf(dense({1, int64_t(1) << 31})),
            "axis 'M': expected a largest size up to 2147483647, but got "
            "2147483648");
  EXPECT_EQ(errorOf(dense({1, 8, 0})),
            "axis 'M': expected a positive step, but got 0");
}

TEST(Workload, RefusesBadWeightsAndOperands) {
  Workload workload = dense({1, 128});
  workload.axes[0].weights = {{5, 1.0}, {9, 2.0}};
  EXPECT_EQ(errorOf(workload), "no error");
  workload.axes[0].weights = {{129, 1.0}};
  EXPECT_EQ(errorOf(workload),
            "axis 'M': expected weights for sizes of its range, but got size "
            "129");
  workload.axes[0].weights = {{5, std::numeric_limits<double>::quiet_NaN()}};
  EXPECT_NE(errorOf(workload), "no error");
  workload.axes[0].weights = {{5, 0.0}};
  EXPECT_EQ(errorOf(workload),
            "axis 'M': expected weights with a positive sum");

  Workload operands = dense({1, 128});
  operands.operands[0].axes = {0, 3};
  EXPECT_EQ(errorOf(operands), "operand 0: expected axes below 3, but got 3");
  operands.operands[0] = Operand(OperandRole::Input, {0, 2});
  // What is no contraction may be another operator.
  EXPECT_EQ(errorOf(operands), "no error");
  EXPECT_EQ(llvm::toString(operands.checkContraction()),
            "expected one left, one right and one output operand");
  EXPECT_FALSE(operands.isContraction());
  EXPECT_TRUE(dense({1, 128}).isContraction());
  // What a prologue reads belongs to one factor.
  Workload scaled = dense({1, 128});
  scaled.operands.emplace_back(OperandRole::Input,
                               llvm::SmallVector<unsigned>{matmulAxes.n});
  EXPECT_TRUE(scaled.isContraction());
  scaled.operands.back().axes = {matmulAxes.m, matmulAxes.n};
  EXPECT_EQ(llvm::toString(scaled.checkContraction()),
            "operand 3: expected an input of one factor");
  operands.operands.back().role = OperandRole::Extra;
  EXPECT_EQ(errorOf(operands),
            "computation 'product': expected outputs that it "
            "writes, but operand 2 is none");
  operands.reduction()->writes.clear();
  EXPECT_EQ(errorOf(operands), "expected an output operand");
}
