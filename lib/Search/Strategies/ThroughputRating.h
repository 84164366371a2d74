//===- ThroughputRating.h - How the artifact ranks kernels ------*- C++ -*-===//
//
// The authors' code runs each kernel once, for the shape of the range that
// wastes least of it, and takes its throughput for every shape:
//
//   throughput(K)   = FLOPs(s) / time(K, s) / (Pad · Occ)(K, s)
//                     for the shape s with the greatest Pad · Occ
//   rating(K, shape) = throughput(K) · (Pad · Occ)(K, shape)
//
// Here the cost model replaces the device. If the model predicts no time, its
// score for the shape itself replaces the throughput.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_SEARCH_STRATEGIES_THROUGHPUTRATING_H
#define FTUNER_LIB_SEARCH_STRATEGIES_THROUGHPUTRATING_H

#include "FTuner/CostModel/Metrics.h"
#include "FTuner/Search/Problem/SearchStrategy.h"
#include <map>
#include <string>

namespace ftuner {

class ThroughputRating {
public:
  /// Takes the shapes for which kernels are timed, at least one. The problem
  /// outlives the object.
  ThroughputRating(const SearchProblem &problem, llvm::ArrayRef<Shape> shapes);

  /// Returns the rating of a family's program for a shape; `score` is the cost
  /// model's. If the model predicts time, the rating is a negated time in
  /// microseconds.
  double rate(const KernelFamily &family, llvm::ArrayRef<int64_t> shape,
              double score);

private:
  double efficiency(const ShapeMetrics &metrics, const KernelFamily &family,
                    llvm::ArrayRef<int64_t> shape) const;
  /// Returns FLOPs in a microsecond.
  double throughputOf(const KernelFamily &family);

  const SearchProblem &problem;
  MetricOptions options;
  std::vector<Shape> shapes;
  std::vector<ShapeMetrics> metrics;
  std::map<std::string, double> throughputs;
};

} // namespace ftuner

#endif // FTUNER_LIB_SEARCH_STRATEGIES_THROUGHPUTRATING_H
