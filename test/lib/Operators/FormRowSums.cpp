//===- FormRowSums.cpp - Sums over rows to test.row_sum -------------------===//
#include "TestOps.h"

#include "FTuner/Dialect/UKernel/Utils/Roundings.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;
using namespace ftuner;
using namespace ftuner::test;

namespace {

/// Whether `op` adds up the rows of a matrix, and nothing else.
bool isRowSum(linalg::LinalgOp op) {
  if (!op.hasPureTensorSemantics() || op.getNumDpsInputs() != 1 ||
      op.getNumDpsInits() != 1 || op.getNumLoops() != 2 ||
      op.getBlock()->getOperations().size() != 2 || !accumulates(op, 0))
    return false;
  AffineExpr m, k;
  bindDims(op.getContext(), m, k);
  Operation &sum = op.getBlock()->front();
  return isa<arith::AddFOp, arith::AddIOp>(sum) &&
         llvm::is_contained(sum.getOperands(),
                            Value(op.getBlock()->getArgument(0))) &&
         op.getIteratorTypesArray() ==
             SmallVector<utils::IteratorType>{utils::IteratorType::parallel,
                                              utils::IteratorType::reduction} &&
         op.getMatchingIndexingMap(op.getDpsInputOperand(0)).getResults() ==
             ArrayRef<AffineExpr>{m, k};
}

void formRowSum(linalg::LinalgOp op, IRRewriter &rewriter) {
  rewriter.setInsertionPoint(op);
  Value output = op.getDpsInitOperand(0)->get();
  Value init;
  if (auto fill = output.getDefiningOp<linalg::FillOp>()) {
    init = fill.value();
    output = fill.output();
  }
  auto sum = RowSumOp::create(rewriter, op.getLoc(), output.getType(),
                              op.getDpsInputOperand(0)->get(), init, output,
                              /*ranges=*/ArrayAttr(),
                              /*plan=*/FlatSymbolRefAttr());
  {
    OpBuilder::InsertionGuard guard(rewriter);
    Block &body = *op.getBlock();
    Block *block = rewriter.createBlock(
        &sum.getCombiner(), {}, body.getArgumentTypes(),
        SmallVector<Location>(body.getNumArguments(), op.getLoc()));
    IRMapping mapping;
    mapping.map(body.getArguments(), block->getArguments());
    for (Operation &inner : body.without_terminator())
      rewriter.clone(inner, mapping);
    ukernel::YieldOp::create(
        rewriter, op.getLoc(),
        mapping.lookup(body.getTerminator()->getOperand(0)));
  }
  rewriter.replaceOp(op, sum.getResult());
}

struct TestFormRowSumsPass
    : public PassWrapper<TestFormRowSumsPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestFormRowSumsPass)

  StringRef getArgument() const override { return "test-form-row-sums"; }
  StringRef getDescription() const override {
    return "Turn each sum over the rows of a matrix into a test.row_sum";
  }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<TestDialect, ukernel::UKernelDialect>();
  }

  void runOnOperation() override {
    SmallVector<linalg::LinalgOp> sums;
    getOperation().walk([&](linalg::LinalgOp op) {
      if (isRowSum(op))
        sums.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (linalg::LinalgOp op : sums)
      formRowSum(op, rewriter);
  }
};

} // namespace

void ftuner::test::registerTestPasses() {
  PassRegistration<TestFormRowSumsPass>();
}
