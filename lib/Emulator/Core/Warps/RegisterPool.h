//===- RegisterPool.h - Registers that warpgroups share ---------*- C++ -*-===//
//
// setmaxnreg: the warpgroups of a block share a pool of registers, from which
// each begins with the same number for a thread. One that asks for more waits
// until others have given enough back.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_EMULATOR_CORE_WARPS_REGISTERPOOL_H
#define FTUNER_LIB_EMULATOR_CORE_WARPS_REGISTERPOOL_H

#include "Block/Scheduler.h"
#include "Checks/WaitReport.h"
#include <vector>

namespace ftuner::emulator {

class RegisterPool {
public:
  explicit RegisterPool(Scheduler &scheduler) : scheduler(scheduler) {}

  void begin();
  /// The thread's warpgroup is to have `count` registers for a thread, each of
  /// which has `atEntry` in the beginning. Called on the fiber of the thread,
  /// which waits for an increase.
  void set(Fiber &fiber, uint32_t count, bool isIncrease, uint32_t atEntry,
           uint32_t site);
  void describeWaits(WaitReport &report) const;

private:
  struct Request {
    uint32_t count = 0;
    bool isIncrease = false, isDone = false;
    uint32_t callers = 0;
  };
  struct Warpgroup {
    uint32_t registers = 0; ///< Registers of a thread; 0 if none asked.
    std::vector<Request> requests;
  };

  /// Grants registers as far as there are.
  void settle();

  Scheduler &scheduler;
  std::vector<Warpgroup> warpgroups;
  /// In the pool: of a thread of each warpgroup, added up.
  uint32_t available = 0;
};

} // namespace ftuner::emulator

#endif // FTUNER_LIB_EMULATOR_CORE_WARPS_REGISTERPOOL_H
