//===- FiberStacks.h - Stacks of emulated threads ---------------*- C++ -*-===//
#ifndef FTUNER_LIB_EMULATOR_CORE_FIBERS_FIBERSTACKS_H
#define FTUNER_LIB_EMULATOR_CORE_FIBERS_FIBERSTACKS_H

#include <cstddef>

namespace ftuner::emulator {

/// Equal stacks in one piece of memory, each with an inaccessible page below.
/// They are kept for later launches.
class FiberStacks {
public:
  FiberStacks() = default;
  ~FiberStacks() { release(); }
  FiberStacks(const FiberStacks &) = delete;
  FiberStacks &operator=(const FiberStacks &) = delete;

  /// Makes room for `count` stacks, whose contents are lost where there were
  /// fewer. Returns false if the system has no memory for them.
  bool allocate(size_t count);
  /// The lowest usable address of a stack, and the end of its part in use,
  /// where it begins.
  char *base(size_t index) const;
  char *top(size_t index) const;

private:
  void release();

  char *stacks = nullptr;
  size_t stackCount = 0;
};

} // namespace ftuner::emulator

#endif // FTUNER_LIB_EMULATOR_CORE_FIBERS_FIBERSTACKS_H
