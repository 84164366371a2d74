//===- BlockBarriers.h - Barriers of all or some of the threads -*- C++ -*-===//
//
// bar.sync without a number of threads is a barrier of the whole block, which
// opens once no thread can run. With a number it is one of some of the threads
// (a named barrier), which the last of them opens.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_EMULATOR_CORE_BARRIERS_BLOCKBARRIERS_H
#define FTUNER_LIB_EMULATOR_CORE_BARRIERS_BLOCKBARRIERS_H

#include "Block/Scheduler.h"
#include "Checks/VectorClocks.h"
#include "Checks/WaitReport.h"
#include <array>

namespace ftuner::emulator {

class BlockBarriers {
public:
  explicit BlockBarriers(Scheduler &scheduler) : scheduler(scheduler) {}

  void begin() { named.fill({}); }

  // The barrier of the block.
  /// Called on the fiber of the thread.
  void wait(Fiber &fiber, uint32_t id, uint32_t site) {
    fiber.barrierId = id;
    fiber.site = site;
    scheduler.yield(fiber, Fiber::State::AtBarrier);
  }
  /// Opens it if all threads that run wait there, or stops the cluster where
  /// they wait at different ones. Returns whether it did either.
  bool open();

  // Named barriers.
  /// Called on the fiber of the thread, which only arrives unless it `waits`.
  void meet(Fiber &fiber, uint32_t id, uint32_t threads, bool waits,
            uint32_t site);
  void describeNamedWaits(WaitReport &report) const;

private:
  static constexpr unsigned kNamed = 16, kMaxWarps = 32;

  struct Named {
    uint32_t expected = 0, arrived = 0, waiting = 0;
    std::array<uint32_t, kMaxWarps> lanes = {}; ///< Lanes that came, by warp.
    VectorClock clock;
  };

  /// Reports why the barrier of the block cannot open, and then returns false.
  bool check() const;

  Scheduler &scheduler;
  std::array<Named, kNamed> named;
};

} // namespace ftuner::emulator

#endif // FTUNER_LIB_EMULATOR_CORE_BARRIERS_BLOCKBARRIERS_H
