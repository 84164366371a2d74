//===- ElementGuards.cpp - Elements that are not there
//----------------------===//
//
// A kernel cannot fail. So what importers assert of an element, and what they
// read by an index, is guarded: where an assertion does not hold, or an index
// lies outside, there is NaN, or 0 of integers.
//
//===----------------------------------------------------------------------===//
#include "LinalgPatterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include <algorithm>

using namespace mlir;
using namespace ftuner;

namespace {
/// What stands for an element that is not there: NaN, or 0 of integers.
static TypedAttr getPoison(Type type) {
  if (auto floatType = dyn_cast<FloatType>(type))
    return FloatAttr::get(type,
                          llvm::APFloat::getNaN(floatType.getFloatSemantics()));
  return IntegerAttr::get(type, 0);
}

/// Reads by an index that comes from data. A read outside of the tensor is not
/// done: it gives NaN, or 0 of integers, whoever uses the element, since what
/// masks it afterwards comes too late.
struct GuardIndexedRead : public OpRewritePattern<tensor::ExtractOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(tensor::ExtractOp read,
                                PatternRewriter &rewriter) const override {
    auto op = read->getParentOfType<linalg::GenericOp>();
    if (!op || !op.hasPureTensorSemantics() ||
        read->hasAttr(kGuardedAttrName) ||
        !(isa<FloatType>(read.getType()) ||
          read.getType().isSignlessIntOrIndex()))
      return failure();
    Location loc = read.getLoc();
    Value isInside;
    for (auto [dim, index] : llvm::enumerate(read.getIndices())) {
      if (isWithin(index, read.getTensor(), dim, op))
        continue;
      rewriter.setInsertionPoint(op);
      Value size =
          rewriter.createOrFold<tensor::DimOp>(loc, read.getTensor(), dim);
      rewriter.setInsertionPoint(read);
      // Unsigned: a negative index is beyond any size.
      Value isBelow = arith::CmpIOp::create(
          rewriter, loc, arith::CmpIPredicate::ult, index, size);
      isInside = isInside
                     ? arith::AndIOp::create(rewriter, loc, isInside, isBelow)
                           .getResult()
                     : isBelow;
    }
    rewriter.modifyOpInPlace(
        read, [&] { read->setAttr(kGuardedAttrName, rewriter.getUnitAttr()); });
    if (!isInside)
      return success();
    auto guarded = scf::IfOp::create(rewriter, loc, read.getType(), isInside,
                                     /*withElseRegion=*/true);
    rewriter.replaceAllUsesWith(read.getResult(), guarded.getResult(0));
    rewriter.moveOpBefore(read, guarded.thenBlock(),
                          guarded.thenBlock()->end());
    rewriter.setInsertionPointToEnd(guarded.thenBlock());
    scf::YieldOp::create(rewriter, loc, read.getResult());
    rewriter.setInsertionPointToEnd(guarded.elseBlock());
    Value poison =
        arith::ConstantOp::create(rewriter, loc, getPoison(read.getType()));
    scf::YieldOp::create(rewriter, loc, poison);
    return success();
  }

private:
  static constexpr StringLiteral kGuardedAttrName = "ukernel.guarded";

  using Bounds = std::pair<int64_t, int64_t>;

  /// The least and the largest value of an index that is computed of loops
  /// alone; none where that is not known.
  static std::optional<Bounds> boundsOf(Value value, linalg::GenericOp op) {
    if (std::optional<int64_t> constant = getConstantIntValue(value))
      return Bounds(*constant, *constant);
    Operation *source = value.getDefiningOp();
    if (auto index = dyn_cast_or_null<linalg::IndexOp>(source)) {
      int64_t extent = op.getStaticLoopRanges()[index.getDim()];
      if (ShapedType::isDynamic(extent))
        return std::nullopt;
      return Bounds(0, std::max<int64_t>(extent - 1, 0));
    }
    if (!isa_and_nonnull<arith::AddIOp, arith::SubIOp, arith::MulIOp>(source))
      return std::nullopt;
    auto lhs = boundsOf(source->getOperand(0), op);
    auto rhs = boundsOf(source->getOperand(1), op);
    auto fits = [](const std::optional<Bounds> &bounds) {
      constexpr int64_t kWidest = int64_t(1) << 30;
      return bounds && bounds->first >= -kWidest && bounds->second <= kWidest;
    };
    if (!fits(lhs) || !fits(rhs))
      return std::nullopt;
    if (isa<arith::AddIOp>(source))
      return Bounds(lhs->first + rhs->first, lhs->second + rhs->second);
    if (isa<arith::SubIOp>(source))
      return Bounds(lhs->first - rhs->second, lhs->second - rhs->first);
    auto [least, largest] =
        std::minmax({lhs->first * rhs->first, lhs->first * rhs->second,
                     lhs->second * rhs->first, lhs->second * rhs->second});
    return Bounds(least, largest);
  }

  static bool isWithin(Value index, Value tensor, int64_t dim,
                       linalg::GenericOp op) {
    int64_t size = cast<RankedTensorType>(tensor.getType()).getDimSize(dim);
    std::optional<Bounds> bounds = boundsOf(index, op);
    return bounds && ShapedType::isStatic(size) && bounds->first >= 0 &&
           bounds->second < size;
  }
};

/// Assertions inside an operator, as importers put them before an access by
/// index: a kernel cannot fail, so elements whose assertion does not hold
/// become NaN, and what the assertion guards is not run for them.
struct GuardByAssertion : public OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp op,
                                PatternRewriter &rewriter) const override {
    SmallVector<cf::AssertOp> assertions(op.getBody()->getOps<cf::AssertOp>());
    Operation *yield = op.getBody()->getTerminator();
    if (assertions.empty() || !op.hasPureTensorSemantics() ||
        !llvm::all_of(yield->getOperandTypes(), [](Type type) {
          return isa<FloatType>(type) || type.isSignlessInteger();
        }))
      return failure();
    llvm::erase_if(assertions, [&](cf::AssertOp assertion) {
      if (!isOfDivisor(assertion))
        return false;
      rewriter.eraseOp(assertion);
      return true;
    });
    if (assertions.empty())
      return success();
    for (cf::AssertOp assertion : llvm::reverse(assertions))
      guard(assertion, yield, rewriter);
    emitRemark(op.getLoc(),
               "assertion inside an operator: elements that it does not "
               "hold for become NaN, or 0 of integers");
    return success();
  }

private:
  /// Returns whether an assertion says that a float is not 0, as torch-mlir
  /// does before it divides: a quotient of floats has a value all the same.
  static bool isOfDivisor(cf::AssertOp assertion) {
    auto compare = assertion.getArg().getDefiningOp<arith::CmpFOp>();
    return compare &&
           (compare.getPredicate() == arith::CmpFPredicate::ONE ||
            compare.getPredicate() == arith::CmpFPredicate::UNE) &&
           matchPattern(compare.getRhs(), m_AnyZeroFloat());
  }

  /// Moves what follows the assertion, but for `yield`, below its condition.
  static void guard(cf::AssertOp assertion, Operation *yield,
                    PatternRewriter &rewriter) {
    Location loc = assertion.getLoc();
    rewriter.setInsertionPoint(yield);
    auto guarded =
        scf::IfOp::create(rewriter, loc, yield->getOperandTypes(),
                          assertion.getArg(), /*withElseRegion=*/true);
    Block *then = guarded.thenBlock();
    while (assertion->getNextNode() != guarded)
      rewriter.moveOpBefore(assertion->getNextNode(), then, then->end());
    rewriter.setInsertionPointToEnd(then);
    scf::YieldOp::create(rewriter, loc, yield->getOperands());
    rewriter.setInsertionPointToEnd(guarded.elseBlock());
    SmallVector<Value> poison;
    for (Type type : yield->getOperandTypes())
      poison.push_back(
          arith::ConstantOp::create(rewriter, loc, getPoison(type)));
    scf::YieldOp::create(rewriter, loc, poison);
    rewriter.modifyOpInPlace(yield,
                             [&] { yield->setOperands(guarded.getResults()); });
    rewriter.eraseOp(assertion);
  }
};
} // namespace

void ftuner::populateElementGuardPatterns(RewritePatternSet &patterns) {
  patterns.add<GuardByAssertion, GuardIndexedRead>(patterns.getContext());
}
