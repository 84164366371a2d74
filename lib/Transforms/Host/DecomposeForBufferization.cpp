//===- DecomposeForBufferization.cpp - What has no loops --------*- C++ -*-===//
#include "HostPreparation.h"
#include "Linalg/LinalgPatterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace {
/// Softmax and its like, through their own decomposition.
struct DecomposeAggregated
    : public OpInterfaceRewritePattern<linalg::AggregatedOpInterface> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;
  LogicalResult matchAndRewrite(linalg::AggregatedOpInterface op,
                                PatternRewriter &rewriter) const override {
    FailureOr<SmallVector<Value>> values = op.decomposeOperation(rewriter);
    if (failed(values))
      return failure();
    emitRemark(op->getLoc(), "fallback: ")
        << op->getName() << " runs as several simple kernels";
    rewriter.replaceOp(op, *values);
    return success();
  }
};

struct DecomposePack : public OpRewritePattern<linalg::PackOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(linalg::PackOp op,
                                PatternRewriter &rewriter) const override {
    return success(succeeded(linalg::lowerPack(rewriter, op)));
  }
};

struct DecomposeUnPack : public OpRewritePattern<linalg::UnPackOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(linalg::UnPackOp op,
                                PatternRewriter &rewriter) const override {
    return success(succeeded(linalg::lowerUnPack(rewriter, op)));
  }
};

/// Replaces a reshape that joins a dimension of size 0 with one of unknown size
/// by an empty tensor: on buffers, the joined size would be known to be 0,
/// which the verifier of memref.collapse_shape does not accept.
struct ReplaceEmptyCollapse : public OpRewritePattern<tensor::CollapseShapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(tensor::CollapseShapeOp op,
                                PatternRewriter &rewriter) const override {
    RankedTensorType source = op.getSrcType();
    auto isEmpty = [&](int64_t dim) { return source.getDimSize(dim) == 0; };
    auto isUnknown = [&](int64_t dim) { return source.isDynamicDim(dim); };
    if (llvm::none_of(op.getReassociationIndices(), [&](const auto &group) {
          return llvm::any_of(group, isEmpty) && llvm::any_of(group, isUnknown);
        }))
      return failure();
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    SmallVector<Value> sizes;
    for (auto [dim, group] : llvm::enumerate(op.getReassociationIndices())) {
      if (!op.getResultType().isDynamicDim(dim))
        continue;
      Value size = arith::ConstantIndexOp::create(b, 1);
      for (int64_t part : group)
        size = b.createOrFold<arith::MulIOp>(
            size, b.createOrFold<tensor::DimOp>(op.getSrc(), part));
      sizes.push_back(size);
    }
    rewriter.replaceOpWithNewOp<tensor::EmptyOp>(op, op.getResultType(), sizes);
    return success();
  }
};

/// A reshape to a shape that the host knows is a view: one dimension in
/// between.
struct ReshapeThroughOneDimension : public OpRewritePattern<tensor::ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(tensor::ReshapeOp op,
                                PatternRewriter &rewriter) const override {
    auto source = dyn_cast<RankedTensorType>(op.getSource().getType());
    auto result = dyn_cast<RankedTensorType>(op.getResult().getType());
    auto shape = op.getShape().getDefiningOp<tensor::FromElementsOp>();
    if (!source || !result || !shape)
      return failure();
    Location loc = op.getLoc();
    auto allDims = [](int64_t rank) {
      SmallVector<ReassociationIndices> groups;
      if (rank > 0)
        groups.push_back(llvm::to_vector<2>(llvm::seq<int64_t>(0, rank)));
      return groups;
    };
    Value flat = op.getSource();
    if (source.getRank() > 1)
      flat = tensor::CollapseShapeOp::create(rewriter, loc, flat,
                                             allDims(source.getRank()));
    else if (source.getRank() == 0)
      flat = tensor::ExpandShapeOp::create(
          rewriter, loc, RankedTensorType::get({1}, source.getElementType()),
          flat, ArrayRef<ReassociationIndices>());
    if (result.getRank() == 0) {
      auto one = RankedTensorType::get({1}, source.getElementType());
      if (flat.getType() != one)
        flat = tensor::CastOp::create(rewriter, loc, one, flat);
      rewriter.replaceOpWithNewOp<tensor::CollapseShapeOp>(
          op, result, flat, ArrayRef<ReassociationIndices>());
      return success();
    }
    // The one dimension in between is dynamic unless every size is known.
    auto flatType =
        RankedTensorType::get({result.hasStaticShape() ? result.getNumElements()
                                                       : ShapedType::kDynamic},
                              source.getElementType());
    if (flat.getType() != flatType)
      flat = tensor::CastOp::create(rewriter, loc, flatType, flat);
    if (result.getRank() == 1) {
      rewriter.replaceOpWithNewOp<tensor::CastOp>(op, result, flat);
      return success();
    }
    SmallVector<OpFoldResult> sizes;
    for (auto [dim, element] : llvm::enumerate(shape.getElements())) {
      if (!result.isDynamicDim(dim))
        sizes.push_back(rewriter.getIndexAttr(result.getDimSize(dim)));
      else
        sizes.push_back(getValueOrCreateCastToIndexLike(
            rewriter, loc, rewriter.getIndexType(), element));
    }
    rewriter.replaceOpWithNewOp<tensor::ExpandShapeOp>(
        op, result, flat, allDims(result.getRank()), sizes);
    return success();
  }
};
} // namespace

/// A fresh tensor with every element `value`.
static Value createFill(OpBuilder &builder, Location loc, TypedAttr value,
                        RankedTensorType type) {
  Value scalar = arith::ConstantOp::create(builder, loc, value);
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(),
                                        type.getElementType());
  return linalg::FillOp::create(builder, loc, scalar, empty).getResult(0);
}

/// Replaces splat constants by fills: one for all readers, and one for every
/// operation that writes on it, so that none needs a copy.
static void replaceSplatConstants(func::FuncOp func) {
  SmallVector<arith::ConstantOp> constants;
  func.walk([&](arith::ConstantOp op) {
    auto splat = dyn_cast<SplatElementsAttr>(op.getValue());
    if (splat && isa<RankedTensorType>(op.getType()))
      constants.push_back(op);
  });
  for (arith::ConstantOp op : constants) {
    auto type = cast<RankedTensorType>(op.getType());
    auto value =
        cast<SplatElementsAttr>(op.getValue()).getSplatValue<TypedAttr>();
    for (OpOperand &use : llvm::make_early_inc_range(op->getUses())) {
      auto destination = dyn_cast<DestinationStyleOpInterface>(use.getOwner());
      if (!destination || !destination.isDpsInit(&use))
        continue;
      OpBuilder builder(use.getOwner());
      use.set(createFill(builder, op.getLoc(), value, type));
    }
    OpBuilder builder(op);
    if (!op->use_empty())
      op.replaceAllUsesWith(createFill(builder, op.getLoc(), value, type));
    op.erase();
  }
}

LogicalResult ftuner::decomposeForBufferization(func::FuncOp func) {
  MLIRContext *context = func.getContext();
  RewritePatternSet patterns(context);
  linalg::populateDecomposeWinogradOpsPatterns(patterns);
  tensor::populateDecomposeTensorConcatPatterns(patterns);
  // The sizes of parts of a concatenation must not depend on the parts.
  memref::populateResolveRankedShapedTypeResultDimsPatterns(patterns);
  patterns.add<DecomposeAggregated, DecomposePack, DecomposeUnPack,
               ReplaceEmptyCollapse, ReshapeThroughOneDimension>(context);
  if (failed(applyPatternsGreedily(func, std::move(patterns))))
    return func.emitError("could not decompose operators without loops");
  func.walk(moveBeforeInsertion);
  replaceSplatConstants(func);
  keepLoopsInPlace(func);
  return success();
}
