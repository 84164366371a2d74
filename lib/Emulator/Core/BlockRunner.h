//===- BlockRunner.h - Runs one block ---------------------------*- C++ -*-===//
//
// A block is the sum of its roles: a scheduler of its threads, its memory, and
// an object for each kind of request of a kernel, with the state that belongs
// to it. A role knows the scheduler and those roles that its constructor takes.
// Compiled kernels call the roles (RuntimeFunctions.cpp).
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_EMULATOR_CORE_BLOCKRUNNER_H
#define FTUNER_LIB_EMULATOR_CORE_BLOCKRUNNER_H

#include "Barriers/BlockBarriers.h"
#include "Barriers/ClusterBarrier.h"
#include "Barriers/Mbarriers.h"
#include "Block/BlockMemory.h"
#include "Block/Scheduler.h"
#include "Copies/AsyncCopies.h"
#include "Copies/BulkCopies.h"
#include "Copies/Transfers.h"
#include "Warps/RegisterPool.h"
#include "Warps/WarpCollectives.h"
#include "Warps/WarpgroupProducts.h"

namespace ftuner::emulator {

/// Runs one block at a time, with those of its cluster (ClusterRunner.h), which
/// chooses from what the roles can do next. Stacks and shared memory are kept
/// for the next one. Belongs to one CPU thread during a launch.
class BlockRunner {
public:
  BlockRunner(Cluster &cluster, uint32_t rank) : scheduler(cluster, rank) {}
  BlockRunner(const BlockRunner &) = delete;
  BlockRunner &operator=(const BlockRunner &) = delete;

  /// Makes room for the blocks of `launch`, which the thread that launched will
  /// run, or another. Returns false if the system has no memory for the stacks.
  bool prepare(const Launch &launch, bool runsOnCaller);
  /// The roles in which it serves threads of other blocks of the cluster.
  ClusterBlock inCluster() { return {&memory, &mbarriers, &bulkCopies}; }

  void begin(uint64_t linearBlock);
  /// Once all threads are through: looks for what they left undone.
  void endIfThrough() {
    if (!scheduler.hasEnded() && scheduler.isThrough())
      end();
  }

  // Of blocks that cannot go on.
  bool hasReadyThreads() const {
    return scheduler.count(Fiber::State::Ready) != 0;
  }
  bool hasKilledThreads() const {
    return scheduler.count(Fiber::State::Killed) != 0;
  }
  bool hasPolls() const { return scheduler.count(Fiber::State::Polling) != 0; }
  /// Tells threads that ask again and again that nothing has changed.
  void answerPolls() { scheduler.wakeAll(Fiber::State::Polling); }
  /// Says why the block cannot go on, in words about collectives and products;
  /// returns false where it says nothing.
  bool reportDivergence() const {
    return collectives.reportMissingLanes() || products.reportMissingThreads();
  }
  /// Says what threads of the block wait for in vain, and the first of them.
  std::string describeWaits(const Fiber *&first) const;

  Scheduler scheduler;
  BlockMemory memory{scheduler};
  WarpCollectives collectives{scheduler, memory};
  BlockBarriers barriers{scheduler};
  RegisterPool registers{scheduler};
  AsyncCopies copies{scheduler};
  WarpgroupProducts products{scheduler, memory, copies};
  Mbarriers mbarriers{scheduler, memory};
  Transfers transfers{scheduler, mbarriers, copies};
  BulkCopies bulkCopies{scheduler, memory, mbarriers, transfers};
  ClusterBarrier clusterBarrier{scheduler};

private:
  void end();
};

} // namespace ftuner::emulator

#endif // FTUNER_LIB_EMULATOR_CORE_BLOCKRUNNER_H
