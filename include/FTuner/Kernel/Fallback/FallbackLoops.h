//===- FallbackLoops.h - Points of a linalg op, a thread each ---*- C++ -*-===//
//
// A linalg op that no workload takes is computed by one thread for every point
// of its parallel loops; the other loops run inside the thread, their sums in
// registers. A loop counts as parallel only if every output is indexed by it
// alone in some dimension: then two threads never write the same element.
//
// Where an operand is contiguous along a loop that adds up, takes a maximum or
// the like, threads of neighbouring points would read far apart. There a warp
// computes a point: that loop's iterations go round its lanes, whose results
// are combined in the end, always in the same order.
//
// Bodies on f16 and bf16 compute in f32, where every operation of the body
// allows it, and round each value to the type that the program gives it. What
// reductions accumulate stays in f32 until it is stored.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_KERNEL_FALLBACK_FALLBACKLOOPS_H
#define FTUNER_KERNEL_FALLBACK_FALLBACKLOOPS_H

#include "FTuner/Analysis/LoopSplit.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace ftuner {

/// Number of iterations of every loop of `op`, from the sizes of its operands
/// as `sizeOf(operand, dimension)` gives them (dynamic ones only).
llvm::SmallVector<mlir::Value>
computeExtents(mlir::ImplicitLocOpBuilder &b, mlir::linalg::LinalgOp op,
               llvm::function_ref<mlir::Value(unsigned, int64_t)> sizeOf);

/// Returns how many neighbouring points a thread can compute at once where the
/// operands of `op` are aligned to `alignment` bytes: the elements of the
/// widest type in that many bytes, if each operand has them side by side, or
/// one element for all of them; else 1.
int64_t vectorWidthOf(mlir::linalg::LinalgOp op, const LoopSplit &split,
                      int64_t alignment);

/// Returns the number of points of the parallel loops, the product of their
/// extents, or of vectors of points.
mlir::Value computePoints(mlir::ImplicitLocOpBuilder &b, const LoopSplit &split,
                          llvm::ArrayRef<mlir::Value> extents);

/// Computes the point, or the vector of points, with the number `point`, or the
/// share of it that the lane has; all lanes of a warp come here together.
/// `mapping` holds what stands for the operands and captured values of `op`
/// here.
void emitPoint(mlir::ImplicitLocOpBuilder &b, mlir::linalg::LinalgOp op,
               const LoopSplit &split, llvm::ArrayRef<mlir::Value> extents,
               mlir::Value point, mlir::Value lane,
               const mlir::IRMapping &mapping);

} // namespace ftuner

#endif // FTUNER_KERNEL_FALLBACK_FALLBACKLOOPS_H
