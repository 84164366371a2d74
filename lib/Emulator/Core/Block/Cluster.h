//===- Cluster.h - What the blocks of a cluster share -----------*- C++ -*-===//
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

/// What a block does for threads of others.
struct ClusterBlock {
  BlockMemory *memory;
  Mbarriers *mbarriers;
  BulkCopies *bulkCopies;
};

struct Cluster {
  std::vector<ClusterBlock> blocks; ///< By rank.
  bool isStopped = false;           ///< By an error or an interruption.
  uint64_t events = 0; ///< What may end a wait has happened so often.
  // The barrier of the cluster (ClusterBarrier.h).
  uint32_t phase = 0;   ///< So often it opened.
  uint32_t arrived = 0; ///< Threads that came since.
  /// What is known from the arrivals in this phase, and in the one before.
  VectorClock arriving, completed;
};

} // namespace ftuner::emulator

#endif // FTUNER_LIB_EMULATOR_CORE_BLOCK_CLUSTER_H
