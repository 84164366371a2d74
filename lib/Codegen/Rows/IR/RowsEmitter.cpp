//===- RowsEmitter.cpp - Warps that reduce rows ---------------------------===//
#include "FTuner/Codegen/IR/CodegenPath.h"
#include "FTuner/Codegen/IR/IndexMath.h"
#include "FTuner/Codegen/IR/ScheduleAttr.h"
#include "FTuner/Codegen/IR/WarpShuffle.h"
#include "FTuner/Codegen/Rows/RowsSchedule.h"
#include "FTuner/Dialect/UKernel/Bridge/OperatorWorkload.h"
#include "FTuner/Dialect/UKernel/Utils/ElementBytes.h"
#include "FTuner/Dialect/UKernel/Utils/PromotedFloats.h"
#include "FTuner/Schedule/Grid.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace ftuner;

namespace {

/// A region of scalars some of whose arguments are the same for a whole row:
/// what depends on these alone is computed once, where the object is made.
class RowBody {
public:
  /// `known`: a value for each argument, null where elements differ.
  /// `position`: of the row, by axis; null along it.
  RowBody(ImplicitLocOpBuilder &b, Region &region, ValueRange known,
          ValueRange position)
      : b(&b), body(&region.front()) {
    for (auto [argument, value] : llvm::zip_equal(body->getArguments(), known))
      if (value)
        invariants.map(argument, value);
    for (Operation &op : body->without_terminator()) {
      auto index = dyn_cast<ukernel::IndexOp>(op);
      if (Value own = index ? position[index.getAxis()] : Value()) {
        invariants.map(index.getResult(), own);
        continue;
      }
      if (isInvariant(
              op, [&](Value operand) { return invariants.contains(operand); }))
        clonePromoted(b, op, invariants);
      else
        rest.push_back(&op);
    }
  }

  /// Whether it may be computed of any elements, such as the zeros beyond the
  /// end of a row.
  bool isSpeculatable() const {
    return llvm::all_of(rest, [](Operation *op) { return isPure(op); });
  }
  /// What the region yields of one element: `arguments` are those that were not
  /// known, in their order; `element`: its number in the row.
  Values apply(ValueRange arguments, Value element) const {
    IRMapping mapping = invariants;
    auto next = arguments.begin();
    for (BlockArgument argument : body->getArguments())
      if (!mapping.contains(argument))
        mapping.map(argument, *next++);
    for (Operation *op : rest) {
      if (auto index = dyn_cast<ukernel::IndexOp>(op))
        mapping.map(index.getResult(), element);
      else
        clonePromoted(*b, *op, mapping);
    }
    return llvm::map_to_vector(
        body->getTerminator()->getOperands(), [&](Value value) {
          return rounded(*b, b->getLoc(), mapping.lookupOrDefault(value),
                         value.getType());
        });
  }

private:
  ImplicitLocOpBuilder *b;
  Block *body;
  IRMapping invariants;
  SmallVector<Operation *> rest;
};

/// Numbers of each of a lane's rows; none, not even a first one: the neutral
/// element in all.
using RowNumbers = Values;

class RowsEmitter {
public:
  RowsEmitter(ImplicitLocOpBuilder &b, const TileEmission &tile,
              ukernel::RowReductionOp op)
      : b(b), math(b), tile(tile), op(op), workload(*tile.described),
        rows(workload), schedule(RowsSchedule::of(tile.family.schedule)),
        layout(workload, schedule, tile.family.reduceSplit),
        grid(gridOf(tile.family)), numInputs(op.getInputs().size()) {}
  void emit();

private:
  /// One access to elements that are neighbours in memory: of the row, or of a
  /// lane's rows.
  struct Access {
    /// Of the first element along the row.
    Value index;
    /// Whether it lies in the tensors; null if it does. Accesses do not reach
    /// beyond the end of a row that they begin in.
    Value isInside;
    /// Of each input along the row, a vector of its elements, or one that all
    /// of a lane's rows share; null for others.
    Values inputs;
  };
  using Unit = SmallVector<Access, 1>;

  bool isAlongRow(unsigned number) {
    return llvm::is_contained(workload.operands[number].axes, layout.rowAxis);
  }
  /// Whether an operand is the same for rows one after the other.
  bool isShared(unsigned number) {
    return !llvm::is_contained(workload.operands[number].axes,
                               tile.family.combineAxis);
  }
  /// Whether an operand has an element for each of a lane's rows.
  bool isOfLaneRows(unsigned number) {
    return layout.isAcross() &&
           llvm::is_contained(workload.operands[number].axes, layout.laneAxis);
  }
  /// Whether neighbours of an access differ in the operand.
  bool isOfAccess(unsigned number) {
    return layout.isAcross() ? isOfLaneRows(number) : isAlongRow(number);
  }
  Values indicesOf(unsigned number, Value element, int64_t laneRow = 0);
  /// Of a neighbour in an access that begins at `index`.
  Values indicesInAccess(unsigned number, Value index, int64_t neighbour);
  bool isVector(unsigned number, Type element);
  Value loadAccess(unsigned input, Value index);
  void storeAccess(unsigned output, const Values &elements, Value index);

  /// The first element of a lane's unit in a round, which begins at `first`.
  Value unitIndex(Value first, int64_t unit);
  /// Its accesses, of which nothing is loaded.
  Unit unitAt(Value index, bool isWhole);
  /// Loads those inputs of a unit, or the others, that rows one after the other
  /// have in common, or all.
  void loadUnit(Unit &unit, std::optional<bool> areShared = std::nullopt);
  /// The elements of the inputs of one neighbour in an access.
  Values elementOf(const Access &access, int64_t neighbour);
  /// The neighbour's number in its row.
  Value numberOf(const Access &access, int64_t neighbour) {
    return layout.isAcross() ? access.index : math.add(access.index, neighbour);
  }
  /// The position of one of a lane's rows, by axis.
  Values positionOf(int64_t laneRow);
  int64_t laneRowOf(int64_t neighbour) {
    return layout.isAcross() ? neighbour : 0;
  }

  /// For each of a lane's rows, what is the same for the whole row.
  SmallVector<RowBody, 0> bodiesOf(Region &region, bool hasAccumulator);
  Value neutralOf(unsigned reduction);
  Value combine(unsigned reduction, Value lhs, Value rhs);
  RowNumbers combine(unsigned reduction, const RowNumbers &lhs,
                     const RowNumbers &rhs);
  RowNumbers reduceUnit(unsigned reduction, ArrayRef<RowBody> bodies,
                        const Unit &unit);
  void reduceAccess(ArrayRef<RowBody> bodies, const Access &access,
                    RowNumbers &numbers);
  /// One number of the row's of many that a lane has, `distance` apart.
  RowNumbers reduceTree(unsigned reduction,
                        MutableArrayRef<RowNumbers> numbers);
  Value reduceLanes(unsigned reduction, Value value, int64_t numLanes,
                    int64_t leastDistance = 1);
  /// Along memory, the number of a chunk.
  RowNumbers reduceChunk(unsigned reduction, ArrayRef<RowBody> bodies,
                         ArrayRef<Unit> units);

  Value exchangeMemory(unsigned reduction, Type type, int64_t numbers);
  /// Those that are held, of which nothing is loaded.
  SmallVector<Unit> unitsOfRow();
  RowNumbers reduceHeld(unsigned reduction, ArrayRef<RowBody> bodies);
  RowNumbers reduceStreamed(unsigned reduction, ArrayRef<RowBody> bodies);
  RowNumbers mergeSlots(unsigned reduction, ArrayRef<Value> slots);
  void foldRound(unsigned reduction, ArrayRef<RowBody> bodies,
                 ArrayRef<Unit> units, Value number,
                 MutableArrayRef<Value> slots);
  Value exchangeSlots(unsigned reduction, ArrayRef<Value> slots);
  RowNumbers exchangeAcross(unsigned reduction, const RowNumbers &own);
  void emitReduction(unsigned reduction);
  // Slices.
  Values stateIndices(unsigned reduction, Value slice, int64_t laneRow);
  void storeState(unsigned reduction, const RowNumbers &numbers);
  RowNumbers mergeState(unsigned reduction);
  void emitPhase(unsigned phase);
  void storeValues();
  void mapUnit(ArrayRef<RowBody> bodies, const Unit &unit);
  void emitMap();
  /// Makes a row the current one: that of this number among those that the
  /// lanes have one after the other. `isThere`: null if all threads have it.
  void enterRow(Value number, Value isThere);
  void loadRowValues();
  void emitRow();
  void emitHeldLoop();
  void emitStreamedLoop();
  void emitRows();

  /// Of the units of one round.
  SmallVector<Unit> loadRound(Value first, bool isWhole);
  /// Emits the loop over rounds that are not held, some of them at once, with
  /// this state. `isBackwards`: the last ones first, which are the likeliest to
  /// be in a cache.
  Values
  forEachRound(const Values &state, bool isBackwards,
               llvm::function_ref<void(ArrayRef<Unit> units, Value number,
                                       MutableArrayRef<Value> state)>
                   body);

  ImplicitLocOpBuilder &b;
  IndexMath math;
  const TileEmission &tile;
  ukernel::RowReductionOp op;
  const Workload &workload;
  RowReductionView rows;
  RowsSchedule schedule;
  RowsLayout layout;
  Grid grid;
  unsigned numInputs;
  /// Of the thread: the warp among those of its rows in the block, the number
  /// of its rows in those of the block, and the lane among those of its rows.
  Value warp, rowGroup, lane;
  /// The warp among those of its rows in all slices.
  Value warpOfAll;
  /// By axis; null for batch axes and along the row. Along memory's axis, of
  /// the first of a lane's rows.
  Values position;
  /// Of the first of the rows that the lanes have one after the other; the
  /// current one's number among these, null where there is one.
  Value firstRow, rowNumber;
  /// How many of these the block has, and the thread; null: all of them.
  Value blockTrips, ownTrips;
  /// Whether the thread has a row; null if all have.
  Value hasRow;
  /// Of each of a lane's rows, of each input that does not lie along the row,
  /// its element.
  SmallVector<Values, 1> ofRow;
  SmallVector<Unit> held;
  /// Whether each pass reads the row again, since more than what could be held
  /// may follow.
  bool isStreamed = true;
  /// Of each reduction so far, the numbers of a lane's rows.
  SmallVector<RowNumbers> results;
};

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
// Reductions
//===----------------------------------------------------------------------===//

SmallVector<RowBody, 0> RowsEmitter::bodiesOf(Region &region,
                                              bool hasAccumulator) {
  SmallVector<RowBody, 0> bodies;
  for (int64_t row = 0; row < schedule.laneRows; ++row) {
    Values known = ofRow[row];
    for (const RowNumbers &numbers : results)
      known.push_back(numbers[row]);
    if (hasAccumulator)
      known.push_back(Value());
    bodies.emplace_back(b, region, known, positionOf(row));
  }
  return bodies;
}

Value RowsEmitter::neutralOf(unsigned reduction) {
  return arith::ConstantOp::create(
      b, *arith::getNeutralElement(op.getCombiningOp(reduction)));
}

Value RowsEmitter::combine(unsigned reduction, Value lhs, Value rhs) {
  Operation *combined = b.clone(*op.getCombiningOp(reduction));
  combined->setOperands({lhs, rhs});
  return combined->getResult(0);
}

RowNumbers RowsEmitter::combine(unsigned reduction, const RowNumbers &lhs,
                                const RowNumbers &rhs) {
  if (lhs.empty())
    return rhs;
  if (rhs.empty())
    return lhs;
  return llvm::map_to_vector(llvm::zip_equal(lhs, rhs), [&](auto pair) {
    return combine(reduction, std::get<0>(pair), std::get<1>(pair));
  });
}

void RowsEmitter::reduceAccess(ArrayRef<RowBody> bodies, const Access &access,
                               RowNumbers &numbers) {
  auto compute = [&] {
    RowNumbers next = numbers;
    for (int64_t neighbour = 0; neighbour < layout.vector; ++neighbour) {
      int64_t row = laneRowOf(neighbour);
      Values arguments = elementOf(access, neighbour);
      arguments.push_back(next[row]);
      next[row] =
          bodies[row].apply(arguments, numberOf(access, neighbour)).front();
    }
    return next;
  };
  if (!access.isInside) {
    numbers = compute();
    return;
  }
  if (bodies.front().isSpeculatable()) {
    for (auto [number, next] : llvm::zip_equal(numbers, compute()))
      number = arith::SelectOp::create(b, access.isInside, next, number);
    return;
  }
  auto ifOp = scf::IfOp::create(b, TypeRange(ValueRange(numbers)),
                                access.isInside, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  scf::YieldOp::create(b, compute());
  b.setInsertionPointToStart(ifOp.elseBlock());
  scf::YieldOp::create(b, numbers);
  numbers.assign(ifOp.result_begin(), ifOp.result_end());
}

RowNumbers RowsEmitter::reduceUnit(unsigned reduction, ArrayRef<RowBody> bodies,
                                   const Unit &unit) {
  RowNumbers numbers(bodies.size(), neutralOf(reduction));
  for (const Access &access : unit)
    reduceAccess(bodies, access, numbers);
  return numbers;
}

RowNumbers RowsEmitter::reduceTree(unsigned reduction,
                                   MutableArrayRef<RowNumbers> numbers) {
  for (size_t distance = numbers.size() / 2; distance > 0; distance /= 2)
    for (size_t i = 0; i < distance; ++i)
      numbers[i] = combine(reduction, numbers[i], numbers[i + distance]);
  return numbers.front();
}

/// Operations that update accumulators commute, so all lanes get the same bits.
Value RowsEmitter::reduceLanes(unsigned reduction, Value value,
                               int64_t numLanes, int64_t leastDistance) {
  for (int64_t distance = numLanes / 2; distance >= leastDistance;
       distance /= 2)
    value = combine(reduction, value, shuffleXor(b, value, distance));
  return value;
}

RowNumbers RowsEmitter::reduceChunk(unsigned reduction,
                                    ArrayRef<RowBody> bodies,
                                    ArrayRef<Unit> units) {
  // Lanes' numbers of places at a distance of at least `lanes` first.
  SmallVector<RowNumbers> places(layout.roundUnits());
  for (auto [place, unit] : llvm::zip(places, units))
    place = reduceUnit(reduction, bodies, unit);
  Value number = reduceTree(reduction, places).front();
  return {reduceLanes(reduction, number, schedule.lanes)};
}

/// Each reduction has its own numbers, so no barrier need keep one from
/// overwriting what is read for another. A single one has two of them, for rows
/// in turn.
Value RowsEmitter::exchangeMemory(unsigned reduction, Type type,
                                  int64_t numbers) {
  auto workgroup =
      gpu::AddressSpaceAttr::get(b.getContext(), gpu::AddressSpace::Workgroup);
  auto view =
      MemRefType::get({numbers}, type, MemRefLayoutAttrInterface(), workgroup);
  Value offset = math.constant(layout.exchangeBytes() * reduction);
  if (rowNumber && op.getReductions().size() == 1)
    offset = math.mul(math.rem(rowNumber, 2), layout.exchangeBytes());
  return memref::ViewOp::create(b, view, tile.sharedMemory, offset,
                                ValueRange());
}

/// Along memory, one number of the slots that lanes of a row's warps have: slot
/// s is lane s's of warp s mod `warps`.
Value RowsEmitter::exchangeSlots(unsigned reduction, ArrayRef<Value> slots) {
  constexpr int64_t numSlots = RowsLayout::numPlaces;
  if (schedule.warps == 1) {
    SmallVector<RowNumbers> numbers;
    for (Value slot : slots)
      numbers.push_back({slot});
    return reduceLanes(reduction, reduceTree(reduction, numbers).front(),
                       schedule.lanes, layout.slices);
  }
  Value own = slots.front();
  Value memory = exchangeMemory(reduction, own.getType(),
                                schedule.rowsAtOnce() * numSlots);
  Value first = math.mul(rowGroup, numSlots);
  Value index = math.add(first, lane);
  Value isOwn =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                            math.rem(lane, layout.allWarps()), warpOfAll);
  auto ifOp = scf::IfOp::create(b, isOwn, /*withElseRegion=*/false);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(ifOp.thenBlock());
    memref::StoreOp::create(b, own, memory, index);
  }
  gpu::BarrierOp::create(b);
  // Of the slots of others in the lane's place the slice's own one.
  if (layout.slices > 1)
    index = math.add(
        first, math.add(math.mul(math.div(lane, layout.slices), layout.slices),
                        tile.slice));
  return reduceLanes(reduction, memref::LoadOp::create(b, memory, index),
                     numSlots, layout.slices);
}

/// Across memory, one number of those of the warps, for each of a lane's rows.
RowNumbers RowsEmitter::exchangeAcross(unsigned reduction,
                                       const RowNumbers &own) {
  if (schedule.warps == 1)
    return own;
  Value memory = exchangeMemory(reduction, own.front().getType(),
                                schedule.rowsAtOnce() * schedule.warps);
  // Of one row of each lane at a time, which are neighbours then.
  auto indexOf = [&](Value ofWarp, int64_t row) {
    Value first = math.mul(ofWarp, schedule.rowsAtOnce());
    return math.add(math.add(first, row * schedule.rowLanes()), rowGroup);
  };
  for (auto [row, number] : llvm::enumerate(own))
    memref::StoreOp::create(b, number, memory,
                            indexOf(warp, static_cast<int64_t>(row)));
  gpu::BarrierOp::create(b);
  SmallVector<RowNumbers> numbers(schedule.warps);
  for (int64_t other = 0; other < schedule.warps; ++other)
    for (int64_t row = 0; row < schedule.laneRows; ++row)
      numbers[other].push_back(memref::LoadOp::create(
          b, memory, indexOf(math.constant(other), row)));
  return reduceTree(reduction, numbers);
}

SmallVector<RowsEmitter::Unit> RowsEmitter::unitsOfRow() {
  int64_t length =
      ukernel::OperatorOpInterface(op).getStaticExtents()[layout.rowAxis];
  int64_t roundUnits = layout.roundUnits();
  SmallVector<Unit> units;
  for (int64_t unit = 0; unit < schedule.heldUnits; ++unit) {
    int64_t round = unit / roundUnits;
    Value first = math.constant(round * layout.round());
    // Rows may end before a unit that is held.
    bool isWhole = !ShapedType::isDynamic(length) &&
                   (round + 1) * layout.round() <= length;
    units.push_back(unitAt(unitIndex(first, unit % roundUnits), isWhole));
  }
  return units;
}

/// Of rows that are held whole. What the number of a slot or place is, the
/// layout tells: none of it depends on the row's length at run time.
RowNumbers RowsEmitter::reduceHeld(unsigned reduction,
                                   ArrayRef<RowBody> bodies) {
  int64_t roundUnits = layout.roundUnits();
  SmallVector<RowNumbers> slots(layout.warpSlots());
  if (layout.isAcross()) {
    for (auto [number, unit] : llvm::enumerate(held)) {
      RowNumbers &slot = slots[number % roundUnits];
      slot = combine(reduction, slot, reduceUnit(reduction, bodies, unit));
    }
    return exchangeAcross(reduction, reduceTree(reduction, slots));
  }
  for (size_t first = 0, round = 0; first < held.size();
       first += roundUnits, ++round) {
    RowNumbers &slot = slots[round % slots.size()];
    ArrayRef<Unit> units = ArrayRef(held).drop_front(first);
    slot =
        combine(reduction, slot,
                reduceChunk(reduction, bodies, units.take_front(roundUnits)));
  }
  if (schedule.warps == 1)
    return reduceTree(reduction, slots);
  // All lanes of a warp have the numbers of its slots: lane s takes that of
  // slot s.
  Value own = neutralOf(reduction);
  Value number = math.div(lane, schedule.warps);
  for (auto [slot, numbers] : llvm::enumerate(slots)) {
    if (numbers.empty())
      continue;
    Value isOwn =
        arith::CmpIOp::create(b, arith::CmpIPredicate::eq, number,
                              math.constant(static_cast<int64_t>(slot)));
    own = arith::SelectOp::create(b, isOwn, numbers.front(), own);
  }
  return {exchangeSlots(reduction, own)};
}

/// A round, which begins at element `start` of the row, into the slots of a
/// lane: along memory slot s is lane s mod `lanes`'s, across memory the warp's,
/// of all of a lane's rows.
void RowsEmitter::foldRound(unsigned reduction, ArrayRef<RowBody> bodies,
                            ArrayRef<Unit> units, Value start,
                            MutableArrayRef<Value> slots) {
  if (layout.isAcross()) {
    for (auto [number, unit] : llvm::enumerate(units)) {
      MutableArrayRef<Value> slot = slots.slice(
          number % layout.warpSlots() * schedule.laneRows, schedule.laneRows);
      RowNumbers numbers = combine(reduction, RowNumbers(slot),
                                   reduceUnit(reduction, bodies, unit));
      llvm::copy(numbers, slot.begin());
    }
    return;
  }
  Value chunk = reduceChunk(reduction, bodies, units).front();
  Value number =
      math.add(math.div(start, RowsLayout::numPlaces * layout.unit), warpOfAll);
  Value mine = math.rem(number, RowsLayout::numPlaces);
  for (auto [place, slot] : llvm::enumerate(slots)) {
    Value own = math.add(lane, static_cast<int64_t>(place) * schedule.lanes);
    Value isOwn = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, mine, own);
    slot = arith::SelectOp::create(b, isOwn, combine(reduction, slot, chunk),
                                   slot);
  }
}

RowNumbers RowsEmitter::reduceStreamed(unsigned reduction,
                                       ArrayRef<RowBody> bodies) {
  int64_t roundUnits = layout.roundUnits();
  Values slots(layout.isAcross() ? layout.warpSlots() * schedule.laneRows
                                 : roundUnits,
               neutralOf(reduction));
  slots = forEachRound(
      slots, /*isBackwards=*/false,
      [&](ArrayRef<Unit> units, Value start, MutableArrayRef<Value> state) {
        foldRound(reduction, bodies, units, start, state);
      });
  return mergeSlots(reduction, slots);
}

/// One number of those that a lane's slots have: of the row, or of the slice.
RowNumbers RowsEmitter::mergeSlots(unsigned reduction, ArrayRef<Value> slots) {
  if (!layout.isAcross())
    return {exchangeSlots(reduction, slots)};
  SmallVector<RowNumbers> numbers;
  for (size_t first = 0; first < slots.size(); first += schedule.laneRows)
    numbers.emplace_back(slots.slice(first, schedule.laneRows));
  return exchangeAcross(reduction, reduceTree(reduction, numbers));
}

void RowsEmitter::emitReduction(unsigned reduction) {
  SmallVector<RowBody, 0> bodies =
      bodiesOf(op.getReductions()[reduction], /*hasAccumulator=*/true);
  RowNumbers numbers = isStreamed ? reduceStreamed(reduction, bodies)
                                  : reduceHeld(reduction, bodies);
  if (numbers.empty())
    numbers.assign(schedule.laneRows, neutralOf(reduction));
  results.push_back(numbers);
}

//===----------------------------------------------------------------------===//
// Slices
//===----------------------------------------------------------------------===//

/// Of a slice's number of one of a lane's rows.
Values RowsEmitter::stateIndices(unsigned reduction, Value slice,
                                 int64_t laneRow) {
  Values indices = indicesOf(op.getStateNumber(reduction), Value(), laneRow);
  indices.front() =
      math.add(indices.front(), math.mul(slice, tile.extents.front()));
  return indices;
}

void RowsEmitter::storeState(unsigned reduction, const RowNumbers &numbers) {
  // Along memory the lanes of the slice's slots have its number.
  Value own =
      layout.isAcross() ? warp : math.add(math.mul(warp, layout.slots()), lane);
  Value isOwn =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, own,
                            layout.isAcross() ? math.constant(0) : tile.slice);
  if (hasRow)
    isOwn = arith::AndIOp::create(b, hasRow, isOwn);
  auto ifOp = scf::IfOp::create(b, isOwn, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  for (auto [row, number] : llvm::enumerate(numbers))
    memref::StoreOp::create(
        b, number, tile.operands[op.getStateNumber(reduction)],
        stateIndices(reduction, tile.slice, static_cast<int64_t>(row)));
}

RowNumbers RowsEmitter::mergeState(unsigned reduction) {
  Value state = tile.operands[op.getStateNumber(reduction)];
  auto load = [&](Value slice, int64_t row) -> Value {
    return memref::LoadOp::create(b, state,
                                  stateIndices(reduction, slice, row));
  };
  if (!layout.isAcross())
    return {reduceLanes(reduction, load(math.rem(lane, layout.slices), 0),
                        layout.slices)};
  SmallVector<RowNumbers> numbers(layout.slices);
  for (int64_t slice = 0; slice < layout.slices; ++slice)
    for (int64_t row = 0; row < schedule.laneRows; ++row)
      numbers[slice].push_back(load(math.constant(slice), row));
  return reduceTree(reduction, numbers);
}

/// One pass for all reductions of a phase, or what follows the last one.
void RowsEmitter::emitPhase(unsigned phase) {
  SmallVector<unsigned> own;
  SmallVector<SmallVector<RowBody, 0>> bodies;
  Values slots;
  auto perReduction = static_cast<size_t>(
      layout.isAcross() ? layout.warpSlots() * schedule.laneRows
                        : layout.roundUnits());
  for (auto [reduction, of] : llvm::enumerate(op.getPhases())) {
    if (of < phase) {
      results.push_back(mergeState(reduction));
      continue;
    }
    if (of == phase) {
      own.push_back(reduction);
      bodies.push_back(bodiesOf(op.getReductions()[reduction],
                                /*hasAccumulator=*/true));
      slots.append(perReduction, neutralOf(reduction));
    }
    // Nothing in this phase asks for it.
    results.emplace_back(schedule.laneRows, neutralOf(reduction));
  }
  if (own.empty()) {
    storeValues();
    emitMap();
    return;
  }
  slots = forEachRound(
      slots, /*isBackwards=*/false,
      [&](ArrayRef<Unit> units, Value start, MutableArrayRef<Value> state) {
        for (auto [number, reduction] : llvm::enumerate(own))
          foldRound(reduction, bodies[number], units, start,
                    state.slice(number * perReduction, perReduction));
      });
  for (auto [number, reduction] : llvm::enumerate(own))
    storeState(reduction,
               mergeSlots(reduction, ArrayRef(slots).slice(
                                         number * perReduction, perReduction)));
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
