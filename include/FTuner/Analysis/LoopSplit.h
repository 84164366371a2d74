//===- LoopSplit.h - Loops of a linalg op over threads ----------*- C++ -*-===//
//
// A linalg op that no workload takes is computed by one thread for every point
// of its parallel loops; the other loops run inside the thread. A loop counts
// as parallel only if every output is indexed by it alone in some dimension:
// then two threads never write the same element.
//
// Where an operand is contiguous along a loop that adds up, takes a maximum or
// the like, a warp computes a point (FallbackLoops.h).
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_ANALYSIS_LOOPSPLIT_H
#define FTUNER_ANALYSIS_LOOPSPLIT_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace ftuner {

struct LoopSplit {
  /// Loops over threads, the fastest one last, and loops inside a thread, both
  /// by their numbers in the op.
  llvm::SmallVector<unsigned> parallel, sequential;
  /// Whether a warp computes a point, the last sequential loop across lanes.
  bool isAcrossLanes = false;
  /// Neighbouring points along the fastest loop that a thread computes as
  /// vectors.
  int64_t vectorWidth = 1;

  /// Threads of a point.
  int64_t threads() const { return isAcrossLanes ? kLanes : 1; }
  static constexpr int64_t kLanes = 32;
};

LoopSplit splitLoops(mlir::linalg::LinalgOp op);

/// Whether the body of `op` computes in f32 what it states in f16 or bf16.
bool promotesToF32(mlir::linalg::LinalgOp op);

/// Whether an output does not depend on the sequential loops.
bool staysInRegister(mlir::linalg::LinalgOp op, const LoopSplit &split,
                     mlir::OpOperand &output);

/// What combines each output with what the sequential loops add to it, in
/// order; none unless each has one combiner, of numbers of 32 bits, and a
/// register.
std::optional<llvm::SmallVector<mlir::Operation *>>
laneCombiners(mlir::linalg::LinalgOp op, const LoopSplit &split);

} // namespace ftuner

#endif // FTUNER_ANALYSIS_LOOPSPLIT_H
