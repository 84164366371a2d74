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
  /// chunk of the thread.
  Values emitMainLoop();
  /// Multiplies a step that lies in a stage.
  Values multiply(Value stage, ValueRange accumulators);
  /// Multiplies the part of a step that is unrolled, from `first` on.
  Values multiplyUnrolled(Value stage, Value first, ValueRange accumulators);
  /// Multiplies the four reduce elements from `reduce` on.
  void multiplyQuad(Value stage, Value reduce, Values &accumulators);
  void multiplyChunk(llvm::ArrayRef<Value> rows, size_t chunk, Value columns,
                     Values &accumulators);
  Values loadReduceVectors(const SharedTile &shared, Value memory, Value stage,
                           Value reduce, llvm::ArrayRef<LaneChunk> chunks,
                           Value lane);
  Values loadSpaceVectors(Value memory, Value stage, Value reduce,
                          llvm::ArrayRef<LaneChunk> chunks, Value lane);

  void emitEpilogue(ValueRange accumulators);
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
  /// Tiles of all stages in shared memory.
  Value lhsShared, rhsShared;
};

} // namespace ftuner

#endif // FTUNER_LIB_CODEGEN_SIMT_IR_SIMTEMITTER_H
