//===- Mbarriers.h - Barriers in shared memory ------------------*- C++ -*-===//
//
// The state of an mbarrier is kept beside its memory, which only holds a mark.
// A thread that waits for a phase stops until it is over; a thread that merely
// asks goes on, with the answer no, when no other thread can. Transfers.h has
// the copies of which mbarriers are told.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_EMULATOR_CORE_BARRIERS_MBARRIERS_H
#define FTUNER_LIB_EMULATOR_CORE_BARRIERS_MBARRIERS_H

#include "Barriers/Mbarrier.h"
#include "Block/BlockMemory.h"
#include "Block/Scheduler.h"
#include "Checks/WaitReport.h"
#include <deque>
#include <string>

namespace ftuner::emulator {

/// The mbarriers of a block.
class Mbarriers {
public:
  Mbarriers(Scheduler &scheduler, BlockMemory &memory)
      : scheduler(scheduler), memory(memory) {}
  Mbarriers(const Mbarriers &) = delete;
  Mbarriers &operator=(const Mbarriers &) = delete;

  void begin() { mbarriers.clear(); }
  void describeWaits(WaitReport &report) const;

  // What compiled kernels ask for, called on the fiber of the thread; `options`
  // and `kind` as RuntimeFunctions.h has them.
  void init(Fiber &fiber, char *address, uint32_t count, uint32_t site);
  void invalidate(Fiber &fiber, char *address, uint32_t site);
  /// Returns the state of the phase. The mbarrier may be one of another block.
  uint64_t arrive(Fiber &fiber, char *address, uint32_t count, int64_t bytes,
                  uint32_t options, uint32_t site);
  /// Returns whether the phase is over.
  bool wait(Fiber &fiber, char *address, uint64_t phase, uint32_t kind,
            uint32_t site);
  /// Mbarriers that the thread made become visible to copies; with `release`
  /// also to threads that come to know of its next arrival at the barrier of
  /// the cluster, be it a relaxed one.
  void fence(const Fiber &fiber);
  void release(Fiber &fiber);
  /// Like `fence`; makes what the thread wrote visible to the asynchronous
  /// proxy, too.
  void fenceProxy(Fiber &fiber) {
    fence(fiber);
    if (MemoryChecker *checker = scheduler.checker())
      checker->fenceProxy(fiber);
  }

  // What copies ask for.
  /// The mbarrier at `address`; reports what is wrong, and then does not
  /// return. The thread uses it.
  Mbarrier &get(Fiber &fiber, char *address, uint32_t site);
  /// The one of this number.
  Mbarrier &operator[](uint32_t number) { return mbarriers[number]; }
  const Mbarrier &operator[](uint32_t number) const {
    return mbarriers[number];
  }
  /// Starts the mbarrier's next phase and wakes the threads that wait for it,
  /// if all arrivals and bytes of the current phase are there. Every change of
  /// either number must be followed by a call.
  void completePhaseIfDone(Mbarrier &mbarrier);
  bool isWaitedFor(const Mbarrier &mbarrier) const;
  /// "the mbarrier at offset 0 of dynamic shared memory".
  std::string describe(const Mbarrier &mbarrier) const;

private:
  Scheduler &scheduler;
  BlockMemory &memory;
  std::deque<Mbarrier> mbarriers; ///< By number.
};

} // namespace ftuner::emulator

#endif // FTUNER_LIB_EMULATOR_CORE_BARRIERS_MBARRIERS_H
