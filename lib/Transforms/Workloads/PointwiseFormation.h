//===- PointwiseFormation.h - Chains to ukernel.pointwise -------*- C++ -*-===//
#ifndef FTUNER_LIB_TRANSFORMS_WORKLOADS_POINTWISEFORMATION_H
#define FTUNER_LIB_TRANSFORMS_WORKLOADS_POINTWISEFORMATION_H

#include "FTuner/Analysis/Extents.h"
#include "FTuner/Dialect/UKernel/Bridge/OperatorWorkload.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace ftuner {

/// Returns true if a codegen path computes an elementwise operator on tensors
/// as a `ukernel.pointwise`.
bool isPointwiseWorkload(mlir::linalg::LinalgOp op, const PathSupport &support);

/// Replaces an operator for which `isPointwiseWorkload` holds. Calls must
/// follow the order of the program.
void formPointwise(mlir::linalg::LinalgOp op, ExtentAnalysis &extents,
                   mlir::RewriterBase &rewriter);

} // namespace ftuner

#endif // FTUNER_LIB_TRANSFORMS_WORKLOADS_POINTWISEFORMATION_H
