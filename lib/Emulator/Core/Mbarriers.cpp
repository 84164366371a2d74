//===- Mbarriers.cpp - Barriers in shared memory --------------------------===//
//
// The state of an mbarrier is kept beside its memory, which only holds a mark.
// A thread that waits for a phase stops until it is over; a thread that merely
// asks goes on, with the answer no, when no other thread can. What an mbarrier
// is told of asynchronous copies happens as late as the rules allow: when
// nobody can go on without it.
//
//===----------------------------------------------------------------------===//
#include "BlockRunner.h"
#include "RuntimeFunctions.h"
#include "Text.h"
#include <cstring>

using namespace ftuner::emulator;

namespace {
/// The high bits of a state that an arrival returns; the phase is in the low
/// ones.
constexpr uint64_t kStateTag = uint64_t(0x6d62) << 48;
/// A larger number of bytes no mbarrier can hold (PTX ISA, tx-count).
constexpr int64_t kMaxBytes = (1 << 20) - 1;
} // namespace

std::string BlockRunner::describe(const Mbarrier &mbarrier) const {
  bool isDynamic = SharedMemory::isWithin(
      mbarrier.address, 1, shared.dynamicBase, shared.dynamicBytes);
  const char *base = isDynamic ? shared.dynamicBase : shared.staticBase;
  return joinText("the mbarrier at offset ", mbarrier.address - base, " of ",
                  isDynamic ? "dynamic" : "static", " shared memory",
                  clusterName());
}

//===----------------------------------------------------------------------===//
// Initialisation
//===----------------------------------------------------------------------===//

void BlockRunner::initMbarrier(Fiber &fiber, char *address, uint32_t count,
                               uint32_t site) {
  ErrorLog &log = *launch->log;
  if (!shared.contains(address, Mbarrier::kBytes) ||
      reinterpret_cast<uintptr_t>(address) % Mbarrier::kBytes != 0) {
    log.report(fiber, ErrorKind::Mbarrier, site,
               joinText("expected an mbarrier in shared memory at a multiple "
                        "of 8 bytes, but got address ",
                        formatAddress(address)));
    kill(fiber);
  }
  if (count == 0 || count > Mbarrier::kMaxCount) {
    log.report(fiber, ErrorKind::Mbarrier, site,
               joinText("expected an mbarrier of 1 to ", Mbarrier::kMaxCount,
                        " arrivals, but got ", count));
    kill(fiber);
  }
  if (launch->checker &&
      !launch->checker->access(fiber, address, Mbarrier::kBytes,
                               AccessKind::Write, Mbarrier::kBytes, site))
    kill(fiber);
  Mbarrier *found = nullptr;
  for (Mbarrier &known : mbarriers)
    if (known.address == address)
      found = &known;
  if (!found) {
    found = &mbarriers.emplace_back();
    found->address = address;
    found->number = static_cast<uint32_t>(mbarriers.size() - 1);
    found->actor =
        static_cast<uint32_t>(found->number * cluster.blocks.size() + rank);
  }
  uint64_t mark = 0;
  std::memcpy(&mark, address, sizeof(mark));
  if (found->isValid && mark == Mbarrier::kMark)
    log.report(fiber, ErrorKind::Mbarrier, site,
               joinText(describe(*found),
                        " is initialised again without mbarrier.inval"));
  found->isValid = true;
  found->expected = count;
  found->pending = count;
  found->bytes = 0;
  found->phase = 0;
  found->initThread = &fiber;
  found->initTime = launch->checker ? launch->checker->now(fiber) : 0;
  found->isFenced = false;
  found->arriving.clear();
  found->completed.clear();
  std::memcpy(address, &Mbarrier::kMark, Mbarrier::kBytes);
}

Mbarrier &BlockRunner::getMbarrier(Fiber &fiber, char *address, uint32_t site) {
  if (BlockRunner *peer = fiber.runner == this ? findPeer(address) : nullptr) {
    launch->log->report(fiber, ErrorKind::Mbarrier, site,
                        joinText("this use of an mbarrier needs one of the own "
                                 "block, but got one",
                                 peer->clusterName()));
    kill(fiber);
  }
  for (Mbarrier &known : mbarriers) {
    if (known.address != address || !known.isValid)
      continue;
    uint64_t mark = 0;
    std::memcpy(&mark, address, sizeof(mark));
    if (mark != Mbarrier::kMark) {
      launch->log->report(fiber, ErrorKind::Mbarrier, site,
                          joinText(describe(known), " was overwritten"));
      kill(fiber);
    }
    MemoryChecker *checker = launch->checker;
    if (checker && !checker->isAfter(fiber, *known.initThread, known.initTime))
      launch->log->report(
          fiber, ErrorKind::Race, site,
          joinText("race: ", describe(known), " is used after thread ",
                   formatIndex(known.initThread->registers.threadId),
                   " initialised it without a barrier in between"));
    if (checker && !checker->access(fiber, address, Mbarrier::kBytes,
                                    AccessKind::Atomic, Mbarrier::kBytes, site))
      kill(fiber);
    return known;
  }
  launch->log->report(fiber, ErrorKind::Mbarrier, site,
                      joinText("there is no mbarrier at address ",
                               formatAddress(address), ", offset ",
                               address - shared.dynamicBase,
                               " of dynamic shared memory"));
  kill(fiber);
}

void BlockRunner::invalidateMbarrier(Fiber &fiber, char *address,
                                     uint32_t site) {
  Mbarrier &mbarrier = getMbarrier(fiber, address, site);
  for (const Fiber &other : fibers)
    if (other.state == Fiber::State::AtMbarrier &&
        other.mbarrier == mbarrier.number) {
      launch->log->report(fiber, ErrorKind::Mbarrier, site,
                          joinText(describe(mbarrier),
                                   " is made invalid while threads wait for "
                                   "it"));
      kill(fiber);
    }
  mbarrier.isValid = false;
  std::memset(address, 0xff, Mbarrier::kBytes);
}

void BlockRunner::fenceMbarriers(const Fiber &fiber) {
  for (Mbarrier &mbarrier : mbarriers)
    if (mbarrier.initThread == &fiber)
      mbarrier.isFenced = true;
}

void BlockRunner::releaseMbarriers(Fiber &fiber) {
  fenceMbarriers(fiber);
  if (launch->checker)
    fiber.fenceTime = launch->checker->advance(fiber);
}

//===----------------------------------------------------------------------===//
// Arrivals
//===----------------------------------------------------------------------===//

void BlockRunner::settle(Mbarrier &mbarrier) {
  ++cluster.events;
  if (mbarrier.pending != 0 || mbarrier.bytes != 0)
    return;
  ++mbarrier.phase;
  mbarrier.pending = mbarrier.expected;
  mergeClock(mbarrier.completed, mbarrier.arriving);
  for (Fiber &fiber : fibers)
    if (fiber.state == Fiber::State::AtMbarrier &&
        fiber.mbarrier == mbarrier.number)
      setState(fiber, Fiber::State::Ready);
}

uint64_t BlockRunner::arriveAtMbarrier(Fiber &fiber, char *address,
                                       uint32_t count, int64_t bytes,
                                       uint32_t options, uint32_t site) {
  if (BlockRunner *peer = fiber.runner == this ? findPeer(address) : nullptr) {
    peer->checkRemoteUse(fiber, !(options & kRelaxedArrival), site);
    return peer->arriveAtMbarrier(fiber, address, count, bytes, options, site);
  }
  Mbarrier &mbarrier = getMbarrier(fiber, address, site);
  uint64_t state = kStateTag | mbarrier.phase;
  auto fail = [&](const auto &...text) {
    launch->log->report(fiber, ErrorKind::Mbarrier, site,
                        joinText(describe(mbarrier), text...));
    kill(fiber);
  };
  mbarrier.bytes += bytes;
  if (mbarrier.bytes > kMaxBytes || mbarrier.bytes < -kMaxBytes)
    fail(" expects ", mbarrier.bytes, " bytes; at most ", kMaxBytes,
         " are allowed");
  if (!(options & kBytesWithoutOne)) {
    if (count == 0 || count > mbarrier.pending)
      fail(" gets ", count, " arrivals in its phase ", mbarrier.phase,
           ", which expects ", mbarrier.pending, " more of ",
           mbarrier.expected);
    if (launch->checker && !(options & kRelaxedArrival))
      launch->checker->release(fiber, mbarrier.arriving);
    mbarrier.pending -= count;
    if (options & kDroppedArrival)
      mbarrier.expected -= count;
    if (options & kNoCompletion && mbarrier.pending == 0)
      fail(" gets the last arrival of its phase ", mbarrier.phase,
           " by an operation that must not complete it");
  }
  if (mbarrier.pending == 0 && mbarrier.bytes < 0)
    fail(" was told of ", -mbarrier.bytes, " bytes more than its phase ",
         mbarrier.phase, " expects");
  settle(mbarrier);
  return state;
}

//===----------------------------------------------------------------------===//
// Waits
//===----------------------------------------------------------------------===//

bool BlockRunner::waitForMbarrier(Fiber &fiber, char *address, uint64_t phase,
                                  uint32_t kind, uint32_t site) {
  Mbarrier &mbarrier = getMbarrier(fiber, address, site);
  auto fail = [&](const auto &...text) {
    launch->log->report(fiber, ErrorKind::Mbarrier, site,
                        joinText(describe(mbarrier), text...));
    kill(fiber);
  };
  bool isState = (kind & kStateWait) != 0;
  if (!isState && phase > 1)
    fail(" is waited for with parity ", phase, "; it must be 0 or 1");
  if (isState && phase != (kStateTag | mbarrier.phase) &&
      phase + 1 != (kStateTag | mbarrier.phase))
    fail(" is waited for with a state that is neither of its phase ",
         mbarrier.phase, " nor of the one before");
  auto isOver = [&] {
    return isState ? phase != (kStateTag | mbarrier.phase)
                   : (mbarrier.phase & 1) != phase;
  };
  fiber.site = site;
  fiber.mbarrier = mbarrier.number;
  fiber.mbarrierPhase = mbarrier.phase;
  if (!isOver()) {
    uint32_t how = kind & 3;
    // A try may be in vain at any time: it is once, to find a missing loop.
    uint64_t bit = uint64_t(1) << site % 64;
    if (how == kTryWait && launch->lazyAsyncCopies &&
        !(fiber.vainWaits & bit)) {
      fiber.vainWaits |= bit;
      return false;
    }
    if (how == kTestWait) {
      yield(fiber, Fiber::State::Polling);
      if (!isOver())
        return false;
    } else {
      yield(fiber, Fiber::State::AtMbarrier);
    }
  }
  if (launch->checker && !(kind & kRelaxedWait))
    launch->checker->acquire(fiber, mbarrier.completed);
  return true;
}

void BlockRunner::answerPolls() {
  for (Fiber &fiber : fibers)
    if (fiber.state == Fiber::State::Polling)
      setState(fiber, Fiber::State::Ready);
}
