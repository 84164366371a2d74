//===- Transfers.cpp - Copies whose end mbarriers are told ----------------===//
//
// What an mbarrier is told of asynchronous copies happens as late as the rules
// allow: when nobody can go on without it.
//
//===----------------------------------------------------------------------===//
#include "BlockRunner.h"
#include "Text.h"

using namespace ftuner::emulator;

void BlockRunner::trackCopies(Fiber &fiber, char *address, bool isCounted,
                              uint32_t site) {
  Mbarrier &mbarrier = getMbarrier(fiber, address, site);
  mbarrier.pending += isCounted;
  Transfer transfer;
  transfer.mbarrier = mbarrier.number;
  transfer.phase = mbarrier.phase;
  transfer.thread = &fiber;
  transfer.site = site;
  transfer.copyEnd =
      static_cast<uint32_t>(fiber.copiesDone + fiber.copies.size());
  if (launch->lazyAsyncCopies)
    transfers.push_back(transfer);
  else
    land(transfer);
}

bool BlockRunner::isWaitedFor(const Mbarrier &mbarrier) const {
  for (const Fiber &fiber : fibers)
    if ((fiber.state == Fiber::State::AtMbarrier ||
         fiber.state == Fiber::State::Polling) &&
        fiber.mbarrier == mbarrier.number &&
        fiber.mbarrierPhase == mbarrier.phase)
      return true;
  return false;
}

bool BlockRunner::landTransfer(bool onlyWaitedFor) {
  // Copies end in any order.
  size_t count = transfers.size();
  size_t first =
      launch->order == RunOrder::Shuffled && count != 0 ? random() % count : 0;
  for (size_t i = 0; i < count; ++i) {
    size_t place = launch->order == RunOrder::Reverse ? count - 1 - i
                                                      : (first + i) % count;
    Transfer transfer = transfers[place];
    if (onlyWaitedFor && !isWaitedFor(mbarriers[transfer.mbarrier]))
      continue;
    transfers.erase(transfers.begin() + static_cast<ptrdiff_t>(place));
    land(transfer);
    return true;
  }
  return false;
}

void BlockRunner::landThreadCopies(const Transfer &transfer,
                                   Mbarrier &mbarrier) {
  Fiber &fiber = *transfer.thread;
  auto count = static_cast<int32_t>(transfer.copyEnd - fiber.copiesDone);
  for (int32_t i = 0; i < count; ++i) {
    AsyncCopy &copy = fiber.copies[static_cast<size_t>(i)];
    if (launch->lazyAsyncCopies)
      performCopy(copy);
    if (launch->checker && copy.bytes != 0)
      launch->checker->land(mbarrier.actor, mbarrier.time, copy.target,
                            copy.bytes, /*isBulk=*/false);
    copy.bytes = copy.sourceBytes = 0; // It is done, whoever waits for it.
  }
  if (fiber.groupSizes.empty() && count > 0) {
    fiber.copies.pop(static_cast<size_t>(count));
    fiber.copiesDone += static_cast<uint32_t>(count);
  }
  --mbarrier.pending;
}

void BlockRunner::land(const Transfer &transfer) {
  Mbarrier &mbarrier = mbarriers[transfer.mbarrier];
  auto fail = [&](const auto &...text) {
    launch->log->report(*transfer.thread, ErrorKind::Mbarrier, transfer.site,
                        joinText(describe(mbarrier), text...));
    cluster.isStopped = true;
  };
  if (mbarrier.phase != transfer.phase)
    return fail(" is told in its phase ", mbarrier.phase,
                " of copies that were issued in its phase ", transfer.phase,
                ", which did not expect them");
  ++mbarrier.time;
  if (transfer.target)
    landBulk(transfer, mbarrier);
  else
    landThreadCopies(transfer, mbarrier);
  if (launch->checker)
    launch->checker->releaseActor(mbarrier.actor, mbarrier.time,
                                  mbarrier.arriving);
  if (mbarrier.pending < 0)
    return fail(" gets more arrivals in its phase ", mbarrier.phase,
                " than the ", mbarrier.expected, " that it expects");
  if (mbarrier.pending == 0 && mbarrier.bytes < 0)
    return fail(" is told of ", -mbarrier.bytes, " bytes more than its phase ",
                mbarrier.phase, " expects");
  settle(mbarrier);
}

void BlockRunner::reportTransfersAtEnd() {
  for (const Transfer &transfer : transfers)
    launch->log->report(*transfer.thread, ErrorKind::PendingCopy, transfer.site,
                        joinText("copies that ",
                                 describe(mbarriers[transfer.mbarrier]),
                                 " counts are still pending at the kernel's "
                                 "end"));
}
