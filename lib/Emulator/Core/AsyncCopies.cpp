//===- AsyncCopies.cpp - Asynchronous copies of threads -------------------===//
//
// cp.async: a copy writes when its thread waits for it, as late as the rules
// allow.
//
//===----------------------------------------------------------------------===//
#include "BlockRunner.h"
#include "Text.h"
#include <cstring>

using namespace ftuner::emulator;

void BlockRunner::performCopy(const AsyncCopy &copy) {
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

void BlockRunner::issueAnyCopy(Fiber &fiber, const AsyncCopy &copy) {
  ErrorLog &log = *launch->log;
  auto isMisaligned = [&](const char *address) {
    return reinterpret_cast<uintptr_t>(address) % copy.bytes != 0;
  };
  if (copy.sourceBytes > copy.bytes) {
    log.report(fiber, ErrorKind::AsyncCopy, copy.site,
               joinText("an asynchronous copy of ", copy.bytes, " bytes reads ",
                        copy.sourceBytes));
    kill(fiber);
  }
  if (isMisaligned(copy.target) ||
      (copy.sourceBytes != 0 && isMisaligned(copy.source)))
    log.report(
        fiber, ErrorKind::Misaligned, copy.site,
        joinText("misaligned asynchronous copy: expected an alignment of ",
                 copy.bytes, " bytes, but got target ",
                 formatAddress(copy.target), " and source ",
                 formatAddress(copy.source)));
  if (!shared.contains(copy.target, copy.bytes)) {
    log.report(fiber, ErrorKind::OutOfBounds, copy.site,
               joinText("out-of-bounds asynchronous copy of ", copy.bytes,
                        " bytes to offset ", copy.target - shared.dynamicBase,
                        " of dynamic shared memory (", shared.dynamicBytes,
                        " bytes)"));
    kill(fiber);
  }
  if (launch->checker && !launch->checker->issueCopy(fiber, copy))
    kill(fiber);
  if (launch->counter)
    launch->counter->copy(fiber, copy);
  if (!launch->lazyAsyncCopies)
    performCopy(copy);
  else if (productsInFlight != 0) // Which must not read what is copied here.
    std::memset(copy.target, kPoison, copy.bytes);
  fiber.copies.push(copy);
}

void BlockRunner::commitCopies(Fiber &fiber) {
  fiber.groupSizes.push_back(fiber.copies.size() - fiber.committed);
  fiber.committed = fiber.copies.size();
}

void BlockRunner::waitForCopies(Fiber &fiber, uint32_t pendingGroups) {
  if (fiber.groupSizes.size() <= pendingGroups)
    return;
  size_t groups = fiber.groupSizes.size() - pendingGroups;
  uint32_t copies = 0;
  for (size_t i = 0; i < groups; ++i)
    copies += fiber.groupSizes[i];
  if (launch->lazyAsyncCopies)
    for (uint32_t i = 0; i < copies; ++i)
      performCopy(fiber.copies[i]);
  if (launch->checker)
    for (uint32_t i = 0; i < copies; ++i)
      launch->checker->completeCopy(fiber, fiber.copies[i]);
  fiber.copies.pop(copies);
  fiber.copiesDone += copies;
  fiber.groupSizes.erase(fiber.groupSizes.begin(),
                         fiber.groupSizes.begin() + groups);
  fiber.committed -= copies;
}
