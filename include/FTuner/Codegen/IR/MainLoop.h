//===- MainLoop.h - The loop over steps of the reduce axis ------*- C++ -*-===//
//
// One barrier for each k iteration, called step here. With asynchronous copies:
//
//   start steps 0 … stages − 2
//   for each step: wait for it; barrier; start step + stages − 1; multiply
//
// The barrier both publishes the step's copies and says that nobody still reads
// the stage that the next copies overwrite. Without asynchronous copies, two
// stages, and the next step travels through registers while this one is
// multiplied:
//
//   load step 0 and store it
//   for each step: barrier; load step + 1; multiply; store step + 1
//
// A step may consist of k blocks, whose operands are loaded from shared memory
// while the k block before is multiplied, across the end of a step, too. Then
// the barrier stands before the products of the last k block, and no product
// waits for it or for the loads behind it (CUTLASS has this order in
// mma_multistage.h and mma_pipelined.h):
//
//   start steps 0 … stages − 2; wait for step 0; barrier; load its k block 0
//   for each step:
//     for each k block but the last: load the next one; start a share of the
//                                    copies of step + stages − 1; multiply it
//     wait for step + 1; barrier; load its k block 0; multiply the last k block
//
// A step of one k block is multiplied before the next one is awaited. Where
// steps travel through registers, they are stored before that barrier. Behind
// the last step one more is loaded, of zeros, that nobody multiplies. Copies
// beyond the extent are of no bytes rather than left out, so that a step has no
// branch and its instructions may be put in any order.
//
// Products may be asynchronous (AsyncProducts): instructions that run on by
// themselves behind `multiply` and read shared memory meanwhile. Then a stage
// is read for one step longer, whoever writes a stage publishes it, and copies
// start behind the products, which should not wait for them:
//
//   start steps 0 … stages − 3
//   for each step: wait for it; publish; barrier; multiply;
//                  start step + stages − 2; wait for the products of step − 1
//
// Where they pass through registers, each step waits for its own products.
//
// The loop over the steps is not unrolled, by LLVM or by ptxas: its body is a
// whole step, so unrolling saves little. Where the trip count is a small
// constant, ptxas would unroll the whole loop, move loads of later steps ahead
// and take two to three times the registers, or spill.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_CODEGEN_IR_MAINLOOP_H
#define FTUNER_CODEGEN_IR_MAINLOOP_H

#include "FTuner/Codegen/IR/CodegenPath.h"
#include "FTuner/Codegen/IR/TileCopy.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace ftuner {

enum class Unrolling {
  /// By nobody, ptxas included.
  Never,
  /// In full, by LLVM, after all other passes on its IR.
  Late
};

/// A loop from `first` to `end`, of type index or integers, whose body is
/// empty.
mlir::scf::ForOp createLoop(mlir::ImplicitLocOpBuilder &b, Unrolling unrolling,
                            Value first, Value end, Value step,
                            ValueRange initial);
/// The same from 0 on.
mlir::scf::ForOp createLoop(mlir::ImplicitLocOpBuilder &b, Unrolling unrolling,
                            Value end, int64_t step, ValueRange initial);

/// Emits the body where a condition holds.
void emitIf(mlir::ImplicitLocOpBuilder &b, Value condition,
            llvm::function_ref<void()> body);

/// Prepares the copies of a contraction's factors by a block's threads, or by
/// those that have a number, of type index.
void prepareCopies(const ContractionTile &tile, TileCopy &lhs, TileCopy &rhs,
                   bool isAsynchronous, Value threadId = {});

/// Products that run on by themselves, as the path's instructions have it. Both
/// functions outlive the loop's emission.
struct AsyncProducts {
  /// Makes what the thread has written to shared memory visible to products
  /// behind the next barrier.
  llvm::function_ref<void()> publish;
  /// Waits for the products of all but the `newer` last steps.
  llvm::function_ref<void(int64_t newer)> await;
};

/// The loop of one tile over the steps of the reduce axis.
struct MainLoop {
  /// Both prepared.
  TileCopy &lhs, &rhs;
  /// Stages of the tiles in shared memory; 2 if copies are not asynchronous.
  int64_t stages;
  /// Reduce elements of a step.
  int64_t depth;
  /// Of the reduce axis, of type index.
  Value reduceExtent;
  bool isAsynchronous;
  /// Null where `multiply` ends with its products.
  const AsyncProducts *asyncProducts = nullptr;

  /// Multiplies the step that lies in a stage and returns the accumulators.
  using Multiply = llvm::function_ref<Values(Value stage, Values accumulators)>;
  /// Emits the loop and returns the accumulators behind it. Asynchronous copies
  /// may still be pending then, of steps beyond the extent: empty ones.
  Values emit(mlir::ImplicitLocOpBuilder &b, const Values &accumulators,
              Multiply multiply) const;

  /// The k blocks of a step, whose products are not asynchronous.
  struct KBlocks {
    int64_t count;
    /// Loads what the products of a k block take from a stage: always as many
    /// values of the same types.
    llvm::function_ref<Values(Value stage, int64_t kBlock)> load;
    /// Adds the products of what was loaded to the accumulators.
    llvm::function_ref<Values(ValueRange loaded, Values accumulators)> multiply;
  };
  /// The same with k blocks that are loaded ahead.
  Values emit(mlir::ImplicitLocOpBuilder &b, const Values &accumulators,
              const KBlocks &kBlocks) const;

private:
  /// Steps that copies are ahead of the one that is multiplied.
  int64_t stepsAhead() const { return stages - (asyncProducts ? 2 : 1); }
  void publish() const;
  void awaitProducts(int64_t newer) const;
  Values emitAsynchronous(mlir::ImplicitLocOpBuilder &b,
                          const Values &accumulators, Multiply multiply) const;
  Values emitStaged(mlir::ImplicitLocOpBuilder &b, const Values &accumulators,
                    Multiply multiply) const;
  Values emitAsynchronous(mlir::ImplicitLocOpBuilder &b,
                          const Values &accumulators,
                          const KBlocks &kBlocks) const;
  Values emitStaged(mlir::ImplicitLocOpBuilder &b, const Values &accumulators,
                    const KBlocks &kBlocks) const;
  /// Without asynchronous copies: copies step 0.
  void copyFirst(mlir::ImplicitLocOpBuilder &b) const;
  /// Loads what a step copies into registers, or zeros if it lies beyond the
  /// extent, and stores it into a stage.
  Values loadStep(mlir::ImplicitLocOpBuilder &b, Value reduceOffset,
                  Value isInside) const;
  void storeStep(ValueRange loaded, Value stage, Value reduceOffset) const;
  /// The stage behind `stage`, around.
  Value nextStage(mlir::ImplicitLocOpBuilder &b, Value stage) const;
};

} // namespace ftuner

#endif // FTUNER_CODEGEN_IR_MAINLOOP_H
