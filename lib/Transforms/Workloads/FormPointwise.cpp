//===- FormPointwise.cpp - Elementwise operators to ukernel.pointwise -----===//
#include "FTuner/Transforms/Passes.h"
#include "PointwiseFormation.h"

#include "FTuner/Schedule/CodegenModel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

namespace ftuner {
#define GEN_PASS_DEF_UKERNELFORMPOINTWISEPASS
#include "FTuner/Transforms/Passes.h.inc"
} // namespace ftuner

using namespace mlir;
using namespace ftuner;

namespace {
struct UKernelFormPointwisePass
    : public ftuner::impl::UKernelFormPointwisePassBase<
          UKernelFormPointwisePass> {
  using UKernelFormPointwisePassBase::UKernelFormPointwisePassBase;

  void runOnOperation() override {
    FailureOr<PathSupport> support = PathSupport::forModule(getOperation());
    if (failed(support))
      return signalPassFailure();
    if (!paths.empty()) {
      llvm::Expected<SmallVector<const CodegenModel *>> chosen =
          parseCodegenModels(paths);
      if (!chosen) {
        getOperation().emitError("option --paths: ")
            << llvm::toString(chosen.takeError());
        return signalPassFailure();
      }
      support = support->restrictedTo(*chosen);
    }
    IRRewriter rewriter(&getContext());
    getOperation().walk([&](FunctionOpInterface function) {
      if (function.isExternal())
        return;
      SmallVector<linalg::LinalgOp> ops;
      function->walk([&](linalg::LinalgOp op) {
        if (isPointwiseWorkload(op, *support))
          ops.push_back(op);
      });
      ExtentAnalysis extents(function);
      for (linalg::LinalgOp op : ops) {
        formPointwise(op, extents, rewriter);
        ++numFormed;
      }
    });
  }
};
} // namespace
