//===- LaunchOrder.h - Which launches wait for which ------------*- C++ -*-===//
//
// Launches of a host function on buffers depend on each other by what they read
// and write. Views of a buffer count as the whole of it; buffers of the
// workspace, and arguments and results of the host ABI, do not overlap. A
// buffer that is not found, such as one that a branch chooses, may be any.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_ANALYSIS_LAUNCHORDER_H
#define FTUNER_ANALYSIS_LAUNCHORDER_H

#include "FTuner/Dialect/UKernel/IR/UKernel.h"

#include <vector>

namespace ftuner {

/// What a launch does to one buffer.
struct BufferAccess {
  /// The allocation, view of the workspace, or argument that the memory is of;
  /// null if not known.
  mlir::Value buffer;
  bool isRead = false, isWritten = false;
};

/// The buffers of a launch, its kernel emitted or not. A kernel that does not
/// tell reads and writes them all.
std::vector<BufferAccess> accessesOf(ukernel::LaunchOp launch);

/// For each list of accesses, in the order of launches, those before it that it
/// has to wait for, ascending; without those that another of them waits for.
std::vector<std::vector<size_t>>
launchOrder(llvm::ArrayRef<std::vector<BufferAccess>> launches);

} // namespace ftuner

#endif // FTUNER_ANALYSIS_LAUNCHORDER_H
