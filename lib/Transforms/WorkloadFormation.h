//===- WorkloadFormation.h - From contraction to workload -------*- C++ -*-===//
#ifndef FTUNER_LIB_TRANSFORMS_WORKLOADFORMATION_H
#define FTUNER_LIB_TRANSFORMS_WORKLOADFORMATION_H

#include "Contraction.h"
#include "Extents.h"
#include "FTuner/Dialect/UKernel/Bridge/OperatorWorkload.h"
#include "mlir/IR/PatternMatch.h"

namespace ftuner {

/// A contraction that becomes a workload, and what is fused into it.
struct WorkloadSource {
  mlir::linalg::LinalgOp contraction;
  /// The elementwise operator that alone uses the contraction's result; null
  /// if there is none.
  mlir::linalg::GenericOp epilogue;
  /// Axis (WorkloadOp::kM …, then batch axes) of each loop of the contraction.
  llvm::SmallVector<unsigned, 4> contractionAxes;
  /// Axis of each loop of the epilogue.
  llvm::SmallVector<unsigned, 4> epilogueAxes;
  /// Whether the contraction's second input is lhs. Roles are such that the
  /// innermost dimension of the result is n.
  bool isSwapped = false;

  /// Every axis has one loop.
  unsigned getNumAxes() const { return contractionAxes.size(); }
  /// The type that products are summed up in.
  mlir::Type getAccumulatorType() const;
  /// Whether the program's result of the contraction is narrower than that.
  bool roundsAccumulator() const;
  /// A map over loops as a map over axes.
  mlir::AffineMap toAxes(mlir::AffineMap map,
                         llvm::ArrayRef<unsigned> axes) const;
  /// The inputs in the order lhs, rhs.
  std::pair<mlir::OpOperand *, mlir::OpOperand *> getFactors() const;
  /// The values that the epilogue reads beside the accumulator: operands, and
  /// values from outside that are no constants. None without epilogue.
  llvm::SmallVector<mlir::OpOperand *> getExtraOperands() const;
  llvm::SmallVector<mlir::Value> getCapturedExtras() const;
};

/// Matches a contraction that one loop each for m, n and k and up to three
/// batch loops describe, whatever its types and the order of its dimensions. Of
/// several loops that only one factor has, the others are batch loops. The
/// first answer that a codegen path computes: with the epilogue if possible.
std::optional<WorkloadSource> matchWorkload(mlir::linalg::LinalgOp op,
                                            const PathSupport &support);

/// Replaces the contraction and its epilogue by a workload. What types, symbols
/// and earlier assertions do not prove about equal sizes is asserted before it.
ukernel::WorkloadOp formWorkload(const WorkloadSource &source,
                                 ExtentAnalysis &extents,
                                 mlir::RewriterBase &rewriter);

/// Why an operator is no workload.
std::string explainFallback(mlir::linalg::LinalgOp op,
                            const PathSupport &support);

} // namespace ftuner

#endif // FTUNER_LIB_TRANSFORMS_WORKLOADFORMATION_H
