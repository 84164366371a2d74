//===- RowFormation.h - To ukernel.row_reduction ----------------*- C++ -*-===//
//
// A softmax or a norm is several operators of linalg: reductions along rows,
// what is computed of their results once a row, and elementwise operators over
// all elements. Those that belong together become one `ukernel.row_reduction`.
//
// A group begins with a reduction along one loop. Elementwise operators before
// it join, and so does everything behind it, in the order of the program, that
// reads the group's values along the same rows: reductions, elementwise
// operators of rows or elements, and reshapes that give a value dimensions of
// extent 1 or take them away. Operators between that need the group's values
// and do not belong to it stay behind it, with all that depends on them.
//
// RowPatterns.h brings what importers write to that form.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_TRANSFORMS_WORKLOADS_ROWFORMATION_H
#define FTUNER_LIB_TRANSFORMS_WORKLOADS_ROWFORMATION_H

#include "FTuner/Analysis/Extents.h"
#include "FTuner/Dialect/UKernel/Bridge/OperatorWorkload.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace ftuner {

/// Forms the rows that a codegen path computes, and returns their number.
/// Reductions of nothing but `constants` are left.
int64_t formRowReductions(mlir::FunctionOpInterface function,
                          const PathSupport &support,
                          const llvm::DenseSet<mlir::Value> &constants,
                          mlir::RewriterBase &rewriter);

} // namespace ftuner

#endif // FTUNER_LIB_TRANSFORMS_WORKLOADS_ROWFORMATION_H
