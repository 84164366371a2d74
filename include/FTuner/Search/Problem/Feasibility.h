//===- Feasibility.h - Kernels that a search may choose ---------*- C++ -*-===//
#ifndef FTUNER_SEARCH_PROBLEM_FEASIBILITY_H
#define FTUNER_SEARCH_PROBLEM_FEASIBILITY_H

#include "FTuner/Search/Problem/SearchProblem.h"

namespace ftuner {

/// What a kernel's correctness asks for, whoever wrote it: an error that says
/// why, if the family (of one or two parts with a tile for each axis) cannot be
/// emitted, or if one block of it does not fit on the device.
llvm::Error checkKernel(const SearchProblem &problem,
                        const KernelFamily &family);
/// An error if by the path's estimate (`CodegenModel::spillFreeRegisters`) the
/// device has too few registers for the kernel of the family, which passes
/// `checkKernel`, to be free of spills.
llvm::Error checkSpillFree(const SearchProblem &problem,
                           const KernelFamily &family);
/// Feasible: the one rule that every kernel of a search's answer passes,
/// whatever it serves: both of the above.
llvm::Error checkFamily(const SearchProblem &problem,
                        const KernelFamily &family);

/// `checkFamily`, where the reason does not matter.
bool isFeasible(const SearchProblem &problem, const KernelFamily &family);

} // namespace ftuner

#endif // FTUNER_SEARCH_PROBLEM_FEASIBILITY_H
