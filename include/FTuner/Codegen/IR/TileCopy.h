//===- TileCopy.h - Copies of tiles into shared memory ----------*- C++ -*-===//
#ifndef FTUNER_CODEGEN_IR_TILECOPY_H
#define FTUNER_CODEGEN_IR_TILECOPY_H

#include "FTuner/Codegen/IR/IndexMath.h"
#include "FTuner/Codegen/SharedTile.h"

namespace ftuner {

/// The stages of a tile in the block's shared memory (memref<?xi8, workgroup>),
/// from `firstByte` on: a memref of stages × rows × pitch elements.
Value viewStages(mlir::ImplicitLocOpBuilder &b, Value sharedMemory,
                 const SharedTile &tile, int64_t stages, mlir::Type elementType,
                 int64_t firstByte);

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
  /// Of what a slot moves.
  mlir::VectorType vectorType() const;

private:
  /// Bytes of a vector, to which addresses are aligned.
  int64_t vectorBytes() const;
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

} // namespace ftuner

#endif // FTUNER_CODEGEN_IR_TILECOPY_H
