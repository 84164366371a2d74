//===- ClusterOps.cpp - The barrier and the memory of a cluster -----------===//
//
// Blocks of a cluster meet at its barrier, in two steps, and use each other's
// shared memory: an mbarrier or a copy there is an affair of the block that has
// it, on behalf of a thread of another. The memory is that of a block from its
// start to its end, which those who use it must be certain of.
//
//===----------------------------------------------------------------------===//
#include "BlockRunner.h"
#include "Text.h"
#include <algorithm>

using namespace ftuner::emulator;

std::string BlockRunner::clusterName() const {
  return cluster.blocks.size() == 1
             ? ""
             : joinText(" of block ", rank, " of the cluster");
}

//===----------------------------------------------------------------------===//
// The barrier
//===----------------------------------------------------------------------===//

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

//===----------------------------------------------------------------------===//
// Shared memory of other blocks
//===----------------------------------------------------------------------===//

BlockRunner *BlockRunner::findPeer(const char *address) const {
  if (cluster.blocks.size() == 1 || shared.contains(address, 1))
    return nullptr;
  for (BlockRunner *block : cluster.blocks)
    if (block != this && block->shared.contains(address, 1))
      return block;
  return nullptr;
}

char *BlockRunner::mapAddress(Fiber &fiber, char *address, uint32_t blockRank,
                              uint32_t site) {
  if (blockRank >= cluster.blocks.size()) {
    launch->log->report(
        fiber, ErrorKind::OutOfBounds, site,
        joinText("expected a block below ", cluster.blocks.size(),
                 ", the size of the cluster, but got ", blockRank));
    kill(fiber);
  }
  if (!shared.contains(address, 0)) {
    launch->log->report(
        fiber, ErrorKind::OutOfBounds, site,
        joinText("expected an address in the block's shared memory, but got "
                 "offset ",
                 address - shared.dynamicBase, " of dynamic shared memory (",
                 shared.dynamicBytes, " bytes)"));
    kill(fiber);
  }
  return cluster.blocks[blockRank]->translate(*this, address);
}

void BlockRunner::checkRemoteUse(Fiber &user, bool isLasting, uint32_t site) {
  if (hasEnded) {
    launch->log->report(user, ErrorKind::Lifetime, site,
                        joinText("shared memory", clusterName(),
                                 " is used after that block has ended; a "
                                 "barrier of the cluster at the end keeps it"));
    kill(user);
  }
  if (!(user.startedBlocks >> rank & 1)) {
    user.startedBlocks |= 1u << rank;
    bool isKnown = launch->checker
                       ? launch->checker->knowsStart(user, rank, cluster.phase)
                       : cluster.phase != 0;
    if (!isKnown)
      launch->log->report(user, ErrorKind::Lifetime, site,
                          joinText("shared memory", clusterName(),
                                   " is used before that block is known to "
                                   "have started: no barrier of the cluster "
                                   "comes before"));
  }
  if (isLasting && launch->checker)
    launch->checker->noteRemoteUse(user, rank, site);
}
