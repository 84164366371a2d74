//===- ConcatenatedParts.cpp - Copies of concatenated tensors -------------===//
//
// A concatenation becomes insertions into one tensor. The operator that makes a
// part writes it there, unless others read the part as well, or it is an
// argument. Such a part is copied by an elementwise operator. Two caches that
// grow in the same way share the operators: one copies the earlier keys and
// values, one the new ones.
//
//===----------------------------------------------------------------------===//
#include "LinalgPatterns.h"

#include "FTuner/Analysis/Extents.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace ftuner;

namespace {
/// Concatenations of tensors with equal sizes, part by part.
using ConcatGroup = SmallVector<tensor::ConcatOp, 2>;
} // namespace

/// Maximum number of concatenations that share copies: the registers of a
/// thread hold vectors of all parts.
static constexpr size_t kMaxShared = 8;

/// Returns the operand in which an operator gets the tensor to fill in; null if
/// the operator cannot write into another tensor instead.
static OpOperand *findInit(Value value, Block *block) {
  auto producer = value.getDefiningOp<DestinationStyleOpInterface>();
  if (!producer || producer->getNumResults() != 1 || !value.hasOneUse() ||
      producer->getBlock() != block)
    return nullptr;
  OpOperand *init = producer.getTiedOpOperand(cast<OpResult>(value));
  return init->get().getDefiningOp<tensor::EmptyOp>() ? init : nullptr;
}

/// Returns the empty tensor that an operator fills in with a value, if the
/// operator can write into another tensor instead.
static tensor::EmptyOp findOutput(Value value, Block *block) {
  OpOperand *init = findInit(value, block);
  return init ? init->get().getDefiningOp<tensor::EmptyOp>()
              : tensor::EmptyOp();
}

void ftuner::moveBeforeInsertion(tensor::InsertSliceOp insert) {
  OpOperand *init = findInit(insert.getSource(), insert->getBlock());
  if (!init)
    return;
  // Others may write into an empty tensor of these sizes, too.
  OpBuilder builder(insert);
  init->set(builder.clone(*init->get().getDefiningOp())->getResult(0));
  init->getOwner()->moveBefore(insert);
}

/// Returns true if a part of a concatenation is copied.
static bool isCopied(tensor::ConcatOp op, Value part) {
  return !part.getDefiningOp<arith::ConstantOp>() &&
         !findOutput(part, op->getBlock());
}

/// Returns the sizes of a part. If an operator fills the part in, they come
/// from its empty output, as a `tensor.dim` of the part would be a second
/// reader.
static SmallVector<OpFoldResult> sizesOf(OpBuilder &b, tensor::ConcatOp op,
                                         Value part) {
  if (tensor::EmptyOp output = findOutput(part, op->getBlock()))
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
    shares |= isCopied(a, part) && isCopied(b, other);
  }
  return shares;
}

/// Returns true if a concatenation needs the result of another one that comes
/// at `front` or later.
static bool needsConcat(tensor::ConcatOp op, tensor::ConcatOp front) {
  BackwardSliceOptions options;
  options.omitUsesFromAbove = false;
  options.filter = [&](Operation *other) {
    return other->getBlock() == front->getBlock() &&
           !other->isBeforeInBlock(front);
  };
  SetVector<Operation *> slice;
  LogicalResult found = getBackwardSlice(op.getOperation(), &slice, options);
  return failed(found) || llvm::any_of(slice, llvm::IsaPred<tensor::ConcatOp>);
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
  /// Offset of the next part along the dimension of the concatenation.
  OpFoldResult offset;

  SmallVector<OpFoldResult> offsets(OpBuilder &b) {
    SmallVector<OpFoldResult> result(op.getRank(), b.getIndexAttr(0));
    result[op.getDim()] = offset;
    return result;
  }
};
} // namespace

/// Asserts that two parts have equal sizes, except along the dimension of the
/// concatenation.
static void assertSizes(tensor::ConcatOp op, Value part, Value first,
                        ExtentAnalysis &extents, OpBuilder &b) {
  Location loc = op.getLoc();
  SmallVector<OpFoldResult> sizes = sizesOf(b, op, part),
                            others = sizesOf(b, op, first);
  for (int64_t dim = 0; dim < op.getRank(); ++dim) {
    if (dim == static_cast<int64_t>(op.getDim()) || sizes[dim] == others[dim] ||
        extents.dimOf(part, dim) == extents.dimOf(first, dim))
      continue;
    Value equal = arith::CmpIOp::create(
        b, loc, arith::CmpIPredicate::eq,
        getValueOrCreateConstantIndexOp(b, loc, sizes[dim]),
        getValueOrCreateConstantIndexOp(b, loc, others[dim]));
    cf::AssertOp::create(b, loc, equal,
                         "expected the parts of a concatenation to have equal "
                         "sizes along dimension " +
                             std::to_string(dim));
  }
}

/// Replaces the concatenations of a group, at the first of them.
static void insertParts(ConcatGroup &group, ExtentAnalysis &extents,
                        IRRewriter &rewriter) {
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
    Value firstPart = op.getInputs().front();
    SmallVector<OpFoldResult> sizes = sizesOf(rewriter, op, firstPart);
    for (Value part : op.getInputs().drop_front()) {
      assertSizes(op, part, firstPart, extents, rewriter);
      OpFoldResult &sum = sizes[op.getDim()];
      sum = add(sum, sizesOf(rewriter, op, part)[op.getDim()]);
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
      if (!isCopied(destination.op, part))
        continue;
      parts.push_back(part);
      outputs.push_back(tensor::ExtractSliceOp::create(
          rewriter, loc, cast<RankedTensorType>(part.getType()),
          destination.tensor, destination.offsets(rewriter),
          sizesOf(rewriter, destination.op, part), steps));
    }
    SmallVector<Value> copies;
    if (!parts.empty())
      copies = createCopies(rewriter, loc, parts, outputs).getResults();
    auto *nextCopy = copies.begin();
    for (Destination &destination : destinations) {
      Value part = destination.op.getInputs()[number];
      SmallVector<OpFoldResult> sizes = sizesOf(rewriter, destination.op, part);
      auto insertion = tensor::InsertSliceOp::create(
          rewriter, loc, isCopied(destination.op, part) ? *nextCopy++ : part,
          destination.tensor, destination.offsets(rewriter), sizes, steps);
      destination.tensor = insertion;
      insertions.push_back(insertion);
      destination.offset = add(destination.offset, sizes[first.getDim()]);
    }
  }
  for (Destination &destination : destinations) {
    Value result = destination.tensor;
    rewriter.setInsertionPoint(destination.op);
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
      if (group.size() < kMaxShared &&
          canShareCopies(group.front(), op, extents) &&
          !needsConcat(op, group.front()) &&
          succeeded(moveOperationDependencies(rewriter, op, group.front()))) {
        rewriter.moveOpAfter(op, group.back());
        group.push_back(op);
        return;
      }
    groups.push_back({op});
  });
  for (ConcatGroup &group : groups)
    insertParts(group, extents, rewriter);
}
