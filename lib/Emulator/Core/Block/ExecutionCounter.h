//===- ExecutionCounter.h - Hears what a launch executes --------*- C++ -*-===//
#ifndef FTUNER_LIB_EMULATOR_CORE_BLOCK_EXECUTIONCOUNTER_H
#define FTUNER_LIB_EMULATOR_CORE_BLOCK_EXECUTIONCOUNTER_H

#include "Checks/MemoryChecker.h"
#include "Matrices/WarpMatrix.h"

namespace ftuner::emulator {

/// Hears of all that the threads of a launch do, whose blocks then run on one
/// CPU thread.
class ExecutionCounter {
public:
  virtual ~ExecutionCounter() = default;

  /// The block of this rank in its cluster begins, those of lower ranks before.
  virtual void beginBlock(const SharedMemory &shared, uint32_t rank,
                          size_t threads) = 0;
  /// The thread enters a basic block of the kernel.
  virtual void enter(const Fiber &fiber, uint32_t basicBlock) = 0;
  /// An access that is aligned to `alignment` bytes.
  virtual void access(const Fiber &fiber, const char *address, size_t bytes,
                      AccessKind kind, uint32_t alignment, uint32_t site) = 0;
  virtual void copy(const Fiber &fiber, const AsyncCopy &copy) = 0;
  /// Rows that no lane may access are null.
  virtual void copyMatrices(const MatrixCopy &copy, const MatrixRows &rows,
                            AccessKind kind) = 0;
  /// Boxes of a tensor map are copied to shared memory.
  virtual void copyBox(uint64_t rows, uint64_t rowsOutside) = 0;
  /// All threads of the block met.
  virtual void passBarrier(uint32_t rank) = 0;
  /// All threads of the block are through.
  virtual void endBlock(uint32_t rank) = 0;
};

} // namespace ftuner::emulator

#endif // FTUNER_LIB_EMULATOR_CORE_BLOCK_EXECUTIONCOUNTER_H
