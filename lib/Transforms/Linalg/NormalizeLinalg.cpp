//===- NormalizeLinalg.cpp - The form that workloads start from -----------===//
//
// Four steps, each by greedy patterns:
//
// 1. One form for each thing: elementwise operators and data movements become
//    linalg.generic, operators that fill a tensor become linalg.fill, broadcast
//    inputs lose their dimensions of extent 1, scalars are computed outside.
// 2. Convolutions of points become contractions. Contractions have no zero
//    points, and get few loops (Contractions.cpp).
// 3. Reshapes sink below elementwise operators and rise above data movements,
//    and these fuse into one.
// 4. Elementwise operators after products of vectors get the loops that these
//    products got.
//
// Operators are never fused into a contraction: it would stop being one. Nor
// does fusion change where a program rounds.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Analysis/LinalgStructure.h"
#include "FTuner/Dialect/UKernel/Utils/Roundings.h"
#include "FTuner/Transforms/Passes.h"
#include "LinalgPatterns.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include <cmath>

namespace ftuner {
#define GEN_PASS_DEF_UKERNELNORMALIZELINALGPASS
#include "FTuner/Transforms/Passes.h.inc"
} // namespace ftuner

using namespace mlir;
using namespace ftuner;

namespace {

//===----------------------------------------------------------------------===//
// One form for each thing
//===----------------------------------------------------------------------===//

/// Rewrites named elementwise operators and data movements as linalg.generic.
struct GeneralizeElementwise
    : public OpInterfaceRewritePattern<linalg::LinalgOp> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;

  LogicalResult matchAndRewrite(linalg::LinalgOp op,
                                PatternRewriter &rewriter) const override {
    if (isa<linalg::GenericOp, linalg::FillOp>(op.getOperation()) ||
        op.getNumParallelLoops() != op.getNumLoops() || op.hasIndexSemantics())
      return failure();
    if (!llvm::all_of(op.getIndexingMapsArray(), [](AffineMap map) {
          return map.isProjectedPermutation();
        }))
      return failure();
    return linalg::generalizeNamedOp(rewriter, op);
  }
};

Value createFill(PatternRewriter &rewriter, Location loc, Value scalar,
                 ArrayRef<OpFoldResult> sizes) {
  Value empty = tensor::EmptyOp::create(rewriter, loc, sizes, scalar.getType());
  return linalg::FillOp::create(rewriter, loc, scalar, empty).getResult(0);
}

/// Rewrites a linalg.generic that fills a tensor as linalg.fill.
struct GenericToFill : public OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.hasPureTensorSemantics() || op.getNumDpsInits() != 1)
      return failure();
    std::optional<Value> scalar = linalg::isaFillOpInterface(op);
    if (!scalar || !scalar->getType().isIntOrIndexOrFloat() ||
        scalar->getParentBlock() == op.getBlock())
      return failure();
    rewriter.replaceOpWithNewOp<linalg::FillOp>(op, *scalar,
                                                op.getDpsInits()[0]);
    return success();
  }
};

/// Rewrites tensor.splat as linalg.fill.
struct SplatToFill : public OpRewritePattern<tensor::SplatOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(tensor::SplatOp op,
                                PatternRewriter &rewriter) const override {
    SmallVector<OpFoldResult> sizes =
        getMixedValues(op.getType().getShape(), op.getDynamicSizes(), rewriter);
    rewriter.replaceOp(op,
                       createFill(rewriter, op.getLoc(), op.getInput(), sizes));
    return success();
  }
};

/// Rewrites tensor.from_elements of one element as linalg.fill.
struct SingleElementToFill : public OpRewritePattern<tensor::FromElementsOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(tensor::FromElementsOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getElements().size() != 1)
      return failure();
    SmallVector<OpFoldResult> sizes =
        getAsIndexOpFoldResult(op.getContext(), op.getType().getShape());
    rewriter.replaceOp(
        op, createFill(rewriter, op.getLoc(), op.getElements().front(), sizes));
    return success();
  }
};

/// Rewrites a constant without elements as tensor.empty: upstream's ranges of
/// integers (arith::ConstantOp::inferResultRanges) read an element of any
/// constant.
struct ConstantOfNothingToEmpty : public OpRewritePattern<arith::ConstantOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::ConstantOp op,
                                PatternRewriter &rewriter) const override {
    auto type = dyn_cast<RankedTensorType>(op.getType());
    if (!type || type.getNumElements() != 0)
      return failure();
    rewriter.replaceOpWithNewOp<tensor::EmptyOp>(op, type.getShape(),
                                                 type.getElementType());
    return success();
  }
};

/// Computes sine and cosine apart: fusion, prices and kernels know operations
/// of one result.
struct SplitSincos : public OpRewritePattern<math::SincosOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::SincosOp op,
                                PatternRewriter &rewriter) const override {
    Value x = op.getOperand();
    auto fastmath = op.getFastmathAttr();
    Value sine = math::SinOp::create(rewriter, op.getLoc(), x, fastmath);
    Value cosine = math::CosOp::create(rewriter, op.getLoc(), x, fastmath);
    rewriter.replaceOp(op, {sine, cosine});
    return success();
  }
};

/// Folds roots of constants of 16 bits, which upstream does not fold: a root
/// that is hoisted from an operator's body would be computed on the host, and
/// some compilers of host code do not compute in 16 bits.
struct FoldNarrowRoot : public OpRewritePattern<math::SqrtOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::SqrtOp op,
                                PatternRewriter &rewriter) const override {
    FloatAttr operand;
    if (!isa<Float16Type, BFloat16Type>(op.getType()) ||
        !matchPattern(op.getOperand(), m_Constant(&operand)) ||
        operand.getValue().isNegative())
      return failure();
    // A double has more than twice the digits, so it is rounded once.
    double root = std::sqrt(operand.getValueAsDouble());
    rewriter.replaceOpWithNewOp<arith::ConstantOp>(
        op, rewriter.getFloatAttr(op.getType(), root));
    return success();
  }
};

/// Computes powers of 16 bits with constant exponents in f32, and rounds once
/// as before: upstream makes products of them, each of which would round.
template <typename PowerOp>
struct WidenNarrowPower : public OpRewritePattern<PowerOp> {
  using OpRewritePattern<PowerOp>::OpRewritePattern;

  LogicalResult matchAndRewrite(PowerOp op,
                                PatternRewriter &rewriter) const override {
    Value exponent = op.getRhs();
    if (!isa<Float16Type, BFloat16Type>(op.getType()) ||
        !matchPattern(exponent, m_Constant()))
      return failure();
    Location loc = op.getLoc();
    Type wide = rewriter.getF32Type();
    auto widen = [&](Value value) -> Value {
      return arith::ExtFOp::create(rewriter, loc, wide, value);
    };
    if (isa<FloatType>(exponent.getType()))
      exponent = widen(exponent);
    Value power =
        PowerOp::create(rewriter, loc, wide, widen(op.getLhs()), exponent);
    rewriter.replaceOpWithNewOp<arith::TruncFOp>(op, op.getType(), power);
    return success();
  }
};

/// Computes scalars that are the same for all elements, since the body computes
/// them from other scalars, before the operator; reads scalar inputs from
/// outside.
struct HoistScalars : public OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp op,
                                PatternRewriter &rewriter) const override {
    bool changed = false;
    for (OpOperand *input : op.getDpsInputOperands()) {
      BlockArgument argument = op.getMatchingBlockArgument(input);
      if (isa<ShapedType>(input->get().getType()) || argument.use_empty())
        continue;
      rewriter.replaceAllUsesWith(argument, input->get());
      changed = true;
    }
    for (Operation &inner :
         llvm::make_early_inc_range(op.getBody()->without_terminator())) {
      if (!isa<arith::ArithDialect, math::MathDialect>(inner.getDialect()) ||
          !isPure(&inner) ||
          !llvm::all_of(inner.getOperands(), [&](Value operand) {
            return operand.getParentRegion()->isProperAncestor(&op.getRegion());
          }))
        continue;
      rewriter.moveOpBefore(&inner, op);
      changed = true;
    }
    return success(changed);
  }
};

/// Makes the body of a reduction that overwrites its output in each step read
/// this output. A reduction without steps leaves its initial value, but
/// upstream takes an output that no body reads for undefined.
struct ReadOverwrittenInit : public OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp op,
                                PatternRewriter &rewriter) const override {
    SmallVector<unsigned> reduced;
    op.getReductionDims(reduced);
    SmallVector<int64_t> extents = op.getStaticLoopRanges();
    bool mayBeEmpty = llvm::any_of(reduced, [&](unsigned loop) {
      return extents[loop] == 0 || ShapedType::isDynamic(extents[loop]);
    });
    if (!mayBeEmpty || !op.hasPureTensorSemantics())
      return failure();
    bool changed = false;
    Operation *yield = op.getBody()->getTerminator();
    rewriter.setInsertionPoint(yield);
    for (OpOperand &init : op.getDpsInitsMutable()) {
      unsigned number = init.getOperandNumber() - op.getNumDpsInputs();
      if (op.payloadUsesValueFromOperand(&init) ||
          init.get().getDefiningOp<tensor::EmptyOp>())
        continue;
      // The condition is true in every step, but no pass can prove it.
      Location loc = op.getLoc();
      Value step = linalg::IndexOp::create(rewriter, loc, reduced.front());
      Value none = arith::ConstantIndexOp::create(rewriter, loc, -1);
      Value isStep = arith::CmpIOp::create(
          rewriter, loc, arith::CmpIPredicate::ne, step, none);
      Value next = arith::SelectOp::create(rewriter, loc, isStep,
                                           yield->getOperand(number),
                                           op.getMatchingBlockArgument(&init));
      rewriter.modifyOpInPlace(yield, [&] { yield->setOperand(number, next); });
      changed = true;
    }
    return success(changed);
  }
};

/// Drops dimensions of extent 1 from inputs, which maps read at the constant
/// 0.
struct DropUnitDims : public OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.hasPureTensorSemantics())
      return failure();
    SmallVector<AffineMap> maps = op.getIndexingMapsArray();
    bool changed = false;
    for (OpOperand *input : op.getDpsInputOperands()) {
      AffineMap &map = maps[input->getOperandNumber()];
      if (std::optional<Value> source =
              dropUnitDims(rewriter, op.getLoc(), input->get(), map)) {
        rewriter.modifyOpInPlace(op, [&] { input->set(*source); });
        changed = true;
      }
    }
    if (!changed)
      return failure();
    rewriter.modifyOpInPlace(op, [&] {
      op.setIndexingMapsAttr(rewriter.getAffineMapArrayAttr(maps));
    });
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Elementwise operators
//===----------------------------------------------------------------------===//

/// Returns true if a reduction in f16 or bf16 would round elsewhere with the
/// producer of `operand` in its body: sums of products do not round their
/// products, other reductions do.
bool changesRoundings(OpOperand *operand) {
  auto consumer = cast<linalg::LinalgOp>(operand->getOwner());
  if (consumer.getNumReductionLoops() == 0 ||
      llvm::none_of(consumer.getDpsInits(), [](Value init) {
        Type type = getElementTypeOrSelf(init.getType());
        return type.isF16() || type.isBF16();
      }))
    return false;
  auto producer = operand->get().getDefiningOp<linalg::LinalgOp>();
  if (isSumOfProducts(consumer) || !producer)
    return true;
  Value produced = producer.getBlock()->getTerminator()->getOperand(
      cast<OpResult>(operand->get()).getResultNumber());
  return produced.getDefiningOp<arith::MulFOp>() != nullptr;
}

/// Returns true if memory between two kernels would hold a wider type than the
/// program computes in between: the producer rounds to a type that is narrower
/// than its operands', the consumer widens it, and only operators that can
/// widen what they read take the consumer's result. The producer is then the
/// last operator of its kernel, and the consumer the first of the next.
bool widensRounded(OpOperand *operand) {
  auto widthOf = [](Value value) {
    Type element = getElementTypeOrSelf(value.getType());
    return isa<FloatType>(element) ? element.getIntOrFloatBitWidth() : 0;
  };
  auto producer = operand->get().getDefiningOp<linalg::LinalgOp>();
  Operation *consumer = operand->getOwner();
  unsigned width = widthOf(operand->get());
  if (!producer || !producer->hasOneUse() || !width ||
      producer.getNumDpsInputs() == 0 || consumer->getNumResults() != 1 ||
      widthOf(consumer->getResult(0)) <= width)
    return false;
  bool rounds = llvm::any_of(producer.getDpsInputs(), [&](Value input) {
    return widthOf(input) > width;
  });
  return rounds && !consumer->use_empty() &&
         llvm::all_of(consumer->getUsers(), llvm::IsaPred<linalg::LinalgOp>);
}

/// Returns true if an elementwise producer becomes part of its consumer: if
/// nobody else needs its result, or if it only moves elements.
bool shouldFuse(OpOperand *operand) {
  auto consumer = dyn_cast<linalg::LinalgOp>(operand->getOwner());
  Operation *producer = operand->get().getDefiningOp();
  if (!consumer || !producer || isProduct(consumer) ||
      changesRoundings(operand))
    return false;
  return producer->hasOneUse() || matchProjectedCopy(producer).has_value();
}

/// Returns true if a reshape moves past an operator, whose dimensions it
/// collapses: from an operand of an elementwise operator to the result, if it
/// is the reshape of an operator's result, or from the result of a data
/// movement to its operand, for example where a collapsed contraction starts
/// from a broadcast. An operator that reads its place, such as a mask, keeps
/// its dimensions: it would have to divide. A movement of an operator's result
/// stays before the reshape: the operator, a product perhaps, then stores its
/// result moved.
bool shouldMoveReshape(OpOperand *operand) {
  if (isa<tensor::CollapseShapeOp>(operand->getOwner())) {
    Operation *producer = operand->get().getDefiningOp();
    std::optional<ProjectedCopy> copy = matchProjectedCopy(producer);
    if (!copy || !producer->hasOneUse())
      return false;
    auto moved = copy->source.getDefiningOp<linalg::LinalgOp>();
    return !moved || !moved->hasOneUse();
  }
  auto consumer = dyn_cast<linalg::LinalgOp>(operand->getOwner());
  auto reshape = operand->get().getDefiningOp<tensor::ExpandShapeOp>();
  if (!consumer || consumer.hasIndexSemantics() ||
      consumer.getNumParallelLoops() != consumer.getNumLoops())
    return false;
  return reshape && reshape->hasOneUse() &&
         reshape.getSrc().getDefiningOp<linalg::LinalgOp>();
}

/// Returns true if elements of the value are repeated by a movement.
bool repeatsElements(Value value) {
  std::optional<ProjectedCopy> copy = matchProjectedCopy(value.getDefiningOp());
  return copy && (copy->map.getNumResults() < copy->map.getNumDims() ||
                  repeatsElements(copy->source));
}

/// Returns true if a reshape of repeated elements moves before the movement, so
/// that a product reads them where they are stored once: the heads of keys that
/// an operator turned, for example, for each head of queries.
bool shouldMoveBeforeRepeat(OpOperand *operand) {
  return isa<tensor::CollapseShapeOp>(operand->getOwner()) &&
         operand->get().hasOneUse() && repeatsElements(operand->get());
}

/// Returns true if an elementwise operator gets the outermost dimensions of
/// extent 1 that a contraction before it has (AddUnitLoops in
/// Contractions.cpp), to be its epilogue.
bool shouldExpand(OpOperand *operand) {
  auto consumer = dyn_cast<linalg::LinalgOp>(operand->getOwner());
  auto reshape = operand->get().getDefiningOp<tensor::CollapseShapeOp>();
  if (!consumer || consumer.getNumParallelLoops() != consumer.getNumLoops() ||
      !reshape || !reshape->hasOneUse())
    return false;
  auto producer = reshape.getSrc().getDefiningOp<linalg::LinalgOp>();
  if (!producer || !matchContraction(producer))
    return false;
  ArrayRef<int64_t> from = reshape.getSrcType().getShape();
  ArrayRef<int64_t> to = reshape.getResultType().getShape();
  return from.take_back(to.size()) == to &&
         llvm::all_equal(from.drop_back(to.size())) && from.front() == 1;
}

struct UKernelNormalizeLinalgPass
    : public ftuner::impl::UKernelNormalizeLinalgPassBase<
          UKernelNormalizeLinalgPass> {
  using UKernelNormalizeLinalgPassBase::UKernelNormalizeLinalgPassBase;

  void runOnOperation() override {
    MLIRContext *context = &getContext();
    auto apply = [&](llvm::function_ref<void(RewritePatternSet &)> populate) {
      RewritePatternSet patterns(context);
      populate(patterns);
      populateCleanupPatterns(patterns);
      return applyPatternsGreedily(getOperation(), std::move(patterns));
    };
    if (failed(apply([&](RewritePatternSet &patterns) {
          linalg::populateElementwiseToLinalgConversionPatterns(patterns);
          // Outputs that are read become inputs, so that producers fuse
          // completely.
          linalg::populateMoveInitOperandsToInputPattern(patterns);
          populateGeneralizeQuantizedPatterns(patterns);
          populateGeneralizePointConvolutionPatterns(patterns);
          populateElementGuardPatterns(patterns);
          populatePadPatterns(patterns);
          // Powers with small constant exponents become products, which
          // epilogues support.
          populateMathAlgebraicSimplificationPatterns(patterns);
          patterns.add<WidenNarrowPower<math::FPowIOp>,
                       WidenNarrowPower<math::PowFOp>>(context, /*benefit=*/2);
          patterns.add<GeneralizeElementwise, GenericToFill, SplatToFill,
                       SingleElementToFill, HoistScalars, DropUnitDims,
                       FoldNarrowRoot, ReadOverwrittenInit, SplitSincos>(
              context);
        })) ||
        failed(apply([&](RewritePatternSet &patterns) {
          populatePointConvolutionPatterns(patterns);
          populateZeroPointPatterns(patterns);
          populateContractionOperandPatterns(patterns);
          linalg::populateFoldReshapeOpsByCollapsingPatterns(
              patterns, shouldMoveBeforeRepeat);
        })) ||
        // A step of its own: which loops a contraction has depends on what its
        // operands are.
        failed(apply(populateContractionLoopPatterns)) ||
        failed(apply([&](RewritePatternSet &patterns) {
          linalg::populateElementwiseOpsFusionPatterns(
              patterns, [this](OpOperand *operand) {
                return shouldFuse(operand) &&
                       !(keepRounded && widensRounded(operand));
              });
          linalg::populateFoldReshapeOpsByCollapsingPatterns(patterns,
                                                             shouldMoveReshape);
          patterns.add<GenericToFill, ConstantOfNothingToEmpty>(context);
        })) ||
        // A step of its own: the patterns before would collapse again what the
        // other operands of an operator expand from.
        failed(apply([&](RewritePatternSet &patterns) {
          linalg::populateFoldReshapeOpsByExpansionPatterns(patterns,
                                                            shouldExpand);
        }))) {
      getOperation().emitError("linalg operators did not reach a fixed form");
      signalPassFailure();
    }
  }
};
} // namespace

std::optional<Value> ftuner::dropUnitDims(PatternRewriter &rewriter,
                                          Location loc, Value tensor,
                                          AffineMap &map) {
  auto type = dyn_cast<RankedTensorType>(tensor.getType());
  if (!type || type.getEncoding())
    return std::nullopt;
  SmallVector<ReassociationIndices> groups;
  SmallVector<AffineExpr> kept;
  SmallVector<int64_t> shape;
  ReassociationIndices group;
  for (auto [dim, index] : llvm::enumerate(map.getResults())) {
    group.push_back(dim);
    auto constant = dyn_cast<AffineConstantExpr>(index);
    if (constant && constant.getValue() == 0 && type.getDimSize(dim) == 1)
      continue;
    groups.push_back(std::exchange(group, {}));
    kept.push_back(index);
    shape.push_back(type.getDimSize(dim));
  }
  if (kept.size() == map.getNumResults())
    return std::nullopt;
  if (!groups.empty())
    groups.back().append(group);
  map = AffineMap::get(map.getNumDims(), 0, kept, rewriter.getContext());
  return tensor::CollapseShapeOp::create(
      rewriter, loc, RankedTensorType::get(shape, type.getElementType()),
      tensor, groups);
}

void ftuner::populateDropUnitDimsPatterns(RewritePatternSet &patterns) {
  patterns.add<DropUnitDims>(patterns.getContext());
}

void ftuner::populateCleanupPatterns(RewritePatternSet &patterns) {
  MLIRContext *context = patterns.getContext();
  context->getLoadedDialect<linalg::LinalgDialect>()
      ->getCanonicalizationPatterns(patterns);
  // Operators take the static sizes of their outputs: upstream's fusion gives
  // an operator a new empty tensor where its output is the cast of one, and the
  // empty tensor's own patterns make a cast of that again, for ever.
  context->getLoadedDialect<tensor::TensorDialect>()
      ->getCanonicalizationPatterns(patterns);
  linalg::GenericOp::getCanonicalizationPatterns(patterns, context);
  linalg::FillOp::getCanonicalizationPatterns(patterns, context);
  affine::AffineApplyOp::getCanonicalizationPatterns(patterns, context);
  tensor::CastOp::getCanonicalizationPatterns(patterns, context);
  tensor::CollapseShapeOp::getCanonicalizationPatterns(patterns, context);
  tensor::DimOp::getCanonicalizationPatterns(patterns, context);
  tensor::EmptyOp::getCanonicalizationPatterns(patterns, context);
  tensor::ExpandShapeOp::getCanonicalizationPatterns(patterns, context);
  tensor::populateFoldTensorEmptyPatterns(patterns);
  // A dimension of a result must not count as a use of the result.
  memref::populateResolveRankedShapedTypeResultDimsPatterns(patterns);
}
