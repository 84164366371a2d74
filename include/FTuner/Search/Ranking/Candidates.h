//===- Candidates.h - uKernels aligned to the device ------------*- C++ -*-===//
//
// HardwareAlign (paper, algorithm 1): every uKernel of RegTileRule and
// SmemTileRule (TileRules.h) that a codegen path can emit and the device can
// hold. Divisors of a range may lack the tiles that suit a device, so
// `TileRule::Aligned` adds those that paths suggest.
//
// Each block tile keeps few choices of reduce tile and stages. CMR and Occ do
// not depend on them, so a rule chooses: first a choice that keeps ζ blocks on
// an SM, then the path's preference. A cost model that predicts time chooses
// instead, for a small, a middle and a large shape of the range: up to three
// candidates.
//
// Candidates that split-K slices make faster have copies with slices
// (SplitCandidates.h).
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_SEARCH_RANKING_CANDIDATES_H
#define FTUNER_SEARCH_RANKING_CANDIDATES_H

#include "FTuner/Search/Problem/Feasibility.h"
#include "FTuner/Search/Problem/SearchStrategy.h"

namespace ftuner {

/// A feasible family of one part, with its uKernel and resources.
struct Candidate {
  KernelFamily family;
  UKernel ukernel;
  KernelResources resources;

  /// Returns the number that heights under the family's schedule are multiples
  /// of.
  int64_t heightGranule() const { return family.path().heightGranule(family); }
};

/// Numbers of candidates.
struct CandidateCounts {
  /// Number of candidates by the paper's tile rules: all candidates, candidates
  /// of whole warps, and candidates of whole warps that a path can emit with
  /// some reduce tile and stages.
  int64_t numByRules = 0;
  int64_t numWholeWarps = 0;
  int64_t numEmittable = 0;
  /// Number of candidates beyond the paper's rules.
  int64_t numAdded = 0;
};

/// The candidates of one path, in its order of preference among equal scores.
struct PathCandidates {
  std::vector<Candidate> candidates;
  CandidateCounts counts;
};

struct CandidateSet : CandidateCounts {
  /// Candidates, grouped by path in the order of the problem's paths.
  std::vector<Candidate> candidates;
  /// Bytes to which operands must be aligned for every candidate to be usable.
  int64_t alignment = 1;
  /// Number of candidates with slices of the reduce axis, which come last.
  int64_t numSplit = 0;
};

/// Returns the candidates for operands that are aligned to `alignment` bytes,
/// or an error if no uKernel is feasible. The candidates may need less than
/// that: the set's `alignment` is the maximum of what they need.
llvm::Expected<CandidateSet> enumerateCandidates(const SearchProblem &problem,
                                                 int64_t alignment);

/// Returns the candidates for the widest alignment that sizes of the workload
/// can give, and in addition candidates with slices of the reduce axis if
/// slices save time.
llvm::Expected<CandidateSet> enumerateCandidates(const SearchProblem &problem);

} // namespace ftuner

#endif // FTUNER_SEARCH_RANKING_CANDIDATES_H
