//===- MeasuringProgress.h - Progress of a search that measures -*- C++ -*-===//
#ifndef FTUNER_LIB_TRANSFORMS_WORKLOADS_MEASURINGPROGRESS_H
#define FTUNER_LIB_TRANSFORMS_WORKLOADS_MEASURINGPROGRESS_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>

namespace ftuner {

/// Prints to standard error, every few seconds, how many shapes of a workload
/// have been measured. Prints nothing for a search that takes less.
class MeasuringProgress {
public:
  explicit MeasuringProgress(llvm::StringRef workload) : workload(workload) {}

  void show(int64_t done, int64_t total) {
    auto now = std::chrono::steady_clock::now();
    if (now - last < interval)
      return;
    last = now;
    llvm::errs() << "progress: measuring " << workload << ", shape " << done
                 << " of " << total << '\n';
  }

private:
  static constexpr std::chrono::seconds interval{5};
  llvm::StringRef workload;
  std::chrono::steady_clock::time_point last = std::chrono::steady_clock::now();
};

} // namespace ftuner

#endif // FTUNER_LIB_TRANSFORMS_WORKLOADS_MEASURINGPROGRESS_H
