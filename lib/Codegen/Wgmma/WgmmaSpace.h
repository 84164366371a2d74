//===- WgmmaSpace.h - What the wgmma path has to choose from ----*- C++ -*-===//
//
// Blocks of one to four warpgroups, along m or n, of 64 or 128 rows and 8 to
// 256 columns with up to 128 accumulators in a thread; steps of 128 bytes along
// the reduce axis in 3 to 6 stages. With swapped operands, up to 64 rows. With
// producers and tensor maps also clusters of two blocks (along m with packed
// weights in place of maps, too), and persistent blocks, with one set of
// consumer warpgroups or two in ping-pong.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_CODEGEN_WGMMA_WGMMASPACE_H
#define FTUNER_LIB_CODEGEN_WGMMA_WGMMASPACE_H

#include "FTuner/Codegen/ContractionSpace.h"
#include "FTuner/Codegen/Wgmma/WgmmaSchedule.h"

namespace ftuner {

/// Most registers of a thread for accumulators that leave room for addresses:
/// with more, ptxas serializes the instructions.
constexpr int64_t kWgmmaAccumulatorRegisters = 128;

class WgmmaSpace final : public ContractionSpace {
public:
  WgmmaSpace(const Workload &workload, const DeviceSpec &device);

  void forEachBlock(int64_t alignment, BlockVisitor visit) const override;
  void forEachSchedule(const KernelFamily &block,
                       FamilyVisitor visit) const override;
  Preference preference(const KernelFamily &family) const override;

private:
  /// Numbers of stages that copies of the schedule may have.
  llvm::ArrayRef<int64_t> stagesOf(const WgmmaSchedule &schedule) const;
  /// Gives a family with producers and tensor maps persistent blocks, with the
  /// ping-pong of its schedule; false where they would not do or not serve.
  bool makePersistent(KernelFamily &family) const;
  void visitTiles(const WgmmaSchedule &schedule, BlockVisitor visit) const;

  /// Of the factors in shared memory.
  int64_t elementBytes;
  /// Whether tensor maps can describe both factors.
  bool canHaveMaps;
  /// True where a factor can have fewer elements along m or n than a box.
  bool canBeSmall;
};

} // namespace ftuner

#endif // FTUNER_LIB_CODEGEN_WGMMA_WGMMASPACE_H
