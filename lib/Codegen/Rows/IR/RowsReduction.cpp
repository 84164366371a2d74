//===- RowsReduction.cpp - Reductions of rows -----------------------------===//
#include "FTuner/Codegen/IR/WarpShuffle.h"
#include "RowsEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace ftuner;

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

SmallVector<RowBody, 0> RowsEmitter::createBodies(Region &region,
                                                  bool hasAccumulator) {
  SmallVector<RowBody, 0> bodies;
  for (int64_t row = 0; row < schedule.laneRows; ++row) {
    Values known = rowValues[row];
    for (const RowNumbers &numbers : results)
      known.push_back(numbers[row]);
    if (hasAccumulator)
      known.push_back(Value());
    bodies.emplace_back(b, region, known, positionOf(row));
  }
  return bodies;
}

Value RowsEmitter::createNeutral(unsigned reduction) {
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
      Value combined =
          bodies[row].apply(arguments, numberOf(access, neighbour)).front();
      if (Value isInside = isNeighbourInside(access.index, neighbour))
        combined = arith::SelectOp::create(b, isInside, combined, next[row]);
      next[row] = combined;
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
  RowNumbers numbers(bodies.size(), createNeutral(reduction));
  for (const Access &access : unit.accesses)
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

/// Reduces a number of each lane. The operations that update accumulators
/// commute, so all lanes get the same bits.
Value RowsEmitter::reduceLanes(unsigned reduction, Value value,
                               int64_t numLanes, int64_t minDistance) {
  for (int64_t distance = numLanes / 2; distance >= minDistance; distance /= 2)
    value = combine(reduction, value, shuffleXor(b, value, distance));
  return value;
}

RowNumbers RowsEmitter::reduceChunk(unsigned reduction,
                                    ArrayRef<RowBody> bodies,
                                    ArrayRef<Unit> units) {
  // A lane first combines its own numbers: their places are at least `lanes`
  // apart.
  SmallVector<RowNumbers> places(layout.roundUnits());
  for (auto [place, unit] : llvm::zip(places, units))
    place = reduceUnit(reduction, bodies, unit);
  Value number = reduceTree(reduction, places).front();
  return {reduceLanes(reduction, number, schedule.lanes)};
}

/// Returns shared memory for the numbers of a reduction. Each reduction has its
/// own, so no barrier between reductions is needed. A single reduction has two,
/// which rows use in turn.
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

/// Reduces the slots of a row's warps to one number, of rows along memory. Slot
/// s belongs to lane s of warp s mod `warps`.
Value RowsEmitter::exchangeSlots(unsigned reduction, ArrayRef<Value> slots) {
  constexpr int64_t numSlots = RowsLayout::numPlaces;
  if (schedule.warps == 1) {
    SmallVector<RowNumbers> numbers;
    for (Value slot : slots)
      numbers.push_back({slot});
    return reduceLanes(reduction, reduceTree(reduction, numbers).front(),
                       schedule.lanes, layout.slotSlices());
  }
  // The lower words of all numbers lie before the upper ones, so that a warp's
  // slots, which are some places apart, are in different banks.
  SmallVector<Value, 2> words = wordsOf(b, slots.front());
  int64_t numWords = schedule.rowsAtOnce() * numSlots;
  Value memory = exchangeMemory(reduction, words.front().getType(),
                                numWords * static_cast<int64_t>(words.size()));
  Value first = math.mul(rowGroup, numSlots);
  Value index = math.add(first, lane);
  Value isOwn =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                            math.rem(lane, layout.allWarps()), warpOfAll);
  auto ifOp = scf::IfOp::create(b, isOwn, /*withElseRegion=*/false);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(ifOp.thenBlock());
    for (auto [word, value] : llvm::enumerate(words))
      memref::StoreOp::create(
          b, value, memory,
          math.add(index, static_cast<int64_t>(word) * numWords));
  }
  gpu::BarrierOp::create(b);
  // A slice reads only its own slots.
  if (int64_t slices = layout.slotSlices(); slices > 1)
    index = math.add(
        first, math.add(math.mul(math.div(lane, slices), slices), slotSlice));
  for (auto [word, value] : llvm::enumerate(words))
    value = memref::LoadOp::create(
        b, memory, math.add(index, static_cast<int64_t>(word) * numWords));
  return reduceLanes(reduction, joinWords(b, words, slots.front().getType()),
                     numSlots, layout.slotSlices());
}

/// Reduces the numbers of a row's warps to one number for each of a lane's
/// rows, of rows across memory.
RowNumbers RowsEmitter::exchangeAcross(unsigned reduction,
                                       const RowNumbers &own) {
  if (schedule.warps == 1)
    return own;
  Value memory = exchangeMemory(reduction, own.front().getType(),
                                schedule.rowsAtOnce() * schedule.warps);
  // Lanes store one row at a time, so that they store neighbours.
  auto getIndex = [&](Value rowWarp, int64_t row) {
    Value first = math.mul(rowWarp, schedule.rowsAtOnce());
    return math.add(math.add(first, row * schedule.rowLanes()), rowGroup);
  };
  for (auto [row, number] : llvm::enumerate(own))
    memref::StoreOp::create(b, number, memory,
                            getIndex(warp, static_cast<int64_t>(row)));
  gpu::BarrierOp::create(b);
  SmallVector<RowNumbers> numbers(schedule.warps);
  for (int64_t other = 0; other < schedule.warps; ++other)
    for (int64_t row = 0; row < schedule.laneRows; ++row)
      numbers[other].push_back(memref::LoadOp::create(
          b, memory, getIndex(math.constant(other), row)));
  return reduceTree(reduction, numbers);
}

SmallVector<RowsEmitter::Unit> RowsEmitter::createHeldUnits() {
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
    units.push_back(createUnit(first, unit % roundUnits, isWhole));
  }
  return units;
}

/// Reduces rows that are held whole. The numbers of slots and places follow
/// from the layout: they do not depend on the row's length at run time.
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
  // All lanes of a warp have the numbers of its slots: lane s takes the number
  // of slot s.
  Value own = createNeutral(reduction);
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

/// Combines a round, which begins at element `start` of the row, with the slots
/// of a lane. Along memory, slot s belongs to lane s mod `lanes`; across
/// memory, a slot belongs to the warp and has a number for each of a lane's
/// rows.
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
               createNeutral(reduction));
  Values neutral = slots;
  slots = forEachSegment(slots, [&](const Segment &segment, ValueRange total) {
    Values own = forEachRound(
        segment, inputsOf(&op.getReductions()[reduction]), neutral,
        /*isBackwards=*/false,
        [&](ArrayRef<Unit> units, Value start, MutableArrayRef<Value> state) {
          foldRound(reduction, bodies, units, start, state);
        });
    return segment.number ? combine(reduction, Values(total), own) : own;
  });
  return mergeSlots(reduction, slots);
}

/// Reduces the numbers of a lane's slots to one number, for the row or the
/// slice.
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
      createBodies(op.getReductions()[reduction], /*hasAccumulator=*/true);
  RowNumbers numbers = isStreamed ? reduceStreamed(reduction, bodies)
                                  : reduceHeld(reduction, bodies);
  if (numbers.empty())
    numbers.assign(schedule.laneRows, createNeutral(reduction));
  results.push_back(numbers);
}

//===----------------------------------------------------------------------===//
// Slices
//===----------------------------------------------------------------------===//

/// Returns the indices of the number that a slice leaves for one of a lane's
/// rows.
Values RowsEmitter::stateIndices(unsigned reduction, Value slice,
                                 int64_t laneRow) {
  Values indices = indicesOf(op.getStateNumber(reduction), Value(), laneRow);
  indices.front() =
      math.add(indices.front(), math.mul(slice, tile.extents.front()));
  return indices;
}

void RowsEmitter::storeState(unsigned reduction, const RowNumbers &numbers) {
  // Along memory, the lanes of the slice's slots have its number.
  Value own =
      layout.isAcross() ? warp : math.add(math.mul(warp, layout.slots()), lane);
  Value isOwn =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, own,
                            layout.isAcross() ? math.constant(0) : slotSlice);
  isOwn = conjunction(hasRow, isOwn);
  auto ifOp = scf::IfOp::create(b, isOwn, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  for (auto [row, number] : llvm::enumerate(numbers))
    memref::StoreOp::create(
        b, number, tile.operands[op.getStateNumber(reduction)],
        stateIndices(reduction, slotSlice, static_cast<int64_t>(row)));
}

/// Stores the number that the warp's only slot has for a segment.
void RowsEmitter::storeSegment(unsigned reduction, Value segment,
                               Value number) {
  Value isOwn =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, lane, warpOfAll);
  isOwn = conjunction(hasRow, isOwn);
  emitUnder(isOwn, [&] {
    memref::StoreOp::create(
        b, number, tile.operands[op.getStateNumber(reduction)],
        stateIndices(reduction, stateNumber(segment, warpOfAll), 0));
  });
}

/// Merges segments: each lane has a slot, whose numbers it loads for all
/// segments at once and reduces in turn.
RowNumbers RowsEmitter::mergeSegments(unsigned reduction) {
  Value numSegments = computeSegments().second,
        neutral = createNeutral(reduction);
  Values numbers;
  for (int64_t number = 0; number < RowsLayout::numSegments; ++number) {
    Value segment = math.constant(number);
    Values loaded = orElse(math.less(segment, numSegments), neutral, [&] {
      return Values{memref::LoadOp::create(
          b, tile.operands[op.getStateNumber(reduction)],
          stateIndices(reduction, stateNumber(segment, lane), 0))};
    });
    numbers.push_back(loaded.front());
  }
  Value slot = neutral;
  for (Value number : numbers)
    slot = combine(reduction, slot, number);
  return {reduceLanes(reduction, slot, RowsLayout::numPlaces)};
}

RowNumbers RowsEmitter::mergeState(unsigned reduction) {
  if (segmentSlice)
    return mergeSegments(reduction);
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

/// Emits one pass for all reductions of a phase, or the outputs after the last
/// phase.
void RowsEmitter::emitPhase(unsigned phase) {
  SmallVector<unsigned> own;
  SmallVector<Region *> regions;
  SmallVector<SmallVector<RowBody, 0>> bodies;
  Values slots;
  auto perReduction = static_cast<size_t>(
      layout.isAcross() ? layout.warpSlots() * schedule.laneRows
                        : layout.roundUnits());
  for (auto [reduction, reductionPhase] : llvm::enumerate(op.getPhases())) {
    if (reductionPhase < phase) {
      results.push_back(mergeState(reduction));
      continue;
    }
    if (reductionPhase == phase) {
      own.push_back(reduction);
      regions.push_back(&op.getReductions()[reduction]);
      bodies.push_back(createBodies(op.getReductions()[reduction],
                                    /*hasAccumulator=*/true));
      slots.append(perReduction, createNeutral(reduction));
    }
    // Nothing in this phase reads the result.
    results.emplace_back(schedule.laneRows, createNeutral(reduction));
  }
  if (own.empty()) {
    storeValues();
    emitMap();
    return;
  }
  Values neutral = slots;
  auto partOf = [&](ValueRange all, size_t number) {
    return Values(all.slice(number * perReduction, perReduction));
  };
  slots = forEachSegment(slots, [&](const Segment &segment, ValueRange total) {
    Values sums = forEachRound(
        segment, inputsOf(regions), neutral, /*isBackwards=*/false,
        [&](ArrayRef<Unit> units, Value start, MutableArrayRef<Value> state) {
          for (auto [number, reduction] : llvm::enumerate(own))
            foldRound(reduction, bodies[number], units, start,
                      state.slice(number * perReduction, perReduction));
        });
    Values next;
    for (auto [number, reduction] : llvm::enumerate(own)) {
      if (segmentSlice)
        storeSegment(reduction, segment.number, partOf(sums, number).front());
      Values sum = partOf(sums, number);
      llvm::append_range(
          next, segment.number ? combine(reduction, partOf(total, number), sum)
                               : sum);
    }
    return next;
  });
  if (segmentSlice)
    return;
  for (auto [number, reduction] : llvm::enumerate(own))
    storeState(reduction, mergeSlots(reduction, partOf(slots, number)));
}
