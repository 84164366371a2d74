//===- Pointwise.cpp - Chains of elementwise operators as nests -----------===//
#include "FTuner/Workload/Pointwise.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/Twine.h"
#include <algorithm>

using namespace ftuner;
using llvm::Twine;

int64_t PointwiseView::numLoops() const {
  return std::max<int64_t>(workload->axes.front().loops.size(), 1);
}

PointAccess PointwiseView::accessOf(const Operand &operand) const {
  if (operand.rank() == 0)
    return PointAccess::Scalar;
  if (operand.rank() == 1 && operand.position(0).asAxis())
    return PointAccess::Dense;
  // Positions of an axis that is not fused are multiples of it.
  unsigned last = numLoops() - 1;
  auto isOfLast = [&](const AffineForm::Term &term) {
    return term.loop == last || term.loop == AffineForm::Term::wholeAxis;
  };
  auto isAlongLast = [&](unsigned dim) {
    return llvm::any_of(operand.position(dim).terms, isOfLast);
  };
  unsigned rank = operand.rank();
  if (llvm::none_of(llvm::seq(rank), isAlongLast))
    return PointAccess::Constant;
  std::optional<AffineForm::Term> innermost =
      operand.position(rank - 1).asTerm();
  if (innermost && isOfLast(*innermost) &&
      llvm::none_of(llvm::seq(rank - 1), isAlongLast))
    return PointAccess::Row;
  return PointAccess::Scattered;
}

bool PointwiseView::isVector(const Operand &operand) const {
  PointAccess access = accessOf(operand);
  return (access == PointAccess::Dense || access == PointAccess::Row) &&
         operand.elementType != ElementType::Other;
}

bool PointwiseView::hasTrips() const {
  return llvm::any_of(workload->operands, [&](const Operand &operand) {
    PointAccess access = accessOf(operand);
    return access != PointAccess::Scalar && access != PointAccess::Dense;
  });
}

std::optional<int64_t> PointwiseView::rowLength() const {
  const Axis &axis = workload->axes.front();
  const SizeRange &range =
      axis.isFused() ? axis.loops.back().range : axis.range;
  if (!range.isFixed())
    return std::nullopt;
  return range.min;
}

int64_t PointwiseView::widestBytes() const {
  int64_t bytes = 1;
  for (const Operand &operand : workload->operands)
    if (operand.rank() > 0)
      bytes = std::max(bytes, operand.elementBytes);
  return bytes;
}

llvm::Error Workload::checkPointwise() const {
  if (axes.size() != 1 || !reduceAxes().empty() || computations.size() != 1)
    return llvm::createStringError(
        "expected one computation of points along one axis");
  for (const Operand &operand : operands)
    if (operand.role != OperandRole::Input &&
        operand.role != OperandRole::Output)
      return llvm::createStringError("expected only inputs and outputs");
  return llvm::Error::success();
}

std::optional<PointwiseView> Workload::asPointwise() const {
  if (llvm::errorToBool(checkPointwise()))
    return std::nullopt;
  return PointwiseView(*this);
}
