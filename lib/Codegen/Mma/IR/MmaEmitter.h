//===- MmaEmitter.h - Emits one tile of the mma path ------------*- C++ -*-===//
#ifndef FTUNER_LIB_CODEGEN_MMA_IR_MMAEMITTER_H
#define FTUNER_LIB_CODEGEN_MMA_IR_MMAEMITTER_H

#include "../MmaTypes.h"
#include "FTuner/Codegen/IR/FactorCopies.h"
#include "FTuner/Codegen/IR/MainLoop.h"
#include "FTuner/Codegen/Mma/MmaLayout.h"

namespace ftuner {

/// Emits a tile: pipeline of copies, products of fragments, epilogue.
class MmaTileEmitter {
public:
  /// `multiplied`: the type of the factors in shared memory.
  MmaTileEmitter(mlir::ImplicitLocOpBuilder &b, const ContractionTile &tile,
                 const MmaLayout &layout, ElementType multiplied,
                 const MmaInstruction &instruction);
  void emit();

private:
  /// Main loop (MmaMainLoop.cpp). Returns the lane's accumulators: four for
  /// each fragment of the warp tile, row by row of the instructions.
  Values emitMainLoop();
  Values initialAccumulators();
  Values loadRow(Value stage, int64_t row, int64_t depth);
  Values loadColumns(Value stage, int64_t column, int64_t depth);
  /// Registers of all fragments of a warp at one depth of the step in a stage.
  Values loadFragments(Value stage, int64_t depth);
  Values multiplyFragments(ValueRange fragments, Values accumulators);
  Values multiplyFragment(ValueRange row, ValueRange column, Values sum);
  Value multiplyOnce(ValueRange row, ValueRange column, ValueRange sum);

  /// Where a lane's rows of an operand's fragments lie in a stage.
  struct FragmentAddresses {
    /// Pointers into the first stage, one for each depth of a step, or for each
    /// fragment along the space axis where that is contiguous.
    Values bases;
    /// Bytes from one to the next fragment, or depth.
    int64_t stride;
  };
  /// Where a warp reads what feeds the instructions' rows, or columns.
  struct Side {
    /// Its first element along the axis in the block tile.
    Value origin;
    FragmentAddresses addresses;
  };
  /// The matrix of a factor in shared memory that the warp reads.
  Value matrixPointer(const SharedTile &shared, Value memory, unsigned factor);
  FragmentAddresses prepareFragments(const SharedTile &shared, Value memory,
                                     MatrixRow<IndexMath> lane, Value origin,
                                     int64_t fragments, int64_t extent);
  Value fragmentPointer(const SharedTile &shared,
                        const FragmentAddresses &addresses, Value stageBytes,
                        int64_t fragment, int64_t depth);
  Values loadMatrices(Value pointer, int64_t matrices, bool isTransposed);
  std::array<Values, 2> separateBytes(ValueRange matrices);
  Values loadElements(const SharedTile &shared,
                      const FragmentAddresses &addresses, Value stageBytes,
                      int64_t firstSpace, int64_t depth, bool areRows);
  /// Registers as instructions take them: f32 rounded to tf32, where needed.
  Values toFactors(Values registers, const MmaSide &side);

  mlir::ImplicitLocOpBuilder &b;
  IndexMath math;
  const ContractionTile &tile;
  const MmaLayout &layout;
  ElementType multiplied;
  const MmaInstruction &instruction;
  MmaSchedule schedule;
  /// Of the factors in shared memory, and of the sums.
  mlir::Type elementType, accumulatorType;
  /// Number of the lane in its warp, and of the warp in the block.
  Value lane, warp;
  /// The warp's element of the batch tile; null where there is one.
  Value batchElement;
  Side rows, columns;
  /// No factor is cast on the way, and copies are wide enough.
  bool isAsynchronous = false;
};

} // namespace ftuner

#endif // FTUNER_LIB_CODEGEN_MMA_IR_MMAEMITTER_H
