//===- AsyncCopies.h - Asynchronous copies of threads -----------*- C++ -*-===//
//
// cp.async: a thread has 4, 8 or 16 bytes copied from global to shared memory.
// A copy writes when its thread waits for it, as late as the rules allow, or
// when an mbarrier is told of it (Transfers.h). The copies themselves are in
// the record of the thread.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_EMULATOR_CORE_COPIES_ASYNCCOPIES_H
#define FTUNER_LIB_EMULATOR_CORE_COPIES_ASYNCCOPIES_H

#include "Block/BlockMemory.h"
#include "Block/Scheduler.h"

namespace ftuner::emulator {

class AsyncCopies {
public:
  explicit AsyncCopies(Scheduler &scheduler) : scheduler(scheduler) {}

  /// A block begins, with this shared memory.
  void begin(const SharedMemory &memory) {
    shared = memory;
    setProductsInFlight(false);
  }
  /// Products of a warpgroup in flight must not read what is copied meanwhile.
  void setProductsInFlight(bool any);
  /// At the block's end.
  void reportPending() const;

  // What compiled kernels ask for, called on the fiber of the thread.
  void issue(Fiber &fiber, const AsyncCopy &copy) {
    uintptr_t addresses =
        reinterpret_cast<uintptr_t>(copy.target) |
        (copy.sourceBytes ? reinterpret_cast<uintptr_t>(copy.source) : 0);
    bool isPlain = (addresses & (copy.bytes - 1)) == 0 &&
                   copy.sourceBytes <= copy.bytes &&
                   shared.contains(copy.target, copy.bytes) && arePlain;
    if (isPlain && fiber.copies.tryPush(copy))
      return;
    AsyncCopy other = copy; // So that `copy` can stay in registers.
    issueAny(fiber, other);
  }
  void commit(Fiber &fiber);
  /// Performs the copies of all but the last `pendingGroups` groups.
  void wait(Fiber &fiber, uint32_t pendingGroups);

  /// Performs the copies of the thread whose numbers, counted from the block's
  /// start, are below `end`; the actor of an mbarrier is told of them at
  /// `time`.
  void land(Fiber &fiber, uint32_t end, uint32_t actor, uint32_t time);

private:
  /// Reports what is wrong with a copy on its issue; returns only if it may
  /// happen.
  void issueAny(Fiber &fiber, const AsyncCopy &copy);

  Scheduler &scheduler;
  SharedMemory shared; ///< The block's, at hand for issue().
  bool areProductsInFlight = false;
  /// True if issuing a copy only puts it into a queue.
  bool arePlain = false;
};

} // namespace ftuner::emulator

#endif // FTUNER_LIB_EMULATOR_CORE_COPIES_ASYNCCOPIES_H
