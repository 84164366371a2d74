//===- ConcatenatedParts.cpp - Copies of concatenated tensors -------------===//
//
// A concatenation becomes insertions into one tensor. The operator that makes a
// part writes it there, unless others read the part as well, or it is an
// argument. Such a part is copied by an elementwise operator. Two caches that
// grow in the same way share the operators: one copies the earlier keys and
// values, one the new ones.
//
//===----------------------------------------------------------------------===//
#include "PointwiseFormation.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace ftuner;

namespace {
/// Concatenations of tensors with equal sizes, part by part.
using ConcatGroup = SmallVector<tensor::ConcatOp, 2>;
} // namespace

/// Returns true if a part of a concatenation is copied: no operator can write
/// it into the result.
static bool isCopied(Value part) {
  if (part.getDefiningOp<arith::ConstantOp>())
    return false;
  auto producer = part.getDefiningOp<DestinationStyleOpInterface>();
  // Sizes are known without the tensor.
  bool hasOneReader = llvm::count_if(part.getUsers(), [](Operation *user) {
                        return !isa<tensor::DimOp>(user);
                      }) == 1;
  if (!producer || producer->getNumResults() != 1 || !hasOneReader)
    return true;
  OpOperand &init = *producer.getTiedOpOperand(cast<OpResult>(part));
  return !init.get().getDefiningOp<tensor::EmptyOp>();
}

/// Returns true if two concatenations have equal sizes, part by part, and copy
/// parts at one position.
static bool canShareCopies(tensor::ConcatOp a, tensor::ConcatOp b,
                           ExtentAnalysis &extents) {
  if (a->getBlock() != b->getBlock() || a.getDim() != b.getDim() ||
      a.getRank() != b.getRank() ||
      a.getInputs().size() != b.getInputs().size())
    return false;
  bool shares = false;
  for (auto [part, other] : llvm::zip_equal(a.getInputs(), b.getInputs())) {
    for (int64_t dim = 0; dim < a.getRank(); ++dim)
      if (!(extents.dimOf(part, dim) == extents.dimOf(other, dim)))
        return false;
    shares |= isCopied(part) && isCopied(other);
  }
  return shares;
}

/// Creates the operator that copies tensors of equal sizes to others.
static linalg::GenericOp createCopies(OpBuilder &b, Location loc,
                                      ValueRange parts, ValueRange outputs) {
  int64_t rank = cast<RankedTensorType>(parts.front().getType()).getRank();
  SmallVector<AffineMap> maps(parts.size() + outputs.size(),
                              b.getMultiDimIdentityMap(rank));
  SmallVector<utils::IteratorType> iterators(rank,
                                             utils::IteratorType::parallel);
  return linalg::GenericOp::create(
      b, loc, TypeRange(outputs), parts, outputs, maps, iterators,
      [&](OpBuilder &inner, Location innerLoc, ValueRange elements) {
        linalg::YieldOp::create(inner, innerLoc,
                                elements.take_front(parts.size()));
      });
}

namespace {
/// The result of a concatenation while its parts are inserted.
struct Destination {
  tensor::ConcatOp op;
  Value tensor;
  /// Where the next part begins along the dimension.
  OpFoldResult offset;

  SmallVector<OpFoldResult> offsets(OpBuilder &b) {
    SmallVector<OpFoldResult> result(op.getRank(), b.getIndexAttr(0));
    result[op.getDim()] = offset;
    return result;
  }
};
} // namespace

/// Replaces the concatenations of a group, at the first of them.
static void insertParts(ConcatGroup &group, IRRewriter &rewriter) {
  tensor::ConcatOp first = group.front();
  Location loc = first.getLoc();
  rewriter.setInsertionPoint(first);
  SmallVector<OpFoldResult> steps(first.getRank(), rewriter.getIndexAttr(1));
  SmallVector<Destination> destinations;
  for (tensor::ConcatOp op : group) {
    ReifiedRankedShapedTypeDims shapes;
    LogicalResult reified = op.reifyResultShapes(rewriter, shapes);
    assert(succeeded(reified) && "sizes of a concatenation are sums");
    (void)reified;
    Value empty = tensor::EmptyOp::create(rewriter, loc, shapes.front(),
                                          op.getResultType().getElementType());
    destinations.push_back({op, empty, rewriter.getIndexAttr(0)});
  }
  AffineExpr a, b;
  bindDims(rewriter.getContext(), a, b);
  for (unsigned number = 0; number < first.getInputs().size(); ++number) {
    SmallVector<Value> parts, outputs;
    for (Destination &destination : destinations) {
      Value part = destination.op.getInputs()[number];
      if (!isCopied(part))
        continue;
      parts.push_back(part);
      outputs.push_back(tensor::ExtractSliceOp::create(
          rewriter, loc, cast<RankedTensorType>(part.getType()),
          destination.tensor, destination.offsets(rewriter),
          tensor::getMixedSizes(rewriter, loc, part), steps));
    }
    SmallVector<Value> copies;
    if (!parts.empty())
      copies = createCopies(rewriter, loc, parts, outputs).getResults();
    auto *nextCopy = copies.begin();
    for (Destination &destination : destinations) {
      Value part = destination.op.getInputs()[number];
      SmallVector<OpFoldResult> sizes =
          tensor::getMixedSizes(rewriter, loc, part);
      OpFoldResult size = sizes[destination.op.getDim()];
      destination.tensor = tensor::InsertSliceOp::create(
          rewriter, loc, isCopied(part) ? *nextCopy++ : part,
          destination.tensor, destination.offsets(rewriter), sizes, steps);
      destination.offset = affine::makeComposedFoldedAffineApply(
          rewriter, loc, a + b, {destination.offset, size});
    }
  }
  for (Destination &destination : destinations) {
    Value result = destination.tensor;
    if (result.getType() != destination.op.getType())
      result = tensor::CastOp::create(rewriter, loc, destination.op.getType(),
                                      result);
    rewriter.replaceOp(destination.op, result);
  }
}

void ftuner::copyConcatenatedParts(FunctionOpInterface function) {
  IRRewriter rewriter(function.getContext());
  ExtentAnalysis extents(function);
  SmallVector<ConcatGroup> groups;
  function->walk([&](tensor::ConcatOp op) {
    if (llvm::none_of(op.getInputs(), isCopied))
      return;
    for (ConcatGroup &group : groups)
      if (canShareCopies(group.front(), op, extents) &&
          succeeded(moveOperationDependencies(rewriter, op, group.front()))) {
        rewriter.moveOpAfter(op, group.back());
        group.push_back(op);
        return;
      }
    groups.push_back({op});
  });
  for (ConcatGroup &group : groups)
    insertParts(group, rewriter);
}
