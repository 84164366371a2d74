//===- KernelWork.h - Work of a kernel --------------------------*- C++ -*-===//
#ifndef FTUNER_ANALYSIS_KERNELWORK_H
#define FTUNER_ANALYSIS_KERNELWORK_H

#include "FTuner/Analysis/FunctionWork.h"
#include "FTuner/Analysis/LoopSplit.h"

namespace ftuner {

/// A string attribute of elementwise operators with a loop over a window in
/// their bodies: the name of the operator that reduced it.
inline constexpr llvm::StringLiteral kWindowAttrName = "ukernel.window";

/// A string attribute of operators that only copy elements: what they copy, and
/// why no operator reads or writes the elements in place.
inline constexpr llvm::StringLiteral kCopyAttrName = "ukernel.copy";

/// Returns the floating-point and integer operations on elements, without
/// arithmetic on indices. Operations in loops of constant bounds count as often
/// as the loops run.
int64_t flopsOf(mlir::Block &body);
/// Returns the operations of an operator whose axes have these extents.
mlir::AffineExpr flopsOf(ukernel::OperatorOpInterface op,
                         llvm::ArrayRef<mlir::AffineExpr> extents);

/// Returns the name of an operator with the operations of its regions, since
/// the name by itself says little: "linalg.generic (math.exp, arith.subf)",
/// "ukernel.row_reduction (arith.addf)".
std::string operatorNameOf(mlir::Operation *op);

/// Returns the work of a simple kernel for `op`, on memrefs. `dimOf` gives the
/// size of a dimension of an operand in the symbols of the launch's sizes, of
/// which there are `numSizes`.
mlir::DictionaryAttr
workOf(mlir::linalg::LinalgOp op, const LoopSplit &split, unsigned numSizes,
       llvm::function_ref<mlir::AffineExpr(mlir::Value, int64_t)> dimOf);

/// Returns `ukernel.site` of the launch of a kernel for `op`: `kind`,
/// `operator`, `location`, and `copied` if the operator has `ukernel.copy`.
mlir::DictionaryAttr siteOf(mlir::Operation *op);

} // namespace ftuner

#endif // FTUNER_ANALYSIS_KERNELWORK_H
