//===- SimtTileCopy.cpp - Global to shared memory ---------------*- C++ -*-===//
#include "../SimtAddresses.h"
#include "SimtEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace ftuner;

//===----------------------------------------------------------------------===//
// IndexMath
//===----------------------------------------------------------------------===//

static constexpr auto kNoWrap =
    arith::IntegerOverflowFlags::nsw | arith::IntegerOverflowFlags::nuw;

Value IndexMath::constant(int64_t value) {
  return arith::ConstantIndexOp::create(b, value);
}

Value IndexMath::add(Value lhs, Value rhs) {
  if (isZeroInteger(lhs))
    return rhs;
  if (isZeroInteger(rhs))
    return lhs;
  return arith::AddIOp::create(b, lhs, rhs, kNoWrap);
}

Value IndexMath::add(Value lhs, int64_t rhs) {
  return rhs == 0 ? lhs : add(lhs, constant(rhs));
}

Value IndexMath::sub(Value lhs, int64_t rhs) {
  return arith::SubIOp::create(b, lhs, constant(rhs),
                               arith::IntegerOverflowFlags::nsw);
}

Value IndexMath::mul(Value lhs, int64_t rhs) {
  if (rhs == 1)
    return lhs;
  return arith::MulIOp::create(b, lhs, constant(rhs), kNoWrap);
}

Value IndexMath::div(Value lhs, int64_t rhs) {
  if (rhs == 1)
    return lhs;
  return arith::DivUIOp::create(b, lhs, constant(rhs));
}

Value IndexMath::rem(Value lhs, int64_t rhs) {
  if (rhs == 1)
    return constant(0);
  return arith::RemUIOp::create(b, lhs, constant(rhs));
}

Value IndexMath::bitXor(Value lhs, Value rhs) {
  return isZeroInteger(rhs) ? lhs
                            : arith::XOrIOp::create(b, lhs, rhs).getResult();
}

Value IndexMath::less(Value lhs, Value rhs) {
  return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, lhs, rhs);
}

Value IndexMath::minimum(Value lhs, Value rhs) {
  return arith::MinSIOp::create(b, lhs, rhs);
}

//===----------------------------------------------------------------------===//
// TileCopy
//===----------------------------------------------------------------------===//

TileCopy::TileCopy(ImplicitLocOpBuilder &b, const SharedTile &tile,
                   Value global, Value shared, int64_t threads,
                   int64_t vectorWidth)
    : b(b), math(b), tile(tile), global(global), shared(shared),
      threads(threads), vectorWidth(vectorWidth) {}

void TileCopy::prepare(Value threadId, Value spaceOffset, Value spaceExtent,
                       bool spaceExact, Value reduceExtent, bool reduceExact) {
  this->reduceExtent = reduceExtent;
  this->reduceExact = reduceExact;
  int64_t vectors = tile.outer * tile.vectorsPerRow(vectorWidth);
  // Elements beyond the extent only reach rows or columns that are never
  // stored, so reading any valid element does.
  Value lastSpace;
  if (!spaceExact)
    lastSpace = math.sub(spaceExtent, tile.reduceContiguous ? 1 : vectorWidth);

  for (int64_t first = 0; first < vectors; first += threads) {
    Slot slot;
    CopiedVector<IndexMath> vector =
        copiedVector(math, tile, threadId, first, threads, vectorWidth);
    slot.outer = vector.outer;
    slot.inner = vector.sharedInner;
    if (vectors - first < threads)
      slot.active =
          math.less(math.add(threadId, first), math.constant(vectors));
    slot.reduce = tile.reduceContiguous ? vector.inner : vector.outer;
    slot.space = math.add(spaceOffset,
                          tile.reduceContiguous ? vector.outer : vector.inner);
    if (!spaceExact)
      slot.space = math.minimum(slot.space, lastSpace);
    slots.push_back(slot);
  }
}

Value TileCopy::inReduceRange(const Slot &slot, Value reduceOffset) {
  return math.less(math.add(reduceOffset, slot.reduce), reduceExtent);
}

Values TileCopy::globalIndices(const Slot &slot, Value reduceIndex) {
  if (tile.reduceContiguous)
    return {slot.space, reduceIndex};
  return {reduceIndex, slot.space};
}

void TileCopy::ifActive(const Slot &slot, llvm::function_ref<void()> body) {
  if (!slot.active)
    return body();
  auto ifOp = scf::IfOp::create(b, slot.active, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  body();
}

void TileCopy::issueAsync(Value stage, Value reduceOffset) {
  auto tokenType = nvgpu::DeviceAsyncTokenType::get(b.getContext());
  UnitAttr bypassL1 = vectorWidth == 4 ? b.getUnitAttr() : UnitAttr();
  for (const Slot &slot : slots)
    ifActive(slot, [&] {
      Value reduceIndex = math.add(reduceOffset, slot.reduce);
      Value sourceElements;
      if (!reduceExact) {
        Value inRange = inReduceRange(slot, reduceOffset);
        Value zero = math.constant(0);
        reduceIndex = arith::SelectOp::create(b, inRange, reduceIndex, zero);
        sourceElements = arith::SelectOp::create(
            b, inRange, math.constant(vectorWidth), zero);
      }
      nvgpu::DeviceAsyncCopyOp::create(
          b, tokenType, shared, ValueRange{stage, slot.outer, slot.inner},
          global, globalIndices(slot, reduceIndex), b.getIndexAttr(vectorWidth),
          sourceElements, bypassL1);
    });
}

Values TileCopy::load(Value reduceOffset) {
  auto type = VectorType::get({vectorWidth}, b.getF32Type());
  Values vectors;
  for (const Slot &slot : slots) {
    Value condition = slot.active;
    if (!reduceExact) {
      Value inRange = inReduceRange(slot, reduceOffset);
      condition = condition
                      ? arith::AndIOp::create(b, condition, inRange).getResult()
                      : inRange;
    }
    auto loadVector = [&]() -> Value {
      Value reduceIndex = math.add(reduceOffset, slot.reduce);
      return vector::LoadOp::create(
          b, type, global, globalIndices(slot, reduceIndex),
          /*nontemporal=*/false, llvm::MaybeAlign(4 * vectorWidth));
    };
    if (!condition) {
      vectors.push_back(loadVector());
      continue;
    }
    auto ifOp = scf::IfOp::create(b, TypeRange{type}, condition,
                                  /*withElseRegion=*/true);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(ifOp.thenBlock());
      scf::YieldOp::create(b, loadVector());
      b.setInsertionPointToStart(ifOp.elseBlock());
      Value zero = arith::ConstantOp::create(b, type, b.getZeroAttr(type));
      scf::YieldOp::create(b, zero);
    }
    vectors.push_back(ifOp.getResult(0));
  }
  return vectors;
}

void TileCopy::store(Value stage, ValueRange vectors) {
  for (auto [slot, vector] : llvm::zip_equal(slots, vectors))
    ifActive(slot, [&, vector = vector] {
      vector::StoreOp::create(
          b, vector, shared, ValueRange{stage, slot.outer, slot.inner},
          /*nontemporal=*/false, llvm::MaybeAlign(4 * vectorWidth));
    });
}
