//===- VectorClocks.h - Knowledge of threads about others -------*- C++ -*-===//
#ifndef FTUNER_LIB_EMULATOR_CORE_CHECKS_VECTORCLOCKS_H
#define FTUNER_LIB_EMULATOR_CORE_CHECKS_VECTORCLOCKS_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ftuner::emulator {

/// Up to which time the actions of each actor are known, by its number; those
/// that are missing are known up to time 0.
using VectorClock = std::vector<uint32_t>;

inline void mergeClock(VectorClock &clock, const VectorClock &other) {
  if (clock.size() < other.size())
    clock.resize(other.size());
  for (size_t i = 0; i < other.size(); ++i)
    clock[i] = std::max(clock[i], other[i]);
}

/// The clocks of the threads of a block, whose numbers come first, as far as
/// barriers of some of the threads and mbarriers order them. Actors after them
/// have no clock: they only act.
class VectorClocks {
public:
  /// The time at which a thread has started, but done nothing.
  static constexpr uint32_t kStart = 1;

  void reset(size_t threads) {
    clocks.assign(threads, {});
    for (size_t i = 0; i < threads; ++i) {
      clocks[i].resize(threads);
      clocks[i][i] = kStart + 1;
    }
  }
  uint32_t now(uint32_t thread) const { return clocks[thread][thread]; }
  bool knows(uint32_t thread, uint32_t actor, uint32_t time) const {
    const VectorClock &clock = clocks[thread];
    return actor < clock.size() && clock[actor] >= time;
  }
  /// Adds what the thread did and knows so far to `clock`, and nothing that it
  /// does from here on.
  void release(uint32_t thread, VectorClock &clock) {
    mergeClock(clock, clocks[thread]);
    ++clocks[thread][thread];
  }
  /// The time of the thread, which then begins another.
  uint32_t advance(uint32_t thread) { return clocks[thread][thread]++; }
  void acquire(uint32_t thread, const VectorClock &from) {
    mergeClock(clocks[thread], from);
  }
  void learn(uint32_t thread, uint32_t actor, uint32_t time) {
    clocks[thread][actor] = std::max(clocks[thread][actor], time);
  }
  size_t size() const { return clocks.size(); }

private:
  std::vector<VectorClock> clocks; ///< Each knows all threads.
};

} // namespace ftuner::emulator

#endif // FTUNER_LIB_EMULATOR_CORE_CHECKS_VECTORCLOCKS_H
