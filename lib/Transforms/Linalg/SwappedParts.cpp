//===- SwappedParts.cpp - Concatenations of a tensor's parts ----*- C++ -*-===//
//
// Rotary embeddings swap the two parts of a dimension and negate one of them:
//
//   concat(-x[…, n:], x[…, :n])                      halves
//   stack(-x[…, 1::2], x[…, 0::2], -1).flatten(-2)   neighbors
//
// Importers write slices, a negation and a concatenation, which are kernels of
// their own. Here they become one elementwise operator over the dimension as
// two, (2, n) or (n, 2), which reads its input with the loop of the parts
// reversed. The operators that read the result then fuse with it.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Analysis/Extents.h"
#include "LinalgPatterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace ftuner;

namespace {
/// One part of a tensor, and the elementwise operator that it goes through.
struct Part {
  /// Null if the part is concatenated as it is.
  linalg::GenericOp op;
  tensor::ExtractSliceOp slice;
};

/// Returns true if the operator computes each element from the one at the same
/// place of its only input.
bool isElementwiseInPlace(linalg::GenericOp op) {
  return op.getNumDpsInputs() == 1 && matchUnaryElementwise(op) &&
         llvm::all_of(op.getIndexingMapsArray(),
                      [](AffineMap map) { return map.isIdentity(); });
}

/// Matches a part: a slice, perhaps through an elementwise operator, and with
/// `isStacked` a last dimension of extent 1.
std::optional<Part> matchPart(Value value, bool isStacked) {
  Part part;
  if (isStacked) {
    auto expand = value.getDefiningOp<tensor::ExpandShapeOp>();
    if (!expand ||
        expand.getSrcType().getRank() + 1 != expand.getResultType().getRank() ||
        expand.getReassociationIndices().back().size() != 2)
      return std::nullopt;
    value = expand.getSrc();
  }
  part.op = value.getDefiningOp<linalg::GenericOp>();
  if (part.op) {
    if (!isElementwiseInPlace(part.op))
      return std::nullopt;
    value = part.op.getDpsInputOperand(0)->get();
  }
  part.slice = value.getDefiningOp<tensor::ExtractSliceOp>();
  if (!part.slice)
    return std::nullopt;
  return part;
}

/// Returns the first element of the slice along the last dimension if the slice
/// has every `stride`-th element of it, `count` in all, and all elements of the
/// other dimensions.
std::optional<int64_t> offsetOf(tensor::ExtractSliceOp slice, int64_t stride,
                                int64_t count) {
  int64_t last = slice.getSourceType().getRank() - 1;
  if (slice.getType().getRank() != last + 1 ||
      slice.getStaticSizes()[last] != count ||
      slice.getStaticStrides()[last] != stride)
    return std::nullopt;
  ExtentAnalysis extents(slice->getParentOfType<FunctionOpInterface>());
  for (int64_t dim = 0; dim < last; ++dim)
    if (slice.getStaticOffsets()[dim] != 0 ||
        slice.getStaticStrides()[dim] != 1 ||
        !(extents.dimOf(slice.getResult(), dim) ==
          extents.dimOf(slice.getSource(), dim)))
      return std::nullopt;
  return slice.getStaticOffsets()[last];
}

/// Returns the value that the part's operator computes of an element.
Value computePart(Part part, Value element, OpBuilder &builder) {
  if (!part.op)
    return element;
  Block &body = *part.op.getBody();
  IRMapping mapping;
  mapping.map(body.getArgument(0), element);
  for (Operation &op : body.without_terminator())
    builder.clone(op, mapping);
  return mapping.lookupOrDefault(body.getTerminator()->getOperand(0));
}

/// Replaces a concatenation of the second and the first part of a tensor's last
/// dimension, which halve it, by one operator.
struct MergeSwappedParts : public OpRewritePattern<tensor::ConcatOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(tensor::ConcatOp op,
                                PatternRewriter &rewriter) const override {
    RankedTensorType type = op.getResultType();
    int64_t last = type.getRank() - 1;
    if (op.getInputs().size() != 2 || static_cast<int64_t>(op.getDim()) != last)
      return failure();
    // Neighbors have a dimension of their own, of which each has one place.
    bool isStacked = type.getDimSize(last) == 2 && last > 0;
    std::optional<Part> first = matchPart(op.getInputs()[0], isStacked);
    std::optional<Part> second = matchPart(op.getInputs()[1], isStacked);
    if (!first || !second ||
        first->slice.getSource() != second->slice.getSource())
      return failure();
    Value source = first->slice.getSource();
    RankedTensorType sourceType = first->slice.getSourceType();
    int64_t size = sourceType.getShape().back();
    if (ShapedType::isDynamic(size) || size % 2 != 0)
      return failure();
    int64_t count = size / 2;
    int64_t stride = isStacked ? 2 : 1;
    if (offsetOf(first->slice, stride, count) != (isStacked ? 1 : count) ||
        offsetOf(second->slice, stride, count) != 0)
      return failure();

    Location loc = op.getLoc();
    int64_t rank = sourceType.getRank();
    SmallVector<OpFoldResult> sizes =
        tensor::getMixedSizes(rewriter, loc, source);
    sizes.back() = rewriter.getIndexAttr(isStacked ? count : 2);
    sizes.push_back(rewriter.getIndexAttr(isStacked ? 2 : count));
    SmallVector<ReassociationIndices> groups;
    for (int64_t dim = 0; dim < rank - 1; ++dim)
      groups.push_back({dim});
    groups.push_back({rank - 1, rank});
    SmallVector<int64_t> shape = llvm::to_vector(sourceType.getShape());
    shape.back() = isStacked ? count : 2;
    shape.push_back(isStacked ? 2 : count);
    Value split = tensor::ExpandShapeOp::create(
        rewriter, loc, sourceType.clone(shape), source, groups, sizes);
    Value empty =
        tensor::EmptyOp::create(rewriter, loc, sizes, type.getElementType());
    int64_t parts = isStacked ? rank : rank - 1;
    AffineMap written =
        AffineMap::getMultiDimIdentityMap(rank + 1, rewriter.getContext());
    SmallVector<AffineExpr> read = llvm::to_vector(written.getResults());
    read[parts] = 1 - read[parts];
    auto merged = linalg::GenericOp::create(
        rewriter, loc, empty.getType(), split, empty,
        ArrayRef<AffineMap>{
            AffineMap::get(rank + 1, 0, read, rewriter.getContext()), written},
        SmallVector<utils::IteratorType>(rank + 1,
                                         utils::IteratorType::parallel),
        [&](OpBuilder &builder, Location at, ValueRange arguments) {
          Value number = linalg::IndexOp::create(builder, at, parts);
          Value zero = arith::ConstantIndexOp::create(builder, at, 0);
          Value isFirst = arith::CmpIOp::create(
              builder, at, arith::CmpIPredicate::eq, number, zero);
          Value result = arith::SelectOp::create(
              builder, at, isFirst, computePart(*first, arguments[0], builder),
              computePart(*second, arguments[0], builder));
          linalg::YieldOp::create(builder, at, result);
        });
    if (isStacked)
      rewriter.replaceOp(op, merged);
    else
      rewriter.replaceOpWithNewOp<tensor::CollapseShapeOp>(
          op, type, merged.getResult(0), groups);
    return success();
  }
};

/// Splits loops of an operator whose result is expanded, as upstream does for
/// operators that read all dimensions by loops: here one is read reversed. Only
/// loops are split that inputs are read by as they are, such as heads that
/// become groups, and not into loops of extent 1, which other patterns drop.
struct SplitLoopsOfSwappedParts
    : public OpRewritePattern<tensor::ExpandShapeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(tensor::ExpandShapeOp expand,
                                PatternRewriter &rewriter) const override {
    auto op = expand.getSrc().getDefiningOp<linalg::GenericOp>();
    if (!op || !op->hasOneUse() || !op.hasPureTensorSemantics() ||
        op.getNumDpsInits() != 1 ||
        op.getNumParallelLoops() != op.getNumLoops() ||
        !op.getIndexingMapsArray().back().isIdentity() ||
        llvm::all_of(op.getIndexingMapsArray(), [](AffineMap map) {
          return map.isProjectedPermutation();
        }))
      return failure();
    SmallVector<ReassociationIndices> groups = expand.getReassociationIndices();
    ExtentAnalysis extents(op->getParentOfType<FunctionOpInterface>());
    extents.assumeAssertionsBefore(expand);
    for (auto [loop, group] : llvm::enumerate(groups))
      if (group.size() > 1 &&
          (hasUnit(expand, group) || !isReadAsItIs(op, loop) ||
           !(extents.groupOf(expand.getResult(), group) ==
             extents.dimOf(expand.getSrc(), loop))))
        return failure();

    Location loc = op.getLoc();
    MLIRContext *context = op.getContext();
    unsigned rank = expand.getResultType().getRank();
    SmallVector<OpFoldResult> sizes = expand.getMixedOutputShape();
    SmallVector<AffineExpr> loops;
    for (const ReassociationIndices &group : groups)
      loops.push_back(rewriter.getAffineDimExpr(group.front()));
    SmallVector<Value> inputs;
    SmallVector<AffineMap> maps;
    for (OpOperand *input : op.getDpsInputOperands()) {
      AffineMap map = op.getMatchingIndexingMap(input);
      SmallVector<AffineExpr> read;
      SmallVector<ReassociationIndices> parts;
      SmallVector<OpFoldResult> shape;
      for (auto [dim, result] : llvm::enumerate(map.getResults())) {
        auto loop = dyn_cast<AffineDimExpr>(result);
        ReassociationIndices &part = parts.emplace_back();
        if (loop && groups[loop.getPosition()].size() > 1) {
          for (int64_t place : groups[loop.getPosition()]) {
            part.push_back(read.size());
            read.push_back(rewriter.getAffineDimExpr(place));
            shape.push_back(sizes[place]);
          }
          continue;
        }
        part.push_back(read.size());
        read.push_back(result.replaceDims(loops));
        shape.push_back(tensor::getMixedSize(rewriter, loc, input->get(), dim));
      }
      auto type = cast<RankedTensorType>(input->get().getType());
      SmallVector<int64_t> extentsOfInput;
      std::tie(extentsOfInput, std::ignore) = decomposeMixedValues(shape);
      Value value = input->get();
      if (static_cast<int64_t>(read.size()) != type.getRank())
        value = tensor::ExpandShapeOp::create(
            rewriter, loc, type.clone(extentsOfInput), value, parts, shape);
      inputs.push_back(value);
      maps.push_back(AffineMap::get(rank, 0, read, context));
    }
    maps.push_back(AffineMap::getMultiDimIdentityMap(rank, context));
    Value empty = tensor::EmptyOp::create(
        rewriter, loc, sizes, expand.getResultType().getElementType());
    auto split = linalg::GenericOp::create(
        rewriter, loc, empty.getType(), inputs, empty, maps,
        SmallVector<utils::IteratorType>(rank, utils::IteratorType::parallel));
    rewriter.inlineRegionBefore(op.getRegion(), split.getRegion(),
                                split.getRegion().begin());
    for (auto index : split.getBody()->getOps<linalg::IndexOp>())
      rewriter.modifyOpInPlace(
          index, [&] { index.setDim(groups[index.getDim()].front()); });
    rewriter.replaceOp(expand, split);
    return success();
  }

private:
  static bool hasUnit(tensor::ExpandShapeOp expand, ArrayRef<int64_t> group) {
    return llvm::any_of(group, [&](int64_t dim) {
      return expand.getResultType().getDimSize(dim) == 1;
    });
  }

  /// Returns true if the loop is only read by itself, and its number never.
  static bool isReadAsItIs(linalg::GenericOp op, unsigned loop) {
    for (AffineMap map : op.getIndexingMapsArray())
      for (AffineExpr result : map.getResults())
        if (!isa<AffineDimExpr>(result) && result.isFunctionOfDim(loop))
          return false;
    return llvm::none_of(
        op.getBody()->getOps<linalg::IndexOp>(),
        [&](linalg::IndexOp index) { return index.getDim() == loop; });
  }
};
} // namespace

void ftuner::populateSwappedPartsPatterns(RewritePatternSet &patterns) {
  patterns.add<MergeSwappedParts, SplitLoopsOfSwappedParts>(
      patterns.getContext());
}
