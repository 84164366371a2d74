//===- DietCodePlan.h - Plans of chosen micro-kernels -----------*- C++ -*-===//
//
// Functions that the plans of DietCode and of its baselines share, once
// micro-kernels and their boxes are chosen.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_BASELINES_DIETCODE_DIETCODEPLAN_H
#define FTUNER_LIB_BASELINES_DIETCODE_DIETCODEPLAN_H

#include "DietCodeTuner.h"
#include "FTuner/Search/Problem/SearchStrategy.h"

namespace ftuner {

/// Returns a feasible variant of a family for operands of any alignment.
std::optional<KernelFamily> unalignedOf(const SearchProblem &problem,
                                        const KernelFamily &family);

/// Returns how many micro-kernels that need this alignment a plan may have, at
/// least 1. If sizes may break the alignment, it is half of the plan's kernels,
/// since each needs a variant for other operands. If only pointers may break
/// it, it is all kernels except one.
int64_t maxAlignedKernels(const SearchProblem &problem, int64_t alignment);

/// Returns the box of all sizes of each axis.
std::vector<SizeRange> wholeSpace(const Workload &workload);

/// Adds families for other operands to a plan whose families need operands of
/// this alignment, above 1. If sizes may break the alignment, these are
/// variants of all families, in the same boxes; otherwise only a variant of the
/// general family. If no variant is feasible, `other` gives the family. Returns
/// an error if there is no such family, either.
llvm::Error
addUnalignedFamilies(const SearchProblem &problem, int64_t alignment,
                     Plan &plan,
                     llvm::function_ref<std::optional<KernelFamily>()> other);

/// Adds a prediction of the family that the plan chose for each shape.
/// `measured` returns the measured time of the family for the shape of that
/// number, if there is one.
void predictShapes(
    const SearchProblem &problem, Plan &plan,
    llvm::ArrayRef<WeightedShape> shapes,
    llvm::function_ref<std::optional<double>(size_t, const KernelFamily &)>
        measured);

/// Adds the counts of a tuner, or the sums of several, to a plan's statistics.
/// `numKernels` is the number of micro-kernels that were measured; `measurer`
/// is empty if predictions replaced measurements.
void reportTuning(const SearchProblem &problem,
                  const DietCodeTuner::Counts &counts, size_t numShapes,
                  size_t numKernels, int64_t numPrograms,
                  const std::string &measurer, Plan &plan);

} // namespace ftuner

#endif // FTUNER_LIB_BASELINES_DIETCODE_DIETCODEPLAN_H
