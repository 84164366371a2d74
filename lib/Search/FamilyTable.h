//===- FamilyTable.h - Families made of candidates --------------*- C++ -*-===//
#ifndef FTUNER_LIB_SEARCH_FAMILYTABLE_H
#define FTUNER_LIB_SEARCH_FAMILYTABLE_H

#include "FTuner/Search/Candidates.h"
#include "llvm/ADT/DenseMap.h"
#include <array>
#include <map>
#include <optional>

namespace ftuner {

/// Families of one and two candidates, each numbered once. Rejected ones are
/// never made.
class FamilyTable {
public:
  /// Problem and set outlive the table.
  FamilyTable(const SearchProblem &problem, const CandidateSet &set);

  /// The family of one candidate; none if it was rejected.
  std::optional<unsigned> single(unsigned candidate);
  /// The family of a candidate and one with fewer rows for each thread, which
  /// need not be a candidate itself; none where no such pair is legal.
  std::optional<unsigned> pair(unsigned candidate, int64_t lowerRows);
  /// The candidate with another number of rows for each thread, if it is one.
  std::optional<unsigned> withRows(unsigned candidate, int64_t rows) const;
  /// Rows of a thread along the combine axis.
  int64_t rows(unsigned candidate) const {
    return set.candidates[candidate].ukernel.regTile[axis];
  }
  int64_t height(unsigned candidate) const {
    return set.candidates[candidate].ukernel.smemTile[axis];
  }
  /// Equal for candidates that differ in rows alone.
  unsigned layout(unsigned candidate) const { return layouts[candidate]; }
  /// Whether two uKernels may lie along the main axis.
  bool combinesMainAxis() const { return combines; }

  const CandidateSet &set;
  std::vector<KernelFamily> families;
  /// What each family needs, by the same index.
  std::vector<KernelResources> resources;

private:
  std::optional<unsigned> add(KernelFamily family);

  const SearchProblem &problem;
  unsigned axis;
  bool combines = false;
  /// Whether pairs have balanced covers.
  bool balances = false;
  /// By candidate.
  std::vector<unsigned> layouts;
  std::map<std::pair<unsigned, int64_t>, unsigned> byRows;
  llvm::DenseMap<unsigned, std::optional<unsigned>> singles;
  std::map<std::pair<unsigned, int64_t>, std::optional<unsigned>> pairs;
};

} // namespace ftuner

#endif // FTUNER_LIB_SEARCH_FAMILYTABLE_H
