//===- ConcatenatedParts.cpp - Copies of concatenated tensors -------------===//
//
// A concatenation becomes insertions into one tensor. The operator that makes a
// part writes it there, unless others read the part as well, or it is an
// argument. Such a part is copied by an elementwise operator. Two caches that
// grow in the same way share the operators: one copies the earlier keys and
// values, one the new ones.
//
//===----------------------------------------------------------------------===//
#include "Host/HostPreparation.h"
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

/// Returns the empty tensor that an operator fills in with a part, if the
/// operator can write the part into the result of a concatenation instead.
static tensor::EmptyOp findOutput(Value part) {
  auto producer = part.getDefiningOp<DestinationStyleOpInterface>();
  if (!producer || producer->getNumResults() != 1 || !part.hasOneUse())
    return {};
  OpOperand &init = *producer.getTiedOpOperand(cast<OpResult>(part));
  return init.get().getDefiningOp<tensor::EmptyOp>();
}

/// Returns true if a part of a concatenation is copied.
static bool isCopied(Value part) {
  return !part.getDefiningOp<arith::ConstantOp>() && !findOutput(part);
}

/// Returns the sizes of a part. Those of an operator's result do not use it, so
/// that its insertion stays the only reader.
static SmallVector<OpFoldResult> sizesOf(OpBuilder &b, Value part) {
  if (tensor::EmptyOp output = findOutput(part))
    return output.getMixedSizes();
  return tensor::getMixedSizes(b, part.getLoc(), part);
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
  AffineExpr a, b;
  bindDims(rewriter.getContext(), a, b);
  auto add = [&](OpFoldResult first, OpFoldResult second) {
    return affine::makeComposedFoldedAffineApply(rewriter, loc, a + b,
                                                 {first, second});
  };
  SmallVector<Destination> destinations;
  for (tensor::ConcatOp op : group) {
    SmallVector<OpFoldResult> sizes = sizesOf(rewriter, op.getInputs().front());
    for (Value part : op.getInputs().drop_front()) {
      OpFoldResult &sum = sizes[op.getDim()];
      sum = add(sum, sizesOf(rewriter, part)[op.getDim()]);
    }
    Value empty = tensor::EmptyOp::create(rewriter, loc, sizes,
                                          op.getResultType().getElementType());
    destinations.push_back({op, empty, rewriter.getIndexAttr(0)});
  }
  SmallVector<tensor::InsertSliceOp> insertions;
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
          sizesOf(rewriter, part), steps));
    }
    SmallVector<Value> copies;
    if (!parts.empty())
      copies = createCopies(rewriter, loc, parts, outputs).getResults();
    auto *nextCopy = copies.begin();
    for (Destination &destination : destinations) {
      Value part = destination.op.getInputs()[number];
      SmallVector<OpFoldResult> sizes = sizesOf(rewriter, part);
      auto insertion = tensor::InsertSliceOp::create(
          rewriter, loc, isCopied(part) ? *nextCopy++ : part,
          destination.tensor, destination.offsets(rewriter), sizes, steps);
      destination.tensor = insertion;
      insertions.push_back(insertion);
      destination.offset = add(destination.offset, sizes[first.getDim()]);
    }
  }
  for (Destination &destination : destinations) {
    Value result = destination.tensor;
    if (result.getType() != destination.op.getType())
      result = tensor::CastOp::create(rewriter, loc, destination.op.getType(),
                                      result);
    rewriter.replaceOp(destination.op, result);
  }
  // Names of workloads follow the order of operators, which must not change
  // once they are planned.
  llvm::for_each(insertions, moveBeforeInsertion);
}

void ftuner::copyConcatenatedParts(FunctionOpInterface function) {
  IRRewriter rewriter(function.getContext());
  ExtentAnalysis extents(function);
  SmallVector<ConcatGroup> groups;
  function->walk([&](tensor::ConcatOp op) {
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
