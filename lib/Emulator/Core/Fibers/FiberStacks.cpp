//===- FiberStacks.cpp - Stacks of emulated threads -----------------------===//
#include "Fibers/FiberStacks.h"
#include "Fibers/SanitizerFiber.h"
#include <sys/mman.h>

using namespace ftuner::emulator;

namespace {
/// Usable bytes of a thread's stack, with an inaccessible page below.
constexpr size_t kStackBytes = 256 * 1024;
constexpr size_t kGuardPageBytes = 4096;
constexpr size_t kStackStride = kStackBytes + kGuardPageBytes;
/// Stacks start at different cache sets; a page's worth of them.
constexpr size_t kStackColourBytes = 192;
} // namespace

void FiberStacks::release() {
  if (!stacks)
    return;
  forgetStacks(stacks, stackCount * kStackStride);
  munmap(stacks, stackCount * kStackStride);
  stacks = nullptr;
  stackCount = 0;
}

bool FiberStacks::allocate(size_t count) {
  if (count <= stackCount)
    return true;
  release();
  void *memory = mmap(nullptr, count * kStackStride, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    return false;
  stacks = static_cast<char *>(memory);
  stackCount = count;
  for (size_t i = 0; i < count; ++i)
    if (mprotect(stacks + i * kStackStride, kGuardPageBytes, PROT_NONE) != 0)
      return false;
  return true;
}

char *FiberStacks::base(size_t index) const {
  return stacks + index * kStackStride + kGuardPageBytes;
}

char *FiberStacks::top(size_t index) const {
  return stacks + (index + 1) * kStackStride -
         index * kStackColourBytes % kGuardPageBytes;
}
