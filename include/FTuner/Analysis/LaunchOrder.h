//===- LaunchOrder.h - Order of launches ------------------------*- C++ -*-===//
//
// Launches of a host function on buffers depend on each other by the buffers
// that they read and write. Views of a buffer count as the whole of it; buffers
// of the workspace, and arguments and results of the host ABI, do not overlap.
// A buffer that is not found, such as one that a branch chooses, may be any.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_ANALYSIS_LAUNCHORDER_H
#define FTUNER_ANALYSIS_LAUNCHORDER_H

#include "FTuner/Dialect/UKernel/IR/UKernel.h"

#include <vector>

namespace ftuner {

/// Accesses of a launch to one buffer.
struct BufferAccess {
  /// The allocation, view of the workspace, or argument that owns the memory;
  /// null if not known.
  mlir::Value buffer;
  bool isRead = false, isWritten = false;
};

/// Returns the buffers of a launch, whether its kernel is emitted or not. A
/// kernel without a description reads and writes all buffers.
std::vector<BufferAccess> accessesOf(ukernel::LaunchOp launch);

/// Returns for each launch, given by its accesses in the order of the program,
/// the earlier launches that it has to wait for, ascending. Launches that
/// another one of them waits for are left out.
std::vector<std::vector<size_t>>
launchOrder(llvm::ArrayRef<std::vector<BufferAccess>> launches);

} // namespace ftuner

#endif // FTUNER_ANALYSIS_LAUNCHORDER_H
