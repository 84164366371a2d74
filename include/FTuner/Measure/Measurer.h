//===- Measurer.h - Times and resources of families -------------*- C++ -*-===//
//
// One question, many ways to answer it: what does a family's kernel take for a
// shape? A device that runs it, an assembler that compiles it, a table of what
// was measured before, or a cost model that stands in. Strategies that measure,
// and feedback from the assembler, ask this interface.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_MEASURE_MEASURER_H
#define FTUNER_MEASURE_MEASURER_H

#include "FTuner/Schedule/KernelFamily.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <optional>
#include <vector>

namespace ftuner {

/// What is asked for. The workload outlives it.
struct MeasurementRequest {
  const Workload *workload = nullptr;
  KernelFamily family;
  /// Every extent is at least 1.
  Shape shape;
};

/// What a measurer found out; each figure is there where it can tell.
struct Measurement {
  /// Of one launch.
  std::optional<double> microseconds;
  /// Of a thread.
  std::optional<int64_t> registersPerThread;
  /// Stored to and loaded from local memory for want of registers, of a thread.
  std::optional<int64_t> spillBytes;
};

class Measurer {
public:
  virtual ~Measurer() = default;
  /// E.g. "ptxas", for logs and messages.
  virtual llvm::StringRef name() const = 0;
  /// Whether measurements have times.
  virtual bool measuresTime() const = 0;
  /// Measures each request; answers are in the order of the requests. An error
  /// says why that one could not be measured: an infeasible family, a kernel
  /// that does not compile, a row that the table lacks.
  virtual std::vector<llvm::Expected<Measurement>>
  measure(llvm::ArrayRef<MeasurementRequest> requests) = 0;

  /// Measures one.
  llvm::Expected<Measurement> measure(const Workload &workload,
                                      const KernelFamily &family,
                                      llvm::ArrayRef<int64_t> shape);
};

} // namespace ftuner

#endif // FTUNER_MEASURE_MEASURER_H
