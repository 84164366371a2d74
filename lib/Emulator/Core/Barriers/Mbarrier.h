//===- Mbarrier.h - One mbarrier, and options of barriers -------*- C++ -*-===//
#ifndef FTUNER_LIB_EMULATOR_CORE_BARRIERS_MBARRIER_H
#define FTUNER_LIB_EMULATOR_CORE_BARRIERS_MBARRIER_H

#include "Checks/VectorClocks.h"
#include "Fibers/Fiber.h"
#include <cstdint>

namespace ftuner::emulator {

/// Options of an arrival at an mbarrier.
enum MbarrierArrival : uint32_t {
  kRelaxedArrival = 1,  ///< Orders no memory accesses.
  kNoCompletion = 2,    ///< Is not the last one of its phase.
  kDroppedArrival = 4,  ///< Later phases expect so many less.
  kBytesWithoutOne = 8, ///< Only changes the bytes that are expected.
};
/// Kinds of waits for mbarriers; two options may be added.
enum MbarrierWait : uint32_t {
  kTestWait = 0,  ///< Returns at once.
  kTryWait = 1,   ///< May return before the phase is over.
  kLoopWait = 2,  ///< Returns when it is.
  kStateWait = 4, ///< For the phase of a state.
  kRelaxedWait = 8,
};

/// Options of an arrival at the barrier of a cluster.
enum ClusterArrival : uint32_t {
  kRelaxedClusterArrival = 1, ///< Orders no memory accesses.
  kAlignedClusterArrival = 2, ///< All lanes of the warp come together.
};

/// An mbarrier of a block (PTX ISA, mbarrier). A phase is over once all
/// arrivals and all bytes are there that it expects.
struct Mbarrier {
  static constexpr uint32_t kBytes = 8, kMaxCount = (1 << 20) - 1;
  /// A mark in the mbarrier's memory, so that a write there is noticed.
  static constexpr uint64_t kMark = 0x7265697272616d62;

  char *address;
  uint32_t number; ///< In the block, by first use of the address.
  uint32_t actor;  ///< Number among the mbarriers of the cluster.
  bool isValid = false;
  uint32_t expected = 0; ///< Arrivals of each phase.
  int64_t pending = 0;   ///< Arrivals to come in this phase.
  int64_t bytes = 0;     ///< Bytes to come, less those that came too early.
  uint32_t phase = 0;    ///< Phases since its initialisation.
  const Fiber *initThread = nullptr; ///< The thread that initialised it,
  uint32_t initTime = 0;             ///< and its time, in checks of races.
  bool isFenced = false; ///< `initThread` has executed a fence since.
  uint32_t time = 0;     ///< Its actor's time in checks of races.
  /// Clocks of the arrivals in this phase, and of those until its start.
  VectorClock arriving, completed;
};

} // namespace ftuner::emulator

#endif // FTUNER_LIB_EMULATOR_CORE_BARRIERS_MBARRIER_H
