//===- TileCopy.h - Copies of tiles into shared memory ----------*- C++ -*-===//
#ifndef FTUNER_CODEGEN_IR_TILECOPY_H
#define FTUNER_CODEGEN_IR_TILECOPY_H

#include "FTuner/Codegen/IR/CodegenPath.h"
#include "FTuner/Codegen/IR/CopySource.h"
#include "FTuner/Codegen/IR/IndexMath.h"
#include "FTuner/Codegen/SharedTile.h"
#include "mlir/IR/BuiltinTypes.h"

#include <functional>
#include <memory>
#include <optional>

namespace ftuner {

/// A pointer to byte `firstByte` of the block's shared memory (memref<?xi8,
/// workgroup>).
Value sharedPointer(mlir::ImplicitLocOpBuilder &b, Value sharedMemory,
                    int64_t firstByte);
/// A pointer to the first element of a memref in global memory.
Value globalPointer(mlir::ImplicitLocOpBuilder &b, Value memref);
/// The pointer `bytes` (of type index) further.
Value offsetPointer(mlir::ImplicitLocOpBuilder &b, Value pointer, Value bytes);
Value offsetPointer(mlir::ImplicitLocOpBuilder &b, Value pointer,
                    int64_t bytes);

/// The stages of a tile in the block's shared memory, from `firstByte` on: a
/// memref of stages × rows × pitch elements.
Value viewStages(mlir::ImplicitLocOpBuilder &b, Value sharedMemory,
                 const SharedTile &tile, int64_t stages, mlir::Type elementType,
                 int64_t firstByte);

/// The same of one of the tile's matrices, by its number.
Value viewMatrix(mlir::ImplicitLocOpBuilder &b, Value sharedMemory,
                 const SharedTile &tile, int64_t stages, mlir::Type elementType,
                 int64_t firstByte, Value matrix);

/// What becomes of vectors on the way through registers, where elements in
/// shared memory are others than in global memory.
struct CopyConversion {
  /// A tensor that is read beside the copied one.
  struct Input {
    /// What is read of it for a vector.
    mlir::VectorType type;
    bool dependsOnReduce;
    /// Reads at the vector's first element.
    std::function<Value(Value space, Value reduce, const BatchPosition &batch)>
        load;
  };
  /// Bytes of an element in shared memory.
  int64_t sharedBytes;
  /// Whether zeros become zeros.
  bool keepsZeros = true;
  llvm::SmallVector<Input> inputs;
  /// The vector that is stored, of what was read, inputs in order.
  std::function<Value(Value vector, ValueRange inputs)> compute;
};

/// Copies one operand's tile from global to shared memory: one slot for each
/// vector that a thread moves in one step of the reduce axis.
class TileCopy {
public:
  /// `source`: where the operand lies, whose elements are of `elementType`.
  /// `shared`: a pointer to the tile's first stage; others follow it.
  TileCopy(mlir::ImplicitLocOpBuilder &b, const SharedTile &tile,
           std::unique_ptr<CopySource> source, mlir::Type elementType,
           Value shared, int64_t threads, int64_t vectorWidth);
  /// `global`: a matrix, a memref of two dimensions whose inner stride is 1.
  TileCopy(mlir::ImplicitLocOpBuilder &b, const SharedTile &tile, Value global,
           Value shared, int64_t threads, int64_t vectorWidth);

  /// Converts vectors. Comes before `prepare`. Such copies are not
  /// asynchronous.
  void convertBy(CopyConversion conversion) {
    sharedBytes = conversion.sharedBytes;
    this->conversion = std::move(conversion);
  }
  bool isConverted() const { return conversion.has_value(); }
  /// The operand is a factor, lhs (0) or rhs (1), of a contraction's tile with
  /// several elements along batch axes. Comes before `prepare`; the tile
  /// outlives it.
  void alongBatch(const ContractionTile &contraction, unsigned factor) {
    this->contraction = &contraction;
    this->factor = factor;
  }
  /// Rows may end within a vector, whose other elements become zeros. Comes
  /// before `prepare`.
  void endWithinVectors() { endsWithinVectors = true; }
  /// Computes the addresses that do not depend on the step. Vectors beyond the
  /// space extent only reach rows or columns that are never stored. Copies that
  /// are not asynchronous read the last valid one in their place, which L1
  /// holds. Asynchronous ones pass L1 by, and as many reads of one line as a
  /// tile has rows too many hold up all blocks: they read nothing.
  void prepare(Value threadId, Value spaceOffset, Value spaceExtent,
               bool spaceExact, Value reduceExtent, bool reduceExact,
               bool isAsynchronous);
  /// Issues asynchronous copies of the step at `reduceOffset` into `stage`. Of
  /// a step that may lie beyond the reduce extent, `isInside` says whether it
  /// does not; else zeros are written. Of `parts` parts of the step, which
  /// differ by one copy at most, those of one.
  void issueAsync(Value stage, Value reduceOffset, Value isInside = {},
                  int64_t part = 0, int64_t parts = 1);
  /// Loads into registers what the step's slots store, the values of one slot
  /// after those of another.
  Values load(Value reduceOffset);
  /// The types of what is loaded.
  llvm::SmallVector<mlir::Type> loadedTypes() const;
  /// Stores what was loaded of a step into a stage.
  void store(Value stage, ValueRange loaded, Value reduceOffset);

private:
  /// Bytes of a vector in global memory, to which addresses are aligned.
  int64_t vectorBytes() const;
  /// A constant distance from the pointer of an earlier slot.
  struct Distance {
    size_t from;
    int64_t bytes;
  };
  struct Slot {
    /// A pointer to the vector in the first stage. Null where a distance says
    /// what it is, a constant behind that of another slot.
    Value shared;
    std::optional<Distance> sharedDistance;
    /// Element along the reduce axis relative to the step.
    Value reduce;
    /// First element along the space axis, clamped into the tensor unless the
    /// next says whether it is there.
    Value space;
    /// Of the vector's matrix along batch axes, clamped likewise.
    BatchPosition batch;
    /// Whether an asynchronous copy reads the vector; null if all are read.
    Value isInside;
    /// Whether the thread takes part; null if all do.
    Value active;
    /// Of inputs that do not depend on the step.
    Values inputs;
  };
  /// The types of what one slot loads in a step.
  llvm::SmallVector<mlir::Type> slotTypes() const;
  Values loadSlot(const Slot &slot, Value pointer, Value reduceOffset);
  Value convert(const Slot &slot, ValueRange loaded, Value reduceOffset);
  /// Returns a vector with zeros in place of the elements beyond the reduce
  /// extent.
  Value untilEnd(const Slot &slot, Value vector, Value reduceOffset);
  Value inReduceRange(const Slot &slot, Value reduceOffset);
  /// Returns the number of elements from the vector's first one to the reduce
  /// extent, below 1 beyond it.
  Value elementsLeft(const Slot &slot, Value reduceOffset);
  /// Returns the bytes of the vector before the reduce extent, as i32.
  Value bytesLeft(const Slot &slot, Value reduceOffset);
  /// Whether the next slot, at `space`, is inside of the extent.
  Value inSpaceRange(Value space, Value spaceExtent);
  /// Places the next slot, of a matrix, along batch axes; elements of memory to
  /// it, or null.
  Value placeMatrix(Slot &slot, Value matrix, bool isAsynchronous);
  /// Pointers of the slots into a stage.
  Values sharedPointers(Value stage);
  /// The distance of the next slot.
  std::optional<Distance> nextSharedDistance() const;
  /// What a stage adds to pointers.
  Value bytesOfStage(Value stage);
  void ifActive(const Slot &slot, llvm::function_ref<void()> body);

  mlir::ImplicitLocOpBuilder &b;
  IndexMath math;
  const SharedTile &tile;
  std::unique_ptr<CopySource> source;
  /// A pointer to the first stage.
  Value shared;
  int64_t threads, vectorWidth;
  /// Of an element in global and in shared memory.
  int64_t elementBytes, sharedBytes;
  /// None where elements stay as they are.
  std::optional<CopyConversion> conversion;
  mlir::VectorType vector;
  /// Of a tile with several matrices.
  const ContractionTile *contraction = nullptr;
  unsigned factor = 0;
  Value reduceExtent;
  bool reduceExact = true, endsWithinVectors = false;
  /// Of asynchronous copies: elements from the first slot to the extent.
  Value spaceLeft;
  llvm::SmallVector<Slot> slots;
};

} // namespace ftuner

#endif // FTUNER_CODEGEN_IR_TILECOPY_H
