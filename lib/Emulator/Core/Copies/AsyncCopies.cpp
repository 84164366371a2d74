//===- AsyncCopies.cpp - Asynchronous copies of threads -------------------===//
#include "Copies/AsyncCopies.h"
#include <cstring>

using namespace ftuner::emulator;

static void perform(const AsyncCopy &copy) {
  if (copy.sourceBytes == 16) { // By far the most frequent.
    std::memcpy(copy.target, copy.source, 16);
    return;
  }
  if (copy.sourceBytes == 4 && copy.bytes == 4) {
    std::memcpy(copy.target, copy.source, 4);
    return;
  }
  std::memcpy(copy.target, copy.source, copy.sourceBytes);
  std::memset(copy.target + copy.sourceBytes, 0, copy.bytes - copy.sourceBytes);
}

void AsyncCopies::setProductsInFlight(bool any) {
  areProductsInFlight = any;
  arePlain = !scheduler.checker() && !scheduler.counter() &&
             scheduler.launch().lazyAsyncCopies && !any;
}

void AsyncCopies::issueAny(Fiber &fiber, const AsyncCopy &copy) {
  auto isMisaligned = [&](const char *address) {
    return reinterpret_cast<uintptr_t>(address) % copy.bytes != 0;
  };
  if (copy.sourceBytes > copy.bytes) {
    scheduler.report(fiber, ErrorKind::AsyncCopy, copy.site,
                     "an asynchronous copy of ", copy.bytes, " bytes reads ",
                     copy.sourceBytes);
    scheduler.kill(fiber);
  }
  if (isMisaligned(copy.target) ||
      (copy.sourceBytes != 0 && isMisaligned(copy.source)))
    scheduler.report(fiber, ErrorKind::Misaligned, copy.site,
                     "misaligned asynchronous copy: expected an alignment of ",
                     copy.bytes, " bytes, but got target ",
                     formatAddress(copy.target), " and source ",
                     formatAddress(copy.source));
  if (!shared.contains(copy.target, copy.bytes)) {
    scheduler.report(fiber, ErrorKind::OutOfBounds, copy.site,
                     "out-of-bounds asynchronous copy of ", copy.bytes,
                     " bytes to offset ", copy.target - shared.dynamicBase,
                     " of dynamic shared memory (", shared.dynamicBytes,
                     " bytes)");
    scheduler.kill(fiber);
  }
  MemoryChecker *checker = scheduler.checker();
  if (checker && !checker->issueCopy(fiber, copy))
    scheduler.kill(fiber);
  if (ExecutionCounter *counter = scheduler.counter())
    counter->copy(fiber, copy);
  if (!scheduler.launch().lazyAsyncCopies)
    perform(copy);
  else if (areProductsInFlight)
    std::memset(copy.target, kPoison, copy.bytes);
  fiber.copies.push(copy);
}

void AsyncCopies::commit(Fiber &fiber) {
  fiber.groupSizes.push_back(fiber.copies.size() - fiber.committed);
  fiber.committed = fiber.copies.size();
}

void AsyncCopies::wait(Fiber &fiber, uint32_t pendingGroups) {
  if (fiber.groupSizes.size() <= pendingGroups)
    return;
  size_t groups = fiber.groupSizes.size() - pendingGroups;
  uint32_t copies = 0;
  for (size_t i = 0; i < groups; ++i)
    copies += fiber.groupSizes[i];
  const AsyncCopy *begin = fiber.copies.begin(), *end = begin + copies;
  if (scheduler.launch().lazyAsyncCopies)
    for (const AsyncCopy *copy = begin; copy != end; ++copy)
      perform(*copy);
  if (MemoryChecker *checker = scheduler.checker())
    for (const AsyncCopy *copy = begin; copy != end; ++copy)
      checker->completeCopy(fiber, *copy);
  fiber.copies.pop(copies);
  fiber.copiesDone += copies;
  fiber.groupSizes.erase(fiber.groupSizes.begin(),
                         fiber.groupSizes.begin() + groups);
  fiber.committed -= copies;
}

void AsyncCopies::land(Fiber &fiber, uint32_t end, uint32_t actor,
                       uint32_t time) {
  auto count = static_cast<int32_t>(end - fiber.copiesDone);
  for (int32_t i = 0; i < count; ++i) {
    AsyncCopy &copy = fiber.copies[static_cast<size_t>(i)];
    if (scheduler.launch().lazyAsyncCopies)
      perform(copy);
    if (scheduler.checker() && copy.bytes != 0)
      scheduler.checker()->land(actor, time, copy.target, copy.bytes,
                                /*isBulk=*/false);
    copy.bytes = copy.sourceBytes = 0; // It is done, whoever waits for it.
  }
  if (fiber.groupSizes.empty() && count > 0) {
    fiber.copies.pop(static_cast<size_t>(count));
    fiber.copiesDone += static_cast<uint32_t>(count);
  }
}

void AsyncCopies::reportPending() const {
  for (const Fiber &fiber : scheduler.fibers()) {
    size_t pending = 0, first = 0;
    for (size_t i = fiber.copies.size(); i-- > 0;)
      if (fiber.copies[i].bytes != 0) { // Else its mbarrier had it done.
        ++pending;
        first = i;
      }
    if (fiber.state != Fiber::State::Exited || pending == 0)
      continue;
    scheduler.log().report(
        fiber, ErrorKind::PendingCopy, fiber.copies[first].site,
        joinText(pending, " asynchronous copies still pending at "
                          "the kernel's end"),
        ", the first issued");
  }
}
