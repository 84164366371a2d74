//===- CopySource.cpp - Where copied operands lie -------------------------===//
#include "FTuner/Codegen/IR/CopySource.h"
#include "FTuner/Codegen/IR/CodegenPath.h"
#include "FTuner/Codegen/IR/TileCopy.h"
#include "FTuner/Dialect/UKernel/Utils/ElementBytes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace ftuner;

//===----------------------------------------------------------------------===//
// MatrixSource
//===----------------------------------------------------------------------===//

MatrixSource::MatrixSource(ImplicitLocOpBuilder &b, const SharedTile &tile,
                           Value memory, int64_t threads, int64_t vectorWidth)
    : b(b), math(b), tile(tile), threads(threads), vectorWidth(vectorWidth),
      elementBytes(elementBytesOf(memory.getType())),
      global(globalPointer(b, memory)) {
  auto type = cast<MemRefType>(memory.getType());
  // A constant where it is known.
  SmallVector<int64_t> strides;
  int64_t offset;
  if (succeeded(type.getStridesAndOffset(strides, offset)) &&
      !ShapedType::isDynamic(strides[0]))
    rowStride = math.constant(strides[0]);
  else
    rowStride =
        memref::ExtractStridedMetadataOp::create(b, memory).getStrides()[0];
}

/// Bytes that an instruction can add to an address: 24 bits with a sign.
static constexpr int64_t kMostImmediate = (int64_t(1) << 23) - 1;

std::optional<MatrixSource::Distance>
MatrixSource::nextDistance(bool isClamped) const {
  // Rows that are clamped to the extent are at any distance.
  std::optional<int64_t> stride = getConstantIntValue(rowStride);
  std::optional<int64_t> rows = rowsApart(tile, threads, vectorWidth);
  if (slots.empty() || !stride || isClamped || !tile.reduceContiguous || !rows)
    return std::nullopt;
  Distance last{slots.size() - 1, 0};
  if (slots.back().distance)
    last = *slots.back().distance;
  last.bytes += *rows * *stride * elementBytes;
  return last.bytes <= kMostImmediate ? std::optional(last) : std::nullopt;
}

void MatrixSource::addSlot(Value space, Value reduce, bool isClamped,
                           Value distance) {
  Value row = tile.reduceContiguous ? space : reduce;
  Value inner = tile.reduceContiguous ? reduce : space;
  Slot slot;
  slot.distance = nextDistance(isClamped);
  if (!slot.distance) {
    Value element = math.add(math.mul(row, rowStride), inner);
    if (distance)
      element = math.add(distance, element);
    slot.pointer = offsetPointer(b, global, math.mul(element, elementBytes));
  }
  slots.push_back(slot);
}

Value MatrixSource::bytesOfStep(Value reduceOffset) {
  Value elements = reduceOffset;
  if (packedRows)
    elements = math.mul(reduceOffset, *packedRows);
  else if (!tile.reduceContiguous)
    elements = math.mul(reduceOffset, rowStride);
  return math.mul(elements, elementBytes);
}

SmallVector<CopySource::Place> MatrixSource::placesOf(Value reduceOffset) {
  Value stepBytes = bytesOfStep(reduceOffset), slotBytes;
  int64_t ofPointer = 1;
  if (std::optional<int64_t> rows = rowsOfSlot(tile, threads, vectorWidth)) {
    ofPointer = slotsOfPointer(slots.size());
    slotBytes = math.mul(math.mul(rowStride, *rows), elementBytes);
  }
  SmallVector<Place> places;
  for (auto [number, slot] : llvm::enumerate(slots)) {
    if (slot.distance)
      places.push_back({offsetPointer(b, places[slot.distance->from].pointer,
                                      slot.distance->bytes)});
    else
      places.push_back(
          {number % ofPointer == 0
               ? offsetPointer(b, slot.pointer, stepBytes)
               : offsetPointer(b, places.back().pointer, slotBytes)});
  }
  return places;
}

//===----------------------------------------------------------------------===//
// WindowSource
//===----------------------------------------------------------------------===//

SplitAxis SplitAxis::of(const TileEmission &tile, unsigned axis) {
  SplitAxis result{axis, {}};
  ukernel::OperatorOpInterface op = tile.op;
  for (auto [loop, extent] :
       llvm::zip_equal(op.getFusedLoops(), tile.loopExtents))
    if (loop.axis == axis)
      result.loopExtents.push_back(extent);
  return result;
}

WindowSource::WindowSource(ImplicitLocOpBuilder &b, Value memory,
                           const Operand &operand, SplitAxis space,
                           SplitAxis reduce, Value sliceStart,
                           int64_t stepElements,
                           std::optional<int64_t> slotRows)
    : b(b), math(b), space(std::move(space)), reduce(std::move(reduce)),
      sliceStart(sliceStart), elementBytes(elementBytesOf(memory.getType())),
      global(globalPointer(b, memory)) {
  for (const AffineForm &form : operand.windows) {
    std::optional<unsigned> axis = form.asAxis();
    if (!axis || *axis == this->space.axis || *axis == this->reduce.axis)
      forms.push_back(&form);
  }
  std::optional<int64_t> last;
  if (!this->reduce.loopExtents.empty())
    last = getConstantIntValue(this->reduce.loopExtents.back());
  staysInLoop = last && *last % stepElements == 0;
  auto type = cast<MemRefType>(memory.getType());
  assert(type.getRank() == int64_t(forms.size()) &&
         "expected a view without the dimensions of batch axes");
  auto metadata = memref::ExtractStridedMetadataOp::create(b, memory);
  auto [staticStrides, offset] = type.getStridesAndOffset();
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    strides.push_back(ShapedType::isDynamic(staticStrides[dim])
                          ? metadata.getStrides()[dim]
                          : math.constant(staticStrides[dim]));
    sizes.push_back(type.isDynamicDim(dim)
                        ? metadata.getSizes()[dim]
                        : math.constant(type.getDimSize(dim)));
    // A loop or an axis alone does not pass its own extent.
    if (operand.outside && !forms[dim]->asTerm())
      checked.push_back(dim);
  }
  auto isOfLastLoop = [&](size_t dim) {
    return llvm::any_of(forms[dim]->terms, [&](const AffineForm::Term &term) {
      return term.axis == this->reduce.axis &&
             term.loop + 1 == this->reduce.loopExtents.size();
    });
  };
  if (staysInLoop && llvm::none_of(checked, isOfLastLoop))
    this->slotRows = slotRows;
}

Values WindowSource::pointAt(const SplitAxis &axis, Value position) {
  if (axis.loopExtents.empty())
    return {position};
  // Extents of axes fit 31 bits, in which division is fast.
  auto narrow = [&](Value index) -> Value {
    return b.createOrFold<arith::IndexCastUIOp>(b.getI32Type(), index);
  };
  auto wide = [&](Value number) -> Value {
    return b.createOrFold<arith::IndexCastUIOp>(b.getIndexType(), number);
  };
  Values point(axis.loopExtents.size());
  Value rest = narrow(position);
  for (size_t loop = point.size() - 1; loop > 0; --loop) {
    Value extent = narrow(axis.loopExtents[loop]);
    point[loop] = wide(b.createOrFold<arith::RemUIOp>(rest, extent));
    rest = b.createOrFold<arith::DivUIOp>(rest, extent);
  }
  point[0] = wide(rest);
  return point;
}

Values WindowSource::pointOfSlot(Value ofStep) {
  Values point(reduce.loopExtents.size(), math.constant(0));
  point.back() = ofStep;
  return point;
}

Value WindowSource::furtherInLoop(Value pointer, Value elements) {
  Values point = pointOfSlot(elements), positions;
  for (size_t dim = 0; dim < strides.size(); ++dim)
    positions.push_back(termsOf(reduce, point, dim));
  return advance(pointer, positions);
}

Value WindowSource::termsOf(const SplitAxis &axis, ValueRange point,
                            size_t dim) {
  Value sum;
  for (const AffineForm::Term &term : forms[dim]->terms) {
    if (term.axis != axis.axis)
      continue;
    Value value =
        point[term.loop == AffineForm::Term::wholeAxis ? 0 : term.loop];
    // Signed: windows may begin before the operand.
    if (term.coefficient != 1)
      value = arith::MulIOp::create(b, value, math.constant(term.coefficient));
    sum = sum ? arith::AddIOp::create(b, sum, value).getResult() : value;
  }
  return sum;
}

Value WindowSource::advance(Value pointer, ValueRange positions) {
  Value elements;
  for (auto [position, stride] : llvm::zip_equal(positions, strides)) {
    if (!position)
      continue;
    Value distance = b.createOrFold<arith::MulIOp>(position, stride);
    elements = elements
                   ? arith::AddIOp::create(b, elements, distance).getResult()
                   : distance;
  }
  if (!elements)
    return pointer;
  return offsetPointer(
      b, pointer,
      b.createOrFold<arith::MulIOp>(elements, math.constant(elementBytes)));
}

void WindowSource::addSlot(Value position, Value ofStep, bool isClamped,
                           Value distance) {
  Slot slot;
  slot.reduce = ofStep;
  // The place of this slot follows from that of the first one.
  if (slotRows && !slots.empty()) {
    slots.push_back(slot);
    return;
  }
  Values point = pointAt(space, position), positions;
  for (size_t dim = 0; dim < strides.size(); ++dim) {
    Value along = termsOf(space, point, dim);
    auto add = [&](Value more) {
      along = along && more ? arith::AddIOp::create(b, along, more).getResult()
              : along       ? along
                            : more;
    };
    if (staysInLoop)
      add(termsOf(reduce, pointOfSlot(ofStep), dim));
    if (int64_t constant = forms[dim]->constant)
      add(math.constant(constant));
    positions.push_back(along);
  }
  slot.pointer = advance(global, positions);
  if (distance)
    slot.pointer =
        offsetPointer(b, slot.pointer, math.mul(distance, elementBytes));
  for (size_t dim : checked)
    slot.positions.push_back(positions[dim] ? positions[dim]
                                            : math.constant(0));
  slots.push_back(std::move(slot));
}

SmallVector<CopySource::Place> WindowSource::placesOf(Value reduceOffset) {
  SmallVector<Place> places;
  for (auto [number, slot] : llvm::enumerate(slots)) {
    if (slotRows && number > 0) {
      Place place = places.front();
      place.pointer =
          furtherInLoop(place.pointer, math.constant(number * *slotRows));
      places.push_back(place);
      continue;
    }
    Value position =
        staysInLoop ? reduceOffset : math.add(reduceOffset, slot.reduce);
    if (sliceStart)
      position = math.add(sliceStart, position);
    // All slots of a step, or those in one column, share these operations.
    Values point = pointAt(reduce, position), positions;
    for (size_t dim = 0; dim < strides.size(); ++dim)
      positions.push_back(termsOf(reduce, point, dim));
    Place place;
    place.pointer = advance(slot.pointer, positions);
    for (auto [dim, ofSpace] : llvm::zip_equal(checked, slot.positions)) {
      Value along =
          positions[dim]
              ? arith::AddIOp::create(b, ofSpace, positions[dim]).getResult()
              : ofSpace;
      // Before the beginning is beyond the end of all numbers.
      Value isInside = arith::CmpIOp::create(b, arith::CmpIPredicate::ult,
                                             along, sizes[dim]);
      place.isInside =
          place.isInside
              ? arith::AndIOp::create(b, place.isInside, isInside).getResult()
              : isInside;
    }
    places.push_back(place);
  }
  return places;
}
