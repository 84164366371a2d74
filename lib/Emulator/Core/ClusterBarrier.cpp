//===- ClusterBarrier.cpp - Where the blocks of a cluster meet ------------===//
#include "BlockRunner.h"
#include "Text.h"
#include <algorithm>

using namespace ftuner::emulator;

void BlockRunner::arriveAtCluster(Fiber &fiber, uint32_t options,
                                  uint32_t site) {
  if (fiber.hasArrived) {
    launch->log->report(fiber, ErrorKind::Divergence, site,
                        "the thread comes to the barrier of the cluster again "
                        "without cluster.wait in between");
    kill(fiber);
  }
  fiber.hasArrived = true;
  fiber.isArrivalAligned = options & kAlignedClusterArrival;
  fiber.arrivalPhase = cluster.phase;
  fiber.arrivalSite = site;
  ++cluster.arrived;
  ++cluster.events;
  if (launch->checker)
    launch->checker->arriveAtCluster(fiber, options & kRelaxedClusterArrival,
                                     cluster.arriving);
}

void BlockRunner::waitAtCluster(Fiber &fiber, uint32_t site) {
  if (!fiber.hasArrived) {
    launch->log->report(fiber, ErrorKind::Divergence, site,
                        "the thread waits at the barrier of the cluster "
                        "without cluster.arrive before it");
    kill(fiber);
  }
  fiber.site = site;
  if (fiber.arrivalPhase == cluster.phase)
    yield(fiber, Fiber::State::AtCluster);
  fiber.hasArrived = false;
  if (launch->checker)
    launch->checker->acquire(fiber, cluster.completed);
}

bool BlockRunner::isAtClusterBarrier() const {
  return std::all_of(fibers.begin(), fibers.end(), [&](const Fiber &fiber) {
    return fiber.state == Fiber::State::Exited ||
           fiber.state == Fiber::State::Killed ||
           (fiber.hasArrived && fiber.arrivalPhase == cluster.phase);
  });
}

bool BlockRunner::leaveClusterBarrier() {
  const Fiber *first = nullptr; // Of the warp's lanes that came.
  for (const Fiber &fiber : fibers) {
    if (fiber.registers.laneId == 0)
      first = nullptr;
    if (!fiber.hasArrived || fiber.arrivalPhase != cluster.phase)
      continue;
    if (!first)
      first = &fiber;
    if (!fiber.isArrivalAligned || fiber.arrivalSite == first->arrivalSite)
      continue;
    launch->log->report(fiber, ErrorKind::Divergence, fiber.arrivalSite,
                        joinText("divergence: thread ",
                                 formatIndex(first->registers.threadId),
                                 " comes to the barrier of the cluster",
                                 launch->log->siteText(first->arrivalSite),
                                 ", this one elsewhere"));
    return false;
  }
  for (Fiber &fiber : fibers)
    if (fiber.state == Fiber::State::AtCluster)
      setState(fiber, Fiber::State::Ready);
  if (launch->counter)
    launch->counter->passBarrier(rank);
  return true;
}
