//===- RowDescriptionTest.cpp - Row reductions before they are built ------===//
#include "Workloads/Rows/RowDescription.h"
#include "Workloads/RowFormation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/DebugStringHelper.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace ftuner;

namespace {

/// x / sum(x): values of rows and of elements, and both are results.
constexpr llvm::StringLiteral shares = R"mlir(
  func.func @shares(%x: tensor<?x64xf16>, %n: index) -> (tensor<?x64xf16>, tensor<?xf16>) {
    %zero = arith.constant 0.0 : f16
    %rows = tensor.empty(%n) : tensor<?xf16>
    %start = linalg.fill ins(%zero : f16) outs(%rows : tensor<?xf16>) -> tensor<?xf16>
    %sum = linalg.generic {indexing_maps = [affine_map<(m, r) -> (m, r)>, affine_map<(m, r) -> (m)>],
                           iterator_types = ["parallel", "reduction"]}
        ins(%x : tensor<?x64xf16>) outs(%start : tensor<?xf16>) {
      ^bb0(%a: f16, %acc: f16):
        %s = arith.addf %acc, %a : f16
        linalg.yield %s : f16
    } -> tensor<?xf16>
    %elements = tensor.empty(%n) : tensor<?x64xf16>
    %share = linalg.generic {indexing_maps = [affine_map<(m, r) -> (m, r)>, affine_map<(m, r) -> (m)>,
                                              affine_map<(m, r) -> (m, r)>],
                             iterator_types = ["parallel", "parallel"]}
        ins(%x, %sum : tensor<?x64xf16>, tensor<?xf16>) outs(%elements : tensor<?x64xf16>) {
      ^bb0(%a: f16, %s: f16, %o: f16):
        %d = arith.divf %a, %s : f16
        linalg.yield %d : f16
    } -> tensor<?x64xf16>
    return %share, %sum : tensor<?x64xf16>, tensor<?xf16>
  }
)mlir";

/// Elements before a position, which is an index, up to a start that is a
/// tensor: two inputs that the operator takes in another form.
constexpr llvm::StringLiteral maskedSum = R"mlir(
  func.func @masked(%x: tensor<8x1x?xi32>, %end: index, %start: tensor<8xi32>) -> tensor<8xi32> {
    %sum = linalg.generic {indexing_maps = [affine_map<(m, r) -> (m, 0, r)>, affine_map<(m, r) -> (m)>],
                           iterator_types = ["parallel", "reduction"]}
        ins(%x : tensor<8x1x?xi32>) outs(%start : tensor<8xi32>) {
      ^bb0(%a: i32, %acc: i32):
        %zero = arith.constant 0 : i32
        %at = linalg.index 1 : index
        %is_in = arith.cmpi slt, %at, %end : index
        %e = arith.select %is_in, %a, %zero : i32
        %s = arith.addi %acc, %e : i32
        linalg.yield %s : i32
    } -> tensor<8xi32>
    return %sum : tensor<8xi32>
  }
)mlir";

/// A reduction of all elements: one row, which has no loop.
constexpr llvm::StringLiteral maximum = R"mlir(
  func.func @maximum(%x: tensor<?xf32>) -> tensor<f32> {
    %low = arith.constant 0xFF800000 : f32
    %one = tensor.empty() : tensor<f32>
    %start = linalg.fill ins(%low : f32) outs(%one : tensor<f32>) -> tensor<f32>
    %max = linalg.generic {indexing_maps = [affine_map<(r) -> (r)>, affine_map<(r) -> ()>],
                           iterator_types = ["reduction"]}
        ins(%x : tensor<?xf32>) outs(%start : tensor<f32>) {
      ^bb0(%a: f32, %acc: f32):
        %m = arith.maximumf %acc, %a : f32
        linalg.yield %m : f32
    } -> tensor<f32>
    return %max : tensor<f32>
  }
)mlir";

/// A program with one group of rows, in the form that rows start from.
struct Program {
  const char *name;
  llvm::StringRef text;
};

void PrintTo(const Program &program, std::ostream *os) { *os << program.name; }

class RowDescriptionTest : public ::testing::TestWithParam<Program> {
protected:
  RowDescriptionTest() {
    DialectRegistry registry;
    registry.insert<ukernel::UKernelDialect, arith::ArithDialect,
                    cf::ControlFlowDialect, func::FuncDialect,
                    linalg::LinalgDialect, math::MathDialect,
                    tensor::TensorDialect>();
    context.appendDialectRegistry(registry);
    // As passes do by their dependent dialects.
    context.loadAllAvailableDialects();
    module = parseSourceString<ModuleOp>(GetParam().text, &context);
  }

  void SetUp() override { ASSERT_TRUE(module); }

  PathSupport makeSupport() {
    FailureOr<PathSupport> support = PathSupport::forModule(*module);
    EXPECT_TRUE(succeeded(support));
    return *support;
  }

  linalg::LinalgOp findSeed() {
    linalg::LinalgOp seed;
    module->walk([&](linalg::LinalgOp op) {
      if (op.getNumReductionLoops() != 0)
        seed = op;
    });
    return seed;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

TEST_P(RowDescriptionTest, ChangesNothing) {
  std::string before = debugString(**module);
  PathSupport support = makeSupport();
  RowElements elements(support);
  EXPECT_TRUE(matchRows(findSeed(), support, elements).has_value());
  EXPECT_EQ(debugString(**module), before);
}

TEST_P(RowDescriptionTest, DescribesNothingThatNoPathSupports) {
  PathSupport none = makeSupport().restrictedTo({});
  RowElements elements(none);
  EXPECT_FALSE(matchRows(findSeed(), none, elements).has_value());
}

/// The workload that a path is asked about is that of the operator in the end.
TEST_P(RowDescriptionTest, DescribesTheOperator) {
  PathSupport support = makeSupport();
  RowElements elements(support);
  Workload described = matchRows(findSeed(), support, elements)->workload;
  EXPECT_EQ(llvm::toString(described.check()), "");

  auto function = *module->getOps<func::FuncOp>().begin();
  IRRewriter rewriter(&context);
  EXPECT_EQ(formRowReductions(function, support, {}, rewriter), 1);
  EXPECT_TRUE(succeeded(verify(*module)));
  Workload formed;
  function->walk(
      [&](ukernel::OperatorOpInterface op) { formed = toWorkload(op); });
  EXPECT_EQ(described.str(), formed.str());
  EXPECT_EQ(described.fingerprint(FingerprintOf::Search),
            formed.fingerprint(FingerprintOf::Search));
  EXPECT_EQ(described.fingerprint(FingerprintOf::Kernels),
            formed.fingerprint(FingerprintOf::Kernels));
}

INSTANTIATE_TEST_SUITE_P(Rows, RowDescriptionTest,
                         ::testing::Values(Program{"Shares", shares},
                                           Program{"MaskedSum", maskedSum},
                                           Program{"Maximum", maximum}),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });

} // namespace
