//===- Contraction.h - Products as nests ------------------------*- C++ -*-===//
//
// A contraction is a sum of products of an lhs and an rhs over the axes M, N
// (space), K (reduce), then batch axes (space), along which every block has one
// element. Its nest is one reduction, the product, with at most one computation
// before it for each factor, a prologue, and at most one after it, the
// epilogue.
//
// Axes may be fused, and factors accessed by windows over their loops: a
// convolution is a product whose lhs is never written out as a matrix (an
// implicit GEMM; im2col writes it).
//
// Code that needs one of the axes asks the view, or passes a kernel family's
// reduce axes to `ContractionAxes::forReduceAxes`: no other code may assume
// that k is axis 2.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_WORKLOAD_CONTRACTION_H
#define FTUNER_WORKLOAD_CONTRACTION_H

#include "FTuner/Workload/Workload.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace ftuner {

/// The axes of a contraction's rows, columns and sums.
struct ContractionAxes {
  unsigned m = 0, n = 1, k = 2;

  /// Returns the axes of an operator that reduces these axes: k is the first
  /// axis of `reduce`, m and n are the first two other axes.
  static ContractionAxes forReduceAxes(AxisSet reduce) {
    auto first = [](uint32_t axes) {
      return unsigned(llvm::countr_zero(axes));
    };
    uint32_t space = ~reduce.mask();
    return {first(space), first(space & (space - 1)), first(reduce.mask())};
  }
  /// Returns whether a block has one element along the axis.
  bool isBatch(unsigned axis) const {
    return axis != m && axis != n && axis != k;
  }
  /// Returns the space axis that a factor, lhs (0) or rhs (1), has.
  unsigned space(unsigned factor) const { return factor == 0 ? m : n; }
};

/// Axes of `Workload::matmul`; its batch axes follow.
inline constexpr ContractionAxes matmulAxes = {0, 1, 2};

/// A workload that is a contraction, and outlives the view.
class ContractionView : public ContractionAxes {
public:
  /// Requires `Workload::isContraction`, as `Workload::asContraction` asks
  /// before.
  explicit ContractionView(const Workload &workload);

  /// All but m, n and k.
  AxisSet batchAxes() const {
    return AxisSet::first(workload->axes.size()) - AxisSet{m, n, k};
  }

  const Operand &lhs() const { return *workload->find(OperandRole::Lhs); }
  const Operand &rhs() const { return *workload->find(OperandRole::Rhs); }
  /// lhs (0) or rhs (1).
  const Operand &factor(unsigned number) const {
    return number == 0 ? lhs() : rhs();
  }
  const Operand &output() const { return *workload->find(OperandRole::Output); }
  /// Returns whether a factor is accessed by windows.
  bool hasWindows() const { return lhs().hasWindows() || rhs().hasWindows(); }

  const Computation &product() const { return *workload->reduction(); }
  /// The type in which units multiply: operands may be of narrower ones, and
  /// are cast on their way.
  ElementType multipliedType() const {
    return product().operations.front().operandType;
  }
  /// Returns whether factors of f32 may lose bits in place of being rounded.
  bool truncatesFactors() const {
    return product().operations.front().truncates;
  }
  /// Returns the computation that transforms each element of a factor, lhs (0)
  /// or rhs (1), before it is multiplied; null if there is none, or only casts
  /// that keep every value.
  const Computation *prologue(unsigned factor) const;
  /// Operations of that; none without one.
  llvm::ArrayRef<Operations> prologueOperations(unsigned factor) const;
  /// Returns the operations on each element of the sums; none without an
  /// epilogue.
  llvm::ArrayRef<Operations> epilogueOperations() const;

private:
  const Workload *workload;
};

/// Parts that `setContraction` makes computations of.
struct ContractionParts {
  /// In which units multiply, and add.
  ElementType multipliedType = ElementType::F32,
              accumulatorType = ElementType::F32;
  bool truncatesFactors = false;
  /// Operations on each element of a factor and of the output; without any
  /// there is no computation.
  std::vector<Operations> prologues[2] = {}, epilogue = {};
};

/// Makes the computations of a workload that has a contraction's axes and
/// operands: a prologue reads its factor and the inputs that lack the other
/// factor's space axis, the product init, too, and the epilogue extras.
void setContraction(Workload &workload, const ContractionParts &parts);
/// The parts of a contraction.
ContractionParts contractionParts(const Workload &workload);
/// Changes parts of a contraction, or connects its computations again with
/// operands that were added.
void changeContraction(
    Workload &workload, llvm::function_ref<void(ContractionParts &)> change =
                            [](ContractionParts &) {});

} // namespace ftuner

#endif // FTUNER_WORKLOAD_CONTRACTION_H
