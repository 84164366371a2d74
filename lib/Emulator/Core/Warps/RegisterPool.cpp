//===- RegisterPool.cpp - Registers that warpgroups share -----------------===//
#include "Warps/RegisterPool.h"
#include "Matrices/WarpMatrix.h"

using namespace ftuner::emulator;

void RegisterPool::begin() {
  size_t threads = scheduler.fibers().size();
  warpgroups.resize((threads + kGroupThreads - 1) / kGroupThreads);
  for (Warpgroup &group : warpgroups) {
    group.registers = 0;
    group.requests.clear();
  }
  available = 0;
}

void RegisterPool::set(Fiber &fiber, uint32_t count, bool isIncrease,
                       uint32_t atEntry, uint32_t site) {
  auto fail = [&](const auto &...text) {
    scheduler.report(fiber, ErrorKind::Registers, site, text...);
    scheduler.kill(fiber);
  };
  size_t threads = scheduler.fibers().size();
  if (threads % kGroupThreads != 0)
    fail("setmaxnreg needs whole warpgroups of 128 threads, but got a block "
         "of ",
         threads);
  if (available == 0) {
    available = atEntry * static_cast<uint32_t>(warpgroups.size());
    for (Warpgroup &group : warpgroups)
      group.registers = atEntry;
  }
  Warpgroup &group = warpgroups[fiber.index / kGroupThreads];
  uint32_t number = fiber.registerCalls++;
  if (number == group.requests.size()) {
    group.requests.emplace_back();
    group.requests.back().count = count;
    group.requests.back().isIncrease = isIncrease;
  }
  Request &request = group.requests[number];
  if (request.count != count || request.isIncrease != isIncrease)
    fail("threads of a warpgroup change their registers to ", request.count,
         " and to ", count);
  if (++request.callers == kGroupThreads) {
    if (isIncrease ? count < group.registers : count > group.registers)
      fail("setmaxnreg ", isIncrease ? "increases" : "decreases",
           " the registers of a thread from ", group.registers, " to ", count);
    ++scheduler.cluster().events;
    settle();
  }
  fiber.site = site;
  if (isIncrease && !group.requests[number].isDone)
    scheduler.yield(fiber, Fiber::State::AtRegisters);
}

void RegisterPool::settle() {
  uint32_t used = 0;
  for (const Warpgroup &group : warpgroups)
    used += group.registers;
  for (bool any = true; any;) {
    any = false;
    for (size_t i = 0; i < warpgroups.size(); ++i) {
      Warpgroup &group = warpgroups[i];
      for (Request &request : group.requests) {
        if (request.isDone || request.callers != kGroupThreads)
          continue;
        uint32_t after = used - group.registers + request.count;
        if (request.isIncrease && after > available)
          continue;
        used = after;
        group.registers = request.count;
        request.isDone = any = true;
        for (size_t j = i * kGroupThreads; j < (i + 1) * kGroupThreads; ++j)
          if (Fiber &fiber = scheduler.fibers()[j];
              fiber.state == Fiber::State::AtRegisters)
            scheduler.setState(fiber, Fiber::State::Ready);
      }
    }
  }
}

void RegisterPool::describeWaits(WaitReport &report) const {
  size_t threads = 0;
  for (const Fiber &fiber : scheduler.fibers())
    if (fiber.state == Fiber::State::AtRegisters) {
      report.note(fiber);
      ++threads;
    }
  if (!threads)
    return;
  std::string sizes;
  for (const Warpgroup &group : warpgroups)
    sizes += joinText(sizes.empty() ? "" : ", ", group.registers);
  report.add(threads, "for registers (setmaxnreg) beyond the pool of ",
             available, " for a thread of each warpgroup; the warpgroups have ",
             sizes);
}
