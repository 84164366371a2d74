//===- PointConvolutions.cpp - Convolutions of points as products ---------===//
//
// A convolution whose windows are points, such as one of 1 x 1, is a product of
// the image's channels with the weights. Without the loops over a window, its
// maps say so. Points that a stride leaves out are left out of the image first.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Dialect/UKernel/Utils/Roundings.h"
#include "LinalgPatterns.h"

#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace ftuner;

namespace {

/// The loops over a convolution's windows, if these are points; a convolution
/// of groups is none, for it is hardly a product.
std::optional<SmallVector<unsigned>> matchPointWindows(linalg::LinalgOp op) {
  if (!op.hasPureTensorSemantics() || !isSumOfProducts(op))
    return std::nullopt;
  FailureOr<linalg::ConvolutionDimensions> dims =
      linalg::inferConvolutionDims(op);
  if (failed(dims) || !dims->depth.empty() || dims->inputChannel.empty() ||
      dims->outputChannel.empty())
    return std::nullopt;
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  if (llvm::any_of(dims->filterLoop,
                   [&](unsigned loop) { return extents[loop] != 1; }))
    return std::nullopt;
  return llvm::to_vector<4>(dims->filterLoop);
}

/// Named convolutions of points to linalg.generic.
struct GeneralizePointConvolution
    : public OpInterfaceRewritePattern<linalg::LinalgOp> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;

  LogicalResult matchAndRewrite(linalg::LinalgOp op,
                                PatternRewriter &rewriter) const override {
    if (isa<linalg::GenericOp>(op.getOperation()) || !matchPointWindows(op))
      return failure();
    return linalg::generalizeNamedOp(rewriter, op);
  }
};

/// The loop and the factor of a position `loop * factor`.
std::optional<std::pair<AffineDimExpr, int64_t>>
matchStride(AffineExpr position) {
  if (auto loop = dyn_cast<AffineDimExpr>(position))
    return std::make_pair(loop, int64_t(1));
  auto product = dyn_cast<AffineBinaryOpExpr>(position);
  if (!product || product.getKind() != AffineExprKind::Mul)
    return std::nullopt;
  auto loop = dyn_cast<AffineDimExpr>(product.getLHS());
  auto factor = dyn_cast<AffineConstantExpr>(product.getRHS());
  if (!loop || !factor || factor.getValue() < 2)
    return std::nullopt;
  return std::make_pair(loop, factor.getValue());
}

/// Convolutions of points to operators without windows.
struct DropPointWindows : public OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp op,
                                PatternRewriter &rewriter) const override {
    std::optional<SmallVector<unsigned>> windows = matchPointWindows(op);
    if (!windows)
      return failure();
    linalg::ControlDropUnitDims options;
    options.controlFn = [&](Operation *) { return *windows; };
    FailureOr<linalg::DropUnitDimsResult> result =
        linalg::dropUnitDims(rewriter, op, options);
    if (failed(result))
      return failure();
    rewriter.replaceOp(op, result->replacements);
    return success();
  }
};

/// Products that read every s-th point of an image to ones of a smaller image.
struct SliceStridedImage : public OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.hasPureTensorSemantics() || !isSumOfProducts(op))
      return failure();
    OpOperand *image = op.getDpsInputOperand(0),
              *init = op.getDpsInitOperand(0);
    AffineMap map = op.getMatchingIndexingMap(image);
    AffineMap outMap = op.getMatchingIndexingMap(init);
    SmallVector<AffineExpr> loops;
    SmallVector<OpFoldResult> strides;
    // Dimensions with a stride, and those of the result that have their sizes.
    SmallVector<std::pair<unsigned, unsigned>> strided;
    for (auto [dim, position] : llvm::enumerate(map.getResults())) {
      auto match = matchStride(position);
      if (!match)
        return failure();
      auto [loop, stride] = *match;
      loops.push_back(loop);
      strides.push_back(rewriter.getIndexAttr(stride));
      if (stride == 1)
        continue;
      std::optional<unsigned> outDim = outMap.getResultPosition(loop);
      if (!outDim)
        return failure();
      strided.emplace_back(dim, *outDim);
    }
    if (strided.empty())
      return failure();
    Location loc = op.getLoc();
    SmallVector<OpFoldResult> sizes =
        tensor::getMixedSizes(rewriter, loc, image->get());
    SmallVector<OpFoldResult> offsets(sizes.size(), rewriter.getIndexAttr(0));
    for (auto [dim, outDim] : strided)
      sizes[dim] = tensor::getMixedSize(rewriter, loc, init->get(), outDim);
    Value points = tensor::ExtractSliceOp::create(rewriter, loc, image->get(),
                                                  offsets, sizes, strides);
    SmallVector<AffineMap> maps = op.getIndexingMapsArray();
    maps[image->getOperandNumber()] =
        AffineMap::get(map.getNumDims(), 0, loops, rewriter.getContext());
    rewriter.modifyOpInPlace(op, [&] {
      image->set(points);
      op.setIndexingMapsAttr(rewriter.getAffineMapArrayAttr(maps));
    });
    return success();
  }
};

} // namespace

void ftuner::populateGeneralizePointConvolutionPatterns(
    RewritePatternSet &patterns) {
  patterns.add<GeneralizePointConvolution>(patterns.getContext());
}

void ftuner::populatePointConvolutionPatterns(RewritePatternSet &patterns) {
  patterns.add<DropPointWindows, SliceStridedImage>(patterns.getContext());
}
