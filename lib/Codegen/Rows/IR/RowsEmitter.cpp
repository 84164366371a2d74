//===- RowsEmitter.cpp - Warps that reduce rows ---------------------------===//
#include "RowsEmitter.h"
#include "FTuner/Codegen/IR/ScheduleAttr.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace ftuner;

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
  return indicesOf(number, math.add(index, neighbour));
}

/// Booleans are bytes in memory, which vectors of them are not.
bool RowsEmitter::isVector(unsigned number, Type element) {
  return fillsBytes(element) && rows.isAlongLanes(workload.operands[number]);
}

Value RowsEmitter::loadAccess(unsigned input, Value index) {
  Value operand = tile.operands[input];
  Type element = getElementTypeOrSelf(operand.getType());
  if (!isOfAccess(input))
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
  for (auto [neighbour, element] : llvm::enumerate(elements))
    memref::StoreOp::create(
        b, element, operand,
        indicesInAccess(output, index, static_cast<int64_t>(neighbour)));
}

Value RowsEmitter::unitIndex(Value first, int64_t unit) {
  if (layout.isAcross())
    return math.add(math.add(first, unit * layout.allWarps()), warpOfAll);
  Value chunk =
      math.add(first, math.mul(warpOfAll, RowsLayout::numPlaces * layout.unit));
  return math.add(math.add(chunk, unit * schedule.lanes * layout.unit),
                  math.mul(lane, layout.unit));
}

RowsEmitter::Unit RowsEmitter::unitAt(Value index, bool isWhole) {
  Unit unit;
  for (int64_t number = 0; number < layout.accesses(); ++number) {
    Access &access = unit.emplace_back();
    access.index = math.add(index, number * layout.vector);
    access.isInside = hasRow;
    if (!isWhole) {
      Value isInRow = math.less(access.index, tile.extents[layout.rowAxis]);
      access.isInside =
          hasRow ? arith::AndIOp::create(b, hasRow, isInRow) : isInRow;
    }
    access.inputs.assign(numInputs, Value());
  }
  return unit;
}

void RowsEmitter::loadUnit(Unit &unit, std::optional<bool> areShared) {
  SmallVector<unsigned> numbers;
  SmallVector<Type> types;
  for (unsigned input = 0; input < numInputs; ++input) {
    if (!isAlongRow(input) || (areShared && isShared(input) != *areShared))
      continue;
    numbers.push_back(input);
    Type element = getElementTypeOrSelf(tile.operands[input].getType());
    types.push_back(isOfAccess(input)
                        ? VectorType::get({layout.vector}, element)
                        : element);
  }
  for (Access &access : unit) {
    auto load = [&] {
      return llvm::map_to_vector(numbers, [&](unsigned input) {
        return loadAccess(input, access.index);
      });
    };
    Values loaded;
    if (access.isInside && !numbers.empty()) {
      auto ifOp = scf::IfOp::create(b, types, access.isInside,
                                    /*withElseRegion=*/true);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(ifOp.thenBlock());
      scf::YieldOp::create(b, Values(load()));
      b.setInsertionPointToStart(ifOp.elseBlock());
      scf::YieldOp::create(b,
                           llvm::map_to_vector(types, [&](Type type) -> Value {
                             return arith::ConstantOp::create(
                                 b, cast<TypedAttr>(b.getZeroAttr(type)));
                           }));
      loaded.assign(ifOp.result_begin(), ifOp.result_end());
    } else {
      llvm::append_range(loaded, load());
    }
    for (auto [input, value] : llvm::zip_equal(numbers, loaded))
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
  for (Value value : access.inputs)
    if (value)
      elements.push_back(
          isa<VectorType>(value.getType())
              ? vector::ExtractOp::create(b, value, neighbour).getResult()
              : value);
  return elements;
}

SmallVector<RowsEmitter::Unit> RowsEmitter::loadRound(Value first,
                                                      bool isWhole) {
  SmallVector<Unit> units;
  for (int64_t unit = 0; unit < layout.roundUnits(); ++unit)
    loadUnit(units.emplace_back(unitAt(unitIndex(first, unit), isWhole)));
  return units;
}

Values RowsEmitter::forEachRound(
    const Values &state, bool isBackwards,
    llvm::function_ref<void(ArrayRef<Unit>, Value, MutableArrayRef<Value>)>
        body) {
  int64_t rounds =
      std::max<int64_t>(layout.streamedUnits() / layout.roundUnits(), 1);
  int64_t step = rounds * layout.roundOfAll();
  Value end = tile.extents[layout.rowAxis];
  std::optional<int64_t> length = getConstantIntValue(end);
  bool isWhole = length && *length % step == 0;
  auto loop =
      scf::ForOp::create(b, math.constant(0), end, math.constant(step), state);
  OpBuilder::InsertionGuard guard(b);
  if (state.empty())
    b.setInsertionPoint(loop.getBody()->getTerminator());
  else
    b.setInsertionPointToStart(loop.getBody());
  Value begin = loop.getInductionVar();
  if (isBackwards) {
    // The loop's trips, the last one first.
    Value trips = math.div(math.add(end, step - 1), step);
    Value last = math.mul(math.sub(trips, 1), step);
    begin = arith::SubIOp::create(b, last, begin);
  }
  SmallVector<SmallVector<Unit>> loaded;
  Values numbers;
  for (int64_t round = 0; round < rounds; ++round) {
    Value start = math.add(begin, round * layout.roundOfAll());
    loaded.push_back(loadRound(start, isWhole));
    numbers.push_back(start);
  }
  Values inner(loop.getRegionIterArgs());
  for (auto [units, start] : llvm::zip_equal(loaded, numbers))
    body(units, start, inner);
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
  if (hasRow)
    isFirst = arith::AndIOp::create(b, hasRow, isFirst);
  auto ifOp = scf::IfOp::create(b, isFirst, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  for (int64_t row = 0; row < schedule.laneRows; ++row) {
    Values known;
    for (Value value : ofRow[row])
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
  for (const Access &access : unit) {
    SmallVector<Values> columns(outputs.size());
    OpBuilder::InsertionGuard guard(b);
    if (access.isInside) {
      auto ifOp =
          scf::IfOp::create(b, access.isInside, /*withElseRegion=*/false);
      b.setInsertionPointToStart(ifOp.thenBlock());
    }
    for (int64_t neighbour = 0; neighbour < layout.vector; ++neighbour) {
      const RowBody &body = bodies[laneRowOf(neighbour)];
      for (auto [column, value] :
           llvm::zip_equal(columns, body.apply(elementOf(access, neighbour),
                                               numberOf(access, neighbour))))
        column.push_back(value);
    }
    for (auto [number, column] : llvm::zip_equal(outputs, columns))
      storeAccess(number, column, access.index);
  }
}

void RowsEmitter::emitMap() {
  if (op.getOutputNumbers(/*alongRow=*/true).empty())
    return;
  SmallVector<RowBody, 0> bodies =
      bodiesOf(op.getMap(), /*hasAccumulator=*/false);
  if (!isStreamed) {
    for (const Unit &unit : held)
      mapUnit(bodies, unit);
    return;
  }
  forEachRound({}, /*isBackwards=*/true,
               [&](ArrayRef<Unit> units, Value, MutableArrayRef<Value>) {
                 for (const Unit &unit : units)
                   mapUnit(bodies, unit);
               });
}

void RowsEmitter::enterRow(Value number, Value isThere) {
  unsigned axis = tile.family.combineAxis;
  position[axis] = math.add(firstRow, math.mul(number, schedule.rowsAtOnce()));
  hasRow = isThere;
  // A thread without rows reads others'.
  if (isThere)
    position[axis] = math.minimum(
        position[axis], math.sub(tile.extents[axis], schedule.laneRows));
}

void RowsEmitter::loadRowValues() {
  ofRow.clear();
  for (int64_t row = 0; row < schedule.laneRows; ++row) {
    Values &values = ofRow.emplace_back(numInputs, Value());
    for (unsigned input = 0; input < numInputs; ++input) {
      if (isAlongRow(input))
        continue;
      Value operand = tile.operands[input];
      if (row > 0 && !isOfLaneRows(input))
        values[input] = ofRow.front()[input];
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

/// Rows one after the other, which stay in registers: the state of the loop is
/// what was loaded of the next one.
void RowsEmitter::emitHeldLoop() {
  // What rows do not share.
  auto forEachValue = [&](llvm::function_ref<void(Value &)> visit) {
    for (Unit &unit : held)
      for (Access &access : unit)
        for (unsigned input = 0; input < numInputs; ++input)
          if (isAlongRow(input) && !isShared(input))
            visit(access.inputs[input]);
    for (Values &values : ofRow)
      for (Value &value : values)
        if (value)
          visit(value);
  };
  auto isThere = [&](Value number) {
    return math.less(number, ownTrips ? ownTrips : blockTrips);
  };
  auto load = [&](Value number, Value hasNumber) {
    enterRow(number, hasNumber);
    held = unitsOfRow();
    for (Unit &unit : held)
      loadUnit(unit, /*areShared=*/false);
    loadRowValues();
    Values state;
    forEachValue([&](Value &value) { state.push_back(value); });
    return state;
  };
  Value zero = math.constant(0);
  Value hasFirst = ownTrips ? isThere(zero) : Value();
  enterRow(zero, hasFirst);
  SmallVector<Unit> shared = unitsOfRow();
  for (Unit &unit : shared)
    loadUnit(unit, /*areShared=*/true);
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
  rowNumber = number;
  enterRow(number, ownTrips ? isThere(number) : Value());
  held = unitsOfRow();
  for (auto [unit, sharedUnit] : llvm::zip_equal(held, shared))
    for (auto [access, sharedAccess] : llvm::zip_equal(unit, sharedUnit))
      access.inputs = sharedAccess.inputs;
  auto *argument = loop.getRegionIterArgs().begin();
  forEachValue([&](Value &value) { value = *argument++; });
  emitRow();
  rowNumber = Value();
  if (!first.empty())
    scf::YieldOp::create(b, following);
}

/// Rows one after the other, each of which is read again for each pass.
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
    held = unitsOfRow();
    for (Unit &unit : held)
      loadUnit(unit);
  }
  emitRow();
}

void RowsEmitter::emit() {
  int64_t rowLanes = schedule.rowLanes();
  warp = math.div(tile.threadId, rowLanes);
  Value inRows = math.rem(tile.threadId, rowLanes);
  rowGroup = math.div(inRows, schedule.lanes);
  lane = math.rem(inRows, schedule.lanes);
  warpOfAll =
      tile.slice ? math.add(math.mul(warp, layout.slices), tile.slice) : warp;
  position.assign(workload.axes.size(), Value());
  position[grid.rowAxis()] = tile.rowOffset;
  if (std::optional<unsigned> columns = grid.columnAxis())
    position[*columns] = tile.columnOffset;
  unsigned axis = tile.family.combineAxis;
  Value blockFirst = position[axis], end = tile.extents[axis];
  firstRow = math.add(blockFirst, math.mul(rowGroup, schedule.laneRows));
  if (schedule.rowLoop > 1) {
    blockTrips = math.constant(schedule.rowLoop);
    // Rows `rowsAtOnce` apart from the first one to the end, of which there may
    // be none.
    auto tripsFrom = [&](Value first) {
      int64_t step = schedule.rowsAtOnce();
      Value beyond = math.add(end, step - 1);
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
             tile.exact[axis] ? Value() : math.less(firstRow, end));
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

protected:
  LogicalResult emitTile(ImplicitLocOpBuilder &builder,
                         const TileEmission &tile) const override {
    auto op = dyn_cast<ukernel::RowReductionOp>(*tile.op);
    if (!op)
      return tile.op->emitOpError(
          "expected a 'ukernel.row_reduction' for this path");
    if (op.getPhase().has_value() != (tile.family.reduceSplit > 1))
      return op.emitOpError("expected a phase if, and only if, rows are shared "
                            "out in slices");
    RowsEmitter(builder, tile, op).emit();
    return success();
  }
};

} // namespace

namespace ftuner {
struct RowsAttr {
  static constexpr llvm::StringLiteral name = "ukernel.rows";
  static const CodegenModel &model() { return rowsModel(); }
};

void rowsRegister(DialectRegistry &registry) {
  registerSchedule<RowsAttr>(registry);
}

const CodegenPath &rowsPath() {
  static const RowsPath path;
  return path;
}
} // namespace ftuner
