//===- TileCopy.cpp - Copies of tiles into shared memory ------------------===//
//
// Each slot has a pointer into the first stage. A stage adds the same number of
// bytes to all of them, so an address costs one addition in the loop, or none
// where slots are a constant apart. Where slots lie in global memory the source
// says (CopySource.h).
//
//===----------------------------------------------------------------------===//
#include "FTuner/Codegen/IR/TileCopy.h"
#include "FTuner/Dialect/UKernel/Utils/ElementBytes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

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

Value ftuner::globalPointer(ImplicitLocOpBuilder &b, Value memref) {
  int64_t elementBytes = elementBytesOf(memref.getType());
  // A generic pointer into global memory.
  Value address = memref::ExtractAlignedPointerAsIndexOp::create(b, memref);
  Value base = LLVM::IntToPtrOp::create(
      b, pointerType(b, NVVM::NVVMMemorySpace::Generic), toInteger(b, address));
  base = LLVM::AddrSpaceCastOp::create(
      b, pointerType(b, NVVM::NVVMMemorySpace::Global), base);
  auto metadata = memref::ExtractStridedMetadataOp::create(b, memref);
  return offsetPointer(b, base,
                       IndexMath(b).mul(metadata.getOffset(), elementBytes));
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

Value ftuner::viewMatrix(ImplicitLocOpBuilder &b, Value sharedMemory,
                         const SharedTile &tile, int64_t stages,
                         Type elementType, int64_t firstByte, Value matrix) {
  auto space = cast<MemRefType>(sharedMemory.getType()).getMemorySpace();
  auto all = MemRefType::get({stages * tile.elements()}, elementType,
                             MemRefLayoutAttrInterface(), space);
  Value elements = memref::ViewOp::create(
      b, all, sharedMemory, IndexMath(b).constant(firstByte), ValueRange());
  int64_t shape[] = {stages, tile.sharedRows(), tile.pitch};
  int64_t strides[] = {tile.elements(), tile.pitch, 1};
  auto type = MemRefType::get(
      shape, elementType,
      StridedLayoutAttr::get(b.getContext(), ShapedType::kDynamic, strides),
      space);
  Value first = IndexMath(b).mul(matrix, tile.matrixPitch());
  return memref::ReinterpretCastOp::create(
      b, type, elements, OpFoldResult(first),
      getAsIndexOpFoldResult(b.getContext(), shape),
      getAsIndexOpFoldResult(b.getContext(), strides));
}

//===----------------------------------------------------------------------===//
// TileCopy
//===----------------------------------------------------------------------===//

TileCopy::TileCopy(ImplicitLocOpBuilder &b, const SharedTile &tile,
                   std::unique_ptr<CopySource> source, Type elementType,
                   Value shared, int64_t threads, int64_t vectorWidth)
    : b(b), math(b), tile(tile), source(std::move(source)), shared(shared),
      threads(threads), vectorWidth(vectorWidth),
      elementBytes(elementBytesOf(elementType)), sharedBytes(elementBytes),
      vector(VectorType::get({vectorWidth}, elementType)) {}

TileCopy::TileCopy(ImplicitLocOpBuilder &b, const SharedTile &tile,
                   Value global, Value shared, int64_t threads,
                   int64_t vectorWidth)
    : TileCopy(
          b, tile,
          std::make_unique<MatrixSource>(b, tile, global, threads, vectorWidth),
          cast<MemRefType>(global.getType()).getElementType(), shared, threads,
          vectorWidth) {}

int64_t TileCopy::vectorBytes() const { return vectorWidth * elementBytes; }

void TileCopy::prepare(Value threadId, Value spaceOffset, Value spaceExtent,
                       bool spaceExact, Value reduceExtent, bool reduceExact,
                       bool isAsynchronous) {
  this->reduceExtent = reduceExtent;
  this->reduceExact = reduceExact;
  endsWithinVectors &= !reduceExact;
  int64_t vectors = tile.vectors(vectorWidth);
  spaceExact = spaceExact && !tile.isPadded;
  bool isClamped = !spaceExact && !isAsynchronous;
  bool readsInputs = conversion && !conversion->inputs.empty();
  Value lastSpace;
  if (isClamped || readsInputs)
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
    // Threads without a vector read inputs like all others.
    if (isClamped || (readsInputs && slot.active))
      space = math.minimum(space, lastSpace);
    slot.space = space;
    if (!spaceExact && isAsynchronous)
      slot.isInside = inSpaceRange(space, spaceExtent);
    Value distance;
    if (copied.matrix) {
      Value matrix = *copied.matrix;
      if (readsInputs && slot.active)
        matrix = math.minimum(matrix, math.constant(tile.matrices - 1));
      distance = placeMatrix(slot, matrix, isAsynchronous);
    }
    if (conversion)
      for (const CopyConversion::Input &input : conversion->inputs)
        if (!input.dependsOnReduce)
          slot.inputs.push_back(
              input.load(space, /*reduce=*/Value(), slot.batch));
    source->addSlot(space, slot.reduce, isClamped, distance);
    slot.sharedDistance = nextSharedDistance();
    if (!slot.sharedDistance)
      slot.shared = offsetPointer(
          b, shared, math.mul(sharedElement(math, tile, copied), sharedBytes));
    slots.push_back(slot);
  }
}

Value TileCopy::placeMatrix(Slot &slot, Value matrix, bool isAsynchronous) {
  BatchPosition position =
      batchPoint(math, contraction->batchTile(), matrix, factor);
  if (!isAsynchronous) {
    position = contraction->clampedBatch(b, position);
  } else if (Value inside = contraction->isInsideBatch(b, position)) {
    slot.isInside =
        slot.isInside
            ? arith::AndIOp::create(b, slot.isInside, inside).getResult()
            : inside;
  }
  slot.batch = position;
  return contraction->batchDistance(b, contraction->factorNumber(factor),
                                    position);
}

Value TileCopy::inSpaceRange(Value space, Value spaceExtent) {
  std::optional<int64_t> rows = rowsApart(tile, threads, vectorWidth);
  if (!rows)
    return math.less(space, spaceExtent);
  // One number for all slots, as along the reduce axis. Those of one row have
  // one condition.
  if (slots.empty())
    spaceLeft = arith::SubIOp::create(b, spaceExtent, space);
  else if (!tile.reduceContiguous)
    return slots.front().isInside;
  return math.less(math.constant(static_cast<int64_t>(slots.size()) * *rows),
                   spaceLeft);
}

std::optional<TileCopy::Distance> TileCopy::nextSharedDistance() const {
  if (tile.panels > 1 || !copiesWholeRows(tile, threads, vectorWidth))
    return std::nullopt;
  auto apart = static_cast<size_t>(slotsOfPeriod(tile, threads, vectorWidth));
  if (slots.size() < apart)
    return std::nullopt;
  Distance last{slots.size() - apart, 0};
  if (slots[last.from].sharedDistance)
    last = *slots[last.from].sharedDistance;
  int64_t rows =
      static_cast<int64_t>(apart) * threads / tile.vectorsPerRow(vectorWidth);
  last.bytes += rows * tile.pitch * sharedBytes;
  return last;
}

Value TileCopy::inReduceRange(const Slot &slot, Value reduceOffset) {
  // One number for all slots, which may wrap for none: with flags on the
  // difference each slot's own bound would be computed before the loop.
  if (std::optional<int64_t> rows = rowsOfSlot(tile, threads, vectorWidth)) {
    return math.less(math.constant((&slot - slots.begin()) * *rows),
                     elementsLeft(slots.front(), reduceOffset));
  }
  return math.less(math.add(reduceOffset, slot.reduce), reduceExtent);
}

Value TileCopy::elementsLeft(const Slot &slot, Value reduceOffset) {
  return arith::SubIOp::create(b, reduceExtent,
                               math.add(reduceOffset, slot.reduce));
}

Value TileCopy::bytesLeft(const Slot &slot, Value reduceOffset) {
  Value left = b.createOrFold<arith::IndexCastOp>(
      b.getI32Type(), elementsLeft(slot, reduceOffset));
  left = arith::MaxSIOp::create(b, left, createI32(b, 0));
  left = arith::MinSIOp::create(b, left, createI32(b, vectorWidth));
  return arith::MulIOp::create(b, left, createI32(b, elementBytes));
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

Values TileCopy::sharedPointers(Value stage) {
  Value stageBytes = bytesOfStage(stage);
  Values pointers;
  for (const Slot &slot : slots)
    pointers.push_back(slot.sharedDistance
                           ? offsetPointer(b,
                                           pointers[slot.sharedDistance->from],
                                           slot.sharedDistance->bytes)
                           : offsetPointer(b, slot.shared, stageBytes));
  return pointers;
}

void TileCopy::issueAsync(Value stage, Value reduceOffset, Value isInside,
                          int64_t part, int64_t parts) {
  uint32_t bytes = vectorBytes();
  // The hardware bypasses L1 with 16 bytes alone.
  NVVM::LoadCacheModifierKind cache = bytes == 16
                                          ? NVVM::LoadCacheModifierKind::CG
                                          : NVVM::LoadCacheModifierKind::CA;
  SmallVector<CopySource::Place> places = source->placesOf(reduceOffset);
  Values targets = sharedPointers(stage);
  auto numSlots = static_cast<int64_t>(slots.size());
  for (int64_t number = part * numSlots / parts;
       number < (part + 1) * numSlots / parts; ++number) {
    const Slot &slot = slots[number];
    ifActive(slot, [&] {
      // Of no bytes nothing is read, wherever the pointer points.
      Value sourceBytes, isRead;
      if (reduceExact)
        isRead = isInside;
      else if (endsWithinVectors)
        sourceBytes = bytesLeft(slot, reduceOffset);
      else
        isRead = inReduceRange(slot, reduceOffset);
      for (Value condition : {slot.isInside, places[number].isInside})
        if (condition)
          isRead =
              isRead ? arith::AndIOp::create(b, isRead, condition) : condition;
      if (isRead)
        sourceBytes = arith::SelectOp::create(
            b, isRead, sourceBytes ? sourceBytes : createI32(b, bytes),
            createI32(b, 0));
      NVVM::CpAsyncOp::create(b, targets[number], places[number].pointer, bytes,
                              cache, sourceBytes);
    });
  }
}

SmallVector<Type> TileCopy::slotTypes() const {
  SmallVector<Type> types = {vector};
  if (conversion)
    for (const CopyConversion::Input &input : conversion->inputs)
      if (input.dependsOnReduce)
        types.push_back(input.type);
  return types;
}

SmallVector<Type> TileCopy::loadedTypes() const {
  SmallVector<Type> types, ofSlot = slotTypes();
  for (size_t slot = 0; slot < slots.size(); ++slot)
    llvm::append_range(types, ofSlot);
  return types;
}

Values TileCopy::loadSlot(const Slot &slot, Value pointer, Value reduceOffset) {
  Values loaded = {LLVM::LoadOp::create(b, vector, pointer, vectorBytes())};
  if (conversion)
    for (const CopyConversion::Input &input : conversion->inputs)
      if (input.dependsOnReduce)
        loaded.push_back(input.load(
            slot.space, math.add(reduceOffset, slot.reduce), slot.batch));
  return loaded;
}

Values TileCopy::load(Value reduceOffset) {
  SmallVector<CopySource::Place> places = source->placesOf(reduceOffset);
  SmallVector<Type> types = slotTypes();
  Values vectors;
  for (auto [slot, place] : llvm::zip_equal(slots, places)) {
    Value condition = slot.active;
    auto require = [&](Value other) {
      condition = condition
                      ? arith::AndIOp::create(b, condition, other).getResult()
                      : other;
    };
    if (!reduceExact)
      require(inReduceRange(slot, reduceOffset));
    if (place.isInside)
      require(place.isInside);
    if (!condition) {
      llvm::append_range(vectors, loadSlot(slot, place.pointer, reduceOffset));
      continue;
    }
    auto ifOp = scf::IfOp::create(b, types, condition,
                                  /*withElseRegion=*/true);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(ifOp.thenBlock());
      scf::YieldOp::create(b, loadSlot(slot, place.pointer, reduceOffset));
      b.setInsertionPointToStart(ifOp.elseBlock());
      Values zeros;
      for (Type type : types)
        zeros.push_back(
            arith::ConstantOp::create(b, type, b.getZeroAttr(type)));
      scf::YieldOp::create(b, zeros);
    }
    llvm::append_range(vectors, ifOp.getResults());
  }
  return vectors;
}

Value TileCopy::untilEnd(const Slot &slot, Value vector, Value reduceOffset) {
  Value left = elementsLeft(slot, reduceOffset);
  auto type = cast<VectorType>(vector.getType());
  Value zero =
      arith::ConstantOp::create(b, b.getZeroAttr(type.getElementType()));
  Values elements;
  for (int64_t number = 0; number < type.getDimSize(0); ++number) {
    Value element = vector::ExtractOp::create(b, vector, number);
    elements.push_back(arith::SelectOp::create(
        b, math.less(math.constant(number), left), element, zero));
  }
  return vector::FromElementsOp::create(b, type, elements);
}

Value TileCopy::convert(const Slot &slot, ValueRange loaded,
                        Value reduceOffset) {
  if (!conversion)
    return endsWithinVectors ? untilEnd(slot, loaded.front(), reduceOffset)
                             : loaded.front();
  Values inputs;
  ValueRange ofStep = loaded.drop_front(), invariant = slot.inputs;
  for (const CopyConversion::Input &input : conversion->inputs) {
    ValueRange &values = input.dependsOnReduce ? ofStep : invariant;
    inputs.push_back(values.front());
    values = values.drop_front();
  }
  Value result = conversion->compute(loaded.front(), inputs);
  if (endsWithinVectors)
    return untilEnd(slot, result, reduceOffset);
  if (conversion->keepsZeros || reduceExact)
    return result;
  // What lies beyond the reduce extent must add nothing.
  Value zero = arith::ConstantOp::create(b, result.getType(),
                                         b.getZeroAttr(result.getType()));
  return arith::SelectOp::create(b, inReduceRange(slot, reduceOffset), result,
                                 zero);
}

void TileCopy::store(Value stage, ValueRange loaded, Value reduceOffset) {
  Values targets = sharedPointers(stage);
  size_t ofSlot = slotTypes().size();
  for (auto [number, slot] : llvm::enumerate(slots))
    ifActive(slot, [&, number = number, &slot = slot] {
      LLVM::StoreOp::create(
          b, convert(slot, loaded.slice(number * ofSlot, ofSlot), reduceOffset),
          targets[number], vectorWidth * sharedBytes);
    });
}
