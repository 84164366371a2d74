//===- ExpandMath.cpp - Math functions without a device library -*- C++ -*-===//
//
// Without a device library math functions would become external functions in
// the PTX, silently. With one, the PTX would depend on the installed toolkit.
//
//===----------------------------------------------------------------------===//
#include "ElementaryFunctions.h"
#include "RangeReduction.h"

#include "FTuner/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/TypeSwitch.h"

namespace ftuner {
#define GEN_PASS_DEF_UKERNELEXPANDMATHPASS
#include "FTuner/Conversion/Passes.h.inc"
} // namespace ftuner

using namespace mlir;
using namespace ftuner;

namespace {

/// Tests of a float's kind as comparisons.
struct ExpandClassTest : public RewritePattern {
  ExpandClassTest(MLIRContext *context)
      : RewritePattern(MatchAnyOpTypeTag(), /*benefit=*/1, context) {}

  LogicalResult matchAndRewrite(Operation *op,
                                PatternRewriter &rewriter) const override {
    if (!isa<math::IsNaNOp, math::IsInfOp, math::IsFiniteOp, math::IsNormalOp>(
            op))
      return failure();
    Location loc = op->getLoc();
    Value value = op->getOperand(0);
    auto compare = [&](arith::CmpFPredicate predicate, Value lhs,
                       const llvm::APFloat &rhs) -> Value {
      return arith::CmpFOp::create(
          rewriter, loc, predicate, lhs,
          createFloat(rewriter, loc, value.getType(), rhs));
    };
    const llvm::fltSemantics &semantics =
        cast<FloatType>(getElementTypeOrSelf(value.getType()))
            .getFloatSemantics();
    if (isa<math::IsNaNOp>(op)) {
      rewriter.replaceOpWithNewOp<arith::CmpFOp>(op, arith::CmpFPredicate::UNO,
                                                 value, value);
      return success();
    }
    auto infinity = llvm::APFloat::getInf(semantics);
    Value magnitude = math::AbsFOp::create(rewriter, loc, value);
    Value result = compare(isa<math::IsInfOp>(op) ? arith::CmpFPredicate::OEQ
                                                  : arith::CmpFPredicate::OLT,
                           magnitude, infinity);
    if (isa<math::IsNormalOp>(op))
      result = arith::AndIOp::create(
          rewriter, loc, result,
          compare(arith::CmpFPredicate::OGE, magnitude,
                  llvm::APFloat::getSmallestNormalized(semantics)));
    rewriter.replaceOp(op, result);
    return success();
  }
};

/// erf(x) = x + x · S(x²) up to |x| = 1, and ±(1 - 2^L(|x|)) beyond, where L
/// approximates log2(1 - erf(|x|)). Both are computed and one is chosen: a
/// choice of each coefficient would take as many instructions. The error is at
/// most 1.5 ulp, and 1.9 if the power is off by 2^-22 of itself, which counts
/// little as it is small. L falls on, so beyond 3.92, and at infinity, the
/// result is 1. NaN counts as small. tools/fits/fit_erf.py derives the
/// coefficients and measures the error.
struct ExpandErf : public OpRewritePattern<math::ErfOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::ErfOp op,
                                PatternRewriter &rewriter) const override {
    static constexpr float smallCoefficients[] = {
        0.128379121f,   -0.37612325f,   0.112801753f,
        -0.0267112274f, 0.00491748424f, -0.000563121983f};
    static constexpr float largeCoefficients[] = {
        -0.00377866323f, -1.6123867f,   -0.943868756f,
        -0.128111094f,   0.0213979371f, -0.00166954147f};
    Type type = op.getType();
    auto vector = dyn_cast<VectorType>(type);
    if (!getElementTypeOrSelf(type).isF32() || (vector && vector.isScalable()))
      return failure();
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Value x = op.getOperand();
    FloatMath f{b, type};
    Value square = arith::MulFOp::create(b, x, x);
    Value small =
        math::FmaOp::create(b, f.polynomial(square, smallCoefficients), x, x);
    Value magnitude = math::AbsFOp::create(b, x);
    Value one = createFloat(b, b.getLoc(), type, llvm::APFloat(1.0f));
    Value power =
        createApproximateExp2(b, f.polynomial(magnitude, largeCoefficients));
    Value large =
        math::CopySignOp::create(b, arith::SubFOp::create(b, one, power), x);
    Value isLarge =
        arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, magnitude, one);
    rewriter.replaceOpWithNewOp<arith::SelectOp>(op, isLarge, large, small);
    return success();
  }
};

/// The remainder of floats of at most 32 bits, exactly, in f64. A quotient has
/// up to 277 bits; each step takes 52 of them away without rounding.
struct ExpandRemF : public OpRewritePattern<arith::RemFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::RemFOp op,
                                PatternRewriter &rewriter) const override {
    Type type = op.getType();
    if (getElementTypeOrSelf(type).getIntOrFloatBitWidth() > 32)
      return failure();
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Type wide = b.getF64Type();
    if (auto vector = dyn_cast<VectorType>(type))
      wide = vector.clone(wide);
    auto magnitude = [&](Value value) -> Value {
      return math::AbsFOp::create(b, arith::ExtFOp::create(b, wide, value));
    };
    Value dividend = magnitude(op.getLhs()), divisor = magnitude(op.getRhs());
    Value first = arith::ConstantIndexOp::create(b, 0);
    Value end = arith::ConstantIndexOp::create(b, 6);
    Value step = arith::ConstantIndexOp::create(b, 1);
    auto loop = scf::ForOp::create(
        b, first, end, step, dividend,
        [&](OpBuilder &builder, Location loc, Value, ValueRange rest) {
          ImplicitLocOpBuilder b(loc, builder);
          Value quotient = math::TruncOp::create(
              b, arith::DivFOp::create(b, rest.front(), divisor));
          Value next = math::FmaOp::create(
              b, arith::NegFOp::create(b, quotient), divisor, rest.front());
          scf::YieldOp::create(b, next);
        });
    // A quotient that was rounded up leaves a negative rest.
    Value rest = loop.getResult(0);
    Value zero = createFloat(b, b.getLoc(), wide, llvm::APFloat(0.0));
    Value isNegative =
        arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, rest, zero);
    rest = arith::SelectOp::create(
        b, isNegative, arith::AddFOp::create(b, rest, divisor), rest);
    // Also where the divisor is infinite.
    Value isLess =
        arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, dividend, divisor);
    rest = arith::SelectOp::create(b, isLess, dividend, rest);
    rewriter.replaceOpWithNewOp<math::CopySignOp>(
        op, arith::TruncFOp::create(b, type, rest), op.getLhs());
    return success();
  }
};

/// An integer exponent that is no small constant, as a float.
struct ExpandFPowI : public OpRewritePattern<math::FPowIOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::FPowIOp op,
                                PatternRewriter &rewriter) const override {
    Value exponent = arith::SIToFPOp::create(rewriter, op.getLoc(),
                                             op.getType(), op.getRhs());
    rewriter.replaceOpWithNewOp<math::PowFOp>(op, op.getLhs(), exponent);
    return success();
  }
};

/// |x|^y of f32, with the sign of x where y is odd, and NaN for a
/// negative x and a y that is no whole number.
struct ExpandPowF : public OpRewritePattern<math::PowFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::PowFOp op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Type type = op.getType();
    if (!getElementTypeOrSelf(type).isF32())
      return widen(op, rewriter);
    const llvm::fltSemantics &semantics =
        cast<FloatType>(getElementTypeOrSelf(type)).getFloatSemantics();
    auto number = [&](double value) {
      llvm::APFloat constant(value);
      bool losesInfo;
      constant.convert(semantics, llvm::APFloat::rmNearestTiesToEven,
                       &losesInfo);
      return createFloat(b, b.getLoc(), type, constant);
    };
    auto compare = [&](arith::CmpFPredicate predicate, Value lhs, Value rhs) {
      return arith::CmpFOp::create(b, predicate, lhs, rhs);
    };
    Value base = op.getLhs(), exponent = op.getRhs();
    Value zero = number(0), one = number(1), half = number(0.5);
    Value magnitude = math::AbsFOp::create(b, base);
    Value power = createPowerOfMagnitude(b, base, exponent);
    // Also for an exponent of 0 or infinity, where the product is NaN; 1 has
    // itself as a power of NaN, too, but -1 has not.
    Value isOfOne = arith::AndIOp::create(
        b, compare(arith::CmpFPredicate::OEQ, magnitude, one),
        arith::OrIOp::create(
            b, compare(arith::CmpFPredicate::ORD, exponent, exponent),
            compare(arith::CmpFPredicate::OEQ, base, one)));
    Value isOne = arith::OrIOp::create(
        b, compare(arith::CmpFPredicate::OEQ, exponent, zero), isOfOne);
    power = arith::SelectOp::create(b, isOne, one, power);
    Value floor = math::FloorOp::create(b, exponent);
    Value isWhole = compare(arith::CmpFPredicate::OEQ, exponent, floor);
    Value halved = arith::MulFOp::create(b, exponent, half);
    Value isOdd =
        arith::AndIOp::create(b, isWhole,
                              compare(arith::CmpFPredicate::ONE, halved,
                                      math::FloorOp::create(b, halved)));
    // Of finite negative numbers.
    Value infinity =
        createFloat(b, b.getLoc(), type, llvm::APFloat::getInf(semantics));
    Value isUndefined = arith::AndIOp::create(
        b,
        arith::AndIOp::create(
            b, compare(arith::CmpFPredicate::OLT, base, zero),
            compare(arith::CmpFPredicate::ONE, magnitude, infinity)),
        compare(arith::CmpFPredicate::ONE, exponent, floor));
    power = arith::SelectOp::create(
        b, isOdd, math::CopySignOp::create(b, power, base), power);
    Value nan =
        createFloat(b, b.getLoc(), type, llvm::APFloat::getQNaN(semantics));
    rewriter.replaceOp(op, arith::SelectOp::create(b, isUndefined, nan, power));
    return success();
  }

private:
  static LogicalResult widen(math::PowFOp op, PatternRewriter &rewriter) {
    Type element = getElementTypeOrSelf(op.getType());
    if (!element.isF16() && !element.isBF16())
      return failure();
    Location loc = op.getLoc();
    Type wide = rewriter.getF32Type();
    if (auto vector = dyn_cast<VectorType>(op.getType()))
      wide = vector.clone(wide);
    Value power = math::PowFOp::create(
        rewriter, loc, arith::ExtFOp::create(rewriter, loc, wide, op.getLhs()),
        arith::ExtFOp::create(rewriter, loc, wide, op.getRhs()));
    rewriter.replaceOpWithNewOp<arith::TruncFOp>(op, op.getType(), power);
    return success();
  }
};

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
    patterns.add<ExpandClassTest, ExpandErf, ExpandRemF>(&getContext());
    populateElementaryPatterns(patterns);
    // Powers with small constant exponents are products.
    populateMathAlgebraicSimplificationPatterns(patterns);
    patterns.add<ExpandFPowI, ExpandPowF>(&getContext(), /*benefit=*/0);
    auto isOurs = [](StringRef name) {
      return name == math::ErfOp::getOperationName() ||
             isElementaryFunction(name);
    };
    populateMathF32ExpansionPatterns(patterns, [](StringRef name) {
      return name == math::ErfOp::getOperationName();
    });
    math::populateExpansionPatterns(patterns, {"round", "roundeven", "rsqrt"});
    populateMathPolynomialApproximationPatterns(
        patterns, [&](StringRef name) { return !isOurs(name); });
    // Kernels have few of these among many others.
    SmallVector<Operation *> functions;
    getOperation()->walk([&](Operation *op) {
      if (isa_and_nonnull<math::MathDialect>(op->getDialect()) ||
          isa<arith::RemFOp>(op))
        functions.push_back(op);
    });
    auto config = GreedyRewriteConfig().setStrictness(
        GreedyRewriteStrictness::ExistingAndNewOps);
    if (!functions.empty() &&
        failed(applyOpPatternsGreedily(functions, std::move(patterns), config)))
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
                        << getElementTypeOrSelf(op->getOperand(0).getType())
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
