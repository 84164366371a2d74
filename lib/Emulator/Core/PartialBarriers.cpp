//===- PartialBarriers.cpp - Barriers of some of the threads --------------===//
//
// Named barriers with a number of threads, and the registers for which
// warpgroups wait.
//
//===----------------------------------------------------------------------===//
#include "BlockRunner.h"
#include "Text.h"

using namespace ftuner::emulator;

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

//===----------------------------------------------------------------------===//
// Registers
//===----------------------------------------------------------------------===//

void BlockRunner::setRegisters(Fiber &fiber, uint32_t count, bool isIncrease,
                               uint32_t atEntry, uint32_t site) {
  auto fail = [&](const auto &...text) {
    launch->log->report(fiber, ErrorKind::Registers, site, joinText(text...));
    kill(fiber);
  };
  if (fibers.size() % kGroupThreads != 0)
    fail("setmaxnreg needs whole warpgroups of 128 threads, but got a block "
         "of ",
         fibers.size());
  if (registersPerThread == 0) {
    registersPerThread = atEntry * static_cast<uint32_t>(warpgroups.size());
    for (Warpgroup &group : warpgroups)
      group.registers = atEntry;
  }
  Warpgroup &group = warpgroups[fiber.index / kGroupThreads];
  uint32_t number = fiber.registerCalls++;
  if (number == group.registerRequests.size()) {
    group.registerRequests.emplace_back();
    group.registerRequests.back().count = count;
    group.registerRequests.back().isIncrease = isIncrease;
  }
  RegisterRequest &request = group.registerRequests[number];
  if (request.count != count || request.isIncrease != isIncrease)
    fail("threads of a warpgroup change their registers to ", request.count,
         " and to ", count);
  if (++request.callers == kGroupThreads) {
    if (isIncrease ? count < group.registers : count > group.registers)
      fail("setmaxnreg ", isIncrease ? "increases" : "decreases",
           " the registers of a thread from ", group.registers, " to ", count);
    ++cluster.events;
    settleRegisters();
  }
  fiber.site = site;
  if (isIncrease && !group.registerRequests[number].isDone)
    yield(fiber, Fiber::State::AtRegisters);
}

void BlockRunner::settleRegisters() {
  uint32_t used = 0;
  for (const Warpgroup &group : warpgroups)
    used += group.registers;
  for (bool any = true; any;) {
    any = false;
    for (size_t i = 0; i < warpgroups.size(); ++i) {
      Warpgroup &group = warpgroups[i];
      for (RegisterRequest &request : group.registerRequests) {
        if (request.isDone || request.callers != kGroupThreads)
          continue;
        uint32_t after = used - group.registers + request.count;
        if (request.isIncrease && after > registersPerThread)
          continue;
        used = after;
        group.registers = request.count;
        request.isDone = any = true;
        for (size_t j = i * kGroupThreads; j < (i + 1) * kGroupThreads; ++j)
          if (fibers[j].state == Fiber::State::AtRegisters)
            setState(fibers[j], Fiber::State::Ready);
      }
    }
  }
}
