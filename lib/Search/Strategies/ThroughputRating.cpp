//===- ThroughputRating.cpp - How the artifact ranks kernels --------------===//
#include "ThroughputRating.h"
#include "llvm/ADT/STLExtras.h"

using namespace ftuner;

ThroughputRating::ThroughputRating(const SearchProblem &problem,
                                   llvm::ArrayRef<Shape> shapes)
    : problem(problem), options(metricOptions().read(problem.options.own)),
      shapes(shapes.begin(), shapes.end()) {
  for (const Shape &shape : shapes)
    metrics.emplace_back(problem.workload, shape, problem.device, options);
}

double ThroughputRating::efficiency(const ShapeMetrics &metrics,
                                    const KernelFamily &family,
                                    llvm::ArrayRef<int64_t> shape) const {
  Metrics figures = metrics.program({&family, partitionShape(family, shape)});
  return figures.pad * figures.occ;
}

static double workOf(const Workload &workload, llvm::ArrayRef<int64_t> shape) {
  return workload.flops(workload.mainComputation(), shape);
}

double ThroughputRating::throughputOf(const KernelFamily &family) {
  auto [it, isNew] = throughputs.try_emplace(family.str(), 0);
  if (!isNew)
    return it->second;
  size_t best = 0;
  double greatest = 0;
  for (auto [index, shape] : llvm::enumerate(shapes)) {
    // The larger one of equals: samples ascend.
    double value = efficiency(metrics[index], family, shape);
    if (value < greatest)
      continue;
    greatest = value;
    best = index;
  }
  const Shape &shape = shapes[best];
  double microseconds = -problem.score(family, shape);
  it->second = workOf(problem.workload, shape) / microseconds / greatest;
  return it->second;
}

double ThroughputRating::rate(const KernelFamily &family,
                              llvm::ArrayRef<int64_t> shape, double score) {
  double share =
      efficiency(ShapeMetrics(problem.workload, shape, problem.device, options),
                 family, shape);
  if (!problem.costModel.predictsTime())
    return score < 0 ? score / share : score * share;
  return -workOf(problem.workload, shape) / (throughputOf(family) * share);
}
