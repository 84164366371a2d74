//===- LoopSplit.h - Loops of a linalg op over threads ----------*- C++ -*-===//
//
// A linalg op that no workload takes is computed by one thread for every point
// of its parallel loops; the other loops run inside the thread. A loop counts
// as parallel only if every output is indexed by it alone in some dimension:
// then two threads never write the same element.
//
// If an operand is contiguous along a loop that adds up, takes a maximum or the
// like, a warp computes a point (FallbackLoops.h).
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
  /// True if a warp computes a point, with the last sequential loop across
  /// lanes.
  bool isAcrossLanes = false;
  /// Neighbouring points along the fastest loop that a thread computes as
  /// vectors.
  int64_t vectorWidth = 1;

  /// Returns the number of threads that compute a point.
  int64_t threads() const { return isAcrossLanes ? kLanes : 1; }
  static constexpr int64_t kLanes = 32;
};

LoopSplit splitLoops(mlir::linalg::LinalgOp op);

/// Returns whether the body of `op`, which has operations in f16 or bf16, is
/// computed in f32.
bool promotesToF32(mlir::linalg::LinalgOp op);

/// Returns whether an output does not depend on the sequential loops.
bool staysInRegister(mlir::linalg::LinalgOp op, const LoopSplit &split,
                     mlir::OpOperand &output);

/// Returns the operation that accumulates each output in the sequential loops,
/// in order. Returns no value unless each output has one such operation, of
/// numbers of 32 bits, and stays in a register.
std::optional<llvm::SmallVector<mlir::Operation *>>
laneCombiners(mlir::linalg::LinalgOp op, const LoopSplit &split);

} // namespace ftuner

#endif // FTUNER_ANALYSIS_LOOPSPLIT_H
