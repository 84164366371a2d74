//===- WarpCollectives.h - Operations in which lanes meet -------*- C++ -*-===//
//
// Shuffles, votes, elections, synchronisations of a warp, and its operations on
// matrices. The lane that completes a collective performs it, and the others go
// on when their turn comes. Where lanes of a warp wait for different
// collectives, it is done once no thread can go on.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_EMULATOR_CORE_WARPS_WARPCOLLECTIVES_H
#define FTUNER_LIB_EMULATOR_CORE_WARPS_WARPCOLLECTIVES_H

#include "Block/BlockMemory.h"
#include "Block/Scheduler.h"
#include <vector>

namespace ftuner::emulator {

class WarpCollectives {
public:
  WarpCollectives(Scheduler &scheduler, const BlockMemory &memory)
      : scheduler(scheduler), memory(memory) {}

  void begin() { warps.assign(scheduler.warpCount(), {}); }

  // What compiled kernels ask for, called on the fiber of the thread.
  /// Waits for the other lanes, and returns WarpRequest::result.
  uint64_t meet(Fiber &fiber, const WarpRequest &request) {
    fiber.request = request; // Made in its place.
    meetOthers(fiber);
    return fiber.request.result;
  }
  /// `code` is an MmaVariant, whose registers are as multiplyMatrices has them.
  void multiply(Fiber &fiber, uint32_t *registers, uint32_t code,
                uint32_t site);
  /// `op` is LoadMatrix or StoreMatrix, `code` a MatrixCopy.
  void copyMatrices(Fiber &fiber, WarpOp op, char *row, uint32_t *registers,
                    uint32_t code, uint32_t site);

  /// Performs every collective for which all live lanes of its mask wait, and
  /// wakes these lanes. Called once no thread can go on. Returns whether it
  /// performed one; stops the cluster and returns false if a lane is missing
  /// from the mask of its own collective.
  bool completeWaiting();
  /// Reports which lanes do not come to a collective where threads wait.
  bool reportMissingLanes() const;

private:
  struct Warp {
    uint32_t waiting = 0; ///< Lanes that wait at a collective.
    bool isMixed = false; ///< They may wait at different collectives.
  };

  /// Waits for the lanes of the thread's request. A waiting thread has no frame
  /// for it on its stack: the stacks of a warp share the cache.
  void meetOthers(Fiber &fiber);
  /// Like `completeWaiting`, for one warp.
  bool completeWarp(size_t warp);
  /// Performs the collective that the lanes `present` wait for, and wakes these
  /// lanes unless it stops the cluster. `lanes` are all lanes of the warp.
  void execute(size_t warp, Fiber *lanes, uint32_t present);
  void shuffle(Fiber *lanes, uint32_t present);
  void elect(Fiber *lanes, uint32_t present);
  void executeMatrixOp(Fiber *lanes, uint32_t present);
  /// Reports what is wrong with a lane's row; returns only if it may be
  /// accessed.
  void checkMatrixRow(Fiber &fiber, const char *row, AccessKind kind,
                      uint32_t site);

  Scheduler &scheduler;
  const BlockMemory &memory;
  std::vector<Warp> warps;
};

} // namespace ftuner::emulator

#endif // FTUNER_LIB_EMULATOR_CORE_WARPS_WARPCOLLECTIVES_H
