//===- WorkloadFormation.h - From contraction to workload -------*- C++ -*-===//
#ifndef FTUNER_LIB_TRANSFORMS_WORKLOADS_WORKLOADFORMATION_H
#define FTUNER_LIB_TRANSFORMS_WORKLOADS_WORKLOADFORMATION_H

#include "FTuner/Analysis/WorkloadMatching.h"
#include "mlir/IR/PatternMatch.h"

namespace ftuner {

/// Replaces the contraction and its epilogue by a workload. Asserts before it
/// that sizes are equal, unless types, symbols and earlier assertions prove it.
ukernel::WorkloadOp formWorkload(const WorkloadSource &source,
                                 ExtentAnalysis &extents,
                                 mlir::RewriterBase &rewriter);

} // namespace ftuner

#endif // FTUNER_LIB_TRANSFORMS_WORKLOADS_WORKLOADFORMATION_H
