//===- ClusterBarrier.cpp - A block at the cluster's barrier --------------===//
#include "Barriers/ClusterBarrier.h"
#include "Barriers/Mbarrier.h"
#include <algorithm>

using namespace ftuner::emulator;

void ClusterBarrier::arrive(Fiber &fiber, uint32_t options, uint32_t site) {
  Cluster &cluster = scheduler.cluster();
  if (fiber.hasArrived) {
    scheduler.report(fiber, ErrorKind::Divergence, site,
                     "the thread comes to the barrier of the cluster again "
                     "without cluster.wait in between");
    scheduler.kill(fiber);
  }
  fiber.hasArrived = true;
  fiber.isArrivalAligned = options & kAlignedClusterArrival;
  fiber.arrivalPhase = cluster.phase;
  fiber.arrivalSite = site;
  ++cluster.arrived;
  ++cluster.events;
  if (MemoryChecker *checker = scheduler.checker())
    checker->arriveAtCluster(fiber, options & kRelaxedClusterArrival,
                             cluster.arriving);
}

void ClusterBarrier::wait(Fiber &fiber, uint32_t site) {
  if (!fiber.hasArrived) {
    scheduler.report(fiber, ErrorKind::Divergence, site,
                     "the thread waits at the barrier of the cluster without "
                     "cluster.arrive before it");
    scheduler.kill(fiber);
  }
  fiber.site = site;
  const Cluster &cluster = scheduler.cluster();
  if (fiber.arrivalPhase == cluster.phase)
    scheduler.yield(fiber, Fiber::State::AtCluster);
  fiber.hasArrived = false;
  if (MemoryChecker *checker = scheduler.checker())
    checker->acquire(fiber, cluster.completed);
}

bool ClusterBarrier::isReached() const {
  const std::vector<Fiber> &fibers = scheduler.fibers();
  uint32_t phase = scheduler.cluster().phase;
  return std::all_of(fibers.begin(), fibers.end(), [&](const Fiber &fiber) {
    return fiber.state == Fiber::State::Exited ||
           fiber.state == Fiber::State::Killed ||
           (fiber.hasArrived && fiber.arrivalPhase == phase);
  });
}

bool ClusterBarrier::leave() {
  uint32_t phase = scheduler.cluster().phase;
  ErrorLog &log = scheduler.log();
  const Fiber *first = nullptr; // Of the warp's lanes that came.
  for (const Fiber &fiber : scheduler.fibers()) {
    if (fiber.registers.laneId == 0)
      first = nullptr;
    if (!fiber.hasArrived || fiber.arrivalPhase != phase)
      continue;
    if (!first)
      first = &fiber;
    if (!fiber.isArrivalAligned || fiber.arrivalSite == first->arrivalSite)
      continue;
    log.report(
        fiber, ErrorKind::Divergence, fiber.arrivalSite,
        joinText("divergence: thread ", formatIndex(first->registers.threadId),
                 " comes to the barrier of the cluster",
                 log.siteText(first->arrivalSite), ", this one elsewhere"));
    return false;
  }
  scheduler.wakeAll(Fiber::State::AtCluster);
  if (ExecutionCounter *counter = scheduler.counter())
    counter->passBarrier(scheduler.rank());
  return true;
}
