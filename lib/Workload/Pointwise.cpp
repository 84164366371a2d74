//===- Pointwise.cpp - Chains of elementwise operators as nests -----------===//
#include "FTuner/Workload/Pointwise.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/Twine.h"
#include <algorithm>
#include <set>

using namespace ftuner;
using llvm::Twine;

int64_t PointwiseView::numLoops() const {
  return std::max<int64_t>(workload->axes.front().loops.size(), 1);
}

PointAccess PointwiseView::accessOf(const Operand &operand) const {
  if (operand.rank() == 0)
    return PointAccess::Scalar;
  if (operand.rank() == 1 && operand.position(0).asAxis() == 0u)
    return PointAccess::Dense;
  // Positions of an axis that is not fused are multiples of it.
  unsigned last = numLoops() - 1;
  auto isOfLast = [&](const AffineForm::Term &term) {
    return term.axis == 0 &&
           (term.loop == last || term.loop == AffineForm::Term::wholeAxis);
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
  if (!taps().empty())
    return true;
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

llvm::SmallVector<int64_t, 3> PointwiseView::taps() const {
  llvm::SmallVector<int64_t, 3> taps;
  if (workload->axes.size() > 1)
    for (const Loop &loop : workload->axes[1].loops)
      taps.push_back(loop.range.min);
  return taps;
}

int64_t PointwiseView::numTaps() const {
  int64_t count = 1;
  for (int64_t extent : taps())
    count *= extent;
  return count;
}

bool PointwiseView::hasTaps(const Operand &operand) const {
  for (unsigned dim = 0; dim < operand.rank(); ++dim)
    for (const AffineForm::Term &term : operand.position(dim).terms)
      if (term.axis == 1)
        return true;
  return false;
}

int64_t PointwiseView::numPositions(const Operand &operand, unsigned dim,
                                    int64_t width) const {
  llvm::SmallVector<int64_t, 3> extents = taps();
  unsigned last = numLoops() - 1;
  // Relative to the position of the first point's first tap.
  std::set<int64_t> positions = {0};
  auto add = [&](int64_t coefficient, int64_t extent) {
    std::set<int64_t> all;
    for (int64_t position : positions)
      for (int64_t step = 0; step < extent; ++step)
        all.insert(position + coefficient * step);
    positions = std::move(all);
  };
  for (const AffineForm::Term &term : operand.position(dim).terms) {
    bool isWhole = term.loop == AffineForm::Term::wholeAxis;
    if (term.axis == 1)
      add(term.coefficient, isWhole ? numTaps() : extents[term.loop]);
    else if (isWhole || term.loop == last)
      add(term.coefficient, width);
  }
  return static_cast<int64_t>(positions.size());
}

int64_t PointwiseView::numReads(const Operand &operand, int64_t width) const {
  if (isVector(operand))
    width = 1;
  int64_t reads = 1;
  for (unsigned dim = 0; dim < operand.rank(); ++dim)
    reads *= numPositions(operand, dim, width);
  return std::min(reads, numTaps() * width);
}

double PointwiseView::numElementsOfBlock(const Operand &operand, int64_t points,
                                         int64_t loopExtent) const {
  const Axis &axis = workload->axes.front();
  // Points of the block along each loop; the last loop is filled first.
  llvm::SmallVector<double> covered(numLoops(), 1);
  auto rest = static_cast<double>(points);
  for (int64_t loop = numLoops() - 1; loop >= 0; --loop) {
    const SizeRange &range =
        axis.isFused() ? axis.loops[loop].range : axis.range;
    auto extent = static_cast<double>(range.isFixed() ? range.min : loopExtent);
    covered[loop] = loop == 0 ? rest : std::min(rest, extent);
    rest = std::max(rest / covered[loop], 1.0);
  }
  double elements = 1;
  for (unsigned dim = 0; dim < operand.rank(); ++dim) {
    AffineForm position = operand.position(dim);
    if (position.asAxis() == 0u)
      return static_cast<double>(points);
    double reach = static_cast<double>(numPositions(operand, dim, 1));
    for (const AffineForm::Term &term : position.terms)
      if (term.axis == 0)
        reach +=
            static_cast<double>(term.coefficient) *
            (covered[term.loop == AffineForm::Term::wholeAxis ? 0 : term.loop] -
             1);
    elements *= reach;
  }
  return elements;
}

/// Returns an error if a second axis is not the loops over a window, which the
/// first of two computations reduces.
static llvm::Error checkTaps(const Workload &workload) {
  if (workload.axes.size() == 1 && workload.reduceAxes().empty() &&
      workload.computations.size() == 1)
    return llvm::Error::success();
  bool isWindow = workload.axes.size() == 2 && workload.axes[1].isFused() &&
                  !workload.axes[1].isDynamic() &&
                  workload.computations.size() == 2 &&
                  workload.computations[0].reduce == AxisSet{1} &&
                  !workload.computations[1].isReduction();
  if (!isWindow)
    return llvm::createStringError(
        "expected one computation of points along one axis, or windows of "
        "fixed extents before it");
  return llvm::Error::success();
}

llvm::Error Workload::checkPointwise() const {
  if (llvm::Error error = checkTaps(*this))
    return error;
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
