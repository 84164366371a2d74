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

/// That the workload is a contraction with few enough batch axes, whose lhs is
/// contiguous along m or k, whose rhs along n or k, and whose output along n.
llvm::Error checkContractionLayout(const CodegenModel &path,
                                   const Workload &workload);
/// That no operand is packed.
llvm::Error checkUnpacked(const CodegenModel &path, const Workload &workload);
/// That what becomes of factors before they are multiplied is of numbers of up
/// to 32 bits, and so is what it reads.
llvm::Error checkPrologues(const CodegenModel &path, const Workload &workload);
/// Most slices of the reduce axis: a thread of the kernel that sums them loads
/// all of its element's at once.
inline constexpr int64_t kMaxReduceSplit = 32;

/// That the family's parts lie along one of the axes, with no more slices than
/// that.
llvm::Error checkContractionFamily(const CodegenModel &path,
                                   const KernelFamily &family,
                                   llvm::ArrayRef<unsigned> combineAxes);
/// That a block has one element along every batch axis.
llvm::Error checkBatchTiles(const CodegenModel &path,
                            const ContractionAxes &axes, const BlockTile &tile);
/// That one block of `needs` fits on the device, by shared memory and
/// registers.
llvm::Error checkBlockFits(const CodegenModel &path,
                           const KernelResources &needs,
                           const DeviceSpec &device);

/// Instructions of an operation on one element.
double instructionsOf(OperationKind kind);

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

/// The uKernel of a part whose tile `workersM` × `workersN` workers share
/// equally. Of families that cannot be emitted, numbers below 1 count as 1, and
/// axes that tiles lack do not count.
UKernel contractionUKernel(const KernelFamily &family, unsigned part,
                           int64_t workersM, int64_t workersN);

} // namespace ftuner

#endif // FTUNER_CODEGEN_CONTRACTIONMODEL_H
