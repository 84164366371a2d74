//===- Computation.h - One of the computations of an operator ---*- C++ -*-===//
//
// An operator is a nest of computations, which may have different axes: a
// softmax reduces its row to a maximum and a sum, then computes every element
// from them. The nest says what is computed, and not in which order: whether a
// row stays in registers, is streamed, or is read twice is a schedule, and a
// codegen path's to decide.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_WORKLOAD_COMPUTATION_H
#define FTUNER_WORKLOAD_COMPUTATION_H

#include "FTuner/Workload/Axes.h"
#include "FTuner/Workload/Elements.h"
#include "FTuner/Workload/Operand.h"
#include <optional>
#include <string>
#include <vector>

namespace ftuner {

/// Units of a device that execute operations.
enum class OperationUnit {
  MultiplyAdd, ///< a · b + c: two floating-point operations
  Arithmetic,  ///< sums, products, extremes
  Special,     ///< quotients, roots, transcendental functions
  Other        ///< casts, comparisons, choices: they count for nothing
};
/// "multiply-add", "arithmetic", "special", "other".
llvm::StringRef nameOf(OperationUnit unit);

/// Operations, apart by what they compute.
enum class OperationKind {
  MultiplyAdd,
  Add, ///< differences and negations, too
  Multiply,
  Divide, ///< remainders, too
  Extreme,
  Function, ///< what the dialect math has
  Bitwise,
  Compare,
  Select,
  Cast
};

/// Operations of one kind for each point.
struct Operations {
  OperationKind kind = OperationKind::MultiplyAdd;
  ElementType operandType = ElementType::F32;
  ElementType resultType = ElementType::F32;
  double count = 1;
  /// Numbers of f32 may lose the bits that `operandType` lacks in place of
  /// being rounded.
  bool truncates = false;

  OperationUnit unit() const;
  double flops() const;
  bool operator==(const Operations &other) const {
    return kind == other.kind && operandType == other.operandType &&
           resultType == other.resultType && count == other.count &&
           truncates == other.truncates;
  }
};

/// Floating-point operations of all of them, for one point.
double flopsOf(llvm::ArrayRef<Operations> operations);
/// Returns the number of operations of the units for special functions.
double specialsOf(llvm::ArrayRef<Operations> operations);

/// A read of a computation at a point: an element of an operand, or the result
/// of an earlier computation there.
struct Read {
  enum class Source { Operand, Computation };
  Source source = Source::Operand;
  /// Number of the operand or of the computation.
  unsigned number = 0;

  static Read operand(unsigned number) { return {Source::Operand, number}; }
  static Read computation(unsigned number) {
    return {Source::Computation, number};
  }
  bool isComputation() const { return source == Source::Computation; }
  bool operator==(const Read &other) const {
    return source == other.source && number == other.number;
  }
};

/// The way to merge the states of two parts of a reduction.
enum class Merge {
  Sum,
  Product,
  Maximum,
  Minimum,
  /// States (m, s, …) of a maximum and sums of e^(x - m): m = max(m₁, m₂), and
  /// the sums are scaled by e^(mᵢ - m) before they are added.
  ScaledSums,
  /// States (n, μ, M₂) of a count, a mean and a sum of squared distances: Chan,
  /// Golub and LeVeque 1979, "Updating formulae and a pairwise algorithm for
  /// computing sample variances".
  Moments,
  Other
};
/// "sum", "product", "maximum", "minimum", "scaled-sums", "moments", "other".
llvm::StringRef nameOf(Merge merge);

/// A number that a reduction updates for each element of the computation's
/// space axes, except `invariantAxes`.
struct Accumulator {
  std::string name;
  ElementType type = ElementType::F32;
  /// Value of an empty part.
  Identity identity = Identity::Zero;
  /// Space axes of the computation along which the accumulator does not change.
  AxisSet invariantAxes = {};
};

/// State of a reduction: one or more accumulators, which are merged together.
struct State {
  std::vector<Accumulator> accumulators = {Accumulator{"sum"}};
  Merge merge = Merge::Sum;
  /// Operations of a merge of two states, and of the step from a merged state
  /// to its values.
  std::vector<Operations> mergeOperations = {}, finalize = {};
  /// The computation whose state scales this one whenever it moves, such as the
  /// maximum of attention's row; no value if the state does not depend on
  /// another one.
  std::optional<unsigned> correctedBy = std::nullopt;

  /// Returns the operations of a merge of two states: `mergeOperations`, or if
  /// there are none the one operation that `merge` stands for (a sum if it
  /// stands for none).
  std::vector<Operations> operationsOfMerge() const;
};

/// One computation of a nest. It has a point for each point of its axes that
/// lies in the domain.
struct Computation {
  std::string name;
  AxisSet axes;
  /// Axes that it reduces; the others are its space axes.
  AxisSet reduce = {};
  std::vector<Read> reads = {};
  /// Operations at each point.
  std::vector<Operations> operations = {};
  /// State of a reduction; no value for other computations.
  std::optional<State> state = std::nullopt;
  /// Numbers of operands that it writes, once for each point of its space axes:
  /// of a reduction the accumulators in their order, else its values.
  llvm::SmallVector<unsigned, 2> writes = {};

  bool isReduction() const { return state.has_value(); }
  AxisSet space() const { return axes - reduce; }
};

/// A condition of the points that an operator computes: form + the sum of
/// coefficient · element of an operand, at the point, ≥ 0. The causal mask
/// t ≤ q + 3 is q - t + 3 ≥ 0, and t < length[b] is length[b] - t - 1 ≥ 0.
struct Inequality {
  AffineForm form;
  struct OperandTerm {
    unsigned operand;
    int64_t coefficient = 1;
  };
  llvm::SmallVector<OperandTerm, 1> operands = {};

  /// The axes of the form.
  AxisSet axes() const;
};

} // namespace ftuner

#endif // FTUNER_WORKLOAD_COMPUTATION_H
