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
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/TypeSwitch.h"

namespace ftuner {
#define GEN_PASS_DEF_UKERNELEXPANDMATHPASS
#include "FTuner/Conversion/Passes.h.inc"
} // namespace ftuner

using namespace mlir;

namespace {

/// The LLVM intrinsic that the GPU's backend turns into instructions; empty
/// where there is none. `needsFlag`: it takes a second operand, a boolean.
StringRef intrinsicFor(Operation *op, bool &needsFlag) {
  needsFlag =
      isa<math::AbsIOp, math::CountLeadingZerosOp, math::CountTrailingZerosOp>(
          op);
  return llvm::TypeSwitch<Operation *, StringRef>(op)
      .Case<math::AbsFOp>([](auto) { return "llvm.fabs"; })
      .Case<math::AbsIOp>([](auto) { return "llvm.abs"; })
      .Case<math::CeilOp>([](auto) { return "llvm.ceil"; })
      .Case<math::CopySignOp>([](auto) { return "llvm.copysign"; })
      .Case<math::CountLeadingZerosOp>([](auto) { return "llvm.ctlz"; })
      .Case<math::CountTrailingZerosOp>([](auto) { return "llvm.cttz"; })
      .Case<math::CtPopOp>([](auto) { return "llvm.ctpop"; })
      .Case<math::FloorOp>([](auto) { return "llvm.floor"; })
      .Case<math::FmaOp>([](auto) { return "llvm.fma"; })
      .Case<math::RoundEvenOp>([](auto) { return "llvm.roundeven"; })
      .Case<math::SqrtOp>([](auto) { return "llvm.sqrt"; })
      .Case<math::TruncOp>([](auto) { return "llvm.trunc"; })
      .Case<arith::MaxNumFOp>([](auto) { return "llvm.maxnum"; })
      .Case<arith::MinNumFOp>([](auto) { return "llvm.minnum"; })
      .Default(StringRef());
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
    // The conversion to NVVM would call the device library for what is left.
    WalkResult result = getOperation()->walk([&](Operation *op) {
      if (!isa_and_nonnull<math::MathDialect>(op->getDialect()) &&
          !isa<arith::MaxNumFOp, arith::MinNumFOp, arith::RemFOp>(op))
        return WalkResult::advance();
      bool needsFlag;
      StringRef intrinsic = intrinsicFor(op, needsFlag);
      if (intrinsic.empty()) {
        op->emitError() << "no lowering: '" << op->getName()
                        << "' on operands of type "
                        << op->getOperand(0).getType()
                        << " needs a device library";
        return WalkResult::interrupt();
      }
      OpBuilder b(op);
      SmallVector<Value> operands(op->getOperands());
      if (needsFlag)
        operands.push_back(LLVM::ConstantOp::create(
            b, op->getLoc(), b.getI1Type(), b.getBoolAttr(false)));
      auto call = LLVM::CallIntrinsicOp::create(
          b, op->getLoc(), op->getResultTypes().front(),
          b.getStringAttr(intrinsic), operands);
      op->replaceAllUsesWith(call);
      op->erase();
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace
