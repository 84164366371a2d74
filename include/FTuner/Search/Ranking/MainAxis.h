//===- MainAxis.h - The axis that programs combine along --------*- C++ -*-===//
//
// The main axis τ of the paper (V-A): CombinSearch covers the extent of a shape
// along it. The option `main-axis` chooses it (`MainAxis`). All shapes of a
// workload have the same main axis, since they share the code of a family. It
// is not the axis by whose sizes a range is sampled and dispatched
// (`Workload::mainAxis`), which is dynamic if any axis is.
//
// A path combines heights only along some axes (`ScheduleSpace::combineAxes`).
// A path that cannot combine along the main axis has families of one uKernel.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_SEARCH_RANKING_MAINAXIS_H
#define FTUNER_SEARCH_RANKING_MAINAXIS_H

#include "FTuner/Search/Ranking/Candidates.h"

namespace ftuner {

/// Returns the main axis of a problem.
unsigned mainAxisOf(const SearchProblem &problem);

/// Returns whether families of the path combine heights along the main axis.
bool combinesAlongMainAxis(const SearchProblem &problem,
                           const ScheduleSpace &space);

/// Returns remarks for a user that asked for the largest axis: about each path
/// with candidates that cannot combine along it, and about another axis that is
/// larger in some shapes of the range.
std::vector<std::string> mainAxisRemarks(const SearchProblem &problem,
                                         const CandidateSet &set);

} // namespace ftuner

#endif // FTUNER_SEARCH_RANKING_MAINAXIS_H
