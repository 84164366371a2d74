//===- Interruption.h - A launch that ends before it is through -*- C++ -*-===//
#ifndef FTUNER_LIB_EMULATOR_CORE_BLOCK_INTERRUPTION_H
#define FTUNER_LIB_EMULATOR_CORE_BLOCK_INTERRUPTION_H

#include <atomic>
#include <chrono>
#include <cstdint>

namespace ftuner::emulator {

/// Asks the caller of a launch now and then whether it is to end, and tells all
/// that run its blocks. Only the caller's own thread asks it.
class Interruption {
public:
  using Check = int32_t (*)();
  /// Time between two questions to the caller.
  static constexpr std::chrono::milliseconds kInterval{100};

  /// `check` returns 0 to go on.
  explicit Interruption(Check check)
      : check(check), next(Clock::now() + kInterval) {}

  /// Returns whether the launch is to end.
  bool isRaised() const { return raised.load(std::memory_order_relaxed); }

  /// Like `isRaised` for the caller's thread, which asks if it is time. Cheap
  /// between two looks at the clock.
  bool poll() { return ++calls % kCallsPerLook == 0 ? look() : isRaised(); }

  /// Asks if it is time.
  bool look() {
    if (isRaised() || Clock::now() < next)
      return isRaised();
    if (check() != 0)
      raised.store(true, std::memory_order_relaxed);
    // The answer may take long: it runs handlers of signals.
    next = Clock::now() + kInterval;
    return isRaised();
  }

private:
  using Clock = std::chrono::steady_clock;
  static constexpr unsigned kCallsPerLook = 16;

  Check check;
  Clock::time_point next;
  unsigned calls = 0;
  std::atomic<bool> raised{false};
};

} // namespace ftuner::emulator

#endif // FTUNER_LIB_EMULATOR_CORE_BLOCK_INTERRUPTION_H
