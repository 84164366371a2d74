//===- Cluster.h - State that blocks of a cluster share ---------*- C++ -*-===//
//
// The blocks of a cluster run together. Each does some things for threads of
// the others, for which it has an entry here. A kernel without clusters has
// clusters of one block.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_EMULATOR_CORE_BLOCK_CLUSTER_H
#define FTUNER_LIB_EMULATOR_CORE_BLOCK_CLUSTER_H

#include "Checks/VectorClocks.h"
#include <cstdint>
#include <vector>

namespace ftuner::emulator {

class BlockMemory;
class BulkCopies;
class Mbarriers;

/// The roles in which a block serves threads of other blocks.
struct ClusterBlock {
  BlockMemory *memory;
  Mbarriers *mbarriers;
  BulkCopies *bulkCopies;
};

struct Cluster {
  std::vector<ClusterBlock> blocks; ///< By rank.
  bool isStopped = false;           ///< By an error or an interruption.
  uint64_t events = 0; ///< Number of events that may have ended a wait.
  // The barrier of the cluster (ClusterBarrier.h).
  uint32_t phase = 0;   ///< Number of times that it opened.
  uint32_t arrived = 0; ///< Threads that came since.
  /// Clocks of the arrivals in this phase, and in the one before.
  VectorClock arriving, completed;
};

} // namespace ftuner::emulator

#endif // FTUNER_LIB_EMULATOR_CORE_BLOCK_CLUSTER_H
