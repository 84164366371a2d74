//===- RowsExchange.cpp - Single elements side by side --------------------===//
//
// A lane reduces neighbouring elements, so that a row has the same bits in
// every kernel. If each lane loaded its own elements by accesses of one
// element, an access of the warp would touch as many sectors as there are
// lanes. So the lanes of a row load and store neighbours side by side,
// beginning at a sector of memory, and hand them to each other in shared
// memory, where each warp has its own part.
//
//===----------------------------------------------------------------------===//
#include "RowsEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace ftuner;

/// Creates the sum of two numbers one of which may be negative.
static Value addSigned(ImplicitLocOpBuilder &b, Value lhs, Value rhs) {
  return arith::AddIOp::create(b, lhs, rhs, arith::IntegerOverflowFlags::nsw);
}

Value RowsEmitter::misalignment(unsigned number) {
  Value operand = tile.operands[number];
  int64_t elementBytes = elementBytesOf(operand.getType());
  int64_t sector =
      std::min(RowsLayout::sectorBytes / elementBytes, schedule.lanes);
  auto metadata = memref::ExtractStridedMetadataOp::create(b, operand);
  Value base = math.div(
      memref::ExtractAlignedPointerAsIndexOp::create(b, operand), elementBytes);
  Value first = math.add(base, metadata.getOffset());
  Values indices = indicesOf(number, math.constant(0));
  for (auto [index, stride] : llvm::zip_equal(indices, metadata.getStrides()))
    first = math.add(first, math.mul(index, stride));
  return math.rem(first, sector);
}

SmallVector<RowsEmitter::Piece> RowsEmitter::piecesOf(unsigned number,
                                                      const Unit &unit) {
  Value shift = misalignment(number);
  Value own =
      arith::SubIOp::create(b, lane, shift, arith::IntegerOverflowFlags::nsw);
  SmallVector<Piece> pieces;
  for (int64_t access = 0; access <= layout.unit; ++access) {
    Piece piece;
    piece.inUnit = addSigned(b, own, math.constant(access * schedule.lanes));
    piece.index = addSigned(b, unit.first, piece.inUnit);
    // The unit begins within the first access and ends within the last one.
    if (access == 0)
      piece.isInUnit =
          arith::CmpIOp::create(b, arith::CmpIPredicate::sge, lane, shift);
    else if (access == layout.unit)
      piece.isInUnit = math.less(lane, shift);
    Value isInRow = unit.isWhole ? Value() : math.less(piece.index, end);
    piece.isInside = conjunction(conjunction(hasRow, piece.isInUnit), isInRow);
    pieces.push_back(piece);
  }
  return pieces;
}

Value RowsEmitter::stagingMemory(Type element) {
  int64_t bytes =
      layout.stagingBytes() / (schedule.threads() / RowsSchedule::warpSize);
  int64_t elements = bytes / elementBytesOf(element);
  auto workgroup =
      gpu::AddressSpaceAttr::get(b.getContext(), gpu::AddressSpace::Workgroup);
  auto view = MemRefType::get({elements}, element, MemRefLayoutAttrInterface(),
                              workgroup);
  Value first =
      math.mul(math.div(tile.threadId, RowsSchedule::warpSize), bytes);
  int64_t behind =
      layout.exchangeBytes() *
      layout.exchangeBuffers(static_cast<int64_t>(op.getReductions().size()));
  return memref::ViewOp::create(b, view, tile.sharedMemory,
                                math.add(first, behind), ValueRange());
}

Value RowsEmitter::firstStaged() {
  Value group =
      math.div(math.rem(tile.threadId, RowsSchedule::warpSize), schedule.lanes);
  return math.mul(group, layout.stagedElements());
}

void RowsEmitter::awaitLanes() {
  NVVM::SyncWarpOp::create(b, createI32(b, -1));
}

void RowsEmitter::loadPieces(Unit &unit, unsigned input) {
  Value operand = tile.operands[input];
  Type element = getElementTypeOrSelf(operand.getType());
  for (const Piece &piece : piecesOf(input, unit)) {
    Values loaded = orZeros(piece.isInside, element, [&] {
      return Values{
          memref::LoadOp::create(b, operand, indicesOf(input, piece.index))};
    });
    unit.pieces[input].push_back(loaded.front());
  }
}

void RowsEmitter::exchangePieces(MutableArrayRef<Unit> units,
                                 ArrayRef<unsigned> inputs) {
  for (Unit &unit : units)
    for (unsigned input : inputs) {
      Values &loaded = unit.pieces[input];
      if (loaded.empty())
        continue;
      Value memory = stagingMemory(loaded.front().getType());
      Value first = firstStaged();
      // Lanes may still read the previous unit.
      awaitLanes();
      for (auto [piece, value] : llvm::zip_equal(piecesOf(input, unit), loaded))
        emitUnder(piece.isInUnit, [&, value = value, &piece = piece] {
          memref::StoreOp::create(b, value, memory,
                                  addSigned(b, first, piece.inUnit));
        });
      awaitLanes();
      loaded.clear();
      Values elements = loadStaged(memory, first);
      for (auto [access, value] : llvm::zip_equal(unit.accesses, elements))
        access.inputs[input] = value;
    }
}

Values RowsEmitter::loadStaged(Value memory, Value first) {
  Type element = getElementTypeOrSelf(memory.getType());
  Value own = math.add(first, math.mul(lane, layout.unit));
  Values elements;
  if (!fillsBytes(element)) {
    for (int64_t number = 0; number < layout.unit; ++number)
      elements.push_back(
          memref::LoadOp::create(b, memory, math.add(own, number)));
    return elements;
  }
  auto type = VectorType::get({layout.unit}, element);
  Value vector = vector::LoadOp::create(
      b, type, memory, own, /*nontemporal=*/false,
      llvm::MaybeAlign(layout.unit * elementBytesOf(element)));
  for (int64_t number = 0; number < layout.unit; ++number)
    elements.push_back(vector::ExtractOp::create(b, vector, number));
  return elements;
}

void RowsEmitter::mapElements(const RowBody &body, const Unit &unit,
                              ArrayRef<unsigned> outputs) {
  SmallVector<Type> types = llvm::map_to_vector(outputs, [&](unsigned output) {
    return getElementTypeOrSelf(tile.operands[output].getType());
  });
  SmallVector<Values> columns(outputs.size());
  for (const Access &access : unit.accesses) {
    // Elements beyond the end of the row are computed, too, if that is
    // harmless.
    Value condition = body.isSpeculatable() ? Value() : access.isInside;
    Values values = orZeros(condition, types, [&] {
      return body.apply(elementOf(access, 0), numberOf(access, 0));
    });
    for (auto [column, value] : llvm::zip_equal(columns, values))
      column.push_back(value);
  }
  for (auto [output, column] : llvm::zip_equal(outputs, columns)) {
    if (isExchanged(output)) {
      storePieces(output, unit, column);
      continue;
    }
    for (auto [access, value] : llvm::zip_equal(unit.accesses, column))
      emitUnder(access.isInside,
                [&, &access = access, value = value, output = output] {
                  storeAccess(output, {value}, access.index);
                });
  }
}

void RowsEmitter::storePieces(unsigned output, const Unit &unit,
                              const Values &elements) {
  Type element = elements.front().getType();
  Value memory = stagingMemory(element);
  Value first = firstStaged();
  Value own = math.add(first, math.mul(lane, layout.unit));
  // Lanes may still read the previous unit.
  awaitLanes();
  if (fillsBytes(element)) {
    auto type = VectorType::get({layout.unit}, element);
    vector::StoreOp::create(
        b, vector::FromElementsOp::create(b, type, elements), memory, own,
        /*nontemporal=*/false,
        llvm::MaybeAlign(layout.unit * elementBytesOf(element)));
  } else {
    for (auto [number, value] : llvm::enumerate(elements))
      memref::StoreOp::create(b, value, memory,
                              math.add(own, static_cast<int64_t>(number)));
  }
  awaitLanes();
  for (const Piece &piece : piecesOf(output, unit))
    emitUnder(piece.isInside, [&] {
      Value value =
          memref::LoadOp::create(b, memory, addSigned(b, first, piece.inUnit));
      memref::StoreOp::create(b, value, tile.operands[output],
                              indicesOf(output, piece.index));
    });
}
