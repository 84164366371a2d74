//===- FamilyDispatch.cpp - The choice of a family as IR ------------------===//
#include "FTuner/Dispatch/IR/FamilyDispatch.h"
#include "FTuner/Dialect/UKernel/Bridge/OperatorWorkload.h"
#include "FTuner/Dialect/UKernel/Utils/ElementBytes.h"
#include "FTuner/Dialect/UKernel/Utils/IndexArithmetic.h"
#include "FTuner/Dispatch/Intervals.h"
#include "FTuner/Schedule/Alignment.h"
#include "FTuner/Workload/Workload.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace ftuner;

int64_t VectorOperand::elementBytes() const {
  return elementBytesOf(value.getType());
}

int64_t VectorOperand::elementsOf(int64_t alignment) const {
  return std::max<int64_t>(alignment / elementBytes(), 1);
}

llvm::MapVector<unsigned, int64_t>
ftuner::elementsAlongAxes(ArrayRef<VectorOperand> operands, int64_t alignment) {
  llvm::MapVector<unsigned, int64_t> result;
  for (const VectorOperand &operand : operands) {
    if (operand.isPitched)
      continue;
    int64_t &elements = result[operand.contiguousAxis];
    elements = std::max(elements, operand.elementsOf(alignment));
  }
  return result;
}

SmallVector<VectorOperand>
ftuner::vectorOperands(ukernel::OperatorOpInterface op) {
  Workload workload = toUnrangedWorkload(op);
  SmallVector<VectorOperand> result;
  for (auto [operand, described] :
       llvm::zip_equal(op->getOpOperands(), workload.operands))
    if (isVectorAccess(workload, described))
      result.push_back(
          {operand.get(), *described.contiguousAxis(), described.isPitched});
  return result;
}

namespace {

/// More intervals than this become a switch over their sizes, a jump table in
/// the end, where those are few enough for the code; others are compared.
constexpr size_t kMaxComparedIntervals = 8;
constexpr int64_t kMaxSwitchedSizes = 512;

/// Comparisons of sizes on the host.
class SizeMath : public ukernel::IndexArithmetic {
public:
  using IndexArithmetic::IndexArithmetic;

  Value boolean(bool value) {
    return arith::ConstantOp::create(b, b.getBoolAttr(value));
  }
  Value both(Value lhs, Value rhs) {
    return b.createOrFold<arith::AndIOp>(lhs, rhs);
  }
  Value isUpTo(Value size, int64_t hi) {
    return compare(arith::CmpIPredicate::sle, size, constant(hi));
  }
  /// Returns whether a size, which is at least `min`, is in the range.
  Value isInside(Value size, const SizeRange &range, int64_t min) {
    Value result = boolean(true);
    if (range.min > min)
      result = both(result, compare(arith::CmpIPredicate::sge, size,
                                    constant(range.min)));
    if (range.max)
      result = both(result, isUpTo(size, *range.max));
    return result;
  }
};

} // namespace

/// The least size that a launch can see: without a row or a column nothing is
/// launched, but a sum over nothing is.
static int64_t minSize(AxisSet reduceAxes, unsigned axis) {
  return reduceAxes.contains(axis) ? 0 : 1;
}

/// Returns whether a shape is in the box on all axes except `omitted`.
static Value buildInside(SizeMath &math, ArrayRef<SizeRange> box,
                         ArrayRef<Value> extents, AxisSet reduceAxes,
                         std::optional<unsigned> omitted = std::nullopt) {
  Value inside = math.boolean(true);
  for (auto [axis, extent] : llvm::enumerate(extents))
    if (axis != omitted)
      inside = math.both(
          inside, math.isInside(extent, box[axis], minSize(reduceAxes, axis)));
  return inside;
}

/// The family of a size by comparisons with the ends of intervals.
static Value buildComparisons(SizeMath &math, ArrayRef<Interval> intervals,
                              unsigned general, Value size, int64_t min) {
  // The sizes up to each end, gaps between the intervals included.
  SmallVector<std::pair<int64_t, unsigned>> ends;
  unsigned last = general;
  int64_t next = min;
  for (const Interval &interval : intervals) {
    if (interval.lo > next)
      ends.push_back({interval.lo - 1, general});
    if (!interval.hi) {
      last = interval.family;
      break;
    }
    ends.push_back({*interval.hi, interval.family});
    next = *interval.hi + 1;
  }
  Value family = math.constant(last);
  for (auto [end, familyUpTo] : llvm::reverse(ends))
    family =
        math.select(math.isUpTo(size, end), math.constant(familyUpTo), family);
  return family;
}

/// The family of a size by a switch over the sizes where there are many
/// intervals of few sizes, else by comparisons.
static Value buildFamilyOfSize(ImplicitLocOpBuilder &b,
                               ArrayRef<Interval> intervals, unsigned general,
                               Value size, int64_t min) {
  SizeMath math{b};
  // Only the last interval can be open; comparing it is left to the default.
  ArrayRef<Interval> closed = intervals;
  if (!closed.empty() && !closed.back().hi)
    closed = closed.drop_back();
  if (intervals.size() <= kMaxComparedIntervals ||
      *closed.back().hi > kMaxSwitchedSizes)
    return buildComparisons(math, intervals, general, size, min);

  SmallVector<int64_t> cases, families;
  for (const Interval &interval : closed)
    for (int64_t value = std::max(interval.lo, min); value <= *interval.hi;
         ++value) {
      cases.push_back(value);
      families.push_back(interval.family);
    }
  auto switchOp = scf::IndexSwitchOp::create(b, TypeRange{b.getIndexType()},
                                             size, cases, cases.size());
  OpBuilder::InsertionGuard guard(b);
  for (auto [region, family] :
       llvm::zip_equal(switchOp.getCaseRegions(), families)) {
    b.createBlock(&region);
    scf::YieldOp::create(b, math.constant(family));
  }
  b.createBlock(&switchOp.getDefaultRegion());
  scf::YieldOp::create(b, buildComparisons(math,
                                           intervals.drop_front(closed.size()),
                                           general, size, min));
  return switchOp.getResult(0);
}

/// The axis that leaves fewest cells, and those.
static std::optional<std::pair<unsigned, std::vector<PlanCell>>>
minCells(ArrayRef<DispatchEntry> entries, unsigned numAxes) {
  std::optional<std::pair<unsigned, std::vector<PlanCell>>> best;
  for (unsigned axis = 0; axis < numAxes; ++axis)
    if (auto cells = planCells(entries, axis);
        cells && (!best || cells->size() < best->second.size()))
      best.emplace(axis, std::move(*cells));
  return best;
}

Value ftuner::buildFamilyOfShape(ImplicitLocOpBuilder &b,
                                 ArrayRef<DispatchEntry> entries,
                                 unsigned otherwise, ArrayRef<Value> extents,
                                 AxisSet reduceAxes, bool hasSwitches) {
  SizeMath math{b};
  Value none = math.constant(otherwise);
  auto found = minCells(entries, extents.size());
  if (!found || (!hasSwitches && found->second.size() > 1)) {
    Value family = none;
    for (const DispatchEntry &entry : llvm::reverse(entries))
      family = math.select(buildInside(math, entry.box, extents, reduceAxes),
                           math.constant(entry.family), family);
    return family;
  }

  auto &[axis, cells] = *found;
  Value size = extents[axis];
  int64_t min = minSize(reduceAxes, axis);
  if (cells.empty())
    return none;
  if (cells.size() == 1) {
    ArrayRef<Interval> intervals = cells.front().intervals;
    Value family =
        hasSwitches ? buildFamilyOfSize(b, intervals, otherwise, size, min)
                    : buildComparisons(math, intervals, otherwise, size, min);
    return math.select(
        buildInside(math, cells.front().box, extents, reduceAxes, axis), family,
        none);
  }
  SmallVector<int64_t> cases =
      llvm::to_vector(llvm::seq<int64_t>(0, cells.size()));
  Value cell = math.constant(cells.size());
  for (auto [index, candidate] : llvm::enumerate(cells))
    cell =
        math.select(buildInside(math, candidate.box, extents, reduceAxes, axis),
                    math.constant(index), cell);
  auto switchOp = scf::IndexSwitchOp::create(b, TypeRange{b.getIndexType()},
                                             cell, cases, cases.size());
  OpBuilder::InsertionGuard guard(b);
  for (auto [region, candidate] :
       llvm::zip_equal(switchOp.getCaseRegions(), cells)) {
    b.createBlock(&region);
    scf::YieldOp::create(
        b, buildComparisons(math, candidate.intervals, otherwise, size, min));
  }
  b.createBlock(&switchOp.getDefaultRegion());
  scf::YieldOp::create(b, none);
  return switchOp.getResult(0);
}
