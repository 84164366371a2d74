//===- Candidates.h - uKernels aligned to the device ------------*- C++ -*-===//
//
// HardwareAlign (paper, algorithm 1): every uKernel made of the codegen path's
// granules and whole warps that the device can hold. The paper's metrics are
// blind to the reduce tile (but for padding) and to pipeline stages, so these
// two are chosen for each block tile by rule rather than enumerated: least
// padding of the reduce axis first, then what keeps ζ blocks on an SM, then a
// depth of 16 elements and three stages.
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
  /// Combinations of granules looked at, before any limit.
  int64_t rawCount = 0;

  /// A family of one uKernel.
  KernelFamily single(unsigned candidate) const;
};

/// An error if not a single uKernel is legal.
llvm::Expected<CandidateSet> enumerateCandidates(const SearchProblem &problem,
                                                 int64_t vectorWidth);

/// The largest vector width that sizes of the workload can allow: the
/// guaranteed one, or else one that the dispatcher checks at run time.
int64_t reachableVectorWidth(const SearchProblem &problem);

/// Whether the family can be emitted and one block of it fits on the device.
llvm::Error checkFamily(const SearchProblem &problem,
                        const KernelFamily &family);

} // namespace ftuner

#endif // FTUNER_SEARCH_CANDIDATES_H
