//===- OperatorWorkloadTest.cpp - Operators as the core sees them ---------===//
#include "FTuner/Dialect/UKernel/Bridge/OperatorWorkload.h"
#include "TestOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace ftuner;

namespace {

class OperatorWorkloadTest : public ::testing::Test {
protected:
  OperatorWorkloadTest() {
    DialectRegistry registry;
    registry
        .insert<ukernel::UKernelDialect, arith::ArithDialect, func::FuncDialect,
                math::MathDialect, tensor::TensorDialect>();
    test::registerTestDialect(registry);
    context.appendDialectRegistry(registry);
  }

  /// The only operator of a module in text.
  ukernel::OperatorOpInterface parse(StringRef text) {
    module = parseSourceString<ModuleOp>(text, &context);
    ukernel::OperatorOpInterface found;
    if (module)
      module->walk([&](ukernel::OperatorOpInterface op) { found = op; });
    EXPECT_TRUE(found);
    return found;
  }

  Workload workloadOf(StringRef text) {
    Workload workload = toWorkload(parse(text));
    EXPECT_EQ(llvm::toString(workload.check()), "");
    return workload;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

Operations operationsOf(OperationKind kind, ElementType operands,
                        ElementType result, double count) {
  Operations operations;
  operations.kind = kind;
  operations.operandType = operands;
  operations.resultType = result;
  operations.count = count;
  return operations;
}

constexpr llvm::StringLiteral rowSum = R"mlir(
  func.func @sums(%x: tensor<?x64xf16>, %zero: f32, %o: tensor<?xf32>) -> tensor<?xf32> {
    %r = test.row_sum ins(%x : tensor<?x64xf16>) init(%zero : f32) outs(%o : tensor<?xf32>)
      ranges = [#ukernel.range<0 to 100 step 4>, #ukernel.range<64 to 64>] {
    ^bb0(%a: f16, %c: f32):
      %w = arith.extf %a : f16 to f32
      %s = arith.addf %c, %w : f32
      ukernel.yield %s : f32
    } {ukernel.extents = [[4, "T"], unit]} -> tensor<?xf32>
    return %r : tensor<?xf32>
  }
)mlir";

TEST_F(OperatorWorkloadTest, OfARowSum) {
  Workload workload = workloadOf(rowSum);
  EXPECT_EQ(workload.name, "sums");
  ASSERT_EQ(workload.axes.size(), 2u);
  EXPECT_EQ(workload.axes[0].name, "M");
  EXPECT_FALSE(workload.isReduceAxis(0));
  // Size 0 costs nothing.
  EXPECT_EQ(workload.axes[0].range.min, 4);
  EXPECT_EQ(workload.axes[0].range.max, 100);
  EXPECT_EQ(workload.axes[0].range.step, 4);
  EXPECT_EQ(workload.axes[0].factor, 4);
  EXPECT_EQ(workload.axes[0].symbols, std::vector<std::string>{"T"});
  EXPECT_EQ(workload.axes[1].name, "K");
  EXPECT_TRUE(workload.isReduceAxis(1));
  EXPECT_TRUE(workload.axes[1].range.isFixed());
  EXPECT_EQ(workload.axes[1].range.min, 64);

  ASSERT_EQ(workload.operands.size(), 3u);
  const Operand &input = workload.operands[0], &init = workload.operands[1],
                &output = workload.operands[2];
  EXPECT_EQ(input.role, OperandRole::Input);
  EXPECT_EQ(input.elementType, ElementType::F16);
  EXPECT_EQ(input.elementBytes, 2);
  EXPECT_EQ(input.axes, (llvm::SmallVector<unsigned>{0, 1}));
  EXPECT_EQ(input.contiguousAxis(), 1u);
  EXPECT_EQ(init.role, OperandRole::Init);
  EXPECT_TRUE(init.axes.empty());
  EXPECT_EQ(output.role, OperandRole::Output);
  EXPECT_EQ(output.elementType, ElementType::F32);
  EXPECT_EQ(output.axes, llvm::SmallVector<unsigned>{0});

  EXPECT_EQ(workload.accumulatorType(), ElementType::F32);
  EXPECT_EQ(workload.str(), "reduction[M] = sum over K of input[M, K], init -> "
                            "output\n");
  EXPECT_DOUBLE_EQ(workload.flops({10, 64}), 640);
  EXPECT_EQ(workload.mainAxis(), 0u);
  EXPECT_FALSE(workload.isContraction());
}

TEST_F(OperatorWorkloadTest, OfASumWithoutCasts) {
  Workload workload = workloadOf(R"mlir(
    func.func @f(%x: tensor<8x?xi32>, %o: tensor<8xi32>) {
      %r = test.row_sum ins(%x : tensor<8x?xi32>) outs(%o : tensor<8xi32>) {
      ^bb0(%a: i32, %c: i32):
        %s = arith.addi %a, %c : i32
        ukernel.yield %s : i32
      } -> tensor<8xi32>
      return
    }
  )mlir");
  EXPECT_EQ(workload.reduction()->state->merge, Merge::Sum);
  EXPECT_EQ(workload.reduction()->operations,
            std::vector{operationsOf(OperationKind::Add, ElementType::I32,
                                     ElementType::I32, 1)});
  EXPECT_TRUE(workload.axes[1].range.isOpen());
  EXPECT_EQ(workload.find(OperandRole::Init), nullptr);
}

TEST_F(OperatorWorkloadTest, OfWindows) {
  Workload workload = workloadOf(R"mlir(
    func.func @f(%x: tensor<?xf16>, %w: tensor<3xf16>, %o: tensor<?xf32>) {
      %r = test.conv ins(%x, %w : tensor<?xf16>, tensor<3xf16>) outs(%o : tensor<?xf32>)
        maps = [affine_map<(m, k) -> (2 * m + k - 1)>, affine_map<(m, k) -> (k)>, affine_map<(m, k) -> (m)>] {
      ^bb0(%a: f16, %b: f16, %c: f32):
        %x0 = arith.extf %a : f16 to f32
        %x1 = arith.extf %b : f16 to f32
        %p = arith.mulf %x0, %x1 : f32
        %s = arith.addf %c, %p : f32
        ukernel.yield %s : f32
      } -> tensor<?xf32>
      return
    }
  )mlir");
  const Operand &input = workload.operands[0];
  AffineForm position{{{0, 2}, {1, 1}}, -1};
  ASSERT_EQ(input.windows.size(), 1u);
  EXPECT_EQ(input.position(0), position);
  EXPECT_EQ(input.rank(), 1u);
  EXPECT_EQ(input.contiguousAxis(), 0u);
  EXPECT_EQ(workload.contiguousRun(input), 1);
  // 2 · 15 + 2, both ends counted.
  // With three weights and 16 sums, in bytes.
  EXPECT_EQ(workload.compulsoryBytes({16, 3}), 33 * 2 + 3 * 2 + 16 * 4);
  EXPECT_TRUE(workload.operands[1].windows.empty());
  EXPECT_EQ(workload.operands[1].position(0), AffineForm::ofAxis(1));
  // Factors are widened by what multiplies them.
  EXPECT_EQ(workload.reduction()->operations,
            std::vector{operationsOf(OperationKind::MultiplyAdd,
                                     ElementType::F16, ElementType::F32, 1)});
  // It has two inputs, but is no product of matrices.
  EXPECT_FALSE(workload.isContraction());
}

TEST_F(OperatorWorkloadTest, OfFusedAxes) {
  Workload workload = workloadOf(R"mlir(
    func.func @f(%x: tensor<?x8x9x16xf16>, %w: tensor<24x3x3x16xf16>, %b: tensor<24xf32>, %o: tensor<?x4x9x24xf32>) {
      %zero = arith.constant 0.0 : f32
      %r = test.convolution ins(%x, %w : tensor<?x8x9x16xf16>, tensor<24x3x3x16xf16>)
        init(%zero : f32) bias(%b : tensor<24xf32>) outs(%o : tensor<?x4x9x24xf32>)
        strides = [2, 1] dilations = [1, 2] padding = [1, 2] {
      ^bb0(%a: f16, %v: f16, %c: f32):
        %x0 = arith.extf %a : f16 to f32
        %x1 = arith.extf %v : f16 to f32
        %p = arith.mulf %x0, %x1 : f32
        %s = arith.addf %c, %p : f32
        ukernel.yield %s : f32
      } epilogue {
      ^bb0(%c: f32, %d: f32):
        %s = arith.addf %c, %d : f32
        ukernel.yield %s : f32
      } -> tensor<?x4x9x24xf32>
      return
    }
  )mlir");
  EXPECT_EQ(workload.str(),
            "product[M, N] = sum over K of lhs[IMAGE, 2*P + R - 1, Q + 2*S - "
            "2, C] or zero, rhs[N, K], init\n"
            "epilogue[M, N] = product, extra[N] -> output\n");
  EXPECT_TRUE(workload.isContraction());
  // As many rows as there are positions in some images.
  EXPECT_EQ(workload.axes[0].range.min, 36);
  EXPECT_EQ(workload.axes[0].range.step, 36);
  EXPECT_TRUE(workload.axes[0].range.isOpen());
  ASSERT_EQ(workload.axes[0].loops.size(), 3u);
  EXPECT_FALSE(workload.axes[0].loops[0].range.isFixed());
  EXPECT_EQ(workload.axes[0].loops[1].range.min, 4);
  EXPECT_EQ(workload.axes[2].range.min, 3 * 3 * 16);
  EXPECT_TRUE(workload.axes[2].range.isFixed());
  // Of filters and outputs one dimension for each axis.
  EXPECT_EQ(workload.operands[1].axes, (llvm::SmallVector<unsigned>{1, 2}));
  EXPECT_FALSE(workload.operands[1].hasWindows());
  EXPECT_EQ(workload.operands.back().axes, (llvm::SmallVector<unsigned>{0, 1}));
  EXPECT_EQ(workload.operands[0].outside, Identity::Zero);
  EXPECT_DOUBLE_EQ(workload.flops({72, 24, 144}),
                   2.0 * 72 * 24 * 144 + 72.0 * 24);
  // Windows of two images: 9 rows and 13 columns are reached.
  EXPECT_DOUBLE_EQ(workload.compulsoryBytes({72, 24, 144}),
                   2.0 * 2 * 9 * 13 * 16 + 2.0 * 24 * 144 + 4.0 * 24 +
                       4.0 * 72 * 24 + 4.0);
}

TEST_F(OperatorWorkloadTest, OfAContractionWithEpilogue) {
  Workload workload = workloadOf(R"mlir(
    func.func @f(%A: tensor<?x16xf32>, %B: tensor<16x8xf32>, %bias: tensor<8xf32>, %x: f64, %O: tensor<?x8xf32>) {
      %zero = arith.constant 0.0 : f32
      %r = ukernel.workload ins(%A, %B : tensor<?x16xf32>, tensor<16x8xf32>) init(%zero : f32)
        extras(%bias, %x : tensor<8xf32>, f64) outs(%O : tensor<?x8xf32>)
        maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                affine_map<(m, n, k) -> (n)>, affine_map<(m, n, k) -> ()>, affine_map<(m, n, k) -> (m, n)>]
        contract {
        ^bb0(%a: f32, %b: f32, %c: f32):
          %p = arith.mulf %a, %b : f32
          %s = arith.addf %c, %p : f32
          ukernel.yield %s : f32
        } epilogue {
        ^bb0(%acc: f32, %b: f32, %y: f64):
          %n = arith.truncf %y : f64 to f32
          %s = arith.addf %acc, %b : f32
          %t = arith.addf %s, %n : f32
          %u = math.exp %t : f32
          ukernel.yield %u : f32
        } -> tensor<?x8xf32>
      return
    }
  )mlir");
  EXPECT_TRUE(workload.isContraction());
  ASSERT_EQ(workload.operands.size(), 6u);
  EXPECT_EQ(workload.operands[2].role, OperandRole::Init);
  EXPECT_EQ(workload.operands[4].elementType, ElementType::F64);
  EXPECT_EQ(workload.reduction()->operations, std::vector{Operations()});
  EXPECT_EQ(workload.epilogue()->operations,
            (std::vector{operationsOf(OperationKind::Cast, ElementType::F64,
                                      ElementType::F32, 1),
                         operationsOf(OperationKind::Add, ElementType::F32,
                                      ElementType::F32, 2),
                         operationsOf(OperationKind::Function, ElementType::F32,
                                      ElementType::F32, 1)}));
}

/// A product with factors of these types, cast by `cast` (of %a and %b to the
/// accumulator's type, as %x and %y).
static std::string product(const std::string &lhs, const std::string &rhs,
                           const std::string &accumulator,
                           const std::string &casts) {
  std::string multiply = accumulator == "i32" ? "muli" : "mulf";
  std::string add = accumulator == "i32" ? "addi" : "addf";
  const std::string &c = accumulator;
  return "func.func @f(%A: tensor<?x16x" + lhs + ">, %B: tensor<16x8x" + rhs +
         ">, %z: " + c + ", %O: tensor<?x8x" + c + ">) {\n" +
         "%r = ukernel.workload ins(%A, %B : tensor<?x16x" + lhs +
         ">, tensor<16x8x" + rhs + ">) init(%z : " + c +
         ") outs(%O : tensor<?x8x" + c + ">)\n" + R"mlir(
      maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
              affine_map<(m, n, k) -> (m, n)>] contract {
    )mlir" +
         "^bb0(%a: " + lhs + ", %b: " + rhs + ", %c: " + c + "):\n" + casts +
         "\n%p = arith." + multiply + " %x, %y : " + c + "\n%s = arith." + add +
         " %c, %p : " + c + "\nukernel.yield %s : " + c + "\n} -> tensor<?x8x" +
         c + ">\nreturn\n}";
}

TEST_F(OperatorWorkloadTest, OfFactorsOfTwoTypes) {
  struct Case {
    std::string lhs, rhs, accumulator, casts;
    ElementType operandType, resultType;
  };
  const Case cases[] = {
      {"f16", "f16", "f32",
       "%x = arith.extf %a : f16 to f32\n%y = arith.extf %b : f16 to f32",
       ElementType::F16, ElementType::F32},
      {"i8", "i8", "i32",
       "%x = arith.extsi %a : i8 to i32\n%y = arith.extui %b : i8 to i32",
       ElementType::I8, ElementType::I32},
      // What holds the values of both.
      {"bf16", "i8", "f32",
       "%x = arith.extf %a : bf16 to f32\n%y = arith.sitofp %b : i8 to f32",
       ElementType::BF16, ElementType::F32},
      {"i8", "f16", "f32",
       "%x = arith.uitofp %a : i8 to f32\n%y = arith.extf %b : f16 to f32",
       ElementType::F16, ElementType::F32},
      {"f16", "bf16", "f32",
       "%x = arith.extf %a : f16 to f32\n%y = arith.extf %b : bf16 to f32",
       ElementType::F32, ElementType::F32},
      {"i8", "i8", "f32",
       "%x = arith.sitofp %a : i8 to f32\n%y = arith.sitofp %b : i8 to f32",
       ElementType::F32, ElementType::F32}};
  for (const Case &entry : cases) {
    Workload workload = workloadOf(
        product(entry.lhs, entry.rhs, entry.accumulator, entry.casts));
    EXPECT_TRUE(workload.isContraction());
    EXPECT_EQ(workload.accumulatorType(), entry.resultType);
    EXPECT_EQ(workload.reduction()->operations,
              std::vector{operationsOf(OperationKind::MultiplyAdd,
                                       entry.operandType, entry.resultType, 1)})
        << entry.lhs << " " << entry.rhs;
  }
}

//===----------------------------------------------------------------------===//
// The interface
//===----------------------------------------------------------------------===//

TEST_F(OperatorWorkloadTest, InterfaceNamesOperandsByRole) {
  ukernel::OperatorOpInterface op = parse(rowSum);
  EXPECT_EQ(op.getOperandName(0), "input0");
  EXPECT_EQ(op.getOperandName(1), "init");
  EXPECT_EQ(op.getOperandName(2), "output");
  EXPECT_FALSE(op.readsOutput());
  EXPECT_TRUE(op.hasTensors());
  auto reduction = cast<ukernel::ReductionOpInterface>(op.getOperation());
  EXPECT_TRUE(reduction.getAccumulatorType().isF32());
  ASSERT_TRUE(reduction.getCombiningOp());
  EXPECT_TRUE(isa<arith::AddFOp>(reduction.getCombiningOp()));
  EXPECT_EQ(op.getStaticExtents(),
            (llvm::SmallVector<int64_t, 4>{ShapedType::kDynamic, 64}));
}

TEST_F(OperatorWorkloadTest, ClonesIntoATileWithoutPlanAndRanges) {
  ukernel::OperatorOpInterface op = parse(R"mlir(
    func.func @f(%x: memref<?x64xf32>, %o: memref<?xf32>) {
      test.row_sum ins(%x : memref<?x64xf32>) outs(%o : memref<?xf32>)
        ranges = [#ukernel.range<0 to 100>, #ukernel.range<64 to 64>] {
      ^bb0(%a: f32, %c: f32):
        %s = arith.addf %c, %a : f32
        ukernel.yield %s : f32
      }
      return
    }
  )mlir");
  OpBuilder builder(op);
  auto clone = cast<ukernel::OperatorOpInterface>(
      op.cloneIntoTile(builder, op->getOperands(), {32, 16}));
  auto pad = clone->getOperand(0).getDefiningOp<ukernel::PadOp>();
  ASSERT_TRUE(pad);
  EXPECT_EQ(pad.getSource(), op->getOperand(0));
  // 16 divides 64.
  EXPECT_EQ(pad.getTile(), (llvm::ArrayRef<int64_t>{32, 1}));
  EXPECT_EQ(clone->getOperand(1), op->getOperand(1));
  EXPECT_FALSE(clone.getRangesAttr());
  EXPECT_TRUE(op.getRangesAttr());
}

} // namespace
