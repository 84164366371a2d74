//===- MainAxis.h - The axis that programs combine heights along -*- C++
//-*-===//
//
// The main axis τ of the paper (V-A): CombinSearch covers the extent of a shape
// along it. Which one it is an option says (`MainAxis`); it is one for all
// shapes of a workload, since the code of a family is. Not to be confused with
// the axis whose sizes a range is sampled and dispatched by, which is dynamic
// wherever one is (`Workload::mainAxis`).
//
// A path combines heights along some axes only (`ScheduleSpace::combineAxes`).
// Families of a path that cannot along the main axis have one uKernel.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_SEARCH_RANKING_MAINAXIS_H
#define FTUNER_SEARCH_RANKING_MAINAXIS_H

#include "FTuner/Search/Ranking/Candidates.h"

namespace ftuner {

/// The main axis of a problem.
unsigned mainAxisOf(const SearchProblem &problem);

/// Whether families of the path combine heights along the main axis.
bool combinesAlongMainAxis(const SearchProblem &problem,
                           const ScheduleSpace &space);

/// What a user who asked for the largest axis does not get: for each path with
/// candidates that cannot combine along it, and where another axis is larger in
/// some shapes of the range.
std::vector<std::string> mainAxisRemarks(const SearchProblem &problem,
                                         const CandidateSet &set);

} // namespace ftuner

#endif // FTUNER_SEARCH_RANKING_MAINAXIS_H
