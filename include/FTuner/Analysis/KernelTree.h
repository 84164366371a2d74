//===- KernelTree.h - The tree of a fallback kernel -------------*- C++ -*-===//
//
// Loops and statements (ProgramAst.h) of a kernel that no codegen path wrote,
// read from its loops before these are lowered: CDMPP's second producer.
//
//   * Loops. The points that threads have are numbered one after the other; the
//     number is split at the ends of rows, matrices and so on where these are
//     whole numbers of threads or of blocks, so that most accesses move by the
//     same distance in each loop. What runs inside a thread is a loop as it is.
//   * Statements. One for each store, and in a loop that carries values one
//     that accumulates, one that begins and, of lanes, one that joins.
//   * Accesses. The distance of an access between two iterations of a loop is
//     what its address changes by, at most of five places of the iteration
//     space. An index that was loaded counts as its place, as if a table were
//     read in order, and as a line of 64 bytes away at least; an address that
//     cannot be computed is a line away in each iteration of each loop.
//   * Whole blocks and warps: threads beyond the last point count, as in the
//     trees of codegen paths, unless there is but one block.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_ANALYSIS_KERNELTREE_H
#define FTUNER_ANALYSIS_KERNELTREE_H

#include "FTuner/Schedule/ProgramAst.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace ftuner {

/// What a launch passes, as far as it is known.
struct LaunchNumbers {
  llvm::SmallVector<std::optional<int64_t>> sizes, strides;
};

/// The tree of a fallback kernel of this launch. An error where a loop's length
/// does not follow from what the launch passes, and for kernels that are not of
/// the form of `outlineFallback`. A stride that is not known is that of dense
/// rows.
llvm::Expected<PartAst> describeFallback(mlir::gpu::GPUModuleOp kernel,
                                         const LaunchNumbers &launch);

} // namespace ftuner

#endif // FTUNER_ANALYSIS_KERNELTREE_H
