//===- RegisterPool.cpp - Registers that warpgroups share -----------------===//
//
// setmaxnreg: a warpgroup that asks for more registers waits until others have
// given enough back.
//
//===----------------------------------------------------------------------===//
#include "BlockRunner.h"
#include "Text.h"

using namespace ftuner::emulator;

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
