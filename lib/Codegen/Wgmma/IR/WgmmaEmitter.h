//===- WgmmaEmitter.h - Emits one tile of the wgmma path --------*- C++ -*-===//
#ifndef FTUNER_LIB_CODEGEN_WGMMA_IR_WGMMAEMITTER_H
#define FTUNER_LIB_CODEGEN_WGMMA_IR_WGMMAEMITTER_H

#include "FTuner/Codegen/IR/FactorCopies.h"
#include "FTuner/Codegen/IR/MainLoop.h"
#include "FTuner/Codegen/IR/StageBarriers.h"
#include "FTuner/Codegen/Wgmma/WgmmaLayout.h"

namespace ftuner {

/// The thread that runs.
struct WgmmaThread {
  WgmmaThread(mlir::ImplicitLocOpBuilder &b, Value number);

  /// Whether it is the one that acts for a warp, an i1.
  Value actsFor(mlir::ImplicitLocOpBuilder &b, int64_t warpNumber) const;

  /// Numbers of the lane in its warp and the warp in the block.
  Value lane, warp;
  /// The number of the warp as an i32.
  Value uniformWarp;
  /// With barriers of stages: whether the lane acts for its warp.
  Value isElected;
};

/// A turn of one of two sets of consumer warpgroups: the set's number, and the
/// parity of its barrier's phase that the turn waits for, both i32.
struct PingPongTurn {
  Value set, parity;
};

/// Emits a tile: pipeline of copies, products of matrices, epilogue.
class WgmmaTileEmitter {
public:
  WgmmaTileEmitter(mlir::ImplicitLocOpBuilder &b, const ContractionTile &tile,
                   const WgmmaThread &thread);

  /// Multiplies in the threads that copy.
  void emit();

  // With barriers of stages (WgmmaPipeline.cpp).

  /// The same, one thread of which has boxes copied.
  void emitBesideMaps(StageBarriers &barriers);
  /// What consumer warpgroups do from a stage on, and, where sets take turns,
  /// in a turn; returns the stage behind.
  StagePhase consume(StageBarriers &barriers, StagePhase first,
                     std::optional<PingPongTurn> turn = std::nullopt);
  /// The stage behind a tile that another set multiplies.
  StagePhase skip(StageBarriers &barriers, StagePhase first) {
    return barriers.after(first, emitSteps());
  }
  /// What warpgroups do that copy by all of their threads.
  void produceByThreads(StageBarriers &barriers);
  /// What the thread does that has boxes copied by tensor maps from a stage on;
  /// returns the one behind.
  StagePhase produceByMaps(StageBarriers &barriers, StagePhase first);

private:
  /// A warpgroup's threads copy and multiply alternately (WgmmaMainLoop.cpp).
  /// Returns the thread's accumulators: those of its warpgroup's instructions,
  /// one after the other.
  Values emitMainLoop();
  /// Takes accumulators to the output. The threads may have copies under way.
  void emitEpilogue(const Values &accumulators, bool hasAsynchronousCopies);

  Value constant(int64_t value);
  /// What the unit that copies brings for one factor, lhs (0) or rhs (1), or
  /// both. By one thread, all of it.
  void prepareMaps();
  void preparePackedRows();
  /// Starts the copies of a step into a stage, both i32, whose barrier they
  /// tell how many bytes to expect.
  void startCopies(StageBarriers &barriers, Value stage, Value step);
  void startBoxes(unsigned factor, Value full, Value stage, Value step);
  void startPackedRows(Value full, Value stage, Value step);
  /// A pointer to a row of a factor's tile in a stage, of any block of a
  /// cluster that shares the factor, and a bit for each of its blocks, an i16,
  /// or null.
  struct Target {
    Value memory, blocks;
  };
  Target targetOf(unsigned factor, Value stage, Value firstRow);
  /// The first row of the block's part of what a cluster shares, an i32; null
  /// where it shares nothing of the factor.
  Value firstSharedRow(unsigned factor);
  /// Steps along the reduce axis, an i32.
  Value emitSteps();

  /// The copies of both factors into the first stage, by the threads that have
  /// a number.
  struct Copies {
    TileCopy lhs, rhs;
  };
  Copies createCopies(Value threadId);
  /// Pointers to the stages of a factor, lhs (0) or rhs (1).
  Value stagesOf(unsigned factor);
  void prepareMatrices();
  /// What instructions hold in registers, a struct for each of a warpgroup.
  Values initialSums();
  int64_t accumulatorsOfInstruction() const;
  Value inRegisters(const Values &accumulators);
  /// Multiplies a step that lies in a stage. Products go on behind it.
  Values multiply(Value stage, Values sums);
  Value multiplyOnce(Value rows, Value columns, Value sums);
  /// The accumulators behind all products, in a place that no arithmetic on
  /// them moves across.
  Values pinned(ValueRange sums);

  /// Where instructions read a factor: a descriptor of its first matrix in the
  /// first stage, for the thread's warpgroup.
  Value descriptorOf(const WgmmaSide &side, Value memory, Value warpgroup);
  /// The descriptor `bytes` further, or `count` times as many, an index or i32.
  Value advanced(Value descriptor, Value count, int64_t bytes);
  Value advanced(Value descriptor, int64_t bytes);

  mlir::ImplicitLocOpBuilder &b;
  IndexMath math;
  const ContractionTile &tile;
  Workload workload;
  WgmmaLayout layout;
  /// The type of the factors in shared memory.
  ElementType multiplied;
  WgmmaSchedule schedule;
  /// Of the factors in shared memory, of a sum, and of those of an instruction.
  mlir::Type elementType, accumulatorType, sumsType;
  const WgmmaThread &thread;
  /// Numbers of the thread's warpgroup along the rows and columns of
  /// instructions.
  Value rowWarpgroup, columnWarpgroup;
  /// Descriptors in the first stage.
  Value rowsMatrix, columnsMatrix;
  /// A tensor map, and the first coordinates of the block's tile in step 0, i32
  /// each, innermost first.
  struct Boxes {
    Value map;
    Values origin;
    /// Numbers of the coordinates along the reduce axis and the other one.
    unsigned reduce, space;
  };
  /// Of lhs and rhs, where maps copy.
  Boxes boxes[2];
  /// Of a packed rhs: the address of the block's part in step 0, bytes from a
  /// step to the next, the part's first row as `firstSharedRow`, and rows of
  /// the cluster's and the block's part that there are, i32 each.
  struct PackedRows {
    Value first;
    int64_t stepBytes;
    Value firstShared, ofCluster, ofBlock;
  };
  PackedRows packedRows;
  /// Without: no factor is cast on the way, and copies are wide enough.
  bool isAsynchronous = false;
};

/// Emits what a block does whose stages have barriers: producers beside
/// warpgroups that multiply, or consumers that have boxes copied
/// (WgmmaPipeline.cpp).
mlir::LogicalResult emitWgmmaPipeline(mlir::ImplicitLocOpBuilder &b,
                                      BlockTiles &tiles);

} // namespace ftuner

#endif // FTUNER_LIB_CODEGEN_WGMMA_IR_WGMMAEMITTER_H
