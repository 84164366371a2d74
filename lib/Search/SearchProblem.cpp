//===- SearchProblem.cpp - Checks of problems and answers -----------------===//
#include "FTuner/Search/Candidates.h"
#include "FTuner/Search/SearchStrategy.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include <algorithm>
#include <cmath>
#include <limits>

using namespace ftuner;
using llvm::Twine;

/// Far beyond what shared memory holds; threads and bytes of such tiles still
/// fit in 64 bits.
static constexpr int64_t maxTile = 1 << 20;
static constexpr int64_t openEnd = std::numeric_limits<int64_t>::max();

static llvm::Error makeError(const Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

//===----------------------------------------------------------------------===//
// The problem
//===----------------------------------------------------------------------===//

int64_t ftuner::defaultZeta(const DeviceSpec &device) {
  return std::max<int64_t>(device.registersPerSm / (256 * 128), 1);
}

bool SearchProblem::isRejected(const KernelFamily &family) const {
  return llvm::is_contained(rejected, family);
}

CostEvaluator &SearchProblem::evaluator() const {
  if (!madeEvaluator)
    madeEvaluator =
        costModel.createEvaluator(workload, device, codegen, options.cost);
  return *madeEvaluator;
}

CostEvaluator &SearchProblem::predictor() const {
  if (costModel.predictsTime())
    return evaluator();
  if (!madePredictor)
    madePredictor = findCostModel("latency")->createEvaluator(
        workload, device, codegen, options.cost);
  return *madePredictor;
}

static Program programOf(const KernelFamily &family,
                         llvm::ArrayRef<int64_t> shape) {
  return {&family, coverShape(family, shape)};
}

double SearchProblem::score(const KernelFamily &family,
                            llvm::ArrayRef<int64_t> shape) const {
  return evaluator().score(shape, programOf(family, shape));
}

CostBreakdown SearchProblem::evaluate(const KernelFamily &family,
                                      llvm::ArrayRef<int64_t> shape) const {
  return evaluator().evaluate(shape, programOf(family, shape));
}

CostBreakdown SearchProblem::predict(const KernelFamily &family,
                                     llvm::ArrayRef<int64_t> shape) const {
  KernelFamily running = family;
  running.vectorWidth =
      std::min(running.vectorWidth, codegen.vectorWidth(workload, shape));
  return predictor().evaluate(shape, programOf(running, shape));
}

llvm::Error SearchProblem::check() const {
  if (llvm::Error error = workload.check())
    return error;
  if (llvm::Error error = options.check())
    return error;
  return codegen.supports(workload, device);
}

//===----------------------------------------------------------------------===//
// The answer
//===----------------------------------------------------------------------===//

namespace {
class Verifier {
public:
  Verifier(const SearchProblem &problem, const Plan &plan)
      : problem(problem), workload(problem.workload), plan(plan),
        granules(problem.codegen.granules(workload, problem.device)) {}

  /// What every plan must keep.
  llvm::Error checkLegality() const;
  /// What the answer of a search must keep beside that.
  llvm::Error checkAnswer() const;

private:
  llvm::Error checkLegality(const KernelFamily &family) const;
  llvm::Error checkTiles(const KernelFamily &family) const;
  llvm::Error checkPair(const KernelFamily &family) const;
  llvm::Error checkUnalignedFamilies() const;
  llvm::Error checkEntries() const;
  llvm::Error checkCoverage() const;

  llvm::Error familyError(unsigned index, llvm::Error reason) const {
    return makeError("family " + Twine(index) + " (" +
                     plan.families[index].str() +
                     "): " + llvm::toString(std::move(reason)));
  }

  const SearchProblem &problem;
  const Workload &workload;
  const Plan &plan;
  TileGranules granules;
};
} // namespace

llvm::Error Verifier::checkTiles(const KernelFamily &family) const {
  size_t rank = workload.axes.size();
  if (family.parts.empty() || family.parts.size() > 2)
    return makeError("expected one or two parts, but got " +
                     Twine(family.parts.size()));
  if (family.combineAxis >= rank ||
      workload.axes[family.combineAxis].kind != AxisKind::Space)
    return makeError("expected parts along a space axis, but got axis " +
                     Twine(family.combineAxis));
  for (const UKernel &part : family.parts) {
    if (part.smemTile.size() != rank || part.regTile.size() != rank)
      return makeError("expected tiles of " + Twine(rank) + " axes, but got " +
                       Twine(part.smemTile.size()) + " and " +
                       Twine(part.regTile.size()));
    if (part.reduceSplit < 1)
      return makeError("expected a split of at least 1, but got " +
                       Twine(part.reduceSplit));
    for (unsigned axis = 0; axis < rank; ++axis) {
      int64_t smem = part.smemTile[axis], reg = part.regTile[axis];
      if (smem > maxTile)
        return makeError("axis " + Twine(axis) +
                         ": expected a block tile of at most " +
                         Twine(maxTile) + ", but got " + Twine(smem));
      if (smem < 1 || reg < 1 || smem % reg != 0)
        return makeError("axis " + Twine(axis) +
                         ": expected a block tile that is a multiple of a "
                         "positive register tile, but got " +
                         Twine(smem) + " and " + Twine(reg));
      if (axis >= Workload::kFirstBatch && smem != 1)
        return makeError("axis " + Twine(axis) +
                         ": expected block tile 1 on a batch axis, but got " +
                         Twine(smem));
      if (workload.axes[axis].kind == AxisKind::Reduce && reg != 1)
        return makeError("axis " + Twine(axis) +
                         ": expected register tile 1 on a reduce axis, but "
                         "got " +
                         Twine(reg));
    }
    if (part.threads() % granules.warpSize != 0)
      return makeError("expected whole warps of " + Twine(granules.warpSize) +
                       " threads, but got " + Twine(part.threads()));
  }
  return llvm::Error::success();
}

llvm::Error Verifier::checkPair(const KernelFamily &family) const {
  if (family.parts.size() < 2)
    return llvm::Error::success();
  unsigned combine = family.combineAxis;
  if (!llvm::is_contained(granules.combineAxes, combine))
    return makeError("expected parts along an axis that the path combines, "
                     "but got axis " +
                     Twine(combine));
  const UKernel &a = family.parts.front(), &b = family.parts.back();
  for (unsigned axis = 0; axis < workload.axes.size(); ++axis) {
    bool agree = axis == combine
                     ? a.threadsAlong(axis) == b.threadsAlong(axis) &&
                           a.regTile[axis] < b.regTile[axis]
                     : a.smemTile[axis] == b.smemTile[axis] &&
                           a.regTile[axis] == b.regTile[axis];
    if (!agree)
      return makeError("axis " + Twine(axis) +
                       ": expected heights g·a and g·b, a < b, on the combine "
                       "axis and equal tiles elsewhere");
  }
  if (a.reduceSplit != b.reduceSplit)
    return makeError("expected equal splits of the reduce axis");
  return llvm::Error::success();
}

llvm::Error Verifier::checkLegality(const KernelFamily &family) const {
  if (llvm::Error error = checkTiles(family))
    return error;
  if (llvm::Error error = checkPair(family))
    return error;
  if (family.path != problem.codegen.name())
    return makeError("expected path '" + problem.codegen.name() + "'");
  if (family.vectorWidth < 1)
    return makeError("expected a positive vector width, but got " +
                     Twine(family.vectorWidth));
  return checkKernel(problem, family);
}

/// Accesses of other families to operands that are not aligned would read and
/// write outside of them.
llvm::Error Verifier::checkUnalignedFamilies() const {
  const KernelFamily &fallback = plan.families[plan.fallbackFamily];
  if (fallback.vectorWidth != 1)
    return familyError(plan.fallbackFamily,
                       makeError("expected a fallback with vector width 1"));
  for (auto [index, entry] : llvm::enumerate(plan.unalignedEntries))
    if (plan.families[entry.family].vectorWidth != 1)
      return makeError("entry " + Twine(index) +
                       " for unaligned operands: expected a family with vector "
                       "width 1");
  return llvm::Error::success();
}

llvm::Error Verifier::checkEntries() const {
  for (unsigned index : {plan.generalFamily, plan.fallbackFamily})
    if (index >= plan.families.size())
      return makeError("expected a general and a fallback family below " +
                       Twine(plan.families.size()) + ", but got " +
                       Twine(index));
  for (auto [index, entry] : llvm::enumerate(llvm::concat<const DispatchEntry>(
           plan.entries, plan.unalignedEntries))) {
    if (entry.family >= plan.families.size())
      return makeError("entry " + Twine(index) + ": expected a family below " +
                       Twine(plan.families.size()) + ", but got " +
                       Twine(entry.family));
    if (entry.box.size() != workload.axes.size())
      return makeError("entry " + Twine(index) + ": expected " +
                       Twine(workload.axes.size()) + " ranges, but got " +
                       Twine(entry.box.size()));
    for (const SizeRange &range : entry.box)
      if (range.step != 1 || range.min < 0 || range.min > maxExtent ||
          (range.max && (*range.max < range.min || *range.max > maxExtent)))
        return makeError("entry " + Twine(index) +
                         ": expected ranges with 0 <= min <= max <= " +
                         Twine(maxExtent) + " and step 1");
  }
  return llvm::Error::success();
}

/// Whether a declared size lies in [lo, hi].
static bool hasSize(const SizeRange &range, int64_t lo, int64_t hi) {
  lo = std::max(lo, range.min);
  hi = std::min(hi, range.max.value_or(openEnd));
  if (lo > hi)
    return false;
  int64_t next = range.min + ceilDiv(lo - range.min, range.step) * range.step;
  return next <= hi;
}

llvm::Error Verifier::checkCoverage() const {
  // Sizes at which some box begins, or has just ended, cut the space into cells
  // that lie wholly inside or outside of each box.
  size_t rank = workload.axes.size();
  std::vector<std::vector<int64_t>> starts(rank);
  for (unsigned axis = 0; axis < rank; ++axis) {
    std::vector<int64_t> &cuts = starts[axis];
    cuts.push_back(workload.axes[axis].range.min);
    for (const DispatchEntry &entry : plan.entries) {
      cuts.push_back(entry.box[axis].min);
      if (entry.box[axis].max)
        cuts.push_back(*entry.box[axis].max + 1);
    }
    llvm::sort(cuts);
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    // Only cells with declared sizes count.
    const SizeRange &range = workload.axes[axis].range;
    std::vector<int64_t> inside;
    for (unsigned i = 0; i < cuts.size(); ++i) {
      int64_t hi = i + 1 < cuts.size() ? cuts[i + 1] - 1 : openEnd;
      if (hasSize(range, cuts[i], hi))
        inside.push_back(cuts[i]);
    }
    cuts = std::move(inside);
  }
  std::vector<size_t> cell(rank, 0);
  Shape shape(rank);
  while (true) {
    for (unsigned axis = 0; axis < rank; ++axis)
      shape[axis] = starts[axis][cell[axis]];
    if (!entryFor(plan.entries, shape)) {
      std::string text;
      for (unsigned axis = 0; axis < rank; ++axis)
        text += (axis ? ", " : "") + workload.axes[axis].name + " = " +
                std::to_string(shape[axis]);
      return makeError("expected an entry for every declared shape, but none "
                       "holds the sizes from " +
                       text);
    }
    unsigned axis = 0;
    while (axis < rank && ++cell[axis] == starts[axis].size())
      cell[axis++] = 0;
    if (axis == rank)
      return llvm::Error::success();
  }
}

llvm::Error Verifier::checkLegality() const {
  if (plan.families.empty())
    return makeError("expected at least one kernel family");
  for (auto [index, family] : llvm::enumerate(plan.families))
    if (llvm::Error error = checkLegality(family))
      return familyError(index, std::move(error));
  if (llvm::Error error = checkEntries())
    return error;
  return checkUnalignedFamilies();
}

llvm::Error Verifier::checkAnswer() const {
  if (static_cast<int64_t>(plan.families.size()) > problem.options.maxKernels)
    return makeError("expected at most " + Twine(problem.options.maxKernels) +
                     " kernel families, but got " +
                     Twine(plan.families.size()));
  for (auto [index, family] : llvm::enumerate(plan.families)) {
    if (!llvm::is_contained(granules.stages, family.stages))
      return familyError(index, makeError("expected a number of stages that "
                                          "the path has, but got " +
                                          Twine(family.stages)));
    if (problem.isRejected(family))
      return familyError(index, makeError("expected a family that was not "
                                          "rejected"));
    if (llvm::Error error = checkSpillFree(problem, family))
      return familyError(index, std::move(error));
  }
  if (plan.families[plan.fallbackFamily].parts.size() != 1)
    return familyError(plan.fallbackFamily,
                       makeError("expected a fallback of one part"));
  return checkCoverage();
}

llvm::Error SearchProblem::checkLegality(const Plan &plan) const {
  if (llvm::Error error = workload.check())
    return error;
  if (llvm::Error error = codegen.supports(workload, device))
    return error;
  return Verifier(*this, plan).checkLegality();
}

llvm::Error SearchProblem::verify(const Plan &plan) const {
  if (llvm::Error error = checkLegality(plan))
    return error;
  return Verifier(*this, plan).checkAnswer();
}
