//===- Workload.h - One operator with its iteration space -------*- C++ -*-===//
//
// The problem that a search strategy solves, free of IR: axes with ranges,
// operands with their types and accesses, and a nest of computations (paper,
// section IV, for operators of one). Contraction.h has the properties that only
// products have.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_WORKLOAD_WORKLOAD_H
#define FTUNER_WORKLOAD_WORKLOAD_H

#include "FTuner/Workload/Axes.h"
#include "FTuner/Workload/Computation.h"
#include "FTuner/Workload/Elements.h"
#include "FTuner/Workload/Operand.h"
#include "FTuner/Workload/PackedOrder.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>
#include <vector>

namespace ftuner {

class ContractionView;
class PointwiseView;
class RowReductionView;

/// Scope of a fingerprint: the properties that two workloads with equal
/// fingerprints have in common.
enum class FingerprintOf {
  /// All properties that kernels depend on: the code for one workload serves
  /// the
  /// other.
  Kernels,
  /// All properties that a search depends on: kernels, names and ranges of
  /// axes.
  /// Symbols count only by their equality, and computations after the last
  /// reduction do not count.
  Search
};

/// One operator with what is fused to it, as `OperatorOpInterface` describes it
/// in the IR.
struct Workload {
  std::string name;
  std::vector<Axis> axes;
  std::vector<Operand> operands;
  /// In an order in which each reads what stands before it alone.
  std::vector<Computation> computations;
  /// Conditions that all points meet; none: the axes' box.
  std::vector<Inequality> domain = {};

  //===--- Axes ----------------------------------------------------------===//

  /// The axes that a computation reduces: blocks step along them, or hold them
  /// whole.
  AxisSet reduceAxes() const;
  /// The other ones: they lie over the grid.
  AxisSet spaceAxes() const;
  bool isReduceAxis(unsigned axis) const { return reduceAxes().contains(axis); }
  /// Axis by whose sizes a range is sampled and dispatched, and along which
  /// programs combine two uKernels unless the search is asked for another
  /// (MainAxis.h): the dynamic space axis with the largest extent, of a
  /// contraction M or N; with none, the larger one (paper V-A). An open axis
  /// counts as larger than a closed one; ties go to the first. Without space
  /// axes, the first axis.
  unsigned mainAxis() const;
  /// The space axis with the largest extent of the range, batch axes and static
  /// ones included. Open axes and ties as above.
  unsigned largestSpaceAxis() const;

  //===--- Operands and computations -------------------------------------===//

  const Operand *find(OperandRole role) const;
  /// The first computation that reduces, null without one.
  const Computation *reduction() const;
  Computation *reduction();
  /// The first computation that reduces, without one the first.
  const Computation &mainComputation() const;
  /// Elements next to each other along the operand's contiguous axis, from
  /// multiples of as many positions on, that are next to each other in memory;
  /// no value: all. A loop of a fused axis counts with its extent if that is
  /// fixed and the loop is the innermost one, otherwise with 1.
  std::optional<int64_t> contiguousRun(const Operand &operand) const;
  /// Returns the computation on its values; null if it writes the output
  /// itself.
  const Computation *epilogue() const;
  /// The type of the first reduction's first accumulator, f32 without one.
  ElementType accumulatorType() const;

  //===--- Counts, of one shape ------------------------------------------===//

  /// Points of these axes that lie in the domain. Conditions of one or two axes
  /// are counted, on extents over a million to about a millionth. Others are
  /// taken to hold everywhere: those that read operands, of other axes, over
  /// loops of fused axes, and of an axis that is counted with a third one.
  double points(AxisSet axes, llvm::ArrayRef<int64_t> shape) const;
  /// Floating-point operations of one computation, or of all.
  double flops(const Computation &computation,
               llvm::ArrayRef<int64_t> shape) const;
  double flops(llvm::ArrayRef<int64_t> shape) const;
  /// Special functions of all computations.
  double specials(llvm::ArrayRef<int64_t> shape) const;
  /// Elements of an operand, each once. One of which windows read a part counts
  /// by what they reach, beyond its ends, too. The extents of a fused axis's
  /// dynamic loops are taken to be equal.
  double elements(const Operand &operand, llvm::ArrayRef<int64_t> shape) const;
  /// Returns the bytes of every operand, each element once: the minimum that
  /// any program moves.
  double compulsoryBytes(llvm::ArrayRef<int64_t> shape) const;

  //===--- Description ---------------------------------------------------===//

  /// Returns an error if the description is wrong: no axes; sizes, steps and
  /// factors beyond `maxExtent`; weights; operands; computations that read a
  /// later computation, or write an operand along an axis that they reduce;
  /// operations.
  llvm::Error check() const;
  /// Returns an error if the workload is not a contraction (Contraction.h).
  llvm::Error checkContraction() const;
  bool isContraction() const;
  /// Returns a view of the workload if it is a contraction.
  std::optional<ContractionView> asContraction() const;
  /// Returns an error if the workload is not a row reduction (RowReduction.h).
  llvm::Error checkRowReduction() const;
  /// Returns a view of the workload if it is a row reduction.
  std::optional<RowReductionView> asRowReduction() const;
  /// Returns an error if the workload is not pointwise (Pointwise.h).
  llvm::Error checkPointwise() const;
  /// Returns a view of the workload if it is pointwise.
  std::optional<PointwiseView> asPointwise() const;
  /// Returns the order of a contraction's packed rhs, which `check` has
  /// verified.
  PackedOrder packedOrder() const;

  /// Returns a text that is equal for workloads with the same properties of the
  /// scope.
  std::string fingerprint(FingerprintOf scope) const;
  /// Returns the nest as text for readers, a computation in each line, e.g.
  /// "sum[M] = sum over K of lhs, rhs" (docs/extending/operator.md).
  std::string str() const;

  /// M × N × K matrix product in f32, all row-major unless transposed.
  static Workload matmul(SizeRange m, SizeRange n, SizeRange k,
                         bool transposeLhs = false, bool transposeRhs = false);
  /// Creates a product for every element of a batch axis; axes M, N, K, B.
  static Workload batchMatmul(SizeRange batch, SizeRange m, SizeRange n,
                              SizeRange k, bool transposeLhs = false,
                              bool transposeRhs = false);
  /// The sum of each row of an M × R matrix in f32, as a reduction whose result
  /// another computation writes.
  static Workload rowSums(SizeRange m, SizeRange r);
  /// The sum of two vectors in f32, a pointwise workload.
  static Workload vectorSum(SizeRange p);
};

/// Makes the computations of an operator with one reduction, whose operations
/// and state are given: over all axes, of inputs, which starts from init, and
/// an epilogue behind it that reads extras, where there are any, or operations.
void setReduction(Workload &workload, AxisSet reduce,
                  std::vector<Operations> operations, State state,
                  std::vector<Operations> epilogue);

} // namespace ftuner

#endif // FTUNER_WORKLOAD_WORKLOAD_H
