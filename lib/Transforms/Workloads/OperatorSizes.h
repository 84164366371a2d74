//===- OperatorSizes.h - Sizes of an operator's axes ------------*- C++ -*-===//
#ifndef FTUNER_LIB_TRANSFORMS_WORKLOADS_OPERATORSIZES_H
#define FTUNER_LIB_TRANSFORMS_WORKLOADS_OPERATORSIZES_H

#include "FTuner/Analysis/Extents.h"
#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "mlir/IR/PatternMatch.h"

namespace ftuner {

/// Sets the ranges of a new operator's axes, and `ukernel.extents` if extents
/// are products of symbols. Asserts before the operator that operands agree in
/// the extent of each axis, and that points and windows are within bounds,
/// unless types, symbols and earlier assertions prove it. `where` names the
/// operator in the assertion's text: "a matrix product".
void settleSizes(ukernel::OperatorOpInterface op, ExtentAnalysis &extents,
                 mlir::RewriterBase &rewriter, const llvm::Twine &where);

/// Warns of each symbol with a declared range that no shape has.
void warnOfUnreadSymbols(mlir::ModuleOp module);

} // namespace ftuner

#endif // FTUNER_LIB_TRANSFORMS_WORKLOADS_OPERATORSIZES_H
