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

/// A region of scalars some of whose arguments are the same for a whole row:
/// what depends on these alone is computed once, where the object is made.
class RowBody {
public:
  /// `known`: a value for each argument, null where elements differ.
  /// `position`: of the row, by axis; null along it.
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

  /// Whether it may be computed of any elements, such as the zeros beyond the
  /// end of a row.
  bool isSpeculatable() const {
    return llvm::all_of(rest, [](mlir::Operation *op) { return isPure(op); });
  }
  /// What the region yields of one element: `arguments` are those that were not
  /// known, in their order; `element`: its number in the row.
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

/// Numbers of each of a lane's rows; none, not even a first one: the neutral
/// element in all.
using RowNumbers = Values;

class RowsEmitter {
public:
  RowsEmitter(mlir::ImplicitLocOpBuilder &b, const TileEmission &tile,
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
    mlir::Value index;
    /// Whether it lies in the tensors; null if it does. Accesses do not reach
    /// beyond the end of a row that they begin in.
    mlir::Value isInside;
    /// Of each input along the row, a vector of its elements, or one that all
    /// of a lane's rows share; null for others.
    Values inputs;
  };
  /// The elements of a place, or across memory one of each of a lane's rows.
  struct Unit {
    /// The first element along the row that the lanes of a row have in this
    /// unit, and whether all of them lie in the row.
    mlir::Value first;
    bool isWhole = false;
    llvm::SmallVector<Access, 0> accesses;
    /// The elements that the lane loaded, one by each side access, for each
    /// input that lanes exchange. Empty for other inputs.
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
  Values indicesOf(unsigned number, mlir::Value element, int64_t laneRow = 0);
  /// Of a neighbour in an access that begins at `index`.
  Values indicesInAccess(unsigned number, mlir::Value index, int64_t neighbour);
  bool isVector(unsigned number, mlir::Type element);
  mlir::Value loadAccess(unsigned input, mlir::Value index);
  void storeAccess(unsigned output, const Values &elements, mlir::Value index);

  /// Emits `body` where a condition holds; null: everywhere.
  void emitWhere(mlir::Value condition, llvm::function_ref<void()> body);
  /// Returns the conjunction of two such conditions.
  mlir::Value conjunction(mlir::Value lhs, mlir::Value rhs);
  /// Emits `body` where a condition holds; returns its values, or others where
  /// the condition does not hold.
  Values orElse(mlir::Value condition, mlir::ValueRange others,
                llvm::function_ref<Values()> body);
  /// Does the same with zeros of these types.
  Values orZeros(mlir::Value condition, mlir::TypeRange types,
                 llvm::function_ref<Values()> body);
  /// A unit of a lane in the round that begins at `first`, of which nothing is
  /// loaded.
  Unit unitAt(mlir::Value first, int64_t number, bool isWhole);
  /// Returns the inputs along the row that one of these regions reads.
  Inputs inputsOf(llvm::ArrayRef<mlir::Region *> regions);
  /// Returns the inputs along the row that any region reads.
  Inputs allInputs();
  /// Returns true if held rows load an input behind all reductions, none of
  /// which reads it.
  bool isLate(unsigned input) {
    return layout.sharesLate && isShared(input) &&
           !rows.isReadByReductions(workload.operands[input]);
  }
  /// Loads inputs of a unit: whole accesses, or the pieces of those that lanes
  /// exchange.
  void loadUnit(Unit &unit, llvm::ArrayRef<unsigned> inputs);
  void loadAccesses(Unit &unit, llvm::ArrayRef<unsigned> inputs);

  // Exchange of single elements (RowsExchange.cpp).
  /// Returns true if lanes load or store single elements of an operand side by
  /// side.
  bool isExchanged(unsigned number) {
    return layout.isExchanged() && rows.isAlongLanes(workload.operands[number]);
  }
  /// Elements of the current row that lie between the last sector boundary
  /// before it and its beginning, at most those of one side access.
  mlir::Value misalignment(unsigned number);
  llvm::SmallVector<Piece> piecesOf(unsigned number, const Unit &unit);
  /// The warp's part of shared memory for elements of a type, and the number in
  /// it of the first element of the row's lanes.
  mlir::Value stagingMemory(mlir::Type element);
  mlir::Value firstStaged();
  void awaitLanes();
  /// The elements of the lane's place, of which the first of the row's lanes
  /// are at this number.
  Values loadStaged(mlir::Value memory, mlir::Value first);
  void loadPieces(Unit &unit, unsigned input);
  /// Gives lanes the elements of their places of what they loaded side by side.
  void exchangePieces(llvm::MutableArrayRef<Unit> units,
                      llvm::ArrayRef<unsigned> inputs);
  /// Computes and stores the outputs of a unit's single elements.
  void mapElements(const RowBody &body, const Unit &unit,
                   llvm::ArrayRef<unsigned> outputs);
  /// Stores a place's elements side by side with those of other lanes.
  void storePieces(unsigned output, const Unit &unit, const Values &elements);
  /// The elements of the inputs of one neighbour in an access.
  Values elementOf(const Access &access, int64_t neighbour);
  /// The neighbour's number in its row.
  mlir::Value numberOf(const Access &access, int64_t neighbour) {
    return layout.isAcross() ? access.index : math.add(access.index, neighbour);
  }
  /// The position of one of a lane's rows, by axis.
  Values positionOf(int64_t laneRow);
  int64_t laneRowOf(int64_t neighbour) {
    return layout.isAcross() ? neighbour : 0;
  }

  /// For each of a lane's rows, what is the same for the whole row.
  llvm::SmallVector<RowBody, 0> bodiesOf(mlir::Region &region,
                                         bool hasAccumulator);
  mlir::Value neutralOf(unsigned reduction);
  mlir::Value combine(unsigned reduction, mlir::Value lhs, mlir::Value rhs);
  RowNumbers combine(unsigned reduction, const RowNumbers &lhs,
                     const RowNumbers &rhs);
  RowNumbers reduceUnit(unsigned reduction, llvm::ArrayRef<RowBody> bodies,
                        const Unit &unit);
  void reduceAccess(llvm::ArrayRef<RowBody> bodies, const Access &access,
                    RowNumbers &numbers);
  /// One number of the row's of many that a lane has, `distance` apart.
  RowNumbers reduceTree(unsigned reduction,
                        llvm::MutableArrayRef<RowNumbers> numbers);
  mlir::Value reduceLanes(unsigned reduction, mlir::Value value,
                          int64_t numLanes, int64_t leastDistance = 1);
  /// Along memory, the number of a chunk.
  RowNumbers reduceChunk(unsigned reduction, llvm::ArrayRef<RowBody> bodies,
                         llvm::ArrayRef<Unit> units);

  mlir::Value exchangeMemory(unsigned reduction, mlir::Type type,
                             int64_t numbers);
  /// Those that are held, of which nothing is loaded.
  llvm::SmallVector<Unit> unitsOfRow();
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
  /// The number of a slot's part of a segment among what slices leave.
  mlir::Value stateOf(mlir::Value segment, mlir::Value slot) {
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
  /// Makes a row the current one: that of this number among those that the
  /// lanes have one after the other. `isThere`: null if all threads have it.
  void enterRow(mlir::Value number, mlir::Value isThere);
  void loadRowValues();
  void emitRow();
  void emitHeldLoop();
  void emitStreamedLoop();
  void emitRows();

  /// Of the units of one round.
  llvm::SmallVector<Unit> loadRound(mlir::Value first, bool isWhole,
                                    llvm::ArrayRef<unsigned> inputs);
  /// The elements of a segment; without a number, of the whole row.
  struct Segment {
    mlir::Value number, begin, end;
  };
  /// Elements of the row's segments but for the last one, and how many there
  /// are.
  std::pair<mlir::Value, mlir::Value> segmentsOfRow();
  Segment wholeRow();
  /// Emits the loop over the segments of the slice, with this state, which the
  /// body returns anew.
  Values forEachSegment(
      const Values &state,
      llvm::function_ref<Values(const Segment &, mlir::ValueRange state)> body);
  /// Emits the loop over rounds of a segment that are not held, some of them at
  /// once, with these inputs and this state. `isBackwards`: the last ones
  /// first, which are the likeliest to be in a cache.
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
  RowReductionView rows;
  RowsSchedule schedule;
  RowsLayout layout;
  Grid grid;
  unsigned numInputs;
  /// Of the thread: the warp among those of its rows in the block, the number
  /// of its rows in those of the block, and the lane among those of its rows.
  mlir::Value warp, rowGroup, lane;
  /// The warp among those of its rows in all slices of a segment.
  mlir::Value warpOfAll;
  /// The block's number among those that share out the slots of a segment, and
  /// among those that share out segments; null where there is one.
  mlir::Value slotSlice, segmentSlice;
  /// Where the current segment ends, or the row.
  mlir::Value end;
  /// By axis; null for batch axes and along the row. Along memory's axis, of
  /// the first of a lane's rows.
  Values position;
  /// Of the first of the rows that the lanes have one after the other; the
  /// current one's number among these, null where there is one.
  mlir::Value firstRow, rowNumber;
  /// How many of these the block has, and the thread; null: all of them.
  mlir::Value blockTrips, ownTrips;
  /// Whether the thread has a row; null if all have.
  mlir::Value hasRow;
  /// Of each of a lane's rows, of each input that does not lie along the row,
  /// its element.
  llvm::SmallVector<Values, 1> ofRow;
  llvm::SmallVector<Unit> held;
  /// Whether each pass reads the row again, since more than what could be held
  /// may follow.
  bool isStreamed = true;
  /// Of each reduction so far, the numbers of a lane's rows.
  llvm::SmallVector<RowNumbers> results;
};

} // namespace ftuner

#endif // FTUNER_LIB_CODEGEN_ROWS_IR_ROWSEMITTER_H
