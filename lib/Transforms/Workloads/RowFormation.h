//===- RowFormation.h - To ukernel.row_reduction ----------------*- C++ -*-===//
//
// From reductions along rows, with the operators around them (Rows/RowGroup.h),
// to `ukernel.row_reduction`. Rows/RowPatterns.h brings the operators that
// importers write to the form that groups start from, and
// Rows/RowDescription.h describes what a codegen path supports.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_TRANSFORMS_WORKLOADS_ROWFORMATION_H
#define FTUNER_LIB_TRANSFORMS_WORKLOADS_ROWFORMATION_H

#include "FTuner/Analysis/Extents.h"
#include "FTuner/Dialect/UKernel/Bridge/OperatorWorkload.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace ftuner {

/// Forms the rows of a function that a codegen path supports, and returns their
/// number. Leaves reductions of `constants` only.
int64_t formRowReductions(mlir::FunctionOpInterface function,
                          const PathSupport &support,
                          const llvm::DenseSet<mlir::Value> &constants,
                          mlir::RewriterBase &rewriter);

} // namespace ftuner

#endif // FTUNER_LIB_TRANSFORMS_WORKLOADS_ROWFORMATION_H
