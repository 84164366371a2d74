//===- TileCopy.cpp - Copies of tiles into shared memory ------------------===//
#include "FTuner/Codegen/IR/TileCopy.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace ftuner;

Value ftuner::viewStages(ImplicitLocOpBuilder &b, Value sharedMemory,
                         const SharedTile &tile, int64_t stages,
                         Type elementType, int64_t firstByte) {
  auto type = MemRefType::get(
      {stages, tile.outer, tile.pitch}, elementType,
      MemRefLayoutAttrInterface(),
      cast<MemRefType>(sharedMemory.getType()).getMemorySpace());
  return memref::ViewOp::create(b, type, sharedMemory,
                                IndexMath(b).constant(firstByte), ValueRange());
}

TileCopy::TileCopy(ImplicitLocOpBuilder &b, const SharedTile &tile,
                   Value global, Value shared, int64_t threads,
                   int64_t vectorWidth)
    : b(b), math(b), tile(tile), global(global), shared(shared),
      threads(threads), vectorWidth(vectorWidth) {}

VectorType TileCopy::vectorType() const {
  return VectorType::get({vectorWidth},
                         cast<MemRefType>(global.getType()).getElementType());
}

int64_t TileCopy::vectorBytes() const {
  VectorType type = vectorType();
  return vectorWidth * type.getElementTypeBitWidth() / 8;
}

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
  // The hardware has it for 16 bytes alone.
  UnitAttr bypassL1 = vectorBytes() == 16 ? b.getUnitAttr() : UnitAttr();
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
  VectorType type = vectorType();
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
          /*nontemporal=*/false, llvm::MaybeAlign(vectorBytes()));
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
          /*nontemporal=*/false, llvm::MaybeAlign(vectorBytes()));
    });
}
