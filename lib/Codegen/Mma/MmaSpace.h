//===- MmaSpace.h - What the mma path has to choose from --------*- C++ -*-===//
//
// Blocks of 1 to 8 warps, up to 4 (8 in one line) along m and n; warp tiles of
// 16 to 128 rows and 8 to 128 columns with up to 128 accumulators in a lane;
// steps of 32, 64 or 128 bytes along the reduce axis in 2 to 6 stages. With
// swapped operands, blocks of 8, 24, 40 or 56 rows: of others there are equal
// ones without. Of products that one or two warps have all of, up to 8 elements
// of a batch axis, in blocks of 4 or 8 warps.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_CODEGEN_MMA_MMASPACE_H
#define FTUNER_LIB_CODEGEN_MMA_MMASPACE_H

#include "FTuner/Codegen/ContractionSpace.h"
#include "FTuner/Codegen/Mma/MmaSchedule.h"

namespace ftuner {

class MmaSpace final : public ContractionSpace {
public:
  MmaSpace(const Workload &workload, const DeviceSpec &device);

  void forEachBlock(int64_t alignment, BlockVisitor visit) const override;
  void forEachSchedule(const KernelFamily &block,
                       FamilyVisitor visit) const override;
  Preference preference(const KernelFamily &family) const override;

private:
  /// Of elements of batch axes, every number of warps.
  void visitWarps(MmaSchedule schedule, KernelFamily &family, UKernel &ukernel,
                  BlockVisitor visit) const;
  void visitWarpTiles(const MmaSchedule &schedule, KernelFamily &family,
                      UKernel &ukernel, BlockVisitor visit) const;

  /// Of the factors in shared memory.
  int64_t elementBytes;
};

} // namespace ftuner

#endif // FTUNER_LIB_CODEGEN_MMA_MMASPACE_H
