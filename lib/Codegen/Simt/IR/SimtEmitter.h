//===- SimtEmitter.h - Emits one tile of the SIMT path ----------*- C++ -*-===//
#ifndef FTUNER_LIB_CODEGEN_SIMT_IR_SIMTEMITTER_H
#define FTUNER_LIB_CODEGEN_SIMT_IR_SIMTEMITTER_H

#include "FTuner/Codegen/IR/CodegenPath.h"
#include "FTuner/Codegen/Simt/SimtLayout.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace ftuner {

using mlir::Value;
using mlir::ValueRange;
using Values = llvm::SmallVector<Value>;

/// Index arithmetic without wrap-around, folded where operands are constant.
class IndexMath {
public:
  using Index = Value;
  explicit IndexMath(mlir::ImplicitLocOpBuilder &b) : b(b) {}
  Value constant(int64_t value);
  Value add(Value lhs, Value rhs);
  Value add(Value lhs, int64_t rhs);
  Value sub(Value lhs, int64_t rhs);
  Value mul(Value lhs, int64_t rhs);
  Value div(Value lhs, int64_t rhs);
  Value rem(Value lhs, int64_t rhs);
  Value bitXor(Value lhs, Value rhs);
  Value less(Value lhs, Value rhs);
  Value minimum(Value lhs, Value rhs);

private:
  mlir::ImplicitLocOpBuilder &b;
};

/// Copies one operand's tile from global to shared memory: one slot for each
/// vector that a thread moves in one step of the reduce axis.
class TileCopy {
public:
  TileCopy(mlir::ImplicitLocOpBuilder &b, const SharedTile &tile, Value global,
           Value shared, int64_t threads, int64_t vectorWidth);

  /// Computes the addresses that do not depend on the step.
  void prepare(Value threadId, Value spaceOffset, Value spaceExtent,
               bool spaceExact, Value reduceExtent, bool reduceExact);
  /// Issues asynchronous copies of the step at `reduceOffset` into `stage`.
  void issueAsync(Value stage, Value reduceOffset);
  /// Loads the step's vectors into registers.
  Values load(Value reduceOffset);
  /// Stores loaded vectors into a stage.
  void store(Value stage, ValueRange vectors);
  size_t slotCount() const { return slots.size(); }

private:
  struct Slot {
    /// Row of the tile and physical element of the row in shared memory.
    Value outer, inner;
    /// Element along the reduce axis relative to the step.
    Value reduce;
    /// Element along the space axis, clamped into the tensor.
    Value space;
    /// Whether the thread takes part; null if all do.
    Value active;
  };
  Value inReduceRange(const Slot &slot, Value reduceOffset);
  Values globalIndices(const Slot &slot, Value reduceIndex);
  void ifActive(const Slot &slot, llvm::function_ref<void()> body);

  mlir::ImplicitLocOpBuilder &b;
  IndexMath math;
  const SharedTile &tile;
  Value global, shared;
  int64_t threads, vectorWidth;
  Value reduceExtent;
  bool reduceExact = true;
  llvm::SmallVector<Slot> slots;
};

/// Emits a tile: pipeline of copies, register-blocked outer products, epilogue.
class SimtTileEmitter {
public:
  SimtTileEmitter(mlir::ImplicitLocOpBuilder &b, const ContractionTile &tile,
                  const SimtLayout &layout, int64_t vectorWidth);
  mlir::LogicalResult emit();

private:
  /// Main loop (SimtMainLoop.cpp). Returns one vector for each row and column
  /// chunk of the thread.
  Values emitMainLoop();
  enum class Unrolling {
    /// By nobody, ptxas included.
    Never,
    /// In full, by LLVM, after all other passes on its IR.
    Late
  };
  /// A loop from 0 whose body is empty.
  mlir::scf::ForOp createLoop(Unrolling unrolling, Value end, int64_t step,
                              ValueRange initial);
  Values emitAsyncLoop(TileCopy &lhsCopy, TileCopy &rhsCopy,
                       Values accumulators);
  Values emitStagedLoop(TileCopy &lhsCopy, TileCopy &rhsCopy,
                        Values accumulators);
  /// Multiplies a step that lies in a stage.
  Values multiply(Value stage, Values accumulators);
  /// Multiplies the four reduce elements from `reduce` on.
  void multiplyQuad(Value stage, Value reduce, Values &accumulators);
  void multiplyChunk(llvm::ArrayRef<Value> rows, size_t chunk, Value columns,
                     Values &accumulators);
  Values loadReduceVectors(const SharedTile &shared, Value memory, Value stage,
                           Value reduce, llvm::ArrayRef<LaneChunk> chunks,
                           Value lane);
  Values loadSpaceVectors(Value memory, Value stage, Value reduce,
                          llvm::ArrayRef<LaneChunk> chunks, Value lane);
  Value sharedTileMemory(const SharedTile &shared, int64_t firstElement);
  Value nextStage(Value stage);

  /// Epilogue (SimtEpilogue.cpp).
  void emitEpilogue(ValueRange accumulators);
  void emitColumns(Value column, int64_t chunk, ValueRange accumulators);
  void emitRow(Value row, Value column, Value accumulator,
               llvm::ArrayRef<Value> rowInvariant);
  Value loadElementwise(Value operand, mlir::AffineMap map, Value row,
                        Value column, int64_t width);
  Value applyEpilogue(Value accumulator, ValueRange extras);
  void storeOutput(Value row, Value column, Value vector);
  void ifInside(Value index, unsigned axis, bool exact,
                llvm::function_ref<void()> body);
  Value broadcast(Value scalar, int64_t width);
  mlir::VectorType vectorType(int64_t width);

  mlir::ImplicitLocOpBuilder &b;
  IndexMath math;
  const ContractionTile &tile;
  const SimtLayout &layout;
  int64_t vectorWidth;
  llvm::SmallVector<LaneChunk> rowChunks, columnChunks;
  /// Coordinates of the thread in the block.
  Value tm, tn;
  /// Tiles of all stages in shared memory.
  Value lhsShared, rhsShared;
};

} // namespace ftuner

#endif // FTUNER_LIB_CODEGEN_SIMT_IR_SIMTEMITTER_H
