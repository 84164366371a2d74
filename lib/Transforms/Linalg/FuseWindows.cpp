//===- FuseWindows.cpp - Windows fused with their neighbours --------------===//
//
// Reductions over windows that no codegen path supports: pooling, convolutions
// by channel. Each becomes an elementwise operator whose body has the loops
// over the window. So its sums start from a scalar, in registers; a condition
// replaces the padded tensor; and elementwise operators after it are fused with
// it as with any other.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Analysis/KernelWork.h"
#include "FTuner/Analysis/LinalgStructure.h"
#include "FTuner/Dialect/UKernel/Utils/PromotedFloats.h"
#include "FTuner/Transforms/Passes.h"

#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace ftuner {
#define GEN_PASS_DEF_UKERNELFUSEWINDOWSPASS
#include "FTuner/Transforms/Passes.h.inc"
} // namespace ftuner

using namespace mlir;
using namespace ftuner;

namespace {

bool readsPadding(linalg::LinalgOp op) {
  return op
      ->walk([](tensor::ExtractOp read) {
        return paddingOf(read.getTensor()) ? WalkResult::interrupt()
                                           : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Returns true if a position gets smaller along some loop: the checks of sizes
/// support only positions that grow.
bool fallsAlongLoop(AffineExpr position) {
  bool falls = false;
  position.walk([&](AffineExpr part) {
    auto product = dyn_cast<AffineBinaryOpExpr>(part);
    if (!product || product.getKind() != AffineExprKind::Mul)
      return;
    auto factor = dyn_cast<AffineConstantExpr>(product.getRHS());
    falls |= !factor || factor.getValue() < 0;
  });
  return falls;
}

/// Returns true if an operator reduces windows of static extents to one element
/// for each point of its other loops.
bool reducesWindows(linalg::LinalgOp op) {
  if (!op.hasPureTensorSemantics() || op.getNumReductionLoops() == 0 ||
      op.getNumParallelLoops() == 0 || splitLoops(op).isAcrossLanes)
    return false;
  SmallVector<unsigned> parallel, reduced;
  op.getParallelDims(parallel);
  op.getReductionDims(reduced);
  if (parallel.size() + reduced.size() != op.getNumLoops())
    return false;
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  for (unsigned loop : reduced)
    if (ShapedType::isDynamic(extents[loop]))
      return false;
  for (OpOperand &init : op.getDpsInitsMutable()) {
    AffineMap map = op.getMatchingIndexingMap(&init);
    if (!map.isProjectedPermutation() ||
        map.getNumResults() != parallel.size() ||
        llvm::any_of(reduced,
                     [&](unsigned loop) { return map.isFunctionOfDim(loop); }))
      return false;
  }
  bool hasWindows = false;
  for (OpOperand *in : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(in);
    if (llvm::any_of(map.getResults(), fallsAlongLoop))
      return false;
    hasWindows |= !map.isProjectedPermutation(/*allowZeroInResults=*/true);
  }
  return hasWindows || readsPadding(op);
}

/// Rewrites an operator that reduces windows as an elementwise operator.
class WindowBuilder {
public:
  WindowBuilder(linalg::LinalgOp op, RewriterBase &rewriter)
      : op(op), rewriter(rewriter), promote(promotesToF32(op)),
        ivs(op.getNumLoops()) {
    op.getParallelDims(parallel);
    op.getReductionDims(reduced);
  }
  linalg::GenericOp build();

private:
  /// Asserts that operands have all elements that the loops read.
  void assertSizes();
  /// Returns a map over the operator's loops as a map over the parallel loops.
  AffineMap toParallel(AffineMap map) const;
  /// Returns the initial value of an output: a scalar, or the tensor that is
  /// read.
  Value startOf(OpOperand &init) const;
  void buildBody(OpBuilder &builder, ValueRange arguments);
  SmallVector<Value> buildLoops(ImplicitLocOpBuilder &b, unsigned depth,
                                ValueRange sums);
  SmallVector<Value> buildPoint(ImplicitLocOpBuilder &b, ValueRange sums);
  Value promoted(ImplicitLocOpBuilder &b, Value value) const {
    return promote ? ftuner::promoted(b, b.getLoc(), value) : value;
  }

  linalg::LinalgOp op;
  RewriterBase &rewriter;
  bool promote;
  SmallVector<unsigned> parallel, reduced;
  /// Operands that the new operator reads, and their arguments of its body.
  SmallVector<OpOperand *> inputs;
  DenseMap<OpOperand *, Value> elements;
  SmallVector<Value> ivs;
};

} // namespace

AffineMap WindowBuilder::toParallel(AffineMap map) const {
  SmallVector<AffineExpr> loops(map.getNumDims(),
                                rewriter.getAffineConstantExpr(0));
  for (auto [number, loop] : llvm::enumerate(parallel))
    loops[loop] = rewriter.getAffineDimExpr(number);
  return map.replaceDimsAndSymbols(loops, {}, parallel.size(), 0);
}

Value WindowBuilder::startOf(OpOperand &init) const {
  auto fill = init.get().getDefiningOp<linalg::FillOp>();
  Type element = getElementTypeOrSelf(init.get().getType());
  return fill && fill.value().getType() == element ? fill.value() : init.get();
}

void WindowBuilder::assertSizes() {
  Location loc = op.getLoc();
  ImplicitLocOpBuilder b(loc, rewriter);
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  SmallVector<Value> sizes, last;
  for (Range range : op.createLoopRanges(rewriter, loc)) {
    Value size = getValueOrCreateConstantIndexOp(rewriter, loc, range.size);
    Value one = arith::ConstantIndexOp::create(b, 1);
    sizes.push_back(size);
    last.push_back(b.createOrFold<arith::SubIOp>(size, one));
  }
  Value zero = arith::ConstantIndexOp::create(b, 0), isEmpty;
  for (Value size : sizes) {
    Value isNone =
        b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::eq, size, zero);
    isEmpty = isEmpty ? b.createOrFold<arith::OrIOp>(isEmpty, isNone) : isNone;
  }
  for (OpOperand &operand : op->getOpOperands()) {
    auto type = dyn_cast<RankedTensorType>(operand.get().getType());
    AffineMap map = op.getMatchingIndexingMap(&operand);
    for (auto [dim, position] : llvm::enumerate(map.getResults())) {
      // The operator's own verifier checks static sizes.
      bool isStatic = !type.isDynamicDim(dim);
      for (unsigned loop = 0; loop < extents.size(); ++loop)
        isStatic &= !position.isFunctionOfDim(loop) ||
                    ShapedType::isStatic(extents[loop]);
      if (isStatic)
        continue;
      Value size = b.createOrFold<tensor::DimOp>(operand.get(), dim);
      auto loop = dyn_cast<AffineDimExpr>(position);
      Value fits;
      if (loop) {
        fits = b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::eq, size,
                                             sizes[loop.getPosition()]);
      } else {
        Value greatest = affine::expandAffineExpr(b, loc, position, last, {});
        fits = b.createOrFold<arith::OrIOp>(
            isEmpty, b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::sgt,
                                                   size, greatest));
      }
      if (!matchPattern(fits, m_One()))
        cf::AssertOp::create(b, fits,
                             "sizes of the operands do not fit each other");
    }
  }
}

/// One iteration of the windows' loops: the next sums.
SmallVector<Value> WindowBuilder::buildPoint(ImplicitLocOpBuilder &b,
                                             ValueRange sums) {
  IRMapping mapping;
  for (auto [init, sum] : llvm::zip_equal(op.getDpsInitsMutable(), sums))
    mapping.map(op.getMatchingBlockArgument(&init), sum);
  for (OpOperand *input : op.getDpsInputOperands()) {
    BlockArgument argument = op.getMatchingBlockArgument(input);
    if (argument.use_empty())
      continue;
    Value element = elements.lookup(input);
    if (!element && !isa<RankedTensorType>(input->get().getType()))
      element = input->get();
    if (!element) {
      SmallVector<Value> indices;
      for (AffineExpr position : op.getMatchingIndexingMap(input).getResults())
        indices.push_back(
            affine::expandAffineExpr(b, b.getLoc(), position, ivs, {}));
      element = tensor::ExtractOp::create(b, input->get(), indices);
    }
    mapping.map(argument, promoted(b, element));
  }
  for (Operation &inner : op.getBlock()->without_terminator()) {
    if (auto index = dyn_cast<linalg::IndexOp>(inner)) {
      mapping.map(index.getResult(), ivs[index.getDim()]);
      continue;
    }
    if (promote) {
      clonePromoted(b, inner, mapping);
      continue;
    }
    Operation *clone = b.clone(inner, mapping);
    clone->walk([&](linalg::IndexOp index) {
      rewriter.replaceOp(index, ivs[index.getDim()]);
    });
  }
  SmallVector<Value> next;
  for (OpOperand &init : op.getDpsInitsMutable())
    next.push_back(promoted(
        b, mapping.lookupOrDefault(op.getMatchingYieldValue(&init)->get())));
  return next;
}

SmallVector<Value> WindowBuilder::buildLoops(ImplicitLocOpBuilder &b,
                                             unsigned depth, ValueRange sums) {
  if (depth == reduced.size())
    return buildPoint(b, sums);
  unsigned loop = reduced[depth];
  int64_t extent = op.getStaticLoopRanges()[loop];
  Value first = arith::ConstantIndexOp::create(b, 0);
  Value end = arith::ConstantIndexOp::create(b, extent);
  Value step = arith::ConstantIndexOp::create(b, 1);
  auto forOp = scf::ForOp::create(
      b, first, end, step, sums,
      [&](OpBuilder &inner, Location loc, Value iv, ValueRange arguments) {
        ImplicitLocOpBuilder body(loc, inner);
        ivs[loop] = iv;
        scf::YieldOp::create(body, buildLoops(body, depth + 1, arguments));
      });
  return SmallVector<Value>(forOp.getResults());
}

void WindowBuilder::buildBody(OpBuilder &builder, ValueRange arguments) {
  ImplicitLocOpBuilder b(op.getLoc(), builder);
  for (auto [number, loop] : llvm::enumerate(parallel))
    ivs[loop] = linalg::IndexOp::create(b, number);
  for (auto [input, argument] :
       llvm::zip(inputs, arguments.take_front(inputs.size())))
    elements[input] = argument;
  SmallVector<Value> sums;
  for (OpOperand &init : op.getDpsInitsMutable()) {
    Value element = elements.lookup(&init);
    sums.push_back(promoted(b, element ? element : startOf(init)));
  }
  SmallVector<Value> results = buildLoops(b, 0, sums);
  for (auto [result, init] : llvm::zip_equal(results, op.getDpsInitsMutable()))
    result = rounded(b, b.getLoc(), result,
                     getElementTypeOrSelf(init.get().getType()));
  linalg::YieldOp::create(b, results);
}

linalg::GenericOp WindowBuilder::build() {
  Location loc = op.getLoc();
  rewriter.setInsertionPoint(op);
  assertSizes();
  SmallVector<Value> values, outputs;
  SmallVector<AffineMap> maps;
  auto addInput = [&](OpOperand &operand) {
    inputs.push_back(&operand);
    values.push_back(operand.get());
    maps.push_back(toParallel(op.getMatchingIndexingMap(&operand)));
  };
  // Operations that do not depend on the position in the window.
  for (OpOperand *input : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(input);
    bool isOfWindow = llvm::any_of(
        reduced, [&](unsigned loop) { return map.isFunctionOfDim(loop); });
    if (isa<RankedTensorType>(input->get().getType()) &&
        op.payloadUsesValueFromOperand(input) && !isOfWindow &&
        map.isProjectedPermutation())
      addInput(*input);
  }
  for (OpOperand &init : op.getDpsInitsMutable())
    if (startOf(init) == init.get())
      addInput(init);
  for (OpOperand &init : op.getDpsInitsMutable()) {
    auto type = cast<RankedTensorType>(init.get().getType());
    Value like = init.get();
    if (auto fill = like.getDefiningOp<linalg::FillOp>())
      like = fill.output();
    outputs.push_back(tensor::EmptyOp::create(
        rewriter, loc, tensor::getMixedSizes(rewriter, loc, like),
        type.getElementType()));
    maps.push_back(toParallel(op.getMatchingIndexingMap(&init)));
  }
  SmallVector<utils::IteratorType> iterators(parallel.size(),
                                             utils::IteratorType::parallel);
  auto generic = linalg::GenericOp::create(
      rewriter, loc, TypeRange(ValueRange(outputs)), values, outputs, maps,
      iterators, [&](OpBuilder &b, Location, ValueRange arguments) {
        buildBody(b, arguments);
      });
  generic->setAttr(kWindowAttrName, rewriter.getStringAttr(operatorNameOf(op)));
  rewriter.replaceOp(op, generic.getResults());
  return generic;
}

/// Makes a read of a padded tensor read the tensor before padding, where this
/// has the element.
static void foldPadding(tensor::ExtractOp read, Operation *window,
                        RewriterBase &rewriter) {
  tensor::PadOp pad = paddingOf(read.getTensor());
  if (!pad)
    return;
  Location loc = read.getLoc();
  rewriter.setInsertionPoint(window);
  Value value = pad.getConstantPaddingValue();
  if (pad->isAncestor(value.getDefiningOp() ? value.getDefiningOp() : window))
    value = rewriter.clone(*value.getDefiningOp())->getResult(0);
  SmallVector<OpFoldResult> low = pad.getMixedLowPad(),
                            high = pad.getMixedHighPad();
  SmallVector<Value> sizes(low.size()), offsets(low.size());
  for (unsigned dim = 0; dim < low.size(); ++dim) {
    if (isZeroInteger(low[dim]) && isZeroInteger(high[dim]))
      continue;
    sizes[dim] =
        rewriter.createOrFold<tensor::DimOp>(loc, pad.getSource(), dim);
    offsets[dim] = getValueOrCreateConstantIndexOp(rewriter, loc, low[dim]);
  }
  ImplicitLocOpBuilder b(loc, rewriter);
  b.setInsertionPoint(read);
  Value isInside;
  SmallVector<Value> indices(read.getIndices());
  for (auto [index, size, offset] : llvm::zip_equal(indices, sizes, offsets)) {
    if (!size)
      continue;
    index = b.createOrFold<arith::SubIOp>(index, offset);
    // Unsigned: a negative index is beyond any size.
    Value isBelow =
        arith::CmpIOp::create(b, arith::CmpIPredicate::ult, index, size);
    // This select is not an operation of the program.
    isInside = isInside
                   ? arith::SelectOp::create(b, isInside, isBelow, isInside)
                         .getResult()
                   : isBelow;
  }
  if (!isInside) {
    rewriter.setInsertionPoint(read);
    rewriter.replaceOpWithNewOp<tensor::ExtractOp>(read, pad.getSource(),
                                                   indices);
    return;
  }
  auto guarded = scf::IfOp::create(
      b, isInside,
      [&](OpBuilder &inner, Location) {
        Value element =
            tensor::ExtractOp::create(inner, loc, pad.getSource(), indices);
        scf::YieldOp::create(inner, loc, element);
      },
      [&](OpBuilder &inner, Location) {
        scf::YieldOp::create(inner, loc, value);
      });
  rewriter.replaceOp(read, guarded.getResults());
}

/// Fuses the operator with its consumer, if this is a single elementwise
/// operator that reads the result at the same points, and returns the fused
/// operator; null otherwise. A consumer that reduces windows itself stays,
/// since it becomes an operator of its own.
static linalg::GenericOp fuseConsumer(linalg::GenericOp window,
                                      RewriterBase &rewriter) {
  if (window.getNumResults() != 1 || !window->hasOneUse())
    return {};
  OpOperand &use = *window->getUses().begin();
  auto consumer = dyn_cast<linalg::GenericOp>(use.getOwner());
  if (!consumer || consumer->getBlock() != window->getBlock() ||
      !consumer.isDpsInput(&use) || reducesWindows(consumer) ||
      consumer.getNumLoops() != window.getNumLoops() ||
      !linalg::areElementwiseOpsFusable(&use))
    return {};
  StringAttr name = window->getAttrOfType<StringAttr>(kWindowAttrName);
  rewriter.setInsertionPoint(consumer);
  FailureOr<linalg::ElementwiseOpFusionResult> fused =
      linalg::fuseElementwiseOps(rewriter, &use);
  if (failed(fused))
    return {};
  fused->fusedOp->setAttr(kWindowAttrName, name);
  rewriter.replaceOp(consumer, fused->fusedOp->getResults().take_back(
                                   consumer.getNumResults()));
  return cast<linalg::GenericOp>(fused->fusedOp);
}

namespace {
struct UKernelFuseWindowsPass
    : public ftuner::impl::UKernelFuseWindowsPassBase<UKernelFuseWindowsPass> {
  using UKernelFuseWindowsPassBase::UKernelFuseWindowsPassBase;

  void runOnOperation() override {
    SmallVector<linalg::LinalgOp> ops;
    getOperation()->walk([&](linalg::LinalgOp op) {
      if (reducesWindows(op))
        ops.push_back(op);
    });
    if (ops.empty())
      return;
    IRRewriter rewriter(&getContext());
    for (linalg::LinalgOp op : ops) {
      linalg::GenericOp window = WindowBuilder(op, rewriter).build();
      SmallVector<tensor::ExtractOp> reads;
      window->walk([&](tensor::ExtractOp read) { reads.push_back(read); });
      for (tensor::ExtractOp read : reads)
        foldPadding(read, window, rewriter);
      ++numWindows;
      while (window)
        window = fuseConsumer(window, rewriter);
    }
    // Removes unused operations, then checks of sizes that are one value.
    simplify();
    DominanceInfo dominance(getOperation());
    eliminateCommonSubExpressions(rewriter, dominance, getOperation());
    simplify();
  }

private:
  void simplify() {
    RewritePatternSet patterns(&getContext());
    // A dimension of a result must not count as a use of the result.
    memref::populateResolveRankedShapedTypeResultDimsPatterns(patterns);
    tensor::DimOp::getCanonicalizationPatterns(patterns, &getContext());
    cf::AssertOp::getCanonicalizationPatterns(patterns, &getContext());
    // It does not matter whether the patterns reached a fixed form.
    (void)applyPatternsGreedily(getOperation(), std::move(patterns));
  }
};
} // namespace
