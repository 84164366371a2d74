//===- Feasibility.h - Kernels that a search may choose ---------*- C++ -*-===//
#ifndef FTUNER_SEARCH_PROBLEM_FEASIBILITY_H
#define FTUNER_SEARCH_PROBLEM_FEASIBILITY_H

#include "FTuner/Search/Problem/SearchProblem.h"

namespace ftuner {

/// Checks that the family (of one or two parts with a tile for each axis) has a
/// correct kernel: its path can emit it, and one block fits on the device.
llvm::Error checkKernel(const SearchProblem &problem,
                        const KernelFamily &family);
/// Checks that by the path's estimate (`CodegenModel::spillFreeRegisters`) the
/// kernel of the family, which passes `checkKernel`, does not spill registers.
llvm::Error checkSpillFree(const SearchProblem &problem,
                           const KernelFamily &family);
/// Checks that the family is feasible, i.e. passes both checks above. Every
/// family that a search chooses must be.
llvm::Error checkFamily(const SearchProblem &problem,
                        const KernelFamily &family);

/// Returns whether `checkFamily` finds no error.
bool isFeasible(const SearchProblem &problem, const KernelFamily &family);

} // namespace ftuner

#endif // FTUNER_SEARCH_PROBLEM_FEASIBILITY_H
