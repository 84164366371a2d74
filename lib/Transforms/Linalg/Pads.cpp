//===- Pads.cpp - Padding in forms that others take -------------*- C++ -*-===//
//
// A tensor.pad by -1 cuts an element off. Upstream's lowering would insert the
// tensor at offset -1, which is not a valid operation. Here the part that stays
// becomes a slice, which is padded on the sides where elements are added.
//
// A reshape between padding and a convolution, such as that of channels into
// groups, goes before the padding, which then is part of the convolution.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Analysis/LinalgStructure.h"
#include "LinalgPatterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
using namespace ftuner;

namespace {
struct SliceNegativePads : public OpRewritePattern<tensor::PadOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(tensor::PadOp pad,
                                PatternRewriter &rewriter) const override {
    SmallVector<OpFoldResult> low = pad.getMixedLowPad();
    SmallVector<OpFoldResult> high = pad.getMixedHighPad();
    auto isNegative = [](OpFoldResult size) {
      return getConstantIntValue(size).value_or(0) < 0;
    };
    if (llvm::none_of(low, isNegative) && llvm::none_of(high, isNegative))
      return rewriter.notifyMatchFailure(pad, "cuts nothing off");
    ImplicitLocOpBuilder b(pad.getLoc(), rewriter);
    Value source = pad.getSource();
    SmallVector<OpFoldResult> sizes =
        tensor::getMixedSizes(b, b.getLoc(), source);
    SmallVector<OpFoldResult> offsets(sizes.size(), b.getIndexAttr(0));
    SmallVector<OpFoldResult> strides(sizes.size(), b.getIndexAttr(1));
    for (size_t dim = 0; dim < sizes.size(); ++dim)
      for (OpFoldResult *size : {&low[dim], &high[dim]}) {
        if (!isNegative(*size))
          continue;
        int64_t cut = -*getConstantIntValue(*size);
        if (size == &low[dim])
          offsets[dim] = b.getIndexAttr(cut);
        sizes[dim] = subtract(b, sizes[dim], cut);
        *size = b.getIndexAttr(0);
      }
    if (llvm::any_of(sizes, isNegative))
      return rewriter.notifyMatchFailure(pad, "cuts more off than there is");
    Value slice =
        tensor::ExtractSliceOp::create(b, source, offsets, sizes, strides);
    auto isZero = [](OpFoldResult size) {
      return getConstantIntValue(size) == 0;
    };
    if (llvm::all_of(low, isZero) && llvm::all_of(high, isZero)) {
      rewriter.replaceOp(pad, cast(b, slice, pad.getResultType()));
      return success();
    }
    auto rest = tensor::PadOp::create(b, pad.getResultType(), slice, low, high);
    rewriter.inlineRegionBefore(pad.getRegion(), rest.getRegion(),
                                rest.getRegion().begin());
    rewriter.replaceOp(pad, rest.getResult());
    return success();
  }

private:
  static OpFoldResult subtract(ImplicitLocOpBuilder &b, OpFoldResult size,
                               int64_t cut) {
    if (std::optional<int64_t> known = getConstantIntValue(size))
      return b.getIndexAttr(*known - cut);
    return b.createOrFold<arith::SubIOp>(
        getValueOrCreateConstantIndexOp(b, b.getLoc(), size),
        arith::ConstantIndexOp::create(b, cut));
  }

  static Value cast(ImplicitLocOpBuilder &b, Value value, Type type) {
    return value.getType() == type
               ? value
               : tensor::CastOp::create(b, type, value).getResult();
  }
};

/// Moves reshapes that split dimensions without padding before the padding.
struct ExpandBeforePad : public OpRewritePattern<tensor::ExpandShapeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(tensor::ExpandShapeOp expand,
                                PatternRewriter &rewriter) const override {
    tensor::PadOp pad = paddingOf(expand.getSrc());
    if (!pad || !pad->hasOneUse() || !hasOuterValue(pad))
      return rewriter.notifyMatchFailure(expand, "no padding with one reader");
    SmallVector<OpFoldResult> low, high, sizes;
    SmallVector<int64_t> shape;
    SmallVector<OpFoldResult> padded = expand.getMixedOutputShape();
    OpFoldResult zero = rewriter.getIndexAttr(0);
    for (auto [dim, group] :
         llvm::enumerate(expand.getReassociationIndices())) {
      OpFoldResult before = pad.getMixedLowPad()[dim],
                   after = pad.getMixedHighPad()[dim];
      bool isPadded =
          getConstantIntValue(before) != 0 || getConstantIntValue(after) != 0;
      if (isPadded && group.size() > 1)
        return rewriter.notifyMatchFailure(expand, "splits what is padded");
      if (!isPadded && pad.getSourceType().getDimSize(dim) !=
                           pad.getResultType().getDimSize(dim))
        return rewriter.notifyMatchFailure(expand, "types know other sizes");
      for (int64_t part : group) {
        low.push_back(isPadded ? before : zero);
        high.push_back(isPadded ? after : zero);
        sizes.push_back(isPadded ? tensor::getMixedSize(rewriter, pad.getLoc(),
                                                        pad.getSource(), dim)
                                 : padded[part]);
        shape.push_back(isPadded ? pad.getSourceType().getDimSize(dim)
                                 : getConstantIntValue(padded[part])
                                       .value_or(ShapedType::kDynamic));
      }
    }
    auto type =
        RankedTensorType::get(shape, pad.getSourceType().getElementType());
    rewriter.setInsertionPoint(expand);
    Value split = tensor::ExpandShapeOp::create(
        rewriter, expand.getLoc(), type, pad.getSource(),
        expand.getReassociationIndices(), sizes);
    rewriter.replaceOpWithNewOp<tensor::PadOp>(expand, expand.getResultType(),
                                               split, low, high,
                                               pad.getConstantPaddingValue());
    return success();
  }
};
} // namespace

void ftuner::populatePadPatterns(RewritePatternSet &patterns) {
  patterns.add<SliceNegativePads, ExpandBeforePad>(patterns.getContext());
}
