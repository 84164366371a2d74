//===- ClusterBarrier.h - A block at the cluster's barrier ------*- C++ -*-===//
//
// Threads come to the barrier of the cluster in two steps, arrival and wait.
// ClusterRunner opens it, once no thread of the cluster can run.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_EMULATOR_CORE_BARRIERS_CLUSTERBARRIER_H
#define FTUNER_LIB_EMULATOR_CORE_BARRIERS_CLUSTERBARRIER_H

#include "Block/Scheduler.h"

namespace ftuner::emulator {

class ClusterBarrier {
public:
  explicit ClusterBarrier(Scheduler &scheduler) : scheduler(scheduler) {}

  // What compiled kernels ask for, called on the fiber of the thread.
  /// `options` are those of ClusterArrival.
  void arrive(Fiber &fiber, uint32_t options, uint32_t site);
  void wait(Fiber &fiber, uint32_t site);

  /// Returns whether all of the block's threads came to it, or are through.
  bool isReached() const;
  /// Lets the threads go that wait there; returns false after a report.
  bool leave();

private:
  Scheduler &scheduler;
};

} // namespace ftuner::emulator

#endif // FTUNER_LIB_EMULATOR_CORE_BARRIERS_CLUSTERBARRIER_H
