//===- RowsEmitter.h - Emits one tile of the path of rows -------*- C++ -*-===//
//
// RowsEmitter.cpp has accesses, results and the order of a row's parts,
// RowsReduction.cpp has reductions: those of a lane, of lanes, of warps, and of
// blocks that share a row out. RowsExchange.cpp has accesses to single elements
// by lanes side by side.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_CODEGEN_ROWS_IR_ROWSEMITTER_H
#define FTUNER_LIB_CODEGEN_ROWS_IR_ROWSEMITTER_H

#include "FTuner/Codegen/IR/CodegenPath.h"
#include "FTuner/Codegen/IR/IndexMath.h"
#include "FTuner/Codegen/Rows/RowsSchedule.h"
#include "FTuner/Dialect/UKernel/Bridge/OperatorWorkload.h"
#include "FTuner/Dialect/UKernel/IR/Computations.h"
#include "FTuner/Dialect/UKernel/Utils/ElementBytes.h"
#include "FTuner/Dialect/UKernel/Utils/PromotedFloats.h"
#include "FTuner/Schedule/Grid.h"

#include "mlir/IR/IRMapping.h"

namespace ftuner {

/// A region of scalars some of whose arguments are the same for a whole row.
/// Operations that depend only on these are computed once, where the object is
/// created.
class RowBody {
public:
  /// `known` has a value for each argument, null if it differs by element.
  /// `position` is the position of the row by axis, null along the row.
  RowBody(mlir::ImplicitLocOpBuilder &b, mlir::Region &region,
          mlir::ValueRange known, mlir::ValueRange position)
      : b(&b), body(&region.front()) {
    for (auto [argument, value] : llvm::zip_equal(body->getArguments(), known))
      if (value)
        invariants.map(argument, value);
    for (mlir::Operation &op : body->without_terminator()) {
      auto index = mlir::dyn_cast<ukernel::IndexOp>(op);
      if (mlir::Value own = index ? position[index.getAxis()] : mlir::Value()) {
        invariants.map(index.getResult(), own);
        continue;
      }
      if (isInvariant(op, [&](mlir::Value operand) {
            return invariants.contains(operand);
          }))
        clonePromoted(b, op, invariants);
      else
        rest.push_back(&op);
    }
  }

  /// Returns true if the region may be computed for any elements, such as the
  /// zeros beyond the end of a row.
  bool isSpeculatable() const {
    return llvm::all_of(rest, [](mlir::Operation *op) { return isPure(op); });
  }
  /// Returns the values that the region yields for one element. `arguments` are
  /// the arguments that are not known, in their order, and `element` is the
  /// element's number in the row.
  Values apply(mlir::ValueRange arguments, mlir::Value element) const {
    mlir::IRMapping mapping = invariants;
    auto next = arguments.begin();
    for (mlir::BlockArgument argument : body->getArguments())
      if (!mapping.contains(argument))
        mapping.map(argument, *next++);
    for (mlir::Operation *op : rest) {
      if (auto index = mlir::dyn_cast<ukernel::IndexOp>(op))
        mapping.map(index.getResult(), element);
      else
        clonePromoted(*b, *op, mapping);
    }
    return llvm::map_to_vector(
        body->getTerminator()->getOperands(), [&](mlir::Value value) {
          return rounded(*b, b->getLoc(), mapping.lookupOrDefault(value),
                         value.getType());
        });
  }

private:
  mlir::ImplicitLocOpBuilder *b;
  mlir::Block *body;
  mlir::IRMapping invariants;
  llvm::SmallVector<mlir::Operation *> rest;
};

/// One number for each of a lane's rows. An empty list stands for the neutral
/// element in all rows.
using RowNumbers = Values;

/// Facts of a kernel that all of its tiles share.
struct RowsKernel {
  explicit RowsKernel(const TileEmission &block);

  const Workload &workload;
  RowReductionView rows;
  RowsSchedule schedule;
  RowsLayout layout;
  Grid grid;
  /// True if a row may end between the elements of an access: some operand has
  /// padded rows, or is accessed by single elements.
  bool endsWithinAccess;
};

/// Emits one tile of a kernel of rows.
class RowsEmitter {
public:
  RowsEmitter(mlir::ImplicitLocOpBuilder &b, const RowsKernel &kernel,
              const TileEmission &tile, ukernel::RowReductionOp op)
      : b(b), math(b), tile(tile), op(op), workload(kernel.workload),
        rows(kernel.rows), schedule(kernel.schedule), layout(kernel.layout),
        grid(kernel.grid), endsWithinAccess(kernel.endsWithinAccess),
        numInputs(op.getInputs().size()) {}
  void emit();

private:
  /// One access to elements that are neighbours in memory: in the row, or
  /// across a lane's rows.
  struct Access {
    /// Number of the first element in the row.
    mlir::Value index;
    /// True if the access lies in the tensors; null if it always does. Accesses
    /// do not reach beyond the end of a row that they begin in.
    mlir::Value isInside;
    /// For each input along the row, a vector of its elements, or an element
    /// that all of a lane's rows share; null for other inputs.
    Values inputs;
  };
  /// The elements of a place, or across memory one element for each of a lane's
  /// rows.
  struct Unit {
    /// Number in the row of the first element that the lanes of a row have in
    /// this unit.
    mlir::Value first;
    /// True if all elements of the unit lie in the row.
    bool isWhole = false;
    llvm::SmallVector<Access, 0> accesses;
    /// For each input that lanes exchange, the elements that the lane loaded,
    /// one by each side access. Empty for other inputs.
    llvm::SmallVector<Values, 0> pieces;
  };
  /// One element that a lane loads or stores side by side with its neighbours,
  /// for itself or another lane of its row.
  struct Piece {
    /// The element's number in the unit of the row's lanes, and in the row.
    mlir::Value inUnit, index;
    /// True if it belongs to the unit; null if all do.
    mlir::Value isInUnit;
    /// True if it also belongs to the row, and the thread has one; null if all
    /// do.
    mlir::Value isInside;
  };

  /// Numbers of inputs.
  using Inputs = llvm::SmallVector<unsigned, 4>;

  bool isAlongRow(unsigned number) {
    return llvm::is_contained(workload.operands[number].axes, layout.rowAxis);
  }
  /// Returns true if an operand is the same for rows that lanes have one after
  /// the other.
  bool isShared(unsigned number) {
    return !llvm::is_contained(workload.operands[number].axes,
                               tile.family.combineAxis);
  }
  /// Returns true if an operand has an element for each of a lane's rows.
  bool variesByLaneRow(unsigned number) {
    return layout.isAcross() &&
           llvm::is_contained(workload.operands[number].axes, layout.laneAxis);
  }
  /// Returns true if neighbours in an access have different elements of the
  /// operand.
  bool variesInAccess(unsigned number) {
    return layout.isAcross() ? variesByLaneRow(number) : isAlongRow(number);
  }
  Values indicesOf(unsigned number, mlir::Value element, int64_t laneRow = 0);
  /// Returns the indices of a neighbour in an access that begins at `index`.
  Values indicesInAccess(unsigned number, mlir::Value index, int64_t neighbour);
  /// Returns whether a neighbour in an access that begins at `index`, inside of
  /// the row, is inside, too; null if all are.
  mlir::Value isNeighbourInside(mlir::Value index, int64_t neighbour);
  bool isVector(unsigned number, mlir::Type element);
  mlir::Value loadAccess(unsigned input, mlir::Value index);
  void storeAccess(unsigned output, const Values &elements, mlir::Value index);

  /// Emits `body` under a condition; a null condition always holds.
  void emitUnder(mlir::Value condition, llvm::function_ref<void()> body);
  /// Returns the conjunction of two such conditions.
  mlir::Value conjunction(mlir::Value lhs, mlir::Value rhs);
  /// Emits `body` under a condition. Returns its values, or `others` if the
  /// condition does not hold.
  Values orElse(mlir::Value condition, mlir::ValueRange others,
                llvm::function_ref<Values()> body);
  /// Emits `body` under a condition. Returns its values, of `types`, or zeros
  /// if the condition does not hold.
  Values orZeros(mlir::Value condition, mlir::TypeRange types,
                 llvm::function_ref<Values()> body);
  /// Creates a unit of a lane in the round that begins at `first`, without
  /// loads.
  Unit createUnit(mlir::Value first, int64_t number, bool isWhole);
  /// Returns the inputs along the row that one of these regions reads.
  Inputs inputsOf(llvm::ArrayRef<mlir::Region *> regions);
  /// Returns the inputs along the row that any region reads.
  Inputs allInputs();
  /// Returns true if held rows load an input after all reductions, none of
  /// which reads it.
  bool isLate(unsigned input) {
    return layout.sharesLate && isShared(input) &&
           !rows.isReadByReductions(workload.operands[input]);
  }
  /// Loads inputs of a unit: whole accesses, or pieces of inputs that lanes
  /// exchange.
  void loadUnit(Unit &unit, llvm::ArrayRef<unsigned> inputs);
  void loadAccesses(Unit &unit, llvm::ArrayRef<unsigned> inputs);

  // Exchange of single elements (RowsExchange.cpp).
  /// Returns true if lanes load or store single elements of an operand side by
  /// side.
  bool isExchanged(unsigned number) {
    return layout.isExchanged() && rows.isAlongLanes(workload.operands[number]);
  }
  /// Returns the number of elements between the last sector boundary before the
  /// current row and the row, at most the elements of one side access.
  mlir::Value misalignment(unsigned number);
  llvm::SmallVector<Piece> piecesOf(unsigned number, const Unit &unit);
  /// Returns the warp's part of shared memory for elements of a type.
  mlir::Value stagingMemory(mlir::Type element);
  /// Returns the number in that memory of the first element of the row's lanes.
  mlir::Value firstStaged();
  void awaitLanes();
  /// Loads the elements of the lane's place from shared memory, in which the
  /// elements of the row's lanes begin at `first`.
  Values loadStaged(mlir::Value memory, mlir::Value first);
  void loadPieces(Unit &unit, unsigned input);
  /// Hands each lane the elements of its place: lanes loaded them side by side.
  void exchangePieces(llvm::MutableArrayRef<Unit> units,
                      llvm::ArrayRef<unsigned> inputs);
  /// Computes and stores the outputs of a unit's single elements.
  void mapElements(const RowBody &body, const Unit &unit,
                   llvm::ArrayRef<unsigned> outputs);
  /// Stores a place's elements, side by side with other lanes.
  void storePieces(unsigned output, const Unit &unit, const Values &elements);
  /// Returns the elements of the inputs for one neighbour in an access.
  Values elementOf(const Access &access, int64_t neighbour);
  /// Returns the neighbour's number in its row.
  mlir::Value numberOf(const Access &access, int64_t neighbour) {
    return layout.isAcross() ? access.index : math.add(access.index, neighbour);
  }
  /// Returns the position of one of a lane's rows, by axis.
  Values positionOf(int64_t laneRow);
  int64_t laneRowOf(int64_t neighbour) {
    return layout.isAcross() ? neighbour : 0;
  }

  /// Creates the body of a region for each of a lane's rows, with the
  /// operations that are the same for the whole row.
  llvm::SmallVector<RowBody, 0> createBodies(mlir::Region &region,
                                             bool hasAccumulator);
  mlir::Value createNeutral(unsigned reduction);
  mlir::Value combine(unsigned reduction, mlir::Value lhs, mlir::Value rhs);
  RowNumbers combine(unsigned reduction, const RowNumbers &lhs,
                     const RowNumbers &rhs);
  RowNumbers reduceUnit(unsigned reduction, llvm::ArrayRef<RowBody> bodies,
                        const Unit &unit);
  void reduceAccess(llvm::ArrayRef<RowBody> bodies, const Access &access,
                    RowNumbers &numbers);
  /// Combines the numbers that a lane has to one, as a tree: those that are far
  /// apart first.
  RowNumbers reduceTree(unsigned reduction,
                        llvm::MutableArrayRef<RowNumbers> numbers);
  mlir::Value reduceLanes(unsigned reduction, mlir::Value value,
                          int64_t numLanes, int64_t minDistance = 1);
  /// Reduces a chunk to one number, of rows along memory.
  RowNumbers reduceChunk(unsigned reduction, llvm::ArrayRef<RowBody> bodies,
                         llvm::ArrayRef<Unit> units);

  mlir::Value exchangeMemory(unsigned reduction, mlir::Type type,
                             int64_t numbers);
  /// Creates the units of a row that is held, without loads.
  llvm::SmallVector<Unit> createHeldUnits();
  RowNumbers reduceHeld(unsigned reduction, llvm::ArrayRef<RowBody> bodies);
  RowNumbers reduceStreamed(unsigned reduction, llvm::ArrayRef<RowBody> bodies);
  RowNumbers mergeSlots(unsigned reduction, llvm::ArrayRef<mlir::Value> slots);
  void foldRound(unsigned reduction, llvm::ArrayRef<RowBody> bodies,
                 llvm::ArrayRef<Unit> units, mlir::Value number,
                 llvm::MutableArrayRef<mlir::Value> slots);
  mlir::Value exchangeSlots(unsigned reduction,
                            llvm::ArrayRef<mlir::Value> slots);
  RowNumbers exchangeAcross(unsigned reduction, const RowNumbers &own);
  void emitReduction(unsigned reduction);
  // Slices.
  Values stateIndices(unsigned reduction, mlir::Value slice, int64_t laneRow);
  /// Returns the number of the state that a slot leaves for a segment.
  mlir::Value stateNumber(mlir::Value segment, mlir::Value slot) {
    return math.add(math.mul(segment, layout.slots()), slot);
  }
  void storeSegment(unsigned reduction, mlir::Value segment,
                    mlir::Value number);
  RowNumbers mergeSegments(unsigned reduction);
  void storeState(unsigned reduction, const RowNumbers &numbers);
  RowNumbers mergeState(unsigned reduction);
  void emitPhase(unsigned phase);
  void storeValues();
  void mapUnit(llvm::ArrayRef<RowBody> bodies, const Unit &unit);
  void mapHeld(llvm::ArrayRef<RowBody> bodies);
  void emitMap();
  /// Makes a row the current one: row `number` of those that the lanes have one
  /// after the other. `isThere` is null if all threads have the row.
  void enterRow(mlir::Value number, mlir::Value isThere);
  void loadRowValues();
  void emitRow();
  void emitHeldLoop();
  void emitStreamedLoop();
  void emitRows();

  /// Creates the units of one round, and loads their inputs.
  llvm::SmallVector<Unit> loadRound(mlir::Value first, bool isWhole,
                                    llvm::ArrayRef<unsigned> inputs);
  /// The elements of a segment, or, without a number, of the whole row.
  struct Segment {
    mlir::Value number, begin, end;
  };
  /// Returns the length of the row's segments, except for the last one, and
  /// their number.
  std::pair<mlir::Value, mlir::Value> computeSegments();
  Segment wholeRow();
  /// Emits the loop over the segments of the slice. The body takes the state
  /// and returns the next one.
  Values forEachSegment(
      const Values &state,
      llvm::function_ref<Values(const Segment &, mlir::ValueRange state)> body);
  /// Emits the loop over rounds of a segment that are not held, several rounds
  /// at a time. The body takes units with these inputs, and updates the state.
  /// If `isBackwards`, the last rounds come first: they are the likeliest to be
  /// in a cache.
  Values forEachRound(
      const Segment &segment, llvm::ArrayRef<unsigned> inputs,
      const Values &state, bool isBackwards,
      llvm::function_ref<void(llvm::ArrayRef<Unit> units, mlir::Value number,
                              llvm::MutableArrayRef<mlir::Value> state)>
          body);

  mlir::ImplicitLocOpBuilder &b;
  IndexMath math;
  const TileEmission &tile;
  ukernel::RowReductionOp op;
  const Workload &workload;
  const RowReductionView &rows;
  const RowsSchedule &schedule;
  const RowsLayout &layout;
  const Grid &grid;
  bool endsWithinAccess;
  unsigned numInputs;
  /// Number of the thread's warp among the warps of its rows in the block.
  mlir::Value warp;
  /// Number of the thread's rows among the rows of the block.
  mlir::Value rowGroup;
  /// Number of the thread among the lanes of its rows.
  mlir::Value lane;
  /// Number of the thread's warp among the warps of its rows in all slices of a
  /// segment.
  mlir::Value warpOfAll;
  /// Number of the block among the blocks that share out the slots of a
  /// segment, and among those that share out segments; null if there is one
  /// block.
  mlir::Value slotSlice, segmentSlice;
  /// End of the current segment, or of the row.
  mlir::Value end;
  /// Position of the current row by axis; null for batch axes and along the
  /// row. If a lane has several rows, the position of the first one.
  Values position;
  /// Position of the first of the rows that the lanes have one after the other.
  mlir::Value firstRow;
  /// Number of the current row among these; null if there is one row.
  mlir::Value rowNumber;
  /// Numbers of these rows that the block and the thread have; null for all.
  mlir::Value blockTrips, ownTrips;
  /// True if the thread has a row; null if all threads do.
  mlir::Value hasRow;
  /// For each of a lane's rows, the element of each input that does not lie
  /// along the row.
  llvm::SmallVector<Values, 1> rowValues;
  llvm::SmallVector<Unit> held;
  /// True if each pass reads the row again: it may be longer than what a lane
  /// holds.
  bool isStreamed = true;
  /// For each reduction so far, the numbers of a lane's rows.
  llvm::SmallVector<RowNumbers> results;
};

} // namespace ftuner

#endif // FTUNER_LIB_CODEGEN_ROWS_IR_ROWSEMITTER_H
