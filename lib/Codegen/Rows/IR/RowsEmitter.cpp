//===- RowsEmitter.cpp - Warps that reduce rows ---------------------------===//
#include "RowsEmitter.h"
#include "FTuner/Codegen/IR/MainLoop.h"
#include "FTuner/Codegen/IR/ScheduleAttr.h"
#include "FTuner/Schedule/Alignment.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace ftuner;

RowsKernel::RowsKernel(const TileEmission &block)
    : workload(*block.described), rows(workload),
      schedule(RowsSchedule::of(block.family.schedule)),
      layout(workload, schedule, block.family.reduceSplit),
      grid(gridOf(block.family)), endsWithinAccess(false) {
  if (layout.vector == 1 || layout.isAcross())
    return;
  ukernel::OperatorOpInterface op = block.op;
  int64_t length = op.getStaticExtents()[layout.rowAxis];
  if (ShapedType::isStatic(length) && length % layout.vector == 0)
    return;
  endsWithinAccess =
      llvm::any_of(workload.operands, [&](const Operand &operand) {
        return rows.isAlongLanes(operand) &&
               (operand.isPitched || !isVectorAccess(workload, operand));
      });
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

Values RowsEmitter::indicesOf(unsigned number, Value element, int64_t laneRow) {
  Values indices;
  const Operand &operand = workload.operands[number];
  for (unsigned axis : operand.axes) {
    if (axis == layout.rowAxis)
      indices.push_back(element);
    else if (axis == layout.laneAxis)
      indices.push_back(math.add(position[axis], laneRow));
    else if (!grid.batchNumber(axis))
      indices.push_back(position[axis]);
  }
  return indices;
}

Values RowsEmitter::indicesInAccess(unsigned number, Value index,
                                    int64_t neighbour) {
  if (layout.isAcross())
    return indicesOf(number, index, neighbour);
  Value element = math.add(index, neighbour);
  // The first element of an access that takes place is inside.
  if (neighbour > 0 && endsWithinAccess)
    element = math.minimum(element, math.sub(end, 1));
  return indicesOf(number, element);
}

Value RowsEmitter::isNeighbourInside(Value index, int64_t neighbour) {
  if (neighbour == 0 || !endsWithinAccess)
    return {};
  return math.less(math.add(index, neighbour), end);
}

/// Booleans are bytes in memory, but not in vectors.
bool RowsEmitter::isVector(unsigned number, Type element) {
  return fillsBytes(element) && rows.isAlongLanes(workload.operands[number]);
}

Value RowsEmitter::loadAccess(unsigned input, Value index) {
  Value operand = tile.operands[input];
  Type element = getElementTypeOrSelf(operand.getType());
  if (!variesInAccess(input))
    return memref::LoadOp::create(b, operand, indicesOf(input, index));
  auto type = VectorType::get({layout.vector}, element);
  if (isVector(input, element))
    return vector::LoadOp::create(
        b, type, operand, indicesOf(input, index), /*nontemporal=*/false,
        llvm::MaybeAlign(layout.vector * elementBytesOf(type)));
  Values elements;
  for (int64_t neighbour = 0; neighbour < layout.vector; ++neighbour)
    elements.push_back(memref::LoadOp::create(
        b, operand, indicesInAccess(input, index, neighbour)));
  return vector::FromElementsOp::create(b, type, elements);
}

void RowsEmitter::storeAccess(unsigned output, const Values &elements,
                              Value index) {
  Value operand = tile.operands[output];
  auto type = VectorType::get({layout.vector}, elements.front().getType());
  if (isVector(output, type.getElementType())) {
    Value vector = vector::FromElementsOp::create(b, type, elements);
    vector::StoreOp::create(
        b, vector, operand, indicesOf(output, index), /*nontemporal=*/false,
        llvm::MaybeAlign(layout.vector * elementBytesOf(type)));
    return;
  }
  for (auto [neighbour, element] : llvm::enumerate(elements)) {
    auto number = static_cast<int64_t>(neighbour);
    emitUnder(isNeighbourInside(index, number), [&, element = element] {
      memref::StoreOp::create(b, element, operand,
                              indicesInAccess(output, index, number));
    });
  }
}

void RowsEmitter::emitUnder(Value condition, llvm::function_ref<void()> body) {
  if (condition)
    emitIf(b, condition, body);
  else
    body();
}

Value RowsEmitter::conjunction(Value lhs, Value rhs) {
  if (!lhs || !rhs)
    return lhs ? lhs : rhs;
  return arith::AndIOp::create(b, lhs, rhs);
}

Values RowsEmitter::orElse(Value condition, ValueRange others,
                           llvm::function_ref<Values()> body) {
  if (!condition)
    return body();
  auto ifOp = scf::IfOp::create(b, others.getTypes(), condition,
                                /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  scf::YieldOp::create(b, body());
  b.setInsertionPointToStart(ifOp.elseBlock());
  scf::YieldOp::create(b, others);
  return Values(ifOp.getResults());
}

Values RowsEmitter::orZeros(Value condition, TypeRange types,
                            llvm::function_ref<Values()> body) {
  if (!condition)
    return body();
  Values zeros = llvm::map_to_vector(types, [&](Type type) -> Value {
    return arith::ConstantOp::create(b, cast<TypedAttr>(b.getZeroAttr(type)));
  });
  return orElse(condition, zeros, body);
}

RowsEmitter::Unit RowsEmitter::createUnit(Value first, int64_t number,
                                          bool isWhole) {
  Unit unit;
  unit.isWhole = isWhole;
  unit.pieces.resize(numInputs);
  Value index;
  if (layout.isAcross()) {
    unit.first = index =
        math.add(math.add(first, number * layout.allWarps()), warpOfAll);
  } else {
    Value chunk = math.add(
        first, math.mul(warpOfAll, RowsLayout::numPlaces * layout.unit));
    unit.first = math.add(chunk, number * schedule.lanes * layout.unit);
    index = math.add(unit.first, math.mul(lane, layout.unit));
  }
  for (int64_t access = 0; access < layout.accesses(); ++access) {
    Access &own = unit.accesses.emplace_back();
    own.index = math.add(index, access * layout.vector);
    own.isInside =
        isWhole ? hasRow : conjunction(hasRow, math.less(own.index, end));
    own.inputs.assign(numInputs, Value());
  }
  return unit;
}

RowsEmitter::Inputs RowsEmitter::inputsOf(ArrayRef<Region *> regions) {
  Inputs inputs;
  for (unsigned input = 0; input < numInputs; ++input)
    if (isAlongRow(input) && llvm::any_of(regions, [&](Region *region) {
          return !region->getArgument(input).use_empty();
        }))
      inputs.push_back(input);
  return inputs;
}

RowsEmitter::Inputs RowsEmitter::allInputs() {
  SmallVector<Region *> regions = {&op.getMap()};
  for (Region &reduction : op.getReductions())
    regions.push_back(&reduction);
  return inputsOf(regions);
}

void RowsEmitter::loadUnit(Unit &unit, ArrayRef<unsigned> inputs) {
  SmallVector<unsigned> whole;
  for (unsigned input : inputs)
    if (isExchanged(input))
      loadPieces(unit, input);
    else
      whole.push_back(input);
  if (!whole.empty())
    loadAccesses(unit, whole);
}

void RowsEmitter::loadAccesses(Unit &unit, ArrayRef<unsigned> inputs) {
  SmallVector<Type> types;
  for (unsigned input : inputs) {
    Type element = getElementTypeOrSelf(tile.operands[input].getType());
    types.push_back(variesInAccess(input)
                        ? VectorType::get({layout.vector}, element)
                        : element);
  }
  for (Access &access : unit.accesses) {
    auto load = [&] {
      return Values(llvm::map_range(inputs, [&](unsigned input) {
        return loadAccess(input, access.index);
      }));
    };
    Values loaded = orZeros(access.isInside, types, load);
    for (auto [input, value] : llvm::zip_equal(inputs, loaded))
      access.inputs[input] = value;
  }
}

Values RowsEmitter::positionOf(int64_t laneRow) {
  Values result = position;
  if (laneRow > 0)
    result[layout.laneAxis] = math.add(result[layout.laneAxis], laneRow);
  return result;
}

Values RowsEmitter::elementOf(const Access &access, int64_t neighbour) {
  Values elements;
  for (auto [input, value] : llvm::enumerate(access.inputs))
    if (isAlongRow(input))
      elements.push_back(
          value && isa<VectorType>(value.getType())
              ? vector::ExtractOp::create(b, value, neighbour).getResult()
              : value);
  return elements;
}

SmallVector<RowsEmitter::Unit>
RowsEmitter::loadRound(Value first, bool isWhole, ArrayRef<unsigned> inputs) {
  SmallVector<Unit> units;
  for (int64_t number = 0; number < layout.roundUnits(); ++number)
    loadUnit(units.emplace_back(createUnit(first, number, isWhole)), inputs);
  return units;
}

std::pair<Value, Value> RowsEmitter::computeSegments() {
  // Segments are whole chunks of all slots.
  int64_t elements = layout.slotElements();
  Value chunks = math.div(math.add(end, elements - 1), elements);
  Value shared = math.div(math.add(chunks, RowsLayout::numSegments - 1),
                          RowsLayout::numSegments);
  Value isLong = math.less(math.constant(RowsLayout::wholeChunks), chunks);
  Value length = arith::SelectOp::create(
      b, isLong,
      arith::MaxSIOp::create(b, shared, math.constant(RowsLayout::minChunks)),
      math.constant(RowsLayout::wholeChunks));
  Value number =
      arith::DivUIOp::create(b, math.sub(math.add(chunks, length), 1), length);
  return {math.mul(length, elements), number};
}

RowsEmitter::Segment RowsEmitter::wholeRow() {
  return {Value(), math.constant(0), end};
}

Values RowsEmitter::forEachSegment(
    const Values &state,
    llvm::function_ref<Values(const Segment &, ValueRange)> body) {
  if (!segmentSlice && !layout.hasSegments(getConstantIntValue(end)))
    return body(wholeRow(), state);
  auto [length, number] = computeSegments();
  auto loop =
      scf::ForOp::create(b, segmentSlice ? segmentSlice : math.constant(0),
                         number, math.constant(layout.segmentSlices()), state);
  OpBuilder::InsertionGuard guard(b);
  if (state.empty())
    b.setInsertionPoint(loop.getBody()->getTerminator());
  else
    b.setInsertionPointToStart(loop.getBody());
  llvm::SaveAndRestore keepEnd(end);
  Segment segment;
  segment.number = loop.getInductionVar();
  segment.begin = math.mul(segment.number, length);
  segment.end = end = math.minimum(math.add(segment.begin, length), end);
  Values next = body(segment, loop.getRegionIterArgs());
  if (!state.empty())
    scf::YieldOp::create(b, next);
  return Values(loop.getResults());
}

Values RowsEmitter::forEachRound(
    const Segment &segment, ArrayRef<unsigned> inputs, const Values &state,
    bool isBackwards,
    llvm::function_ref<void(ArrayRef<Unit>, Value, MutableArrayRef<Value>)>
        body) {
  int64_t rounds =
      std::max<int64_t>(layout.streamedUnits() / layout.roundUnits(), 1);
  int64_t step = rounds * layout.roundOfAll();
  std::optional<int64_t> length = getConstantIntValue(segment.end);
  bool isWhole = length && *length % step == 0;
  auto loop = scf::ForOp::create(b, segment.begin, segment.end,
                                 math.constant(step), state);
  OpBuilder::InsertionGuard guard(b);
  if (state.empty())
    b.setInsertionPoint(loop.getBody()->getTerminator());
  else
    b.setInsertionPointToStart(loop.getBody());
  Value begin = loop.getInductionVar();
  if (isBackwards) {
    // The loop takes its trips from the last one to the first.
    Value length = arith::SubIOp::create(b, segment.end, segment.begin);
    Value trips = math.div(math.add(length, step - 1), step);
    Value last = math.mul(math.sub(trips, 1), step);
    Value both = math.add(math.mul(segment.begin, 2), last);
    begin = arith::SubIOp::create(b, both, begin);
  }
  SmallVector<SmallVector<Unit>> loaded;
  Values numbers;
  for (int64_t round = 0; round < rounds; ++round) {
    Value start = math.add(begin, round * layout.roundOfAll());
    loaded.push_back(loadRound(start, isWhole, inputs));
    numbers.push_back(start);
  }
  Values inner(loop.getRegionIterArgs());
  for (auto [units, start] : llvm::zip_equal(loaded, numbers)) {
    exchangePieces(units, inputs);
    body(units, start, inner);
  }
  if (!state.empty())
    scf::YieldOp::create(b, inner);
  return Values(loop.getResults());
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

void RowsEmitter::storeValues() {
  SmallVector<unsigned, 2> outputs = op.getOutputNumbers(/*alongRow=*/false);
  if (outputs.empty())
    return;
  Value isFirst = arith::CmpIOp::create(
      b, arith::CmpIPredicate::eq,
      layout.isAcross() ? warpOfAll : math.add(lane, warpOfAll),
      math.constant(0));
  if (segmentSlice)
    isFirst = arith::AndIOp::create(
        b, isFirst,
        arith::CmpIOp::create(b, arith::CmpIPredicate::eq, segmentSlice,
                              math.constant(0)));
  isFirst = conjunction(hasRow, isFirst);
  auto ifOp = scf::IfOp::create(b, isFirst, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  for (int64_t row = 0; row < schedule.laneRows; ++row) {
    Values known;
    for (Value value : rowValues[row])
      if (value)
        known.push_back(value);
    for (const RowNumbers &numbers : results)
      known.push_back(numbers[row]);
    Values values =
        RowBody(b, op.getValues(), known, positionOf(row)).apply({}, Value());
    for (auto [number, value] : llvm::zip_equal(outputs, values))
      memref::StoreOp::create(b, value, tile.operands[number],
                              indicesOf(number, Value(), row));
  }
}

void RowsEmitter::mapUnit(ArrayRef<RowBody> bodies, const Unit &unit) {
  SmallVector<unsigned, 2> outputs = op.getOutputNumbers(/*alongRow=*/true);
  if (layout.isExchanged()) {
    mapElements(bodies.front(), unit, outputs);
    return;
  }
  for (const Access &access : unit.accesses)
    emitUnder(access.isInside, [&] {
      SmallVector<Values> columns(outputs.size());
      for (int64_t neighbour = 0; neighbour < layout.vector; ++neighbour) {
        const RowBody &body = bodies[laneRowOf(neighbour)];
        for (auto [column, value] :
             llvm::zip_equal(columns, body.apply(elementOf(access, neighbour),
                                                 numberOf(access, neighbour))))
          column.push_back(value);
      }
      for (auto [number, column] : llvm::zip_equal(outputs, columns))
        storeAccess(number, column, access.index);
    });
}

void RowsEmitter::mapHeld(ArrayRef<RowBody> bodies) {
  Inputs late = allInputs();
  llvm::erase_if(late, [&](unsigned input) { return !isLate(input); });
  // Several units are loaded at a time.
  MutableArrayRef<Unit> rest = held;
  while (!rest.empty()) {
    MutableArrayRef<Unit> units =
        rest.take_front(std::min<size_t>(rest.size(), RowsLayout::unitsAtOnce));
    rest = rest.drop_front(units.size());
    for (Unit &unit : units)
      loadUnit(unit, late);
    exchangePieces(units, late);
    for (const Unit &unit : units)
      mapUnit(bodies, unit);
  }
}

void RowsEmitter::emitMap() {
  if (op.getOutputNumbers(/*alongRow=*/true).empty())
    return;
  SmallVector<RowBody, 0> bodies =
      createBodies(op.getMap(), /*hasAccumulator=*/false);
  if (!isStreamed) {
    mapHeld(bodies);
    return;
  }
  auto map = [&](const Segment &segment, ValueRange) {
    return forEachRound(
        segment, inputsOf(&op.getMap()), {}, /*isBackwards=*/true,
        [&](ArrayRef<Unit> units, Value, MutableArrayRef<Value>) {
          for (const Unit &unit : units)
            mapUnit(bodies, unit);
        });
  };
  if (segmentSlice)
    forEachSegment({}, map);
  else
    map(wholeRow(), {});
}

void RowsEmitter::enterRow(Value number, Value isThere) {
  unsigned axis = tile.family.combineAxis;
  position[axis] = math.add(firstRow, math.mul(number, schedule.rowsAtOnce()));
  hasRow = isThere;
  // A thread without rows reads the rows of other threads.
  if (isThere)
    position[axis] = math.minimum(
        position[axis], math.sub(tile.extents[axis], schedule.laneRows));
}

void RowsEmitter::loadRowValues() {
  rowValues.clear();
  for (int64_t row = 0; row < schedule.laneRows; ++row) {
    Values &values = rowValues.emplace_back(numInputs, Value());
    for (unsigned input = 0; input < numInputs; ++input) {
      if (isAlongRow(input))
        continue;
      Value operand = tile.operands[input];
      if (row > 0 && !variesByLaneRow(input))
        values[input] = rowValues.front()[input];
      else if (isa<MemRefType>(operand.getType()))
        values[input] =
            memref::LoadOp::create(b, operand, indicesOf(input, Value(), row));
      else
        values[input] = operand;
    }
  }
}

void RowsEmitter::emitRow() {
  results.clear();
  for (unsigned reduction = 0; reduction < op.getReductions().size();
       ++reduction)
    emitReduction(reduction);
  storeValues();
  emitMap();
}

/// Emits a loop over rows that stay in registers. Its state has the elements
/// that were loaded for the next row.
void RowsEmitter::emitHeldLoop() {
  Inputs common, own;
  for (unsigned input : allInputs())
    (isShared(input) ? common : own).push_back(input);
  // Visits the values that rows do not share.
  auto forEachValue = [&](llvm::function_ref<void(Value &)> visit) {
    for (Unit &unit : held)
      for (unsigned input : own) {
        if (isExchanged(input)) {
          llvm::for_each(unit.pieces[input], visit);
          continue;
        }
        for (Access &access : unit.accesses)
          visit(access.inputs[input]);
      }
    for (Values &values : rowValues)
      for (Value &value : values)
        if (value)
          visit(value);
  };
  auto isThere = [&](Value number) {
    return math.less(number, ownTrips ? ownTrips : blockTrips);
  };
  auto load = [&](Value number, Value hasNumber) {
    enterRow(number, hasNumber);
    held = createHeldUnits();
    for (Unit &unit : held)
      loadUnit(unit, own);
    loadRowValues();
    Values state;
    forEachValue([&](Value &value) { state.push_back(value); });
    return state;
  };
  Value zero = math.constant(0);
  Value hasFirst = ownTrips ? isThere(zero) : Value();
  enterRow(zero, hasFirst);
  SmallVector<Unit> shared = createHeldUnits();
  for (Unit &unit : shared)
    loadUnit(unit, common);
  exchangePieces(shared, common);
  Values first = load(zero, hasFirst);
  auto loop = scf::ForOp::create(b, zero, blockTrips, math.constant(1), first);
  OpBuilder::InsertionGuard guard(b);
  if (first.empty())
    b.setInsertionPoint(loop.getBody()->getTerminator());
  else
    b.setInsertionPointToStart(loop.getBody());
  Value number = loop.getInductionVar();
  Value next = math.add(number, 1);
  Values following = load(next, isThere(next));
  SmallVector<Unit> nextUnits = held;
  rowNumber = number;
  enterRow(number, ownTrips ? isThere(number) : Value());
  held = createHeldUnits();
  for (auto [unit, sharedUnit, nextUnit] :
       llvm::zip_equal(held, shared, nextUnits)) {
    for (auto [access, sharedAccess] :
         llvm::zip_equal(unit.accesses, sharedUnit.accesses))
      access.inputs = sharedAccess.inputs;
    unit.pieces = nextUnit.pieces;
  }
  auto *argument = loop.getRegionIterArgs().begin();
  forEachValue([&](Value &value) { value = *argument++; });
  exchangePieces(held, own);
  emitRow();
  rowNumber = Value();
  if (!first.empty())
    scf::YieldOp::create(b, following);
}

/// Emits a loop over rows that are read again for each pass.
void RowsEmitter::emitStreamedLoop() {
  auto loop =
      scf::ForOp::create(b, math.constant(0), blockTrips, math.constant(1));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(loop.getBody()->getTerminator());
  rowNumber = loop.getInductionVar();
  enterRow(rowNumber, ownTrips ? math.less(rowNumber, ownTrips) : Value());
  loadRowValues();
  emitRow();
  rowNumber = Value();
}

void RowsEmitter::emitRows() {
  if (schedule.rowLoop > 1)
    return isStreamed ? emitStreamedLoop() : emitHeldLoop();
  if (!isStreamed) {
    held = createHeldUnits();
    Inputs inputs = allInputs();
    llvm::erase_if(inputs, [&](unsigned input) { return isLate(input); });
    for (Unit &unit : held)
      loadUnit(unit, inputs);
    exchangePieces(held, inputs);
  }
  emitRow();
}

void RowsEmitter::emit() {
  int64_t rowLanes = schedule.rowLanes();
  warp = math.div(tile.threadId, rowLanes);
  Value inRows = math.rem(tile.threadId, rowLanes);
  rowGroup = math.div(inRows, schedule.lanes);
  lane = math.rem(inRows, schedule.lanes);
  if (layout.slices > 1) {
    slotSlice = math.rem(tile.slice, layout.slotSlices());
    if (layout.segmentSlices() > 1)
      segmentSlice = math.div(tile.slice, layout.slotSlices());
  }
  warpOfAll = slotSlice
                  ? math.add(math.mul(warp, layout.slotSlices()), slotSlice)
                  : warp;
  end = tile.extents[layout.rowAxis];
  position.assign(workload.axes.size(), Value());
  position[grid.rowAxis()] = tile.rowOffset;
  if (std::optional<unsigned> columns = grid.columnAxis())
    position[*columns] = tile.columnOffset;
  unsigned axis = tile.family.combineAxis;
  Value blockFirst = position[axis], rowCount = tile.extents[axis];
  firstRow = math.add(blockFirst, math.mul(rowGroup, schedule.laneRows));
  if (schedule.rowLoop > 1) {
    blockTrips = math.constant(schedule.rowLoop);
    // Counts the rows from `first` to the end, `rowsAtOnce` apart.
    auto tripsFrom = [&](Value first) {
      int64_t step = schedule.rowsAtOnce();
      Value beyond = math.add(rowCount, step - 1);
      Value left =
          arith::SubIOp::create(b, beyond, math.minimum(first, beyond));
      return math.minimum(math.div(left, step), blockTrips);
    };
    if (!tile.exact[axis]) {
      ownTrips = tripsFrom(firstRow);
      blockTrips = tripsFrom(blockFirst);
    }
  } else {
    enterRow(math.constant(0),
             tile.exact[axis] ? Value() : math.less(firstRow, rowCount));
    loadRowValues();
  }
  int64_t length =
      ukernel::OperatorOpInterface(op).getStaticExtents()[layout.rowAxis];
  int64_t heldElements = layout.heldElements();
  if (std::optional<uint64_t> phase = op.getPhase()) {
    emitPhase(*phase);
    return;
  }
  if (schedule.heldUnits == 0 || !ShapedType::isDynamic(length)) {
    isStreamed = schedule.heldUnits == 0 || length > heldElements;
    emitRows();
    return;
  }
  Value isHeld =
      math.less(tile.extents[layout.rowAxis], math.constant(heldElements + 1));
  auto ifOp = scf::IfOp::create(b, isHeld, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  isStreamed = false;
  emitRows();
  b.setInsertionPointToStart(ifOp.elseBlock());
  isStreamed = true;
  emitRows();
}

//===----------------------------------------------------------------------===//
// Path
//===----------------------------------------------------------------------===//

namespace {
class RowsPath final : public CodegenPath {
public:
  const CodegenModel &model() const override { return rowsModel(); }

  LogicalResult emitBlock(ImplicitLocOpBuilder &builder,
                          BlockTiles &tiles) const override {
    RowsKernel kernel(tiles.block);
    return emitTiles(
        builder, tiles, [&](const TileEmission &tile) -> LogicalResult {
          // The kernel may come from anywhere.
          auto op = dyn_cast<ukernel::RowReductionOp>(*tile.op);
          if (!op)
            return tile.op->emitOpError(
                "expected a 'ukernel.row_reduction' for this path");
          if (op.getPhase().has_value() != (tile.family.reduceSplit > 1))
            return op.emitOpError(
                "expected a phase if, and only if, rows are shared "
                "out in slices");
          RowsEmitter(builder, kernel, tile, op).emit();
          return success();
        });
  }
};

} // namespace

namespace ftuner {
FTUNER_DEFINE_CODEGEN_PATH(rows, RowsPath)
} // namespace ftuner
