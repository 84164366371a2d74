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
// Products may be deferred: instructions that run on by themselves behind
// `multiply` and read shared memory through the async proxy (wgmma). Then a
// stage is read for one step longer, whoever writes a stage tells that proxy,
// and copies start behind the products, which should not wait for them:
//
//   start steps 0 … stages − 3
//   for each step: wait for it; proxy fence; barrier; multiply;
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
                   Value threadId = {});

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
  /// Whether instructions of four warps multiply, which run on by themselves.
  bool isDeferred = false;

  /// Multiplies the step that lies in a stage and returns the accumulators.
  using Multiply = llvm::function_ref<Values(Value stage, Values accumulators)>;
  /// Emits the loop and returns the accumulators behind it. Asynchronous copies
  /// may still be pending then, of steps beyond the extent: empty ones.
  Values emit(mlir::ImplicitLocOpBuilder &b, const Values &accumulators,
              Multiply multiply) const;

private:
  /// Steps that copies are ahead of the one that is multiplied.
  int64_t stepsAhead() const { return stages - (isDeferred ? 2 : 1); }
  void fenceProxy(mlir::ImplicitLocOpBuilder &b) const;
  void awaitProducts(mlir::ImplicitLocOpBuilder &b, int64_t newer) const;
  Values emitAsynchronous(mlir::ImplicitLocOpBuilder &b,
                          const Values &accumulators, Multiply multiply) const;
  Values emitStaged(mlir::ImplicitLocOpBuilder &b, const Values &accumulators,
                    Multiply multiply) const;
  /// The stage behind `stage`, around.
  Value nextStage(mlir::ImplicitLocOpBuilder &b, Value stage) const;
};

} // namespace ftuner

#endif // FTUNER_CODEGEN_IR_MAINLOOP_H
