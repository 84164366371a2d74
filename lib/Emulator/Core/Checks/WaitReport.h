//===- WaitReport.h - Words about waits without an end ----------*- C++ -*-===//
#ifndef FTUNER_LIB_EMULATOR_CORE_CHECKS_WAITREPORT_H
#define FTUNER_LIB_EMULATOR_CORE_CHECKS_WAITREPORT_H

#include "Checks/Text.h"
#include "Fibers/Fiber.h"
#include <string>

namespace ftuner::emulator {

/// Gathers what threads of a block wait for, in words, and the first of them.
class WaitReport {
public:
  /// `first` is the first thread that waits in the blocks before, or null.
  explicit WaitReport(const Fiber *first) : firstFiber(first) {}

  /// A thread waits.
  void note(const Fiber &fiber) {
    if (!firstFiber)
      firstFiber = &fiber;
  }
  /// So many wait, for what the words say.
  template <typename... Words>
  void add(size_t threads, const Words &...words) {
    text +=
        joinText(text.empty() ? "" : "; ", threads, " threads wait ", words...);
  }

  const Fiber *first() const { return firstFiber; }
  const std::string &words() const { return text; }

private:
  const Fiber *firstFiber;
  std::string text;
};

} // namespace ftuner::emulator

#endif // FTUNER_LIB_EMULATOR_CORE_CHECKS_WAITREPORT_H
