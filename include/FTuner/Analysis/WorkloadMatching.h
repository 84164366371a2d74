//===- WorkloadMatching.h - Contractions that become workloads --*- C++ -*-===//
#ifndef FTUNER_ANALYSIS_WORKLOADMATCHING_H
#define FTUNER_ANALYSIS_WORKLOADMATCHING_H

#include "FTuner/Analysis/Extents.h"
#include "FTuner/Analysis/LinalgStructure.h"
#include "FTuner/Dialect/UKernel/Bridge/OperatorWorkload.h"

namespace ftuner {

/// A tensor or scalar that a workload reads, and its map over loops or axes.
struct SourceOperand {
  mlir::Value value;
  mlir::AffineMap map;
};

/// The elementwise operator that computes an input of a contraction from one of
/// its own inputs of the same shape, the factor; null if there is none.
struct Prologue {
  mlir::linalg::GenericOp op;
  mlir::OpOperand *factor = nullptr;

  /// The map of an operand over the contraction's loops, if `map` is that of
  /// the contraction's input.
  mlir::AffineMap mapOf(mlir::OpOperand &operand, mlir::AffineMap map) const;
};

/// A contraction that becomes a workload, and what is fused into it.
struct WorkloadSource {
  mlir::linalg::LinalgOp contraction;
  /// Of the contraction's inputs.
  std::array<Prologue, 2> prologues;
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
  /// What an input of the contraction, 0 or 1, is read from, with a map over
  /// the contraction's loops.
  SourceOperand getFactor(unsigned input) const;
  /// The contraction's inputs that lhs and rhs are.
  std::array<unsigned, 2> getInputNumbers() const {
    return {isSwapped, !isSwapped};
  }
  /// What the prologue of an input reads beside the factor, with maps over the
  /// contraction's loops, and the values of its body that stand for them.
  llvm::SmallVector<std::pair<SourceOperand, mlir::Value>>
  getInputs(unsigned input) const;
  /// The values that the epilogue reads beside the accumulator: operands, and
  /// values from outside that are no constants. None without epilogue.
  llvm::SmallVector<mlir::OpOperand *> getExtraOperands() const;
  llvm::SmallVector<mlir::Value> getCapturedExtras() const;
};

/// Matches a contraction that one loop each for m, n and k and up to three
/// batch loops describe, whatever its types and the order of its dimensions. Of
/// several loops that only one factor has, the others are batch loops. The
/// first answer that a codegen path computes: with prologues and epilogue if
/// possible. Prologues are those that pay for the sizes that `extents` knows;
/// null: none.
std::optional<WorkloadSource> matchWorkload(mlir::linalg::LinalgOp op,
                                            const PathSupport &support,
                                            ExtentAnalysis *extents);

/// Why an operator is no workload.
std::string explainFallback(mlir::linalg::LinalgOp op,
                            const PathSupport &support);

} // namespace ftuner

#endif // FTUNER_ANALYSIS_WORKLOADMATCHING_H
