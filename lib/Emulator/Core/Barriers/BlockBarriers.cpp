//===- BlockBarriers.cpp - Barriers of all or some of the threads ---------===//
#include "Barriers/BlockBarriers.h"

using namespace ftuner::emulator;

//===----------------------------------------------------------------------===//
// The barrier of the block
//===----------------------------------------------------------------------===//

bool BlockBarriers::open() {
  size_t waiting = scheduler.count(Fiber::State::AtBarrier);
  size_t ended = scheduler.count(Fiber::State::Exited) +
                 scheduler.count(Fiber::State::Killed);
  if (waiting == 0 || waiting + ended != scheduler.fibers().size())
    return false;
  if (!check()) {
    scheduler.cluster().isStopped = true;
    return true;
  }
  scheduler.wakeAll(Fiber::State::AtBarrier);
  if (MemoryChecker *checker = scheduler.checker())
    checker->beginPhase(scheduler.rank());
  if (ExecutionCounter *counter = scheduler.counter())
    counter->passBarrier(scheduler.rank());
  return true;
}

bool BlockBarriers::check() const {
  ErrorLog &log = scheduler.log();
  const Fiber *first = nullptr;
  for (const Fiber &fiber : scheduler.fibers())
    if (!first && fiber.state == Fiber::State::AtBarrier)
      first = &fiber;
  if (scheduler.count(Fiber::State::Exited) != 0) {
    log.report(
        *first, ErrorKind::Divergence, first->site,
        joinText("divergence: ", scheduler.count(Fiber::State::AtBarrier),
                 " threads wait at a barrier that ",
                 scheduler.count(Fiber::State::Exited),
                 " threads of the block do not reach"),
        "; it is");
    return false;
  }
  const Fiber *warpFirst = nullptr; // The first waiting lane of the warp.
  for (const Fiber &fiber : scheduler.fibers()) {
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

void BlockBarriers::meet(Fiber &fiber, uint32_t id, uint32_t threads,
                         bool waits, uint32_t site) {
  auto fail = [&](const auto &...text) {
    scheduler.report(fiber, ErrorKind::Divergence, site, text...);
    scheduler.kill(fiber);
  };
  size_t blockThreads = scheduler.fibers().size();
  if (id >= kNamed)
    fail("expected a barrier below ", kNamed, ", but got ", id);
  if (threads == 0 || threads % kWarpSize != 0 || threads > blockThreads)
    fail("expected a barrier of a multiple of 32 threads, of ", blockThreads,
         " that there are, but got ", threads);
  Named &barrier = named[id];
  if (barrier.arrived != 0 && barrier.expected != threads)
    fail("divergence: barrier ", id, " is one of ", threads,
         " threads here, but one of ", barrier.expected, " for others");
  barrier.expected = threads;
  ++barrier.arrived;
  ++scheduler.cluster().events;
  barrier.lanes[fiber.registers.warpId] |= 1u << fiber.registers.laneId;
  MemoryChecker *checker = scheduler.checker();
  if (checker)
    checker->release(fiber, barrier.clock);
  fiber.site = site;
  fiber.barrierId = id;
  if (barrier.arrived != barrier.expected) {
    barrier.waiting += waits;
    if (waits)
      scheduler.yield(fiber, Fiber::State::AtNamedBarrier);
    return;
  }
  // GPUs count whole warps.
  for (size_t i = 0; i < scheduler.warpCount(); ++i)
    if (barrier.lanes[i] != 0 &&
        (scheduler.liveLanes(i) & ~barrier.lanes[i]) != 0)
      fail("divergence: only some lanes of warp ", i, " come to barrier ", id);
  for (Fiber &other : scheduler.fibers()) {
    if (other.state != Fiber::State::AtNamedBarrier || other.barrierId != id)
      continue;
    if (checker)
      checker->acquire(other, barrier.clock);
    scheduler.setState(other, Fiber::State::Ready);
  }
  if (checker && waits)
    checker->acquire(fiber, barrier.clock);
  bool isWhole = barrier.waiting + waits == blockThreads;
  if (isWhole && checker)
    checker->beginPhase(scheduler.rank());
  if (isWhole && scheduler.counter())
    scheduler.counter()->passBarrier(scheduler.rank());
  barrier = {};
}

void BlockBarriers::describeNamedWaits(WaitReport &report) const {
  for (uint32_t id = 0; id < kNamed; ++id) {
    size_t threads = 0;
    for (const Fiber &fiber : scheduler.fibers())
      if (fiber.state == Fiber::State::AtNamedBarrier &&
          fiber.barrierId == id) {
        report.note(fiber);
        ++threads;
      }
    if (threads)
      report.add(threads, "at barrier ", id, scheduler.blockName(), ", where ",
                 named[id].arrived, " of ", named[id].expected,
                 " threads came");
  }
}
