//===- MemoryOrder.cpp - Order of the work of threads ---------------------===//
//
// The part of the checker that hears of barriers, and of the lives of the
// blocks of a cluster.
//
//===----------------------------------------------------------------------===//
#include "Checks/MemoryChecker.h"
#include "Checks/Text.h"

using namespace ftuner::emulator;

void MemoryChecker::beginCluster(std::vector<SharedMemory> newMemories,
                                 uint32_t linearCluster, size_t threads) {
  memories = std::move(newMemories);
  block = linearCluster;
  ++phase;
  for (std::vector<Record> &records : fences)
    records.clear();
  threadsPerBlock = threads;
  blockStride = (threads + kWarpSize - 1) / kWarpSize * kWarpSize;
  actorBase = memories.size() * blockStride;
  if (!options.partialOrder)
    return;
  clocks.reset(actorBase);
  productReadTimes.assign(actorBase / kWarpSize, 0);
  remoteUses.clear();
  if (memories.size() > 1)
    remoteUses.assign(memories.size(), std::vector<RemoteUse>(actorBase));
}

//===----------------------------------------------------------------------===//
// Order of some of the threads
//===----------------------------------------------------------------------===//

void MemoryChecker::beginPhase(uint32_t rank) {
  if (memories.size() == 1)
    ++phase;
  if (!options.partialOrder)
    return;
  // Phases order the threads, but not the actors that they know of.
  VectorClock all;
  auto begin = static_cast<uint32_t>(rank * blockStride);
  auto end = static_cast<uint32_t>(begin + threadsPerBlock);
  for (uint32_t i = begin; i < end; ++i)
    clocks.release(i, all);
  for (uint32_t i = begin; i < end; ++i)
    clocks.acquire(i, all);
}

void MemoryChecker::meet(const Fiber *lanes, uint32_t present) {
  if (!options.partialOrder)
    return;
  VectorClock all;
  for (uint32_t lane = 0; lane < kWarpSize; ++lane)
    if (present >> lane & 1)
      clocks.release(lanes[lane].actor, all);
  for (uint32_t lane = 0; lane < kWarpSize; ++lane)
    if (present >> lane & 1)
      clocks.acquire(lanes[lane].actor, all);
}

void MemoryChecker::acquireProductReads(const Fiber &fiber) {
  if (options.partialOrder)
    clocks.learn(fiber.actor, fiber.actor / kWarpSize * kWarpSize,
                 productReadTimes[fiber.actor / kWarpSize]);
}

void MemoryChecker::releaseActor(uint32_t actor, uint32_t time,
                                 VectorClock &clock) const {
  if (!options.partialOrder)
    return;
  uint32_t thread = threadOfActor(actor);
  if (clock.size() <= thread)
    clock.resize(thread + 1);
  clock[thread] = time;
}

//===----------------------------------------------------------------------===//
// Clusters
//===----------------------------------------------------------------------===//

void MemoryChecker::arriveAtCluster(const Fiber &fiber, bool isRelaxed,
                                    VectorClock &clock) {
  if (!options.partialOrder)
    return;
  if (!isRelaxed)
    return clocks.release(fiber.actor, clock);
  VectorClock start(fiber.actor + 1);
  start.back() = std::max(VectorClocks::kStart, fiber.fenceTime);
  mergeClock(clock, start);
}

bool MemoryChecker::knowsStart(const Fiber &fiber, uint32_t rank,
                               uint32_t meetings) const {
  if (!options.partialOrder)
    return meetings != 0;
  for (size_t i = 0; i < threadsPerBlock; ++i)
    if (clocks.knows(fiber.actor, static_cast<uint32_t>(rank * blockStride + i),
                     VectorClocks::kStart))
      return true;
  return false;
}

void MemoryChecker::noteRemoteUse(const Fiber &user, uint32_t rank,
                                  uint32_t site) {
  if (options.partialOrder)
    remoteUses[rank][user.actor] = {&user, clocks.now(user.actor), site};
}

void MemoryChecker::endBlock(uint32_t rank) {
  if (!options.partialOrder || remoteUses.empty())
    return;
  auto isKnown = [&](const RemoteUse &use) {
    for (size_t i = 0; i < threadsPerBlock; ++i)
      if (clocks.knows(static_cast<uint32_t>(rank * blockStride + i),
                       use.user->actor, use.time))
        return true;
    return false;
  };
  for (const RemoteUse &use : remoteUses[rank])
    if (use.user && !isKnown(use))
      log.report(*use.user, ErrorKind::Lifetime, use.site,
                 joinText("shared memory of block ", rank,
                          " of the cluster is used, but nothing keeps that "
                          "block from its end before; a barrier of the cluster "
                          "at the end does"));
}
