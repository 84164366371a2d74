//===- ContractionAst.h - Loops of a contraction's block --------*- C++ -*-===//
//
// What the trees of all paths of contractions share (ProgramAst.h): the sums
// begin, then a loop over steps of the reduce axis with a copy of each factor
// and the products, and behind it the epilogue. A path says which loops share
// out the tile.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_CODEGEN_CONTRACTIONAST_H
#define FTUNER_CODEGEN_CONTRACTIONAST_H

#include "FTuner/Codegen/SharedTile.h"
#include "FTuner/Schedule/KernelFamily.h"
#include "FTuner/Schedule/ProgramAst.h"

namespace ftuner {

/// The loops of a block, by axes of the workload.
struct ContractionLoops {
  /// Blocks of a cluster, and threads: warps and lanes where warps hold tiles.
  llvm::SmallVector<AstLoop, 6> threads;
  /// Of the elements of the output that a thread has, around the step's loops
  /// along k.
  llvm::SmallVector<AstLoop, 6> points;
  /// Along k, within a step.
  llvm::SmallVector<AstLoop, 3> depth;
  /// Of one instruction of the tensor cores, of a lane: along m and n, and k.
  llvm::SmallVector<AstLoop, 4> instruction;
  llvm::SmallVector<AstLoop, 1> instructionDepth;

  /// A factor's copy to shared memory.
  struct Copy {
    SharedTile tile;
    /// Bytes of an element there.
    int64_t elementBytes = 4;
    int64_t stages = 1;
    /// Of a block, and elements of each access.
    int64_t threads = 1, vectorWidth = 1;
    /// One instruction for the whole tile, by the unit that copies.
    bool isBulk = false;
  };
  /// Of lhs and rhs.
  std::array<Copy, 2> copies = {};
  /// Whether sums pass through shared memory on their way to the output.
  bool isStaged = false;
};

/// Adds the statements of a block to the tree, whose open loops are the grid.
void describeContractionBlock(const Workload &workload,
                              const KernelFamily &family, unsigned part,
                              llvm::ArrayRef<int64_t> shape,
                              const ContractionLoops &loops, ProgramAst &ast);

/// Adds loops of groups of threads or warps along batch axes, which share out
/// the block's elements, and of the elements of each.
void addBatchLoops(const Workload &workload, const KernelFamily &family,
                   unsigned part, int64_t groups, ContractionLoops &loops);

} // namespace ftuner

#endif // FTUNER_CODEGEN_CONTRACTIONAST_H
