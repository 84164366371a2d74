//===- StageBarriers.h - Barriers of a pipeline's stages --------*- C++ -*-===//
//
// Two barriers in shared memory (mbarrier) for each stage: one says that the
// stage is full, the other that it is empty again. Each goes through phases,
// one for each time that the stage is filled. A thread waits for the end of a
// phase by its parity; a fresh barrier is past the phase of parity 1.
//
// In ping-pong schedules each of two sets of warps has a further barrier, which
// says that its turn has come (CUTLASS: ordered sequence barrier). A parity
// tells neighbouring phases apart only, so a set may wait for stages in its
// turn alone: behind it lie the waits of the other set for all stages before.
//
// Waits and arrivals have the scope of a block, in clusters as well, as those
// of CUTLASS. No thread of one block reads what a thread of another wrote:
// copies write shared memory through the async proxy, and its count of bytes
// orders them. That a block's products have read a stage before another block
// has it filled again, the memory model of PTX promises in the scope of the
// cluster alone, for which the assembler puts a fence of all memory into each
// step.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_CODEGEN_IR_STAGEBARRIERS_H
#define FTUNER_CODEGEN_IR_STAGEBARRIERS_H

#include "FTuner/Codegen/IR/IndexMath.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace ftuner {

/// A stage, and the parity of its next phase: both i32.
struct StagePhase {
  Value stage, parity;
};

class StageBarriers {
public:
  /// `barriers`: a pointer to 16 bytes of shared memory for each stage, and 8
  /// for each set in ping-pong behind them, the same in each of the blocks
  /// of a cluster whose threads arrive at them.
  StageBarriers(mlir::ImplicitLocOpBuilder &b, Value barriers, int64_t stages,
                int64_t clusterBlocks = 1)
      : b(b), barriers(barriers), stages(stages), clusterBlocks(clusterBlocks) {
  }

  /// By one thread: how many arrivals end a phase, of turns those of a set's
  /// warps, or 0 without ping-pong. Other threads see it behind a
  /// barrier of the block, or the cluster, and so does the unit that copies.
  void initialize(int64_t arrivalsOfFull, int64_t arrivalsOfEmpty,
                  int64_t arrivalsOfTurn = 0);
  /// The first stage, in its first phase.
  StagePhase first();
  /// The stage that follows, around.
  StagePhase next(StagePhase at);
  Value nextStage(Value stage) { return next({stage, {}}).stage; }
  /// The stage that is a number of steps, an i32, further.
  StagePhase after(StagePhase at, Value steps);

  /// Pointers to the barriers of a stage.
  Value full(Value stage) { return barrierOf(stage, 0); }
  Value empty(Value stage) { return barrierOf(stage, stages); }
  /// Waits until a barrier's phase of a parity is over.
  void await(Value barrier, Value parity);
  /// Waits until the stage is empty for its phase.
  void awaitEmpty(StagePhase at);
  void arrive(Value barrier);
  /// Arrives at the barrier of each block of the cluster. By lanes of one warp,
  /// whose numbers are i32.
  void arriveInCluster(Value barrier, Value lane);

  /// Of two sets, 0 and 1: waits until a set's turn of a parity has come.
  void awaitTurn(Value set, Value parity);
  /// Ends a turn of a set, and gives it to the other one. By each of its warps,
  /// whose lanes have an i32 number.
  void endTurn(Value set, Value lane);

private:
  Value barrierOf(Value number, int64_t first);
  Value turnOf(Value set) { return barrierOf(set, 2 * stages); }
  Value constant(int64_t value);

  mlir::ImplicitLocOpBuilder &b;
  Value barriers;
  int64_t stages, clusterBlocks;
};

/// Of pointers to shared memory of any block of a cluster.
mlir::LLVM::LLVMPointerType clusterPointerType(mlir::MLIRContext *context);

/// All threads of the cluster's blocks wait for each other. A relaxed barrier
/// orders no accesses but those that a fence has released before, such as
/// `StageBarriers::initialize`.
void clusterBarrier(mlir::ImplicitLocOpBuilder &b, bool isRelaxed = false);

/// Makes what the thread has written to shared memory visible to what reads it
/// through the async proxy, behind a barrier.
void fenceAsyncProxy(mlir::ImplicitLocOpBuilder &b);

} // namespace ftuner

#endif // FTUNER_CODEGEN_IR_STAGEBARRIERS_H
