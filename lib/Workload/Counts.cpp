//===- Counts.cpp - Points, operations and bytes of a workload ------------===//
#include "FTuner/Workload/Workload.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>
#include <cstdlib>

using namespace ftuner;

/// Most positions of an axis at which points of a condition are counted; on
/// larger extents each stands for several.
static constexpr int64_t maxCountedPositions = int64_t(1) << 20;

namespace {
/// Positions of an axis, from `first` to `last`; none if that lies before.
struct Interval {
  double first, last;

  double size() const { return std::max(last - first + 1, 0.0); }
};
} // namespace

/// Cuts an interval to where coefficient · position + rest ≥ 0.
static Interval cut(Interval interval, int64_t coefficient, double rest) {
  if (coefficient > 0)
    interval.first = std::max(interval.first, std::ceil(-rest / coefficient));
  else
    interval.last = std::min(interval.last, std::floor(-rest / coefficient));
  return interval;
}

static int64_t coefficientOf(const AffineForm &form, unsigned axis) {
  for (const AffineForm::Term &term : form.terms)
    if (term.axis == axis)
      return term.coefficient;
  return 0;
}

/// Returns whether a condition reads only positions along whole axes.
static bool isCounted(const Inequality &inequality) {
  return inequality.operands.empty() &&
         llvm::all_of(inequality.form.terms, [](const AffineForm::Term &term) {
           return term.loop == AffineForm::Term::wholeAxis;
         });
}

/// Pairs of positions along two axes that meet the conditions.
static double countPairs(llvm::ArrayRef<const Inequality *> conditions,
                         unsigned outer, unsigned inner,
                         llvm::ArrayRef<int64_t> shape) {
  int64_t positions = std::min(shape[outer], maxCountedPositions);
  double stride =
      double(shape[outer]) / double(std::max<int64_t>(positions, 1));
  double count = 0;
  for (int64_t i = 0; i < positions; ++i) {
    double position = std::floor((i + 0.5) * stride);
    Interval interval{0, double(shape[inner] - 1)};
    bool holds = true;
    for (const Inequality *condition : conditions) {
      int64_t coefficient = coefficientOf(condition->form, inner);
      double rest = condition->form.constant +
                    double(coefficientOf(condition->form, outer)) * position;
      if (coefficient != 0)
        interval = cut(interval, coefficient, rest);
      else
        holds &= rest >= 0;
    }
    count += holds ? interval.size() * stride : 0;
  }
  return count;
}

double Workload::points(AxisSet counted, llvm::ArrayRef<int64_t> shape) const {
  AxisSet rest = counted;
  double count = 1;
  for (unsigned axis : counted.list()) {
    if (!rest.contains(axis))
      continue;
    // Conditions of the axis and of at most one other, which are counted
    // together.
    AxisSet group = {axis};
    llvm::SmallVector<const Inequality *> conditions;
    for (const Inequality &inequality : domain) {
      AxisSet others = inequality.axes() | group;
      if (!inequality.axes().contains(axis) || !isCounted(inequality) ||
          !rest.containsAll(others) || others.size() > 2)
        continue;
      group = others;
      conditions.push_back(&inequality);
    }
    rest = rest - group;
    if (conditions.empty()) {
      count *= double(shape[axis]);
      continue;
    }
    AxisSet other = group - AxisSet{axis};
    if (other.empty()) {
      Interval interval{0, double(shape[axis] - 1)};
      for (const Inequality *condition : conditions)
        interval = cut(interval, coefficientOf(condition->form, axis),
                       double(condition->form.constant));
      count *= interval.size();
      continue;
    }
    // Inequalities of only the other axis cut the count, too.
    unsigned inner = other.list().front();
    for (const Inequality &inequality : domain)
      if (inequality.axes() == other && isCounted(inequality))
        conditions.push_back(&inequality);
    count *= countPairs(conditions, axis, inner, shape);
  }
  return count;
}

double Workload::flops(const Computation &computation,
                       llvm::ArrayRef<int64_t> shape) const {
  double flops = flopsOf(computation.operations);
  if (flops != 0)
    flops *= points(computation.axes, shape);
  if (computation.state)
    if (double finalize = flopsOf(computation.state->finalize); finalize != 0)
      flops += finalize * points(computation.space(), shape);
  return flops;
}

double Workload::flops(llvm::ArrayRef<int64_t> shape) const {
  double sum = 0;
  for (const Computation &computation : computations)
    sum += flops(computation, shape);
  return sum;
}

double Workload::specials(llvm::ArrayRef<int64_t> shape) const {
  double sum = 0;
  for (const Computation &computation : computations) {
    sum += specialsOf(computation.operations) * points(computation.axes, shape);
    if (computation.state)
      sum += specialsOf(computation.state->finalize) *
             points(computation.space(), shape);
  }
  return sum;
}

/// The extents of an axis's loops: fixed ones as they are, the others such that
/// they are equal and all multiply to `extent`.
static llvm::SmallVector<double> loopExtents(const Axis &axis, double extent) {
  double fixed = 1;
  unsigned numDynamic = 0;
  for (const Loop &loop : axis.loops)
    loop.range.isFixed() ? fixed *= double(loop.range.min) : ++numDynamic;
  double each = numDynamic
                    ? std::pow(std::max(extent / fixed, 1.0), 1.0 / numDynamic)
                    : 1;
  llvm::SmallVector<double> result;
  for (const Loop &loop : axis.loops)
    result.push_back(loop.range.isFixed() ? double(loop.range.min) : each);
  return result;
}

double Workload::elements(const Operand &operand,
                          llvm::ArrayRef<int64_t> shape) const {
  double elements = 1;
  if (!operand.hasWindows()) {
    for (unsigned axis : operand.axes)
      elements *= double(shape[axis]);
    return elements;
  }
  for (const AffineForm &form : operand.windows) {
    double reach = 1;
    for (const AffineForm::Term &term : form.terms) {
      double extent = double(shape[term.axis]);
      if (term.loop != AffineForm::Term::wholeAxis)
        extent = loopExtents(axes[term.axis], extent)[term.loop];
      reach += double(std::abs(term.coefficient)) * (extent - 1);
    }
    elements *= std::max(reach, 0.0);
  }
  return elements;
}

double Workload::compulsoryBytes(llvm::ArrayRef<int64_t> shape) const {
  double bytes = 0;
  for (const Operand &operand : operands)
    bytes += elements(operand, shape) * double(operand.elementBytes);
  return bytes;
}
