//===- Views.cpp - Reshapes and slices of buffers ---------------*- C++ -*-===//
//
// The sizes of views may come from the caller's scalars: those that do not fit
// the buffer become errors of the call, not accesses beyond its end.
//
//===----------------------------------------------------------------------===//
#include "HostFunction.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

static Value toValue(ImplicitLocOpBuilder &b, OpFoldResult value) {
  return getValueOrCreateConstantIndexOp(b, b.getLoc(), value);
}

static Value compare(ImplicitLocOpBuilder &b, arith::CmpIPredicate predicate,
                     Value lhs, Value rhs) {
  return b.createOrFold<arith::CmpIOp>(predicate, lhs, rhs);
}

static void require(ImplicitLocOpBuilder &b, Value condition,
                    StringRef message) {
  if (!matchPattern(condition, m_One()))
    cf::AssertOp::create(b, condition, message);
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
  Value zero = arith::ConstantIndexOp::create(b, 0);
  for (auto [group, dims] : llvm::enumerate(op.getReassociationIndices())) {
    Value stride = metadata.getStrides()[group];
    Value product = arith::ConstantIndexOp::create(b, 1);
    for (int64_t dim : llvm::reverse(dims)) {
      strides[dim] = ShapedType::isDynamic(staticStrides[dim])
                         ? OpFoldResult(stride)
                         : b.getIndexAttr(staticStrides[dim]);
      Value size = toValue(b, sizes[dim]);
      require(b, compare(b, arith::CmpIPredicate::sge, size, zero),
              "expected sizes of a reshape of at least 0");
      stride = b.createOrFold<arith::MulIOp>(stride, size);
      product = b.createOrFold<arith::MulIOp>(product, size);
    }
    Value whole = b.createOrFold<memref::DimOp>(op.getSrc(), group);
    require(b, compare(b, arith::CmpIPredicate::eq, product, whole),
            "expected a reshape to keep the number of elements");
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
  Value isInside = arith::ConstantOp::create(b, b.getBoolAttr(true));
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
    isInside = b.createOrFold<arith::AndIOp>(
        isInside, b.createOrFold<arith::OrIOp>(isEmpty, fits));
  }
  require(b, isInside, "expected a slice to lie inside its buffer");
}

void ftuner::lowerViews(func::FuncOp func) {
  SmallVector<memref::ExpandShapeOp> expansions;
  func.walk([&](memref::ExpandShapeOp op) { expansions.push_back(op); });
  func.walk([](memref::SubViewOp op) { checkSlice(op); });
  llvm::for_each(expansions, lowerExpandShape);
}
