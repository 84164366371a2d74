//===- ContractionModel.h - What models of contractions share ---*- C++ -*-===//
//
// Rules that hold for every path whose blocks compute a tile of m and n of one
// product and step along k. Errors begin with the path's name.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_CODEGEN_CONTRACTIONMODEL_H
#define FTUNER_CODEGEN_CONTRACTIONMODEL_H

#include "FTuner/Schedule/CodegenModel.h"

namespace ftuner {

/// Most threads of a block, on any device.
inline constexpr int64_t kMaxThreads = 1024;
/// Fewest pipeline stages: one is read while another one is filled.
inline constexpr int64_t kMinStages = 2;
/// Most pipeline stages: more than shared memory holds, so that sums of their
/// bytes do not overflow.
inline constexpr int64_t kMaxStages = 1024;

/// The row of a schedule's table that says the stages.
template <typename ScheduleT>
constexpr ScheduleRow<ScheduleT> stagesRow(int64_t ScheduleT::*member) {
  return ScheduleRow<ScheduleT>(
             "stages", member,
             "pipeline stages of the copies into shared memory")
      .label("stages")
      .range(kMinStages, kMaxStages);
}

/// That the workload is a contraction with few enough batch axes, whose lhs is
/// contiguous along m or k, whose rhs along n or k, and whose output along n.
llvm::Error checkContractionLayout(const CodegenModel &path,
                                   const Workload &workload);
/// That factors have dimensions of one axis each, fused or not.
llvm::Error checkNoWindows(const CodegenModel &path, const Workload &workload);
/// Returns an error for a factor with windows that a prologue changes, that is
/// not zero outside, or whose positions may lie outside by batch axes.
llvm::Error checkWindows(const CodegenModel &path, const Workload &workload);
/// Returns the elements of the widest vectors, of up to `width` elements, that
/// do not reach from one run of neighbours in memory into the next.
int64_t elementsWithinRun(const Workload &workload, const Operand &operand,
                          int64_t width);
/// That no operand is packed.
llvm::Error checkUnpacked(const CodegenModel &path, const Workload &workload);
/// That what becomes of factors before they are multiplied is of numbers of up
/// to 32 bits, and so is what it reads.
llvm::Error checkPrologues(const CodegenModel &path, const Workload &workload);
/// Most slices of the reduce axis: a thread of the kernel that sums them loads
/// all of its element's at once.
inline constexpr int64_t kMaxReduceSplit = 32;

/// Returns an error if the family's parts lie along other axes, if it has more
/// slices than that, or if it has slices and the output has padded rows: the
/// buffer of slices has no padding.
llvm::Error checkContractionFamily(const CodegenModel &path,
                                   const Workload &workload,
                                   const KernelFamily &family,
                                   llvm::ArrayRef<unsigned> combineAxes);
/// That a block has one element along every batch axis.
llvm::Error checkNoBatchTiles(const CodegenModel &path,
                              const ContractionAxes &axes,
                              const BlockTile &tile);
/// That workers along the batch axes share the block's elements equally.
llvm::Error checkBatchTiles(const CodegenModel &path,
                            const KernelFamily &family, unsigned part,
                            int64_t workers);
/// Of `workers` along the batch axes, those along each axis, 1 along others:
/// from the last to the first batch axis as many as divide its tile, and along
/// the combine axis, if it is one, what is left.
BlockTile batchWorkers(const KernelFamily &family, unsigned part,
                       int64_t workers);
/// That one block of `needs` fits on the device, by shared memory and
/// registers.
llvm::Error checkBlockFits(const CodegenModel &path,
                           const KernelResources &needs,
                           const DeviceSpec &device);

/// Instructions of operations for one point.
double instructionsOf(const Operations &operations);

/// Operations of what becomes of a contraction's factor, lhs (0) or rhs (1),
/// and of its sums: `ContractionView`'s, of a workload that is known to be one.
llvm::ArrayRef<Operations> prologueOperations(const Workload &workload,
                                              unsigned factor);
llvm::ArrayRef<Operations> epilogueOperations(const Workload &workload);
/// Whether more becomes of a factor than casts that keep every value.
inline bool hasPrologue(const Workload &workload, unsigned factor) {
  return !prologueOperations(workload, factor).empty();
}
/// What the prologue of a factor adds to copies of vectors of its tile.
struct PrologueWork {
  /// Instructions for each element.
  double instructions = 0;
  /// Registers for each vector of what is read beside it, and of these what is
  /// read once for all steps.
  int64_t registers = 0, registersOfAllSteps = 0;
  /// Bytes that are read beside each element in a step.
  int64_t globalBytes = 0;
};
PrologueWork prologueWork(const Workload &workload, unsigned factor,
                          int64_t vectorWidth);

/// Points of the output whose accumulators `registers` of 32 bits of a thread
/// hold: as many for each as the workload's state has, by their types.
int64_t pointsHeld(const Workload &workload, int64_t registers);

/// The uKernel of a part whose tile `workersM` × `workersN` workers share
/// equally, each `workersBatch` times along batch axes. Of families that cannot
/// be emitted, numbers below 1 count as 1, and axes that tiles lack do not
/// count.
UKernel contractionUKernel(const KernelFamily &family, unsigned part,
                           int64_t workersM, int64_t workersN,
                           int64_t workersBatch = 1);

/// A family with one or two tiles: `rows` and `columns` are the elements of a
/// worker along m and n, one number of rows for each part, ascending. Axes
/// beyond m, n and k have tile 1.
template <typename ScheduleT>
KernelFamily contractionFamily(const ScheduleT &schedule,
                               llvm::ArrayRef<int64_t> rows, int64_t columns,
                               int64_t depth, unsigned numAxes) {
  KernelFamily family;
  family.schedule = schedule.pack();
  auto [m, n, k] = family.contractionAxes();
  for (int64_t height : rows) {
    BlockTile &tile = family.tiles.emplace_back(numAxes, 1);
    tile[m] = schedule.workersAlong(0) * height;
    tile[n] = schedule.workersAlong(1) * columns;
    tile[k] = depth;
  }
  return family;
}

} // namespace ftuner

#endif // FTUNER_CODEGEN_CONTRACTIONMODEL_H
