//===- Transfers.cpp - Copies whose end mbarriers are told ----------------===//
#include "Copies/Transfers.h"
#include <cstring>

using namespace ftuner::emulator;

void Transfers::trackCopies(Fiber &fiber, char *address, bool isCounted,
                            uint32_t site) {
  Mbarrier &mbarrier = mbarriers.get(fiber, address, site);
  mbarrier.pending += isCounted;
  Transfer transfer;
  transfer.mbarrier = mbarrier.number;
  transfer.phase = mbarrier.phase;
  transfer.thread = &fiber;
  transfer.site = site;
  transfer.copyEnd =
      static_cast<uint32_t>(fiber.copiesDone + fiber.copies.size());
  add(transfer);
}

void Transfers::add(const Transfer &transfer) {
  if (scheduler.launch().lazyAsyncCopies)
    pending.push_back(transfer);
  else
    land(transfer);
}

bool Transfers::landOne(bool onlyWaitedFor) {
  // Copies end in any order.
  size_t count = pending.size();
  RunOrder order = scheduler.launch().order;
  size_t first = order == RunOrder::Shuffled && count != 0
                     ? scheduler.drawNumber() % count
                     : 0;
  for (size_t i = 0; i < count; ++i) {
    size_t place =
        order == RunOrder::Reverse ? count - 1 - i : (first + i) % count;
    Transfer transfer = pending[place];
    if (onlyWaitedFor && !mbarriers.isWaitedFor(mbarriers[transfer.mbarrier]))
      continue;
    pending.erase(pending.begin() + static_cast<ptrdiff_t>(place));
    land(transfer);
    return true;
  }
  return false;
}

void Transfers::landBulk(const Transfer &transfer, Mbarrier &mbarrier) {
  const BulkRange &range = transfer.range;
  uint64_t bytes = range.bytes();
  MemoryChecker *checker = scheduler.checker();
  if (transfer.sharedSource) {
    if (transfer.thread->scheduler->hasEnded())
      scheduler.report(*transfer.thread, ErrorKind::BulkCopy, transfer.site,
                       "a bulk copy reads shared memory of a block that has "
                       "ended");
    if (checker)
      checker->readForBulkCopy(*transfer.thread, transfer.sharedSource, bytes,
                               /*isIssue=*/false, transfer.site);
  }
  std::vector<char> loaded(bytes);
  range.load(loaded.data());
  for (uint64_t i = 0; i < bytes; i += BulkRange::kChunk)
    std::memcpy(range.chunk(transfer.target, i), &loaded[i], BulkRange::kChunk);
  if (checker)
    checker->land(mbarrier.actor, mbarrier.time, transfer.target, bytes,
                  /*isBulk=*/true);
  mbarrier.bytes -= static_cast<int64_t>(bytes);
}

void Transfers::land(const Transfer &transfer) {
  Mbarrier &mbarrier = mbarriers[transfer.mbarrier];
  auto fail = [&](const auto &...text) {
    scheduler.report(*transfer.thread, ErrorKind::Mbarrier, transfer.site,
                     mbarriers.describe(mbarrier), text...);
    scheduler.cluster().isStopped = true;
  };
  if (mbarrier.phase != transfer.phase)
    return fail(" is told in its phase ", mbarrier.phase,
                " of copies that were issued in its phase ", transfer.phase,
                ", which did not expect them");
  ++mbarrier.time;
  if (transfer.target) {
    landBulk(transfer, mbarrier);
  } else {
    copies.land(*transfer.thread, transfer.copyEnd, mbarrier.actor,
                mbarrier.time);
    --mbarrier.pending;
  }
  if (MemoryChecker *checker = scheduler.checker())
    checker->releaseActor(mbarrier.actor, mbarrier.time, mbarrier.arriving);
  if (mbarrier.pending < 0)
    return fail(" gets more arrivals in its phase ", mbarrier.phase,
                " than the ", mbarrier.expected, " that it expects");
  if (mbarrier.pending == 0 && mbarrier.bytes < 0)
    return fail(" is told of ", -mbarrier.bytes, " bytes more than its phase ",
                mbarrier.phase, " expects");
  mbarriers.completePhaseIfDone(mbarrier);
}

void Transfers::reportPending() const {
  for (const Transfer &transfer : pending)
    scheduler.report(*transfer.thread, ErrorKind::PendingCopy, transfer.site,
                     "copies that ",
                     mbarriers.describe(mbarriers[transfer.mbarrier]),
                     " counts are still pending at the kernel's "
                     "end");
}
