//===- FamilyTable.h - Families made of candidates --------------*- C++ -*-===//
#ifndef FTUNER_LIB_SEARCH_FAMILYTABLE_H
#define FTUNER_LIB_SEARCH_FAMILYTABLE_H

#include "FTuner/Search/Candidates.h"
#include "llvm/ADT/DenseMap.h"
#include <array>
#include <map>
#include <optional>

namespace ftuner {

/// Families by the candidate that is their only or their larger part.
class FamilyTable {
public:
  FamilyTable(const SearchProblem &problem, const CandidateSet &set);

  unsigned single(unsigned candidate);
  /// The pair of the candidate and the one a row lower, or the candidate alone
  /// where no such pair is legal.
  unsigned pairWithLower(unsigned candidate);
  /// The pair of the candidate and the one a row higher, if it is legal.
  std::optional<unsigned> pairWithHigher(unsigned candidate);

  std::vector<KernelFamily> families;
  /// What each family needs, by the same index.
  std::vector<KernelResources> resources;

private:
  /// The same thread layout with another height.
  using Key = std::array<int64_t, 5>;
  Key key(const UKernel &ukernel, int64_t height) const;
  unsigned add(KernelFamily family);

  const SearchProblem &problem;
  const CandidateSet &set;
  bool combines = false;
  std::map<Key, unsigned> byLayout;
  llvm::DenseMap<unsigned, unsigned> singles, pairs;
};

} // namespace ftuner

#endif // FTUNER_LIB_SEARCH_FAMILYTABLE_H
