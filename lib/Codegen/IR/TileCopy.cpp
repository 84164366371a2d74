//===- TileCopy.cpp - Copies of tiles into shared memory ------------------===//
//
// Each slot has a pointer into global memory, at step 0, and one into the first
// stage. A step and a stage add the same number of bytes to all of them, so an
// address costs one addition in the loop, or none where slots are a constant
// apart.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Codegen/IR/TileCopy.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace ftuner;

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

static Type pointerType(ImplicitLocOpBuilder &b, NVVM::NVVMMemorySpace space) {
  return LLVM::LLVMPointerType::get(b.getContext(),
                                    static_cast<unsigned>(space));
}

static Value toInteger(ImplicitLocOpBuilder &b, Value index) {
  return b.createOrFold<arith::IndexCastOp>(b.getI64Type(), index);
}

Value ftuner::offsetPointer(ImplicitLocOpBuilder &b, Value pointer,
                            Value bytes) {
  return LLVM::GEPOp::create(b, pointer.getType(), b.getI8Type(), pointer,
                             ValueRange{toInteger(b, bytes)});
}

Value ftuner::offsetPointer(ImplicitLocOpBuilder &b, Value pointer,
                            int64_t bytes) {
  if (bytes == 0)
    return pointer;
  return LLVM::GEPOp::create(b, pointer.getType(), b.getI8Type(), pointer,
                             LLVM::GEPArg(static_cast<int32_t>(bytes)));
}

Value ftuner::sharedPointer(ImplicitLocOpBuilder &b, Value sharedMemory,
                            int64_t firstByte) {
  Value address =
      memref::ExtractAlignedPointerAsIndexOp::create(b, sharedMemory);
  Value pointer = LLVM::IntToPtrOp::create(
      b, pointerType(b, NVVM::NVVMMemorySpace::Shared), toInteger(b, address));
  return offsetPointer(b, pointer, firstByte);
}

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

//===----------------------------------------------------------------------===//
// TileCopy
//===----------------------------------------------------------------------===//

TileCopy::TileCopy(ImplicitLocOpBuilder &b, const SharedTile &tile,
                   Value global, Value shared, int64_t threads,
                   int64_t vectorWidth)
    : b(b), math(b), tile(tile), shared(shared), threads(threads),
      vectorWidth(vectorWidth) {
  auto type = cast<MemRefType>(global.getType());
  elementBytes = sharedBytes = type.getElementTypeBitWidth() / 8;
  vector = VectorType::get({vectorWidth}, type.getElementType());
  auto metadata = memref::ExtractStridedMetadataOp::create(b, global);
  // A generic pointer into global memory.
  Value address = memref::ExtractAlignedPointerAsIndexOp::create(b, global);
  Value base = LLVM::IntToPtrOp::create(
      b, pointerType(b, NVVM::NVVMMemorySpace::Generic), toInteger(b, address));
  base = LLVM::AddrSpaceCastOp::create(
      b, pointerType(b, NVVM::NVVMMemorySpace::Global), base);
  this->global =
      offsetPointer(b, base, math.mul(metadata.getOffset(), elementBytes));
  // A constant where it is known.
  SmallVector<int64_t> strides;
  int64_t offset;
  if (succeeded(type.getStridesAndOffset(strides, offset)) &&
      !ShapedType::isDynamic(strides[0]))
    rowStride = math.constant(strides[0]);
  else
    rowStride = metadata.getStrides()[0];
}

int64_t TileCopy::vectorBytes() const { return vectorWidth * elementBytes; }

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
    CopiedVector<IndexMath> copied =
        copiedVector(math, tile, threadId, first, threads, vectorWidth);
    if (vectors - first < threads)
      slot.active =
          math.less(math.add(threadId, first), math.constant(vectors));
    slot.reduce = tile.reduceContiguous ? copied.inner : copied.outer;
    Value space = math.add(spaceOffset,
                           tile.reduceContiguous ? copied.outer : copied.inner);
    if (!spaceExact)
      space = math.minimum(space, lastSpace);
    Value row = tile.reduceContiguous ? space : slot.reduce;
    Value inner = tile.reduceContiguous ? slot.reduce : space;
    slot.global = offsetPointer(
        b, global,
        math.mul(math.add(math.mul(row, rowStride), inner), elementBytes));
    slot.shared =
        offsetPointer(b, shared,
                      math.mul(math.add(math.mul(copied.outer, tile.pitch),
                                        copied.sharedInner),
                               sharedBytes));
    slots.push_back(slot);
  }
}

Value TileCopy::inReduceRange(const Slot &slot, Value reduceOffset) {
  return math.less(math.add(reduceOffset, slot.reduce), reduceExtent);
}

Value TileCopy::bytesOfStep(Value reduceOffset) {
  Value elements =
      tile.reduceContiguous ? reduceOffset : math.mul(reduceOffset, rowStride);
  return math.mul(elements, elementBytes);
}

Value TileCopy::bytesOfStage(Value stage) {
  return math.mul(stage, tile.elements() * sharedBytes);
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
  uint32_t bytes = vectorBytes();
  // The hardware bypasses L1 with 16 bytes alone.
  NVVM::LoadCacheModifierKind cache = bytes == 16
                                          ? NVVM::LoadCacheModifierKind::CG
                                          : NVVM::LoadCacheModifierKind::CA;
  Value stepBytes = bytesOfStep(reduceOffset);
  Value stageBytes = bytesOfStage(stage);
  for (const Slot &slot : slots)
    ifActive(slot, [&] {
      // Of no bytes nothing is read, wherever the pointer points.
      Value sourceBytes;
      if (!reduceExact)
        sourceBytes = arith::SelectOp::create(
            b, inReduceRange(slot, reduceOffset),
            arith::ConstantOp::create(b, b.getI32IntegerAttr(bytes)),
            arith::ConstantOp::create(b, b.getI32IntegerAttr(0)));
      NVVM::CpAsyncOp::create(b, offsetPointer(b, slot.shared, stageBytes),
                              offsetPointer(b, slot.global, stepBytes), bytes,
                              cache, sourceBytes);
    });
}

Values TileCopy::load(Value reduceOffset) {
  Value stepBytes = bytesOfStep(reduceOffset);
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
      return LLVM::LoadOp::create(
          b, vector, offsetPointer(b, slot.global, stepBytes), vectorBytes());
    };
    if (!condition) {
      vectors.push_back(loadVector());
      continue;
    }
    auto ifOp = scf::IfOp::create(b, TypeRange{vector}, condition,
                                  /*withElseRegion=*/true);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(ifOp.thenBlock());
      scf::YieldOp::create(b, loadVector());
      b.setInsertionPointToStart(ifOp.elseBlock());
      Value zero = arith::ConstantOp::create(b, vector, b.getZeroAttr(vector));
      scf::YieldOp::create(b, zero);
    }
    vectors.push_back(ifOp.getResult(0));
  }
  return vectors;
}

void TileCopy::store(Value stage, ValueRange vectors) {
  Value stageBytes = bytesOfStage(stage);
  for (auto [slot, values] : llvm::zip_equal(slots, vectors))
    ifActive(slot, [&, slot = slot, values = values] {
      LLVM::StoreOp::create(b, convert ? convert(values) : values,
                            offsetPointer(b, slot.shared, stageBytes),
                            vectorWidth * sharedBytes);
    });
}
