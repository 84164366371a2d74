//===- SimtSpace.h - What the SIMT path has to choose from ------*- C++ -*-===//
//
// Blocks of whole warps in every shape, register tiles of 1 to 16 rows and 1 to
// 8 columns, steps of 8 to 32 elements in 2 to 4 stages, of up to 128 where a
// factor is a vector. The path suggests blocks of 2^a · {1, 3, 5, 9} threads
// along each axis: divisors of a range, which the paper's rules take, may lack
// the tiles that suit a device. Where products are small, it suggests blocks of
// several elements of a batch axis, of less than four warps each.
//
// Steps are ordered for cost models that are blind to them: the least padding
// of the reduce axis first, then a depth of 16 elements, then three stages.
// Families are ordered by blocks of 128 to 256 threads, copies that all threads
// share evenly, large register tiles and square tiles.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_CODEGEN_SIMT_SIMTSPACE_H
#define FTUNER_LIB_CODEGEN_SIMT_SIMTSPACE_H

#include "FTuner/Codegen/ContractionSpace.h"
#include "FTuner/Codegen/Simt/SimtSchedule.h"

namespace ftuner {

class SimtSpace final : public ContractionSpace {
public:
  SimtSpace(const Workload &workload, const DeviceSpec &device);

  void forEachBlock(int64_t alignment, BlockVisitor visit) const override;
  void forEachSchedule(const KernelFamily &block,
                       FamilyVisitor visit) const override;
  Preference preference(const KernelFamily &family) const override;

private:
  /// A step along the reduce axis.
  struct Step {
    int64_t depth, stages;
  };
  void orderSteps();
  /// Of threads along each axis, every register tile.
  void visitThreads(const SimtSchedule &schedule, KernelFamily &family,
                    UKernel &ukernel, BlockVisitor visit) const;
  /// Of elements of batch axes, every number of threads.
  void visitBatch(KernelFamily &family, UKernel &ukernel, SimtSchedule schedule,
                  BlockVisitor visit) const;
  /// Whether a tile of `threads` threads with `elements` elements each leaves
  /// threads or whole register tiles idle for every size of m (0) or n (1).
  bool isOversized(unsigned factor, int64_t threads, int64_t elements) const;
  /// Whether rows of the tile begin and end at memory transactions in every
  /// operand that is contiguous along a space axis.
  bool isAligned(const BlockTile &tile) const;

  /// Register tiles along m and n, ascending.
  llvm::SmallVector<int64_t> registerTiles[2];
  /// Those of m and n along which an operand is contiguous.
  llvm::SmallVector<unsigned, 2> contiguousAxes;
  /// Preferred ones first, and the least of them.
  llvm::SmallVector<Step> steps;
  Step leastStep = {8, 2};
};

} // namespace ftuner

#endif // FTUNER_LIB_CODEGEN_SIMT_SIMTSPACE_H
