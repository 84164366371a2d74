//===- KernelTree.h - The tree of a fallback kernel -------------*- C++ -*-===//
//
// Loops and statements (ProgramAst.h) of a kernel that no codegen path wrote,
// read from its loops before these are lowered: CDMPP's second producer.
//
//   * Loops. The points that threads have are numbered one after the other; the
//     number is split at the ends of rows, matrices and so on where these are
//     whole numbers of threads or of blocks, so that most accesses move by the
//     same distance in each loop. A loop inside a thread is a loop of the tree.
//   * Statements. There is one for each store. A loop that carries values has
//   one
//     that begins, one that accumulates, and, if lanes share it, one that
//     joins.
//   * Accesses. The distance of an access between two iterations of a loop is
//     the change of its address, as at most of five places of the iteration
//     space. An index that was loaded counts as its place, as if a table were
//     read in order, and as a line of 64 bytes away at least; an address that
//     cannot be computed is a line away in each iteration of each loop.
//   * Whole blocks and warps: threads beyond the last point count, as in the
//     trees of codegen paths, unless there is only one block.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_ANALYSIS_KERNELTREE_H
#define FTUNER_ANALYSIS_KERNELTREE_H

#include "FTuner/Schedule/ProgramAst.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace ftuner {

/// Numbers that a launch passes, as far as they are known.
struct LaunchNumbers {
  llvm::SmallVector<std::optional<int64_t>> sizes, strides;
};

/// Returns the tree of a fallback kernel of this launch. Returns an error if a
/// loop's length does not follow from the numbers that the launch passes, or if
/// the kernel does not have the form of `outlineFallback`. Unknown strides
/// count as strides of dense rows.
llvm::Expected<PartAst> describeFallback(mlir::gpu::GPUModuleOp kernel,
                                         const LaunchNumbers &launch);

} // namespace ftuner

#endif // FTUNER_ANALYSIS_KERNELTREE_H
