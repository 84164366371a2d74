//===- Launch.h - Facts that blocks of a launch share -----------*- C++ -*-===//
#ifndef FTUNER_LIB_EMULATOR_CORE_BLOCK_LAUNCH_H
#define FTUNER_LIB_EMULATOR_CORE_BLOCK_LAUNCH_H

#include "Block/ExecutionCounter.h"
#include "Block/Interruption.h"
#include "Checks/ErrorLog.h"
#include "Checks/MemoryChecker.h"
#include <cstdint>

namespace ftuner::emulator {

enum class RunOrder { Forward, Reverse, Shuffled };

/// Facts that the blocks of one launch have in common.
struct Launch {
  void (*entry)(void **parameters);
  void **parameters;
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t dynamicSharedBytes;
  uint32_t staticSharedBytes;
  uint32_t clusterSize; ///< Blocks of a cluster, along x.
  RunOrder order;
  unsigned seed;
  bool lazyAsyncCopies;
  ErrorLog *log;
  MemoryChecker *checker;     ///< Null where nothing is checked.
  ExecutionCounter *counter;  ///< Null where nothing is counted.
  Interruption *interruption; ///< Null where nobody asks for an early end.
};

} // namespace ftuner::emulator

#endif // FTUNER_LIB_EMULATOR_CORE_BLOCK_LAUNCH_H
