//===- ErrorLog.h - Errors of one launch ------------------------*- C++ -*-===//
#ifndef FTUNER_LIB_EMULATOR_CORE_CHECKS_ERRORLOG_H
#define FTUNER_LIB_EMULATOR_CORE_CHECKS_ERRORLOG_H

#include "Fibers/Fiber.h"
#include <atomic>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ftuner::emulator {

enum class ErrorKind : uint8_t {
  OutOfBounds,
  ReadOnly,
  Misaligned,
  Race,
  CopyInFlight,
  AsyncCopy,
  PendingCopy,
  SharedMemoryGuard,
  Divergence,
  WarpCollective,
  Product,
  PendingProduct,
  Proxy,
  Mbarrier,
  Deadlock,
  Registers,
  BulkCopy,
  Lifetime,
};

/// Counts the errors of a launch and keeps the text of the first few, each pair
/// of kind and site once. Safe to use from several CPU threads.
class ErrorLog {
public:
  /// Turns a site into words; an empty string where nothing is known of it.
  using DescribeSite = std::function<std::string(uint32_t)>;

  static constexpr unsigned kMaxTexts = 8;
  static constexpr uint64_t kMaxErrors = 200;

  explicit ErrorLog(DescribeSite describeSite)
      : describeSite(std::move(describeSite)) {}

  /// Reports an error. If the site is known, `siteWords` and
  /// " at FILE:LINE:COLUMN" follow the text.
  void report(const Fiber &fiber, ErrorKind kind, uint32_t site,
              const std::string &text, const std::string &siteWords = "");

  uint64_t count() const { return errors.load(std::memory_order_relaxed); }
  /// Returns whether the launch should stop after so many errors.
  bool isFull() const { return count() >= kMaxErrors; }
  /// The errors in words, one line for the kernel and one for each text kept;
  /// empty where there are none.
  std::string summary(const std::string &kernel) const;
  /// " at FILE:LINE:COLUMN", or nothing.
  std::string siteText(uint32_t site) const;

private:
  DescribeSite describeSite;
  std::atomic<uint64_t> errors{0};
  std::mutex mutex;
  std::set<std::pair<ErrorKind, uint32_t>> seen;
  std::vector<std::string> messages;
};

/// "(x,y,z)"
std::string formatIndex(const uint32_t (&index)[3]);
/// The index in the block of the thread with this linear index, "(x,y,z)".
std::string formatThread(const Fiber &anyOfBlock, uint32_t linearIndex);

} // namespace ftuner::emulator

#endif // FTUNER_LIB_EMULATOR_CORE_CHECKS_ERRORLOG_H
