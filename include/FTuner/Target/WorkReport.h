//===- WorkReport.h - How much of a function uKernels carry -----*- C++ -*-===//
//
// The FLOPs and the predicted time of all kernels of a function, and the share
// of both that uKernels have; the rest is of fallback kernels, one thread for
// each element (docs/explain.md, "The whole function").
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_TARGET_WORKREPORT_H
#define FTUNER_TARGET_WORKREPORT_H

#include "FTuner/Analysis/FunctionWork.h"
#include "FTuner/CostModel/Calibration.h"
#include "FTuner/CostModel/Fallback.h"
#include "FTuner/Device/DeviceSpec.h"
#include "FTuner/Search/Planning/Explanation.h"
#include "FTuner/Search/Problem/Plan.h"
#include "FTuner/Target/Plausibility.h"

#include "llvm/Support/JSON.h"

namespace ftuner {

/// Below these shares of a function's FLOPs, or of its predicted time, at the
/// greatest sizes that were looked at, there is a warning.
inline constexpr double kSmallFlopsShare = 0.5, kSmallTimeShare = 0.1;

/// One call of a function at certain sizes.
struct WorkShare {
  /// In the order of `FunctionWork::sizeNames`.
  std::vector<double> sizes;
  double ukernelFlops = 0, fallbackFlops = 0;
  /// Predicted times; the uKernels' time is not known if a plan has no
  /// predictions.
  std::optional<double> ukernelMicroseconds = 0;
  double fallbackMicroseconds = 0;
  /// Predicted time of all launches of each kernel, in the order of
  /// `FunctionWork::launches`.
  std::vector<std::optional<double>> microseconds;
  /// Kernels whose work does not follow from the sizes: they do not count.
  size_t unknownKernels = 0;
  /// Positions in `FunctionWork::launches` of kernels whose predicted time is
  /// beyond `kImplausibleRoofline` times their operator's roofline, ascending,
  /// and that multiple.
  std::vector<std::pair<size_t, double>> implausible;

  /// Return the uKernels' share; no value if there are no FLOPs at all.
  std::optional<double> flopsShare() const;
  std::optional<double> timeShare() const;
};

struct FunctionReport {
  FunctionWork work;
  /// By ascending sizes, or in the order of the sizes that were asked for; one
  /// at least.
  std::vector<WorkShare> shares;
  /// Names of sizes that were chosen without a declared greatest one.
  std::vector<std::string> openSizes;
  /// For predictions at other sizes.
  FallbackRates rates;

  size_t numFallbackKernels() const;
  /// Warnings about the last of `shares`: uKernels carry little, or a predicted
  /// time is implausible.
  std::vector<std::string> warnings() const;
};

/// Predicted microseconds of a launch for a workload and a shape.
using WorkloadTime = llvm::function_ref<std::optional<double>(
    const LaunchWork &, llvm::ArrayRef<int64_t>)>;

/// The sizes that are reported, and the means to predict their times.
struct WorkReportOptions {
  const DeviceSpec &device;
  Calibration calibration;
  WorkloadTime workloadTime;
  /// Sizes by name, for each call. If empty, there are three calls, with the
  /// smallest, a middle and the largest size of every range. An open range goes
  /// from its smallest size to `kOpenReportedSize`.
  llvm::ArrayRef<NamedSizes> sizes = {};
};

/// The greatest size of an open range in a report. Functions that have several
/// such sizes, a batch and a length, are called with all of them at once.
inline constexpr int64_t kOpenReportedSize = 128;

/// Shapes of these axes that reports are made at, in ascending order.
std::vector<Shape> reportedShapes(llvm::ArrayRef<Axis> axes);

FunctionReport reportWork(FunctionWork work, const WorkReportOptions &options);

/// Returns the time that a plan predicts for a shape: the time of the nearest
/// shape that the search looked at, scaled by the ratio of their points.
/// Returns no value if the plan has no predictions.
std::optional<double> predictedByPlan(const Plan &plan,
                                      llvm::ArrayRef<int64_t> shape,
                                      const Calibration &calibration);

/// `sizes`, `ukernels`, `fallback_kernels`, `shares` and `warning`, as fields
/// of the open object.
void writeWork(llvm::json::OStream &json, const FunctionReport &report);

/// How much of a report is written as text.
enum class ReportDetail {
  /// A bounded number of lines, without the list of fallback kernels.
  Summary,
  Full,
};

/// Writes the report for people.
void writeWorkText(llvm::raw_ostream &os, const FunctionReport &report,
                   ReportDetail detail);

/// Writes a line for each of several functions, at its last sizes.
void writeFunctionLines(llvm::raw_ostream &os,
                        llvm::ArrayRef<FunctionReport> reports);

} // namespace ftuner

#endif // FTUNER_TARGET_WORKREPORT_H
