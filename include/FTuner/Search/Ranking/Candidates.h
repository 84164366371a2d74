//===- Candidates.h - uKernels aligned to the device ------------*- C++ -*-===//
//
// HardwareAlign (paper, algorithm 1): every uKernel of RegTileRule and
// SmemTileRule (TileRules.h) that a codegen path can emit and the device can
// hold. Divisors of a range may lack the tiles that suit a device, so
// `TileRule::Aligned` adds those that paths suggest.
//
// Few choices of reduce tile and stages are kept for each block tile. CMR and
// Occ do not depend on them, so a rule decides: what keeps ζ blocks on an SM
// first, then what the path prefers. A cost model that predicts time chooses
// instead, for a small, a middle and a large shape of the range: up to three
// candidates.
//
// Of candidates for which that pays there are copies with split-K slices
// (SplitCandidates.h).
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_SEARCH_RANKING_CANDIDATES_H
#define FTUNER_SEARCH_RANKING_CANDIDATES_H

#include "FTuner/Search/Problem/Feasibility.h"
#include "FTuner/Search/Problem/SearchStrategy.h"

namespace ftuner {

/// A feasible family of one part, and what its path says of it.
struct Candidate {
  KernelFamily family;
  UKernel ukernel;
  KernelResources resources;

  /// Heights under the family's schedule are multiples of this.
  int64_t heightGranule() const { return family.path().heightGranule(family); }
};

struct CandidateSet {
  /// Those of one path after those of another, in the order of the problem's
  /// paths; of one path in its order of preference among equal scores.
  std::vector<Candidate> candidates;
  /// Bytes to which operands must be aligned for all of them.
  int64_t alignment = 1;
  /// Of the paper's tile rules: all, those of whole warps, and those of these
  /// that a path can emit with some reduce tile and stages.
  int64_t numByRules = 0;
  int64_t numWholeWarps = 0;
  int64_t numEmittable = 0;
  /// Candidates beyond the paper's rules.
  int64_t numAdded = 0;
  /// Those with slices of the reduce axis, at the end.
  int64_t numSplit = 0;
};

/// An error if not a single uKernel is feasible.
llvm::Expected<CandidateSet> enumerateCandidates(const SearchProblem &problem,
                                                 int64_t alignment);

/// Candidates for the alignment that sizes can reach, with slices of the reduce
/// axis where these pay.
llvm::Expected<CandidateSet> enumerateCandidates(const SearchProblem &problem);

} // namespace ftuner

#endif // FTUNER_SEARCH_RANKING_CANDIDATES_H
