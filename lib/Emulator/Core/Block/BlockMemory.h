//===- BlockMemory.h - Memory that a block's threads use --------*- C++ -*-===//
//
// A block's shared memory, its accesses, and the use of other blocks' shared
// memory. What a kernel does in shared memory of another block, that block does
// on behalf of the thread. The memory is that of a block from its start to its
// end, which those who use it must be certain of.
//
// Shared memory begins at a multiple of what matrix descriptors address. There
// are guard bytes around its parts, and slack around those:
//
//     slack, guard, static, guard, dynamic, guard, slack
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_EMULATOR_CORE_BLOCK_BLOCKMEMORY_H
#define FTUNER_LIB_EMULATOR_CORE_BLOCK_BLOCKMEMORY_H

#include "Block/Scheduler.h"
#include "Checks/MemoryChecker.h"
#include <string>
#include <vector>

namespace ftuner::emulator {

/// The bytes of shared memory that nobody wrote: NaN of any type.
constexpr unsigned char kPoison = 0xff;

class BlockMemory {
public:
  explicit BlockMemory(Scheduler &scheduler) : scheduler(scheduler) {}
  BlockMemory(const BlockMemory &) = delete;
  BlockMemory &operator=(const BlockMemory &) = delete;

  /// Makes room for what the scheduler's launch asks for.
  void prepare();
  /// A block begins: nobody wrote anything.
  void begin();
  /// At the cluster's end: looks for writes outside of shared memory.
  void checkGuards() const;

  const SharedMemory &shared() const { return memory; }
  /// The window of shared memory that matrix descriptors address.
  char *window() const;
  /// As Scheduler::blockName.
  std::string blockName() const { return scheduler.blockName(); }

  // What compiled kernels ask for, called on the fiber of the thread.
  /// Returns only if the access may happen.
  void checkAccess(Fiber &fiber, const char *address, size_t bytes,
                   AccessKind kind, uint32_t alignment, uint32_t site);
  /// The address in block `rank` of the cluster of what lies at `address` in
  /// this block's shared memory.
  char *mapAddress(Fiber &fiber, char *address, uint32_t rank, uint32_t site);

  // Shared memory of other blocks of the cluster.
  /// The block, other than this one, whose shared memory holds `address`; null
  /// if none.
  const ClusterBlock *findPeer(const char *address) const;
  /// To be called before a thread of another block uses this one's shared
  /// memory. Reports a block that has ended, and then does not return, or that
  /// may not have started. Without `isLasting`, something else tells this block
  /// of the end of the use.
  void checkRemoteUse(Fiber &user, bool isLasting, uint32_t site);
  /// The address in this block of what lies at `address` in `other`.
  char *translate(const BlockMemory &other, char *address) const {
    return memory.staticBase + (address - other.memory.staticBase);
  }

private:
  Scheduler &scheduler;
  SharedMemory memory;
  std::vector<char> arena; ///< In which it lies.
};

} // namespace ftuner::emulator

#endif // FTUNER_LIB_EMULATOR_CORE_BLOCK_BLOCKMEMORY_H
