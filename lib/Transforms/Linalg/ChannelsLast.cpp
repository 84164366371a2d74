//===- ChannelsLast.cpp - The layout of a network of convolutions ---------===//
//
// Kernels read images fastest where channels are innermost: a step along the
// sum is a vector of channels at one tap, and places of all images are one
// axis. A function whose convolutions have channels before places is computed
// with channels last: each convolution between two transposes, and these move
// down, through padding, elementwise operators, pools and concatenations, to
// where they cancel or leave the network.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Analysis/LinalgStructure.h"
#include "FTuner/Transforms/Passes.h"
#include "LinalgPatterns.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace ftuner {
#define GEN_PASS_DEF_UKERNELPUTCHANNELSLASTPASS
#include "FTuner/Transforms/Passes.h.inc"
} // namespace ftuner

using namespace mlir;
using namespace ftuner;

namespace {

/// Fewest taps times channels, of the image or of the filters, for which a
/// convolution of f32 between tensors with channels first gains more than two
/// transposes take: from 1152 on, 3 x 3 of 128 channels, on h100 (predicted).
constexpr int64_t kLeastWork = 1152;
/// Convolutions of one function that share transposes, however little each
/// does.
constexpr unsigned kConvolutionsOfNetwork = 3;
/// Fewest channels of an image that is worth a transpose. Others are read where
/// they lie.
constexpr int64_t kLeastChannels = 8;

using Permutation = SmallVector<int64_t>;

/// A convolution with channels before places, and the dimensions of its image
/// and its result in the order with channels last.
struct ChannelsFirst {
  Convolution loops;
  Permutation image, result;
};

/// Orders dimensions: those that channels index alone last.
Permutation withLast(AffineMap map, ArrayRef<unsigned> channels) {
  Permutation order, last;
  for (auto [dim, position] : llvm::enumerate(map.getResults())) {
    auto loop = dyn_cast<AffineDimExpr>(position);
    bool isChannel = loop && llvm::is_contained(channels, loop.getPosition());
    (isChannel ? last : order).push_back(dim);
  }
  llvm::append_range(order, last);
  return order;
}

/// Matches a convolution without groups whose channels are not last, in image
/// and result.
std::optional<ChannelsFirst> matchChannelsFirst(linalg::LinalgOp op) {
  std::optional<Convolution> loops = matchConvolution(op);
  if (!loops || !loops->groups.empty())
    return std::nullopt;
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  ChannelsFirst found{*loops, withLast(maps[loops->image], loops->sums),
                      withLast(maps[2], loops->filters)};
  if (isIdentityPermutation(found.image) || isIdentityPermutation(found.result))
    return std::nullopt;
  return found;
}

AffineMap permuted(AffineMap map, ArrayRef<int64_t> order) {
  return AffineMap::get(map.getNumDims(), map.getNumSymbols(),
                        applyPermutation(map.getResults(), order),
                        map.getContext());
}

Value transpose(OpBuilder &b, Location loc, Value tensor,
                ArrayRef<int64_t> order) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<OpFoldResult> sizes =
      applyPermutation(tensor::getMixedSizes(b, loc, tensor), order);
  Value empty = tensor::EmptyOp::create(b, loc, sizes, type.getElementType());
  return linalg::TransposeOp::create(b, loc, tensor, empty, order)
      ->getResult(0);
}

/// Replaces an operator by a generic one with other operands, maps and order of
/// the result's dimensions, and a transpose behind it.
void replaceTransposed(PatternRewriter &rewriter, linalg::LinalgOp op,
                       ArrayRef<Value> inputs, ArrayRef<AffineMap> maps,
                       ArrayRef<int64_t> order) {
  Location loc = op.getLoc();
  bool isMoved = !isIdentityPermutation(order);
  Value init = op.getDpsInits().front();
  if (isMoved)
    init = transpose(rewriter, loc, init, order);
  linalg::GenericOp generic = takeBody(rewriter, op, inputs, init, maps);
  Value result = generic.getResult(0);
  if (isMoved)
    result = transpose(rewriter, loc, result, invertPermutationVector(order));
  rewriter.replaceOp(op, result);
}

/// Unit attribute of the transposes before convolutions, which do not move
/// down.
constexpr llvm::StringLiteral kImageAttrName = "ukernel.image";

/// Returns the transpose that a tensor is the result of; null for other
/// tensors, and for images of convolutions.
linalg::TransposeOp transposeOf(Value tensor) {
  auto op = tensor.getDefiningOp<linalg::TransposeOp>();
  return op && !op->hasAttr(kImageAttrName) ? op : linalg::TransposeOp();
}

/// Returns padding like `pad` of a tensor that is its source transposed.
Value padTransposed(OpBuilder &b, tensor::PadOp pad, Value source,
                    ArrayRef<int64_t> order) {
  auto type = RankedTensorType::get(
      applyPermutation(pad.getResultType().getShape(), order),
      pad.getResultType().getElementType());
  return tensor::PadOp::create(b, pad.getLoc(), type, source,
                               applyPermutation(pad.getMixedLowPad(), order),
                               applyPermutation(pad.getMixedHighPad(), order),
                               pad.getConstantPaddingValue());
}

/// Returns a convolution's image with channels last; padding comes after the
/// transpose, so that the convolution can read it.
Value imageOf(OpBuilder &b, Location loc, Value image,
              ArrayRef<int64_t> order) {
  tensor::PadOp pad = paddingOf(image);
  if (pad && !hasOuterValue(pad))
    pad = {};
  Value result = transpose(b, loc, pad ? pad.getSource() : image, order);
  result.getDefiningOp()->setAttr(kImageAttrName, b.getUnitAttr());
  return pad ? padTransposed(b, pad, result, order) : result;
}

/// Convolutions with channels first to ones with channels last.
struct TransposeConvolution
    : public OpInterfaceRewritePattern<linalg::LinalgOp> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;

  LogicalResult matchAndRewrite(linalg::LinalgOp op,
                                PatternRewriter &rewriter) const override {
    std::optional<ChannelsFirst> found = matchChannelsFirst(op);
    if (!found)
      return rewriter.notifyMatchFailure(op, "channels are last, or none");
    SmallVector<AffineMap> maps = op.getIndexingMapsArray();
    SmallVector<Value> inputs = op.getDpsInputs();
    unsigned image = found->loops.image;
    auto type = cast<RankedTensorType>(inputs[image].getType());
    int64_t channels = type.getDimSize(found->image.back());
    if (ShapedType::isDynamic(channels) || channels >= kLeastChannels) {
      inputs[image] =
          imageOf(rewriter, op.getLoc(), inputs[image], found->image);
      maps[image] = permuted(maps[image], found->image);
    }
    maps[2] = permuted(maps[2], found->result);
    replaceTransposed(rewriter, op, inputs, maps, found->result);
    return success();
  }
};

/// Elementwise operators, pools and convolutions by channel that read a
/// transposed tensor to ones that read its source.
struct SinkThroughOperator
    : public OpInterfaceRewritePattern<linalg::LinalgOp> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;

  LogicalResult matchAndRewrite(linalg::LinalgOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.hasPureTensorSemantics() || op.getNumDpsInits() != 1 ||
        isa<linalg::TransposeOp>(op.getOperation()) || isProduct(op) ||
        op.hasIndexSemantics())
      return rewriter.notifyMatchFailure(op, "no operator that moves");
    SmallVector<AffineMap> maps = op.getIndexingMapsArray();
    SmallVector<Value> inputs = op.getDpsInputs();
    Permutation order;
    bool isChanged = false;
    for (OpOperand *input : op.getDpsInputOperands()) {
      linalg::TransposeOp source = transposeOf(input->get());
      if (!source)
        continue;
      unsigned number = input->getOperandNumber();
      Permutation back = invertPermutationVector(source.getPermutation());
      AffineMap ofSource = permuted(maps[number], back);
      if (isAlike(maps[number], maps.back()))
        order = back;
      else if (!isAlike(ofSource, maps.back()))
        continue;
      isChanged = true;
      inputs[number] = source.getInput();
      maps[number] = ofSource;
    }
    if (!isChanged)
      return rewriter.notifyMatchFailure(op, "reads no transposed tensor");
    if (order.empty())
      order =
          llvm::to_vector(llvm::seq<int64_t>(0, maps.back().getNumResults()));
    maps.back() = permuted(maps.back(), order);
    replaceTransposed(rewriter, op, inputs, maps, order);
    return success();
  }

private:
  /// Returns whether each dimension of the result is a loop alone, on which the
  /// same dimension of the input depends.
  static bool isAlike(AffineMap input, AffineMap result) {
    return result.isProjectedPermutation() &&
           input.getNumResults() == result.getNumResults() &&
           llvm::all_of(
               llvm::zip_equal(input.getResults(), result.getResults()),
               [](auto pair) {
                 auto [position, loop] = pair;
                 return position.isFunctionOfDim(
                     cast<AffineDimExpr>(loop).getPosition());
               });
  }
};

/// Padding of a transposed tensor to a transpose of the padded source.
struct SinkThroughPad : public OpRewritePattern<tensor::PadOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(tensor::PadOp pad,
                                PatternRewriter &rewriter) const override {
    linalg::TransposeOp source = transposeOf(pad.getSource());
    if (!source || !paddingOf(pad.getResult()) || !hasOuterValue(pad))
      return rewriter.notifyMatchFailure(pad, "pads no transposed tensor");
    ArrayRef<int64_t> moved = source.getPermutation();
    Value padded = padTransposed(rewriter, pad, source.getInput(),
                                 invertPermutationVector(moved));
    rewriter.replaceOp(pad, transpose(rewriter, pad.getLoc(), padded, moved));
    return success();
  }
};

/// Concatenations of tensors that are transposed alike.
struct SinkThroughConcat : public OpRewritePattern<tensor::ConcatOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(tensor::ConcatOp concat,
                                PatternRewriter &rewriter) const override {
    SmallVector<Value> sources;
    Permutation moved;
    for (Value input : concat.getInputs()) {
      linalg::TransposeOp source = transposeOf(input);
      if (!source || (!moved.empty() && moved != source.getPermutation()))
        return rewriter.notifyMatchFailure(concat, "not all are transposed");
      moved = llvm::to_vector(source.getPermutation());
      sources.push_back(source.getInput());
    }
    int64_t dim = moved[concat.getDim()];
    Value joined =
        tensor::ConcatOp::create(rewriter, concat.getLoc(), dim, sources);
    rewriter.replaceOp(concat,
                       transpose(rewriter, concat.getLoc(), joined, moved));
    return success();
  }
};

/// Transposes of a tensor with one value in all elements.
struct TransposeFill : public OpRewritePattern<linalg::TransposeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::TransposeOp op,
                                PatternRewriter &rewriter) const override {
    Operation *source = op.getInput().getDefiningOp();
    if (isa_and_nonnull<tensor::EmptyOp>(source)) {
      rewriter.replaceOp(op, op.getInit());
      return success();
    }
    Value scalar = matchFill(op.getInput());
    if (!scalar)
      return rewriter.notifyMatchFailure(op, "not filled");
    rewriter.replaceOpWithNewOp<linalg::FillOp>(op, scalar, op.getInit());
    return success();
  }
};

struct UKernelPutChannelsLastPass
    : public ftuner::impl::UKernelPutChannelsLastPassBase<
          UKernelPutChannelsLastPass> {
  void runOnOperation() override {
    unsigned convolutions = 0;
    bool isWanted = isWorthIt(convolutions);
    if (convolutions > 0)
      emitRemark(getOperation().getLoc(), "layout: ")
          << "channels are " << (isWanted ? "put last" : "left before places")
          << " for " << convolutions
          << (convolutions == 1 ? " convolution" : " convolutions")
          << (isWanted ? "" : ": transposes would take longer than they save");
    if (!isWanted)
      return;
    RewritePatternSet patterns(&getContext());
    patterns.add<TransposeConvolution, SinkThroughOperator, SinkThroughPad,
                 SinkThroughConcat, TransposeFill>(&getContext());
    linalg::TransposeOp::getCanonicalizationPatterns(patterns, &getContext());
    memref::populateResolveRankedShapedTypeResultDimsPatterns(patterns);
    tensor::DimOp::getCanonicalizationPatterns(patterns, &getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns)))) {
      getOperation().emitError("layouts of images did not reach a fixed form");
      signalPassFailure();
    }
    getOperation().walk(
        [](linalg::TransposeOp op) { op->removeAttr(kImageAttrName); });
    // Convolutions of one image share its transpose.
    DominanceInfo dominance(getOperation());
    IRRewriter rewriter(&getContext());
    eliminateCommonSubExpressions(rewriter, dominance, getOperation());
  }

private:
  /// Returns whether some convolution gains more than two transposes take, or
  /// there are so many convolutions that they share these. Counts those with
  /// channels before places, of windows that are no points.
  bool isWorthIt(unsigned &convolutions) {
    bool isLarge = false;
    getOperation().walk([&](linalg::LinalgOp op) {
      std::optional<ChannelsFirst> found = matchChannelsFirst(op);
      if (!found)
        return;
      int64_t taps = 1, channels = 1;
      SmallVector<int64_t> extents = op.getStaticLoopRanges();
      AffineMap image = op.getIndexingMapsArray()[found->loops.image];
      for (unsigned loop : found->loops.sums) {
        bool isChannel = llvm::is_contained(
            image.getResults(), getAffineDimExpr(loop, op.getContext()));
        int64_t extent =
            ShapedType::isDynamic(extents[loop]) ? 1 : extents[loop];
        (isChannel ? channels : taps) *= extent;
      }
      if (taps == 1 || channels < kLeastChannels)
        return;
      int64_t filters = 1;
      for (unsigned loop : found->loops.filters)
        filters *= ShapedType::isDynamic(extents[loop]) ? 1 : extents[loop];
      ++convolutions;
      Type element = getElementTypeOrSelf(
          op.getDpsInputOperand(found->loops.image)->get().getType());
      bool isNarrow = element.getIntOrFloatBitWidth() <= 16;
      isLarge |= isNarrow || taps * std::min(channels, filters) >= kLeastWork;
    });
    return isLarge || convolutions >= kConvolutionsOfNetwork;
  }
};

} // namespace
