//===- FamilyTable.h - Families made of candidates --------------*- C++ -*-===//
#ifndef FTUNER_SEARCH_RANKING_FAMILYTABLE_H
#define FTUNER_SEARCH_RANKING_FAMILYTABLE_H

#include "FTuner/Search/Ranking/Candidates.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallPtrSet.h"
#include <optional>

namespace ftuner {

/// Families of one and two candidates, each numbered once, in the order in
/// which they are first asked for. Rejected ones are never made. Numbers, and
/// what the table says of them, stay as they are; references to members of
/// `families` and `resources` do not. Not for several threads at once.
class FamilyTable {
public:
  /// Problem and set outlive the table.
  FamilyTable(const SearchProblem &problem, const CandidateSet &set);

  /// The family of one candidate; none if it was rejected.
  std::optional<unsigned> single(unsigned candidate);
  /// The family of a candidate and one with fewer rows, which need not be a
  /// candidate itself; none where no such pair is feasible.
  std::optional<unsigned> pair(unsigned candidate, int64_t lowerRows);
  /// The same along another axis than the candidates'.
  std::optional<unsigned> pairAlong(unsigned axis, unsigned candidate,
                                    int64_t lowerRows);
  /// Axes other than the candidate's along which its path combines heights.
  llvm::ArrayRef<unsigned> otherAxes(unsigned candidate) const;
  /// The candidate's block along another axis, in units of the granule.
  int64_t rowsAlong(unsigned axis, unsigned candidate) const;
  int64_t granuleAlong(unsigned axis, unsigned candidate) const;
  /// The candidate, or the higher one of two, that a family is made of.
  unsigned candidateOf(unsigned family) const { return owners[family]; }
  /// The candidate with another number of rows, if it is one.
  std::optional<unsigned> withRows(unsigned candidate, int64_t rows) const;
  /// The score of a family's program for a shape, by what ranks first
  /// (`SearchProblem::rankingEvaluator`).
  double score(unsigned family, llvm::ArrayRef<int64_t> shape) const;
  /// The same of many families, in their order.
  std::vector<double> scoreAll(llvm::ArrayRef<unsigned> families,
                               llvm::ArrayRef<int64_t> shape) const;
  /// The candidate's block along the combine axis, in units of the granule that
  /// heights of its schedule have: rows of a thread, or of a warp.
  int64_t rows(unsigned candidate) const {
    return height(candidate) / granules[candidate];
  }
  int64_t height(unsigned candidate) const {
    return set.candidates[candidate].family.lowHeight();
  }
  int64_t granule(unsigned candidate) const { return granules[candidate]; }
  /// Equal for candidates that differ in rows alone.
  unsigned layout(unsigned candidate) const { return layouts[candidate]; }

  const CandidateSet &set;
  std::vector<KernelFamily> families;
  /// What each family needs, by the same index.
  std::vector<KernelResources> resources;

private:
  std::optional<unsigned> add(KernelFamily family, unsigned candidate);

  const SearchProblem &problem;
  /// Paths that combine two heights along the main axis.
  llvm::SmallPtrSet<const CodegenModel *, 4> combining;
  /// Whether pairs have balanced partitions.
  bool balances = false;
  /// By family.
  std::vector<unsigned> owners;
  /// By candidate.
  std::vector<unsigned> layouts;
  std::vector<int64_t> granules;
  llvm::DenseMap<std::pair<unsigned, int64_t>, unsigned> byRows;
  llvm::DenseMap<unsigned, std::optional<unsigned>> singles;
  /// By family, what the evaluator keeps of it that ranks first.
  std::vector<const FamilyCosts *> costs;
  /// By axis, candidate and lower rows.
  llvm::DenseMap<std::tuple<unsigned, unsigned, int64_t>,
                 std::optional<unsigned>>
      pairs;
  /// Axes across by path.
  llvm::DenseMap<const CodegenModel *, llvm::SmallVector<unsigned, 2>>
      otherAxesOf;
};

} // namespace ftuner

#endif // FTUNER_SEARCH_RANKING_FAMILYTABLE_H
