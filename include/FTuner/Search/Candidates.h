//===- Candidates.h - uKernels aligned to the device ------------*- C++ -*-===//
//
// HardwareAlign (paper, algorithm 1): every uKernel of RegTileRule and
// SmemTileRule (TileRules.h) that has whole warps, that the codegen path can
// emit and the device can hold. Divisors of a range may lack the tiles that
// suit a device, so `TileRule::Aligned` adds blocks of 2^a · {1, 3, 5, 9}
// threads along each axis.
//
// Of the reduce tiles and pipeline stages few are chosen for each block tile.
// CMR and Occ are blind to them, so by rule: what keeps ζ blocks on an SM
// first, then the least padding of the reduce axis (Pad), then a depth of 16
// elements, then three stages. A cost model that predicts time chooses instead,
// for a small, a middle and a large shape of the range: up to three candidates.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_SEARCH_CANDIDATES_H
#define FTUNER_SEARCH_CANDIDATES_H

#include "FTuner/Search/SearchStrategy.h"

namespace ftuner {

/// A uKernel with its stages, legal for a vector width.
struct Candidate {
  UKernel ukernel;
  int64_t stages = 2;
  KernelResources resources;
};

struct CandidateSet {
  /// In order of preference among equal scores: blocks of 128 to 256 threads,
  /// copies that all threads share evenly, large register tiles, square tiles.
  std::vector<Candidate> candidates;
  /// What all families of the set share: path, vector width, combine axis.
  KernelFamily prototype;
  /// Of the paper's tile rules: all, those of whole warps, and those of these
  /// that the path can emit with some reduce tile.
  int64_t numByRules = 0;
  int64_t numWholeWarps = 0;
  int64_t numEmittable = 0;
  /// Candidates beyond the paper's rules.
  int64_t numAdded = 0;

  /// A family of one uKernel.
  KernelFamily single(unsigned candidate) const;
};

/// An error if not a single uKernel is legal.
llvm::Expected<CandidateSet> enumerateCandidates(const SearchProblem &problem,
                                                 int64_t vectorWidth);

/// The largest vector width that sizes of the workload can allow: the
/// guaranteed one, or else one that the dispatcher checks at run time.
int64_t reachableVectorWidth(const SearchProblem &problem);

/// Candidates of the reachable width.
llvm::Expected<CandidateSet> enumerateCandidates(const SearchProblem &problem);

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
/// Legality: the one rule that every kernel of a search's answer passes,
/// whatever it serves: both of the above.
llvm::Error checkFamily(const SearchProblem &problem,
                        const KernelFamily &family);

/// `checkFamily`, where the reason does not matter.
bool isLegal(const SearchProblem &problem, const KernelFamily &family);

} // namespace ftuner

#endif // FTUNER_SEARCH_CANDIDATES_H
