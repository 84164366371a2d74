//===- ThroughputRating.h - How the artifact ranks kernels ------*- C++ -*-===//
//
// The authors' code runs each kernel once, for the shape of the range that
// wastes least of it, and takes its throughput for every shape:
//
//   throughput(K)   = FLOPs(s) / time(K, s) / (Pad · Occ)(K, s)
//                     for the shape s with the greatest Pad · Occ
//   rating(K, shape) = throughput(K) · (Pad · Occ)(K, shape)
//
// Here the cost model stands in for the device. With a model that predicts no
// time, its score for the shape itself stands in for the throughput.
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
  /// Kernels are timed for one of the shapes (at least one). The problem
  /// outlives the object.
  ThroughputRating(const SearchProblem &problem, llvm::ArrayRef<Shape> shapes);

  /// The rating of a family's program for a shape, whose score the cost model
  /// says. With a model that predicts time it is the negated time in
  /// microseconds that the rating stands for.
  double rate(const KernelFamily &family, llvm::ArrayRef<int64_t> shape,
              double score);

private:
  double efficiency(const ShapeMetrics &metrics, const KernelFamily &family,
                    llvm::ArrayRef<int64_t> shape) const;
  /// FLOPs in a microsecond.
  double throughputOf(const KernelFamily &family);

  const SearchProblem &problem;
  MetricOptions options;
  std::vector<Shape> shapes;
  std::vector<ShapeMetrics> metrics;
  std::map<std::string, double> throughputs;
};

} // namespace ftuner

#endif // FTUNER_LIB_SEARCH_STRATEGIES_THROUGHPUTRATING_H
