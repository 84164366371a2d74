//===- SearchProblem.cpp - Checks of problems and answers -----------------===//
#include "FTuner/CostModel/MetricOptions.h"
#include "FTuner/Schedule/Alignment.h"
#include "FTuner/Search/Problem/Feasibility.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"
#include <algorithm>
#include <cmath>
#include <limits>

using namespace ftuner;
using llvm::Twine;

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

std::string SearchProblem::pathNames() const {
  return llvm::join(
      llvm::map_range(paths,
                      [](const CodegenModel *path) { return path->name(); }),
      ", ");
}

CostEvaluator &SearchProblem::evaluator() const {
  if (!madeEvaluator)
    madeEvaluator = costModel.createEvaluator(workload, device, options.cost);
  return *madeEvaluator;
}

CostEvaluator &SearchProblem::rankingEvaluator() const {
  std::optional<Prefilter> first = prefilter();
  if (!first)
    return evaluator();
  if (!madePrefilter)
    madePrefilter =
        first->model->createEvaluator(workload, device, options.cost);
  return *madePrefilter;
}

CostEvaluator &SearchProblem::predictor() const {
  if (costModel.predictsTime())
    return evaluator();
  if (!madePredictor)
    madePredictor = findCostModel("latency")->createEvaluator(workload, device,
                                                              options.cost);
  return *madePredictor;
}

static Program programOf(const KernelFamily &family,
                         llvm::ArrayRef<int64_t> shape) {
  return {&family, partitionShape(family, shape)};
}

double SearchProblem::score(const KernelFamily &family,
                            llvm::ArrayRef<int64_t> shape) const {
  return rankingEvaluator().score(shape, programOf(family, shape));
}

CostBreakdown SearchProblem::evaluate(const KernelFamily &family,
                                      llvm::ArrayRef<int64_t> shape) const {
  return evaluator().evaluate(shape, programOf(family, shape));
}

static KernelFamily runningFamily(const Workload &workload,
                                  const KernelFamily &family,
                                  llvm::ArrayRef<int64_t> shape) {
  return family.path().relaxed(family, alignmentOf(workload, shape));
}

CostBreakdown SearchProblem::predict(const KernelFamily &family,
                                     llvm::ArrayRef<int64_t> shape) const {
  KernelFamily running = runningFamily(workload, family, shape);
  return predictor().evaluate(shape, programOf(running, shape));
}

std::vector<double> SearchProblem::predictEach(
    llvm::ArrayRef<const KernelFamily *> families,
    llvm::ArrayRef<llvm::ArrayRef<int64_t>> shapes) const {
  // Programs refer to them.
  std::vector<KernelFamily> running;
  running.reserve(families.size());
  std::vector<Program> programs;
  for (auto [family, shape] : llvm::zip_equal(families, shapes)) {
    running.push_back(runningFamily(workload, *family, shape));
    programs.push_back(programOf(running.back(), shape));
  }
  std::vector<double> scores(programs.size());
  predictor().scoreEach(programs, shapes, scores);
  return scores;
}

llvm::Error SearchProblem::check() const {
  if (llvm::Error error = workload.check())
    return error;
  if (llvm::Error error = options.check())
    return error;
  if (llvm::Error error = checkValues(metricOptions().decls(), options.own))
    return error;
  if (llvm::Error error =
          checkMetricOptions(metricOptions().read(options.own), device))
    return error;
  return supportingModels(paths, workload, device).takeError();
}

//===----------------------------------------------------------------------===//
// The answer
//===----------------------------------------------------------------------===//

namespace {
class Verifier {
public:
  Verifier(const SearchProblem &problem, const Plan &plan)
      : problem(problem), workload(problem.workload), plan(plan) {}

  /// Checks the rules for every plan, from whatever source.
  llvm::Error checkLegality() const;
  /// Checks the further rules for the answer of a search.
  llvm::Error checkAnswer() const;

private:
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
};
} // namespace

/// Checks that families for unaligned operands take any alignment: accesses of
/// other families would read and write outside of such operands.
llvm::Error Verifier::checkUnalignedFamilies() const {
  if (!plan.families[plan.unalignedGeneralFamily].takesAnyAlignment())
    return familyError(plan.unalignedGeneralFamily,
                       makeError("expected an unaligned general family of any "
                                 "alignment"));
  for (auto [index, entry] : llvm::enumerate(plan.unalignedEntries))
    if (!plan.families[entry.family].takesAnyAlignment())
      return makeError("entry " + Twine(index) +
                       " for unaligned operands: expected a family for "
                       "operands of any alignment");
  return llvm::Error::success();
}

llvm::Error Verifier::checkEntries() const {
  for (unsigned index : {plan.generalFamily, plan.unalignedGeneralFamily})
    if (index >= plan.families.size())
      return makeError(
          "expected a general and an unaligned general family below " +
          Twine(plan.families.size()) + ", but got " + Twine(index));
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

/// Returns whether a declared size lies in [lo, hi].
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
  for (auto [index, family] : llvm::enumerate(plan.families)) {
    // A path can only be asked about valid tiles.
    if (llvm::Error error = checkTiles(workload, family))
      return makeError("family " + Twine(index) + ": " +
                       llvm::toString(std::move(error)));
    if (llvm::Error error = checkKernel(problem, family))
      return familyError(index, std::move(error));
  }
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
    if (problem.isRejected(family))
      return familyError(index, makeError("expected a family that was not "
                                          "rejected"));
    if (llvm::Error error = checkSpillFree(problem, family))
      return familyError(index, std::move(error));
  }
  if (plan.families[plan.unalignedGeneralFamily].tiles.size() != 1)
    return familyError(
        plan.unalignedGeneralFamily,
        makeError("expected an unaligned general family of one part"));
  return checkCoverage();
}

llvm::Error SearchProblem::checkLegality(const Plan &plan) const {
  if (llvm::Error error = workload.check())
    return error;
  return Verifier(*this, plan).checkLegality();
}

llvm::Error SearchProblem::verify(const Plan &plan) const {
  if (llvm::Error error = checkLegality(plan))
    return error;
  return Verifier(*this, plan).checkAnswer();
}
