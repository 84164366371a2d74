//===- DietCodePlan.h - Plans of chosen micro-kernels -----------*- C++ -*-===//
//
// What the plans of DietCode and of its baselines share, once micro-kernels and
// their boxes are chosen.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_BASELINES_DIETCODE_DIETCODEPLAN_H
#define FTUNER_LIB_BASELINES_DIETCODE_DIETCODEPLAN_H

#include "DietCodeTuner.h"
#include "FTuner/Search/Problem/SearchStrategy.h"

namespace ftuner {

/// A feasible variant of a family for operands of any alignment.
std::optional<KernelFamily> unalignedOf(const SearchProblem &problem,
                                        const KernelFamily &family);

/// Micro-kernels of this alignment that a plan may have, one at least: half of
/// its kernels where sizes may break the alignment, since those have as many
/// variants; all but one where only pointers may.
int64_t mostAligned(const SearchProblem &problem, int64_t alignment);

/// All sizes of each axis.
std::vector<SizeRange> wholeSpace(const Workload &workload);

/// Gives a plan of families for operands of this alignment, above 1, what
/// serves others: where sizes may break it, the variants of all, in the same
/// boxes; else that of the general family. `other` says which there is where
/// none of these is feasible. An error where there is none at all.
llvm::Error
addUnalignedFamilies(const SearchProblem &problem, int64_t alignment,
                     Plan &plan,
                     llvm::function_ref<std::optional<KernelFamily>()> other);

/// The prediction of what the plan chose for each shape. `measured` gives a
/// measured time of the family for the shape of that number, if there is one.
void predictShapes(
    const SearchProblem &problem, Plan &plan,
    llvm::ArrayRef<WeightedShape> shapes,
    llvm::function_ref<std::optional<double>(size_t, const KernelFamily &)>
        measured);

/// Adds what a tuner, or several together, counted. `numKernels` are measured;
/// `measurer` is empty where predictions stood in.
void reportTuning(const SearchProblem &problem,
                  const DietCodeTuner::Counts &counts, size_t numShapes,
                  size_t numKernels, int64_t numPrograms,
                  const std::string &measurer, Plan &plan);

} // namespace ftuner

#endif // FTUNER_LIB_BASELINES_DIETCODE_DIETCODEPLAN_H
