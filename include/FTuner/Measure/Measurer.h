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
#include "llvm/Support/raw_ostream.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ftuner {

/// A program to measure. The workload outlives the request.
struct MeasurementRequest {
  const Workload *workload = nullptr;
  KernelFamily family;
  /// Every extent is at least 1.
  Shape shape;
};

/// Figures of a program; a figure that the measurer cannot tell is absent.
struct Measurement {
  /// Time of one launch.
  std::optional<double> microseconds;
  /// Registers of a thread.
  std::optional<int64_t> registersPerThread;
  /// Bytes that a thread stores to and loads from local memory for want of
  /// registers.
  std::optional<int64_t> spillBytes;
};

/// Why a kernel has no measurement although nothing is wrong with it: it is not
/// recorded, the budget is spent, or the measurer cannot run its kind. Other
/// errors of a measurement speak against the kernel.
class NotMeasured : public llvm::ErrorInfo<NotMeasured> {
public:
  static char ID;
  explicit NotMeasured(std::string reason) : reason(std::move(reason)) {}
  void log(llvm::raw_ostream &os) const override { os << reason; }
  std::error_code convertToErrorCode() const override {
    return llvm::inconvertibleErrorCode();
  }

private:
  std::string reason;
};

/// Why nothing can be measured any more: the measurer itself failed.
class MeasurerFailed : public llvm::ErrorInfo<MeasurerFailed> {
public:
  static char ID;
  explicit MeasurerFailed(std::string reason) : reason(std::move(reason)) {}
  void log(llvm::raw_ostream &os) const override { os << reason; }
  std::error_code convertToErrorCode() const override {
    return llvm::inconvertibleErrorCode();
  }

private:
  std::string reason;
};

class Measurer {
public:
  virtual ~Measurer() = default;
  /// E.g. "ptxas" or "model:latency@h200", for logs, plans and messages.
  virtual llvm::StringRef name() const = 0;
  /// Returns whether measurements have times.
  virtual bool measuresTime() const = 0;
  /// Requests that are worth asking at once. Answers are kept from batch to
  /// batch, so who takes long for each says 1.
  virtual size_t batchSize() const { return 64; }
  /// Measures each request; answers are in the order of the requests. An error
  /// says why that one could not be measured: an infeasible family, a kernel
  /// that does not compile, a row that the table lacks (`NotMeasured`); or that
  /// there is no measuring any more (`MeasurerFailed`).
  virtual std::vector<llvm::Expected<Measurement>>
  measure(llvm::ArrayRef<MeasurementRequest> requests) = 0;

  /// Measures one.
  llvm::Expected<Measurement> measure(const Workload &workload,
                                      const KernelFamily &family,
                                      llvm::ArrayRef<int64_t> shape);
};

} // namespace ftuner

#endif // FTUNER_MEASURE_MEASURER_H
