//===- Mbarriers.cpp - Barriers in shared memory --------------------------===//
#include "Barriers/Mbarriers.h"
#include <cstring>

using namespace ftuner::emulator;

namespace {
/// The high bits of a state that an arrival returns; the phase is in the low
/// ones.
constexpr uint64_t kStateTag = uint64_t(0x6d62) << 48;
/// A larger number of bytes no mbarrier can hold (PTX ISA, tx-count).
constexpr int64_t kMaxBytes = (1 << 20) - 1;
} // namespace

std::string Mbarriers::describe(const Mbarrier &mbarrier) const {
  const SharedMemory &shared = memory.shared();
  bool isDynamic = SharedMemory::isWithin(
      mbarrier.address, 1, shared.dynamicBase, shared.dynamicBytes);
  const char *base = isDynamic ? shared.dynamicBase : shared.staticBase;
  return joinText("the mbarrier at offset ", mbarrier.address - base, " of ",
                  isDynamic ? "dynamic" : "static", " shared memory",
                  scheduler.blockName());
}

//===----------------------------------------------------------------------===//
// Initialisation
//===----------------------------------------------------------------------===//

void Mbarriers::init(Fiber &fiber, char *address, uint32_t count,
                     uint32_t site) {
  if (!memory.shared().contains(address, Mbarrier::kBytes) ||
      reinterpret_cast<uintptr_t>(address) % Mbarrier::kBytes != 0) {
    scheduler.report(fiber, ErrorKind::Mbarrier, site,
                     "expected an mbarrier in shared memory at a multiple "
                     "of 8 bytes, but got address ",
                     formatAddress(address));
    scheduler.kill(fiber);
  }
  if (count == 0 || count > Mbarrier::kMaxCount) {
    scheduler.report(fiber, ErrorKind::Mbarrier, site,
                     "expected an mbarrier of 1 to ", Mbarrier::kMaxCount,
                     " arrivals, but got ", count);
    scheduler.kill(fiber);
  }
  MemoryChecker *checker = scheduler.checker();
  if (checker && !checker->access(fiber, address, Mbarrier::kBytes,
                                  AccessKind::Write, Mbarrier::kBytes, site))
    scheduler.kill(fiber);
  Mbarrier *found = nullptr;
  for (Mbarrier &known : mbarriers)
    if (known.address == address)
      found = &known;
  if (!found) {
    found = &mbarriers.emplace_back();
    found->address = address;
    found->number = static_cast<uint32_t>(mbarriers.size() - 1);
    found->actor = static_cast<uint32_t>(
        found->number * scheduler.cluster().blocks.size() + scheduler.rank());
  }
  uint64_t mark = 0;
  std::memcpy(&mark, address, sizeof(mark));
  if (found->isValid && mark == Mbarrier::kMark)
    scheduler.report(fiber, ErrorKind::Mbarrier, site, describe(*found),
                     " is initialised again without mbarrier.inval");
  found->isValid = true;
  found->expected = count;
  found->pending = count;
  found->bytes = 0;
  found->phase = 0;
  found->initThread = &fiber;
  found->initTime = checker ? checker->now(fiber) : 0;
  found->isFenced = false;
  found->arriving.clear();
  found->completed.clear();
  std::memcpy(address, &Mbarrier::kMark, Mbarrier::kBytes);
}

Mbarrier &Mbarriers::get(Fiber &fiber, char *address, uint32_t site) {
  const ClusterBlock *peer =
      scheduler.owns(fiber) ? memory.findPeer(address) : nullptr;
  if (peer) {
    scheduler.report(fiber, ErrorKind::Mbarrier, site,
                     "this use of an mbarrier needs one of the own "
                     "block, but got one",
                     peer->memory->blockName());
    scheduler.kill(fiber);
  }
  for (Mbarrier &known : mbarriers) {
    if (known.address != address || !known.isValid)
      continue;
    uint64_t mark = 0;
    std::memcpy(&mark, address, sizeof(mark));
    if (mark != Mbarrier::kMark) {
      scheduler.report(fiber, ErrorKind::Mbarrier, site, describe(known),
                       " was overwritten");
      scheduler.kill(fiber);
    }
    MemoryChecker *checker = scheduler.checker();
    if (checker && !checker->isAfter(fiber, *known.initThread, known.initTime))
      scheduler.report(fiber, ErrorKind::Race, site, "race: ", describe(known),
                       " is used after thread ",
                       formatIndex(known.initThread->registers.threadId),
                       " initialised it without a barrier in between");
    if (checker && !checker->access(fiber, address, Mbarrier::kBytes,
                                    AccessKind::Atomic, Mbarrier::kBytes, site))
      scheduler.kill(fiber);
    return known;
  }
  scheduler.report(fiber, ErrorKind::Mbarrier, site,
                   "there is no mbarrier at address ", formatAddress(address),
                   ", offset ", address - memory.shared().dynamicBase,
                   " of dynamic shared memory");
  scheduler.kill(fiber);
}

void Mbarriers::invalidate(Fiber &fiber, char *address, uint32_t site) {
  Mbarrier &mbarrier = get(fiber, address, site);
  for (const Fiber &other : scheduler.fibers())
    if (other.state == Fiber::State::AtMbarrier &&
        other.mbarrier == mbarrier.number) {
      scheduler.report(fiber, ErrorKind::Mbarrier, site, describe(mbarrier),
                       " is made invalid while threads wait for "
                       "it");
      scheduler.kill(fiber);
    }
  mbarrier.isValid = false;
  std::memset(address, 0xff, Mbarrier::kBytes);
}

void Mbarriers::fence(const Fiber &fiber) {
  for (Mbarrier &mbarrier : mbarriers)
    if (mbarrier.initThread == &fiber)
      mbarrier.isFenced = true;
}

void Mbarriers::release(Fiber &fiber) {
  fence(fiber);
  if (MemoryChecker *checker = scheduler.checker())
    fiber.fenceTime = checker->advance(fiber);
}

//===----------------------------------------------------------------------===//
// Arrivals
//===----------------------------------------------------------------------===//

void Mbarriers::completePhaseIfDone(Mbarrier &mbarrier) {
  ++scheduler.cluster().events; // Threads that poll may see another state.
  if (mbarrier.pending != 0 || mbarrier.bytes != 0)
    return;
  ++mbarrier.phase;
  mbarrier.pending = mbarrier.expected;
  mergeClock(mbarrier.completed, mbarrier.arriving);
  for (Fiber &fiber : scheduler.fibers())
    if (fiber.state == Fiber::State::AtMbarrier &&
        fiber.mbarrier == mbarrier.number)
      scheduler.setState(fiber, Fiber::State::Ready);
}

uint64_t Mbarriers::arrive(Fiber &fiber, char *address, uint32_t count,
                           int64_t bytes, uint32_t options, uint32_t site) {
  const ClusterBlock *peer =
      scheduler.owns(fiber) ? memory.findPeer(address) : nullptr;
  if (peer) {
    peer->memory->checkRemoteUse(fiber, !(options & kRelaxedArrival), site);
    return peer->mbarriers->arrive(fiber, address, count, bytes, options, site);
  }
  Mbarrier &mbarrier = get(fiber, address, site);
  uint64_t state = kStateTag | mbarrier.phase;
  auto fail = [&](const auto &...text) {
    scheduler.report(fiber, ErrorKind::Mbarrier, site, describe(mbarrier),
                     text...);
    scheduler.kill(fiber);
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
    if (scheduler.checker() && !(options & kRelaxedArrival))
      scheduler.checker()->release(fiber, mbarrier.arriving);
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
  completePhaseIfDone(mbarrier);
  return state;
}

//===----------------------------------------------------------------------===//
// Waits
//===----------------------------------------------------------------------===//

bool Mbarriers::wait(Fiber &fiber, char *address, uint64_t phase, uint32_t kind,
                     uint32_t site) {
  Mbarrier &mbarrier = get(fiber, address, site);
  auto fail = [&](const auto &...text) {
    scheduler.report(fiber, ErrorKind::Mbarrier, site, describe(mbarrier),
                     text...);
    scheduler.kill(fiber);
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
    if (how == kTryWait && scheduler.launch().lazyAsyncCopies &&
        !(fiber.vainWaits & bit)) {
      fiber.vainWaits |= bit;
      return false;
    }
    if (how == kTestWait) {
      scheduler.yield(fiber, Fiber::State::Polling);
      if (!isOver())
        return false;
    } else {
      scheduler.yield(fiber, Fiber::State::AtMbarrier);
    }
  }
  if (scheduler.checker() && !(kind & kRelaxedWait))
    scheduler.checker()->acquire(fiber, mbarrier.completed);
  return true;
}

bool Mbarriers::isWaitedFor(const Mbarrier &mbarrier) const {
  for (const Fiber &fiber : scheduler.fibers())
    if ((fiber.state == Fiber::State::AtMbarrier ||
         fiber.state == Fiber::State::Polling) &&
        fiber.mbarrier == mbarrier.number &&
        fiber.mbarrierPhase == mbarrier.phase)
      return true;
  return false;
}

void Mbarriers::describeWaits(WaitReport &report) const {
  for (const Mbarrier &mbarrier : mbarriers)
    for (uint32_t parity : {0u, 1u}) {
      size_t threads = 0;
      for (const Fiber &fiber : scheduler.fibers()) {
        bool waits = fiber.state == Fiber::State::AtMbarrier ||
                     fiber.state == Fiber::State::Polling;
        if (!waits || fiber.mbarrier != mbarrier.number ||
            (fiber.mbarrierPhase & 1) != parity)
          continue;
        report.note(fiber);
        ++threads;
      }
      if (threads)
        report.add(threads, "for phase ", mbarrier.phase, " of ",
                   describe(mbarrier), ", which expects ", mbarrier.pending,
                   " more arrivals of ", mbarrier.expected, " and ",
                   mbarrier.bytes, " bytes");
    }
}
