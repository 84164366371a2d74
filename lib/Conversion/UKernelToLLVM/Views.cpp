//===- Views.cpp - Reshapes and slices of buffers ---------------*- C++ -*-===//
//
// The sizes of views may come from the caller's scalars: those that do not fit
// the buffer become errors of the call, not accesses beyond its end.
//
//===----------------------------------------------------------------------===//
#include "HostFunction.h"

#include "FTuner/HostAbi/HostChecks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

static Value toValue(ImplicitLocOpBuilder &b, OpFoldResult value) {
  return getValueOrCreateConstantIndexOp(b, b.getLoc(), value);
}

static Value compare(ImplicitLocOpBuilder &b, arith::CmpIPredicate predicate,
                     Value lhs, Value rhs) {
  return b.createOrFold<arith::CmpIOp>(predicate, lhs, rhs);
}

/// Replaces an expanded shape by its sizes and strides: upstream's expansion
/// cannot take two dynamic sizes in one group.
static void lowerExpandShape(memref::ExpandShapeOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  auto type = cast<MemRefType>(op.getResult().getType());
  auto [staticStrides, staticOffset] = type.getStridesAndOffset();
  auto metadata = memref::ExtractStridedMetadataOp::create(b, op.getSrc());
  SmallVector<OpFoldResult> sizes = op.getMixedOutputShape();
  // A source without dimensions has one element.
  SmallVector<OpFoldResult> strides(sizes.size(), b.getIndexAttr(1));
  std::string source = ftuner::describeBuffer(op.getSrc());
  Value zero = arith::ConstantIndexOp::create(b, 0);
  for (auto [group, dims] : llvm::enumerate(op.getReassociationIndices())) {
    Value stride = metadata.getStrides()[group];
    Value product = arith::ConstantIndexOp::create(b, 1);
    for (int64_t dim : llvm::reverse(dims)) {
      strides[dim] = ShapedType::isDynamic(staticStrides[dim])
                         ? OpFoldResult(stride)
                         : b.getIndexAttr(staticStrides[dim]);
      Value size = toValue(b, sizes[dim]);
      ftuner::assertSizes(b, compare(b, arith::CmpIPredicate::sge, size, zero),
                          "expected sizes of a reshape of " + source +
                              " of at least 0, but got {0}",
                          size);
      stride = b.createOrFold<arith::MulIOp>(stride, size);
      product = b.createOrFold<arith::MulIOp>(product, size);
    }
    Value whole = b.createOrFold<memref::DimOp>(op.getSrc(), group);
    ftuner::assertSizes(
        b, compare(b, arith::CmpIPredicate::eq, product, whole),
        "expected a reshape to keep the number of elements: dimension " +
            std::to_string(group) + " of " + source +
            " is {0}, but the sizes it is split into make {1}",
        {whole, product});
  }
  OpFoldResult offset = ShapedType::isDynamic(staticOffset)
                            ? OpFoldResult(metadata.getOffset())
                            : b.getIndexAttr(staticOffset);
  op.replaceAllUsesWith(memref::ReinterpretCastOp::create(
                            b, type, op.getSrc(), offset, sizes, strides)
                            .getResult());
  op.erase();
}

/// offset >= 0, size >= 0, and the last element lies in the buffer.
static void checkSlice(memref::SubViewOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Value zero = arith::ConstantIndexOp::create(b, 0);
  Value one = arith::ConstantIndexOp::create(b, 1);
  std::string source = ftuner::describeBuffer(op.getSource());
  for (auto [dim, offset, size, stride] : llvm::enumerate(
           op.getMixedOffsets(), op.getMixedSizes(), op.getMixedStrides())) {
    Value first = toValue(b, offset), count = toValue(b, size);
    Value steps = b.createOrFold<arith::SubIOp>(count, one);
    Value last = b.createOrFold<arith::AddIOp>(
        first, b.createOrFold<arith::MulIOp>(steps, toValue(b, stride)));
    Value whole = b.createOrFold<memref::DimOp>(op.getSource(), dim);
    Value isEmpty = compare(b, arith::CmpIPredicate::eq, count, zero);
    Value fits = b.createOrFold<arith::AndIOp>(
        compare(b, arith::CmpIPredicate::sge, first, zero),
        compare(b, arith::CmpIPredicate::slt, last, whole));
    fits = b.createOrFold<arith::AndIOp>(
        fits, compare(b, arith::CmpIPredicate::sgt, count, zero));
    ftuner::assertSizes(
        b, b.createOrFold<arith::OrIOp>(isEmpty, fits),
        "expected a slice to lie inside its buffer: dimension " +
            std::to_string(dim) + " of " + source +
            " is {0}, but the slice has {1} from {2} on",
        {whole, count, first});
  }
}

void ftuner::lowerViews(func::FuncOp func) {
  SmallVector<memref::ExpandShapeOp> expansions;
  func.walk([&](memref::ExpandShapeOp op) { expansions.push_back(op); });
  func.walk([](memref::SubViewOp op) { checkSlice(op); });
  llvm::for_each(expansions, lowerExpandShape);
}
