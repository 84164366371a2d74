//===- BlockRunner.cpp - Runs one block -----------------------------------===//
#include "BlockRunner.h"

using namespace ftuner::emulator;

bool BlockRunner::prepare(const Launch &launch, bool runsOnCaller) {
  if (!scheduler.prepare(launch, runsOnCaller))
    return false;
  memory.prepare();
  return true;
}

void BlockRunner::begin(uint64_t linearBlock) {
  memory.begin();
  scheduler.begin(*this, memory.shared(), linearBlock);
  collectives.begin();
  barriers.begin();
  registers.begin();
  copies.begin(memory.shared());
  products.begin();
  mbarriers.begin();
  transfers.begin();
  bulkCopies.begin();
  if (ExecutionCounter *counter = scheduler.counter())
    counter->beginBlock(memory.shared(), scheduler.rank(),
                        scheduler.fibers().size());
}

void BlockRunner::end() {
  scheduler.noteEnd();
  if (ExecutionCounter *counter = scheduler.counter())
    counter->endBlock(scheduler.rank());
  products.reportPending();
  transfers.reportPending();
  bulkCopies.finishStores();
  copies.reportPending();
  if (scheduler.checker() && !hasKilledThreads())
    scheduler.checker()->endBlock(scheduler.rank());
}

std::string BlockRunner::describeWaits(const Fiber *&first) const {
  WaitReport report(first);
  mbarriers.describeWaits(report);
  barriers.describeNamedWaits(report);
  registers.describeWaits(report);
  for (const Fiber &fiber : scheduler.fibers())
    if (fiber.state == Fiber::State::AtBarrier ||
        fiber.state == Fiber::State::AtCluster)
      report.note(fiber);
  if (size_t threads = scheduler.count(Fiber::State::AtBarrier))
    report.add(threads, "at a barrier of the block", scheduler.blockName());
  if (size_t threads = scheduler.count(Fiber::State::AtCluster))
    report.add(threads, "at the barrier of the cluster, where ",
               scheduler.cluster().arrived, " threads came");
  first = report.first();
  return report.words();
}
