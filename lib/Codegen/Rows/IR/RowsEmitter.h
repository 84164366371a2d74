//===- RowsEmitter.h - Emits one tile of the path of rows -------*- C++ -*-===//
//
// RowsEmitter.cpp has accesses, results and the order of a row's parts,
// RowsReduction.cpp has reductions: those of a lane, of lanes, of warps, and of
// blocks that share a row out.
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
  using Unit = llvm::SmallVector<Access, 1>;

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

  /// The first element of a lane's unit in a round, which begins at `first`.
  mlir::Value unitIndex(mlir::Value first, int64_t unit);
  /// Its accesses, of which nothing is loaded.
  Unit unitAt(mlir::Value index, bool isWhole);
  /// Loads those inputs of a unit, or the others, that rows one after the other
  /// have in common, or all.
  void loadUnit(Unit &unit, std::optional<bool> areShared = std::nullopt);
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
  void storeState(unsigned reduction, const RowNumbers &numbers);
  RowNumbers mergeState(unsigned reduction);
  void emitPhase(unsigned phase);
  void storeValues();
  void mapUnit(llvm::ArrayRef<RowBody> bodies, const Unit &unit);
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
  llvm::SmallVector<Unit> loadRound(mlir::Value first, bool isWhole);
  /// Emits the loop over rounds that are not held, some of them at once, with
  /// this state. `isBackwards`: the last ones first, which are the likeliest to
  /// be in a cache.
  Values forEachRound(
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
  /// The warp among those of its rows in all slices.
  mlir::Value warpOfAll;
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
