//===- BlockBarriers.cpp - Barriers of all or some of the threads ---------===//
#include "BlockRunner.h"
#include "Text.h"

using namespace ftuner::emulator;

//===----------------------------------------------------------------------===//
// The barrier of the block
//===----------------------------------------------------------------------===//

void BlockRunner::waitAtBarrier(Fiber &fiber, uint32_t id, uint32_t site) {
  fiber.barrierId = id;
  fiber.site = site;
  yield(fiber, Fiber::State::AtBarrier);
}

bool BlockRunner::openBarrier() {
  size_t waiting = count(Fiber::State::AtBarrier);
  size_t through = count(Fiber::State::Exited) + count(Fiber::State::Killed);
  if (waiting == 0 || waiting + through != fibers.size())
    return false;
  if (!checkBarrier()) {
    cluster.isStopped = true;
    return true;
  }
  for (Fiber &fiber : fibers)
    if (fiber.state == Fiber::State::AtBarrier)
      setState(fiber, Fiber::State::Ready);
  if (launch->checker)
    launch->checker->beginPhase(rank);
  if (launch->counter)
    launch->counter->passBarrier(rank);
  return true;
}

bool BlockRunner::checkBarrier() {
  ErrorLog &log = *launch->log;
  const Fiber *first = nullptr;
  for (const Fiber &fiber : fibers)
    if (!first && fiber.state == Fiber::State::AtBarrier)
      first = &fiber;
  if (count(Fiber::State::Exited) != 0) {
    log.report(*first, ErrorKind::Divergence, first->site,
               joinText("divergence: ", count(Fiber::State::AtBarrier),
                        " threads wait at a barrier that ",
                        count(Fiber::State::Exited),
                        " threads of the block do not reach"),
               "; it is");
    return false;
  }
  const Fiber *warpFirst = nullptr; // The first waiting lane of the warp.
  for (const Fiber &fiber : fibers) {
    if (fiber.registers.laneId == 0)
      warpFirst = nullptr;
    if (fiber.state != Fiber::State::AtBarrier)
      continue;
    if (!warpFirst)
      warpFirst = &fiber;
    if (fiber.barrierId == first->barrierId && fiber.site == warpFirst->site)
      continue;
    const Fiber *other = fiber.site != warpFirst->site ? warpFirst : first;
    log.report(fiber, ErrorKind::Divergence, fiber.site,
               joinText("divergence: thread ",
                        formatIndex(other->registers.threadId),
                        " waits at barrier ", other->barrierId,
                        log.siteText(other->site), ", this one at barrier ",
                        fiber.barrierId));
    return false;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Named barriers
//===----------------------------------------------------------------------===//

void BlockRunner::meetAtNamedBarrier(Fiber &fiber, uint32_t id,
                                     uint32_t threads, bool waits,
                                     uint32_t site) {
  auto fail = [&](const auto &...text) {
    launch->log->report(fiber, ErrorKind::Divergence, site, joinText(text...));
    kill(fiber);
  };
  if (id >= kNamedBarriers)
    fail("expected a barrier below ", kNamedBarriers, ", but got ", id);
  if (threads == 0 || threads % kWarpSize != 0 || threads > fibers.size())
    fail("expected a barrier of a multiple of 32 threads, of ", fibers.size(),
         " that there are, but got ", threads);
  NamedBarrier &barrier = namedBarriers[id];
  if (barrier.arrived != 0 && barrier.expected != threads)
    fail("divergence: barrier ", id, " is one of ", threads,
         " threads here, but one of ", barrier.expected, " for others");
  barrier.expected = threads;
  ++barrier.arrived;
  ++cluster.events;
  barrier.lanes[fiber.registers.warpId] |= 1u << fiber.registers.laneId;
  if (launch->checker)
    launch->checker->release(fiber, barrier.clock);
  fiber.site = site;
  fiber.barrierId = id;
  if (barrier.arrived != barrier.expected) {
    barrier.waiting += waits;
    if (waits)
      yield(fiber, Fiber::State::AtNamedBarrier);
    return;
  }
  // GPUs count whole warps.
  for (size_t i = 0; i < warps.size(); ++i)
    if (barrier.lanes[i] != 0 && (warps[i].lanes & ~barrier.lanes[i]) != 0)
      fail("divergence: only some lanes of warp ", i, " come to barrier ", id);
  for (Fiber &other : fibers) {
    if (other.state != Fiber::State::AtNamedBarrier || other.barrierId != id)
      continue;
    if (launch->checker)
      launch->checker->acquire(other, barrier.clock);
    setState(other, Fiber::State::Ready);
  }
  if (launch->checker && waits)
    launch->checker->acquire(fiber, barrier.clock);
  bool isWhole = barrier.waiting + waits == fibers.size();
  if (isWhole && launch->checker)
    launch->checker->beginPhase(rank);
  if (isWhole && launch->counter)
    launch->counter->passBarrier(rank);
  barrier = {};
}
