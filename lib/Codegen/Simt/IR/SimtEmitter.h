//===- SimtEmitter.h - Emits one tile of the SIMT path ----------*- C++ -*-===//
#ifndef FTUNER_LIB_CODEGEN_SIMT_IR_SIMTEMITTER_H
#define FTUNER_LIB_CODEGEN_SIMT_IR_SIMTEMITTER_H

#include "FTuner/Codegen/IR/ContractionEpilogue.h"
#include "FTuner/Codegen/IR/MainLoop.h"
#include "FTuner/Codegen/Simt/SimtLayout.h"

namespace ftuner {

/// Emits a tile: pipeline of copies, register-blocked outer products, epilogue.
class SimtTileEmitter {
public:
  SimtTileEmitter(mlir::ImplicitLocOpBuilder &b, const ContractionTile &tile,
                  const SimtLayout &layout, int64_t vectorWidth);
  mlir::LogicalResult emit();

private:
  /// Main loop (SimtMainLoop.cpp). Returns one vector for each row and column
  /// chunk of the thread, of one element of the batch after the other.
  Values emitMainLoop();
  /// Multiplies the thread's slice of a step that lies in a stage.
  Values multiply(Value stage, ValueRange accumulators);
  /// Multiplies the part of a slice that is unrolled, from `first` on.
  Values multiplyUnrolled(Value stage, Value first, ValueRange accumulators);
  /// Multiplies the `count` reduce elements, up to four, from `reduce` on, of
  /// all elements of the batch.
  void multiplyQuad(Value stage, Value reduce, int64_t count,
                    Values &accumulators);
  /// The same of an element's products alone, whose sums are these.
  void multiplyQuad(Value lhsShared, Value rhsShared, Value stage, Value reduce,
                    int64_t count, llvm::MutableArrayRef<Value> accumulators);
  void multiplyChunk(llvm::ArrayRef<Value> rows, size_t chunk, Value columns,
                     llvm::MutableArrayRef<Value> accumulators);
  Values loadReduceVectors(const SharedTile &shared, Value memory, Value stage,
                           Value reduce, llvm::ArrayRef<LaneChunk> chunks,
                           Value lane);
  Values loadSpaceVectors(Value memory, Value stage, Value reduce,
                          llvm::ArrayRef<LaneChunk> chunks, Value lane);

  /// The places of the thread's vectors of sums in shared memory, for the
  /// second slice. Vectors of equal number of all threads of a group are
  /// neighbours.
  Values sumPointers(ValueRange accumulators);
  /// Store the sums of a slice that is not the first, and add the stored sums
  /// to those of the first slice.
  void storeSlice(ValueRange accumulators);
  Values withSlices(ValueRange accumulators);
  void emitEpilogue(ValueRange accumulators);
  /// Of an element of the batch.
  void emitEpilogue(const ContractionTile &tile, ValueRange accumulators);
  /// Vectors of an element's sums.
  size_t numVectors() const { return layout.rm * columnChunks.size(); }
  Value broadcast(Value scalar, int64_t width);
  mlir::VectorType vectorType(int64_t width);

  mlir::ImplicitLocOpBuilder &b;
  IndexMath math;
  const ContractionTile &tile;
  const SimtLayout &layout;
  int64_t vectorWidth;
  /// Of the accumulators, and of factors in shared memory.
  mlir::Type elementType;
  llvm::SmallVector<LaneChunk> rowChunks, columnChunks;
  /// Coordinates of the thread in the block.
  Value tm, tn;
  /// The thread's slice of k; null where there is one. Its first element in a
  /// step.
  Value slice, firstOfStep;
  bool isAsynchronous = false;
  /// Numbers of the elements of the batch tile that the thread owns; none of
  /// one product.
  Values batchElements;
  /// Tiles of all stages in shared memory, of each such element.
  Values lhsShared, rhsShared;
};

} // namespace ftuner

#endif // FTUNER_LIB_CODEGEN_SIMT_IR_SIMTEMITTER_H
