//===- ExpandMath.cpp - Math functions without a device library -*- C++ -*-===//
//
// Without a device library math functions would become external functions in
// the PTX, silently. With one, the PTX would depend on the installed toolkit.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace ftuner {
#define GEN_PASS_DEF_UKERNELEXPANDMATHPASS
#include "FTuner/Conversion/Passes.h.inc"
} // namespace ftuner

using namespace mlir;

namespace {

/// Functions that are instructions of the GPU, or that LLVM lowers to some.
bool hasInstruction(Operation *op) {
  return isa<math::AbsFOp, math::AbsIOp, math::CeilOp, math::FloorOp,
             math::FmaOp, math::SqrtOp, math::CopySignOp, math::RoundEvenOp,
             math::TruncOp, math::CountLeadingZerosOp,
             math::CountTrailingZerosOp, math::CtPopOp>(op);
}

struct UKernelExpandMathPass
    : public ftuner::impl::UKernelExpandMathPassBase<UKernelExpandMathPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    math::populateExpansionPatterns(
        patterns, {"sinh", "cosh", "tan", "asinh", "acosh", "atanh", "exp2",
                   "powf", "fpowi", "round", "roundeven", "rsqrt"});
    populateMathPolynomialApproximationPatterns(
        patterns, [](StringRef name) { return name.starts_with("math."); });
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
    WalkResult result = getOperation()->walk([&](Operation *op) {
      if (!isa_and_nonnull<math::MathDialect>(op->getDialect()) ||
          hasInstruction(op))
        return WalkResult::advance();
      op->emitError() << "no lowering: '" << op->getName()
                      << "' on operands of type " << op->getOperand(0).getType()
                      << " needs a device library";
      return WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace
