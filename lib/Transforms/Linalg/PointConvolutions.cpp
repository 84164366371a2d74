//===- PointConvolutions.cpp - Convolutions of points as products ---------===//
//
// A convolution whose windows are points, such as one of 1 x 1, is a product of
// the image's channels with the weights. Without the loops over a window, its
// maps say so.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Analysis/LinalgStructure.h"
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
  // A window, but no loop, reads a padded image as if it were whole.
  if (llvm::any_of(op.getDpsInputs(), paddingOf))
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

} // namespace

void ftuner::populateGeneralizePointConvolutionPatterns(
    RewritePatternSet &patterns) {
  patterns.add<GeneralizePointConvolution>(patterns.getContext());
}

void ftuner::populatePointConvolutionPatterns(RewritePatternSet &patterns) {
  patterns.add<DropPointWindows>(patterns.getContext());
}
