//===- DietCodePlan.cpp - Plans of chosen micro-kernels -------------------===//
#include "DietCodePlan.h"
#include "FTuner/Schedule/Alignment.h"
#include "FTuner/Search/Ranking/Candidates.h"
#include "llvm/ADT/STLExtras.h"

using namespace ftuner;

std::optional<KernelFamily> ftuner::unalignedOf(const SearchProblem &problem,
                                                const KernelFamily &family) {
  for (const KernelFamily &variant : family.path().unalignedVariants(family))
    if (!problem.isRejected(variant) && isFeasible(problem, variant))
      return variant;
  return std::nullopt;
}

/// Returns whether sizes may be unaligned, and not only pointers.
static bool sizesMayBreak(const SearchProblem &problem, int64_t alignment) {
  return guaranteedAlignment(problem.workload) < alignment;
}

int64_t ftuner::maxAlignedKernels(const SearchProblem &problem,
                                  int64_t alignment) {
  int64_t maxKernels = problem.options.maxKernels;
  if (alignment <= 1)
    return maxKernels;
  return std::max<int64_t>(
      1, sizesMayBreak(problem, alignment) ? maxKernels / 2 : maxKernels - 1);
}

std::vector<SizeRange> ftuner::wholeSpace(const Workload &workload) {
  std::vector<SizeRange> space;
  for (const Axis &axis : workload.axes)
    space.push_back({axis.range.min, axis.range.max, 1});
  return space;
}

llvm::Error ftuner::addUnalignedFamilies(
    const SearchProblem &problem, int64_t alignment, Plan &plan,
    llvm::function_ref<std::optional<KernelFamily>()> other) {
  bool needsAll = sizesMayBreak(problem, alignment);
  size_t numAligned = plan.families.size();
  std::vector<std::optional<unsigned>> unaligned(numAligned);
  std::optional<unsigned> any;
  for (size_t i = 0; i < numAligned; ++i) {
    if (!needsAll && i != plan.generalFamily)
      continue;
    if (plan.families[i].takesAnyAlignment()) {
      unaligned[i] = i;
    } else if (std::optional<KernelFamily> variant =
                   unalignedOf(problem, plan.families[i])) {
      unaligned[i] = plan.families.size();
      plan.families.push_back(std::move(*variant));
    }
    if (!any)
      any = unaligned[i];
  }
  if (!any)
    if (std::optional<KernelFamily> variant = other()) {
      any = plan.families.size();
      plan.families.push_back(std::move(*variant));
    }
  if (!any)
    return llvm::createStringError(
        "strategy 'dietcode': none of the micro-kernels of workload '" +
        problem.workload.name + "' takes operands of any alignment");
  plan.unalignedGeneralFamily = unaligned[plan.generalFamily].value_or(*any);
  if (!needsAll)
    return llvm::Error::success();
  for (DispatchEntry entry : plan.entries) {
    entry.family = unaligned[entry.family].value_or(*any);
    plan.unalignedEntries.push_back(std::move(entry));
  }
  return llvm::Error::success();
}

void ftuner::predictShapes(
    const SearchProblem &problem, Plan &plan,
    llvm::ArrayRef<WeightedShape> shapes,
    llvm::function_ref<std::optional<double>(size_t, const KernelFamily &)>
        measured) {
  for (auto [index, weighted] : llvm::enumerate(shapes)) {
    ShapePrediction prediction;
    prediction.shape = weighted.shape;
    prediction.family = plan.familyFor(
        weighted.shape, alignmentOf(problem.workload, weighted.shape));
    const KernelFamily &family = plan.families[prediction.family];
    prediction.microseconds = -problem.predict(family, weighted.shape).score;
    prediction.measuredMicroseconds = measured(index, family).value_or(0);
    plan.predictions.push_back(std::move(prediction));
  }
}

void ftuner::reportTuning(const SearchProblem &problem,
                          const DietCodeTuner::Counts &counts, size_t numShapes,
                          size_t numKernels, int64_t numPrograms,
                          const std::string &measurer, Plan &plan) {
  bool isMeasured = !measurer.empty();
  auto add = [&](llvm::StringRef name, auto value) {
    plan.statistics.push_back({name.str(), static_cast<double>(value)});
  };
  add("instances", numShapes);
  add("drawn", counts.drawn);
  add("rejected_by_path", counts.rejectedByPath);
  add("looked_at", counts.predicted);
  add("rounds", counts.rounds);
  add("micro_kernels", numKernels);
  add("measured", isMeasured ? counts.measured : 0);
  if (isMeasured)
    add("measured_programs", numPrograms);
  add("failed", counts.failed);
  add("verified", counts.verified);
  add("revoted", counts.revoted);
  plan.measurer = measurer;
  if (!isMeasured)
    plan.remarks.push_back(
        "nothing was measured: predictions of the cost model '" +
        problem.costModel.name().str() + "' stand in");
}
