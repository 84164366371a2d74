//===- Transfers.h - Copies whose end mbarriers are told --------*- C++ -*-===//
//
// Bulk copies to shared memory, and the copies that threads issued (cp.async)
// before they had an mbarrier told of them. What an mbarrier is told happens as
// late as the rules allow: when nobody can go on without it.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_EMULATOR_CORE_COPIES_TRANSFERS_H
#define FTUNER_LIB_EMULATOR_CORE_COPIES_TRANSFERS_H

#include "Barriers/Mbarriers.h"
#include "Block/Scheduler.h"
#include "Copies/AsyncCopies.h"
#include "Copies/BulkRange.h"
#include <deque>

namespace ftuner::emulator {

/// A bulk copy to shared memory, or the copies of a thread.
struct Transfer {
  uint32_t mbarrier; ///< Its number.
  uint32_t phase;    ///< The mbarrier's when the copies were issued.
  Fiber *thread;     ///< The thread that issued them.
  uint32_t site;
  /// The number of the thread's last copy (cp.async), counted from the block's
  /// start, and one more.
  uint32_t copyEnd = 0;
  char *target = nullptr; ///< A bulk copy's; null for a thread's copies.
  /// The source of a bulk copy from the shared memory of the thread's block.
  char *sharedSource = nullptr;
  BulkRange range;
};

/// Transfers to a block.
class Transfers {
public:
  Transfers(Scheduler &scheduler, Mbarriers &mbarriers, AsyncCopies &copies)
      : scheduler(scheduler), mbarriers(mbarriers), copies(copies) {}

  void begin() { pending.clear(); }
  /// An arrival for the thread once its copies so far are through. Called on
  /// its fiber.
  void trackCopies(Fiber &fiber, char *address, bool isCounted, uint32_t site);
  /// Is done at once where the launch's copies are.
  void add(const Transfer &transfer);
  /// Lets one transfer be done, which a thread waits for if `onlyWaitedFor`.
  /// Returns whether there was any. An error stops the cluster.
  bool landOne(bool onlyWaitedFor);
  /// At the block's end: what an mbarrier should have been told, but nobody
  /// waited for.
  void reportPending() const;

private:
  void land(const Transfer &transfer);
  void landBulk(const Transfer &transfer, Mbarrier &mbarrier);

  Scheduler &scheduler;
  Mbarriers &mbarriers;
  AsyncCopies &copies;
  std::deque<Transfer> pending; ///< In order.
};

} // namespace ftuner::emulator

#endif // FTUNER_LIB_EMULATOR_CORE_COPIES_TRANSFERS_H
