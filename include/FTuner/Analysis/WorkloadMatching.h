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

/// The elementwise operator that computes an input of a contraction from its
/// factor, an operand of the same shape; null if there is none.
struct Prologue {
  mlir::linalg::GenericOp op;
  mlir::OpOperand *factor = nullptr;

  /// Returns the map of an operand over the contraction's loops, if `map` is
  /// the map of the contraction's input.
  mlir::AffineMap mapOf(mlir::OpOperand &operand, mlir::AffineMap map) const;
};

/// A contraction that becomes a workload, and the operators fused into it.
struct WorkloadSource {
  mlir::linalg::LinalgOp contraction;
  /// Prologues of the contraction's inputs.
  std::array<Prologue, 2> prologues;
  /// The only user of the contraction's result, an elementwise operator; null
  /// if there is none.
  mlir::linalg::GenericOp epilogue;
  /// Padding of each input with zeros, which windows read as if it were there;
  /// null for an input without padding.
  std::array<mlir::tensor::PadOp, 2> pads;
  /// Number of the workload's axes (WorkloadOp::kM …, then batch axes), and the
  /// axis of each loop of fused ones.
  unsigned numAxes = 0;
  llvm::SmallVector<int64_t> fused;
  /// Dimension of the workload's maps, an axis or a loop of a fused one, of
  /// each loop of the contraction.
  llvm::SmallVector<unsigned, 4> contractionDims;
  /// Dimension of the maps of each loop of the epilogue.
  llvm::SmallVector<unsigned, 4> epilogueDims;
  /// True if the contraction's second input is lhs: n is the innermost
  /// dimension of the result.
  bool isSwapped = false;

  /// Returns the number of dimensions of the workload's maps.
  unsigned getNumDims() const { return numAxes + fused.size(); }
  /// Returns the type in which products are summed up.
  mlir::Type getAccumulatorType() const;
  /// Returns true if the contraction's result is narrower than the accumulator.
  bool roundsAccumulator() const;
  /// Turns a map over loops, whose dimensions are given, into one of the
  /// workload.
  mlir::AffineMap toDims(mlir::AffineMap map,
                         llvm::ArrayRef<unsigned> dims) const;
  /// Returns the operand that an input of the contraction, 0 or 1, is read
  /// from, with a map over the contraction's loops.
  SourceOperand getFactor(unsigned input) const;
  /// Returns the numbers of the contraction's inputs that are lhs and rhs.
  std::array<unsigned, 2> getInputNumbers() const {
    return {isSwapped, !isSwapped};
  }
  /// Returns the operands that the prologue of an input reads beside the
  /// factor, with maps over the contraction's loops, and the values of its body
  /// that stand for them.
  llvm::SmallVector<std::pair<SourceOperand, mlir::Value>>
  getInputs(unsigned input) const;
  /// Returns the values that the epilogue reads beside the accumulator:
  /// operands, and values from outside that are not constants. None without an
  /// epilogue.
  llvm::SmallVector<mlir::OpOperand *> getExtraOperands() const;
  llvm::SmallVector<mlir::Value> getCapturedExtras() const;
};

/// Matches a contraction with one loop each for m, n and k and up to three
/// batch loops, of any types and order of dimensions. If only one factor has
/// several loops, all of these but one are batch loops. Matches a convolution
/// with axes that are fused of its loops. Returns the first match
/// that a codegen path supports: with prologues and epilogue if possible.
/// Prologues must pay for the sizes that `extents` knows; without `extents`
/// there are none.
std::optional<WorkloadSource> matchWorkload(mlir::linalg::LinalgOp op,
                                            const PathSupport &support,
                                            ExtentAnalysis *extents);

/// Returns why an operator does not become a workload.
std::string explainFallback(mlir::linalg::LinalgOp op,
                            const PathSupport &support);

} // namespace ftuner

#endif // FTUNER_ANALYSIS_WORKLOADMATCHING_H
