//===- WgmmaEmitter.h - Emits one tile of the wgmma path --------*- C++ -*-===//
#ifndef FTUNER_LIB_CODEGEN_WGMMA_IR_WGMMAEMITTER_H
#define FTUNER_LIB_CODEGEN_WGMMA_IR_WGMMAEMITTER_H

#include "FTuner/Codegen/IR/FactorCopies.h"
#include "FTuner/Codegen/IR/MainLoop.h"
#include "FTuner/Codegen/Wgmma/WgmmaLayout.h"

namespace ftuner {

/// Emits a tile: pipeline of copies, products of matrices, epilogue.
class WgmmaTileEmitter {
public:
  /// `multiplied`: the type of the factors in shared memory.
  WgmmaTileEmitter(mlir::ImplicitLocOpBuilder &b, const ContractionTile &tile,
                   const WgmmaLayout &layout, ElementType multiplied,
                   mlir::Type accumulatorType);
  void emit();

private:
  /// Main loop (WgmmaMainLoop.cpp). Returns the thread's accumulators: those of
  /// its group's instructions, one after the other.
  Values emitMainLoop();
  /// What instructions hold in registers, a struct for each of a group.
  Values initialSums();
  /// Multiplies a step that lies in a stage. Products go on behind it.
  Values multiply(Value stage, Values sums);
  Value multiplyOnce(Value rows, Value columns, Value sums);
  /// The accumulators behind all products, in a place that no arithmetic on
  /// them moves across.
  Values pinned(ValueRange sums);

  /// Where instructions read a factor: a descriptor of its first matrix in the
  /// first stage, for the thread's group.
  Value descriptorOf(const WgmmaSide &side, Value memory, Value group);
  /// The descriptor `bytes` further, or `count` times as many.
  Value advanced(Value descriptor, Value count, int64_t bytes);
  Value advanced(Value descriptor, int64_t bytes);

  mlir::ImplicitLocOpBuilder &b;
  IndexMath math;
  const ContractionTile &tile;
  const WgmmaLayout &layout;
  ElementType multiplied;
  WgmmaSchedule schedule;
  /// Of the factors in shared memory, of a sum, and of those of an instruction.
  mlir::Type elementType, accumulatorType, sumsType;
  /// Numbers of the lane in its warp, the warp in the block, and of its group
  /// along the rows and columns of instructions.
  Value lane, warp, rowGroup, columnGroup;
  /// Descriptors in the first stage.
  Value rowsMatrix, columnsMatrix;
  /// No factor is cast on the way, and copies are wide enough.
  bool isAsynchronous = false;
};

} // namespace ftuner

#endif // FTUNER_LIB_CODEGEN_WGMMA_IR_WGMMAEMITTER_H
