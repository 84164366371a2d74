//===- SinglePrograms.h - Programs of one uKernel by a model ----*- C++ -*-===//
#ifndef FTUNER_BASELINES_SINGLEPROGRAMS_H
#define FTUNER_BASELINES_SINGLEPROGRAMS_H

#include "FTuner/Search/Ranking/ProgramRanker.h"

namespace ftuner {

/// Ranks every candidate of HardwareAlign alone by the problem's cost model:
/// what a strategy does (`strategy`, its name) with a workload or codegen paths
/// that its own way is not made for, such as a softmax. The plan says so.
llvm::Expected<std::unique_ptr<ProgramRanker>>
rankSinglePrograms(const SearchProblem &problem, llvm::StringRef strategy);

} // namespace ftuner

#endif // FTUNER_BASELINES_SINGLEPROGRAMS_H
