//===- FamilyTable.h - Families made of candidates --------------*- C++ -*-===//
#ifndef FTUNER_SEARCH_RANKING_FAMILYTABLE_H
#define FTUNER_SEARCH_RANKING_FAMILYTABLE_H

#include "FTuner/Search/Ranking/Candidates.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringMap.h"
#include <optional>

namespace ftuner {

/// Families of one and two candidates, numbered in the order in which they are
/// first asked for. Rejected families are never made. A number and its entry
/// never change; references to members of `families` and `resources` become
/// invalid. Not thread-safe.
class FamilyTable {
public:
  /// Problem and set outlive the table.
  FamilyTable(const SearchProblem &problem, const CandidateSet &set);

  /// Returns the family of one candidate; no value if it was rejected.
  std::optional<unsigned> single(unsigned candidate);
  /// Returns the family of a candidate and a uKernel with fewer rows, which
  /// need not be a candidate; no value if that pair is not feasible.
  std::optional<unsigned> pair(unsigned candidate, int64_t lowerRows);
  /// Like `pair`, along another axis than the candidate's.
  std::optional<unsigned> pairAlong(unsigned axis, unsigned candidate,
                                    int64_t lowerRows);
  /// Returns the axes other than the candidate's along which its path combines
  /// heights.
  llvm::ArrayRef<unsigned> otherAxes(unsigned candidate) const;
  /// Returns the candidate's block along another axis, in units of
  /// `granuleAlong`.
  int64_t rowsAlong(unsigned axis, unsigned candidate) const;
  int64_t granuleAlong(unsigned axis, unsigned candidate) const;
  /// Returns the candidate that a family is made of; of two, the higher one.
  unsigned candidateOf(unsigned family) const { return owners[family]; }
  /// Returns the candidate of the same layout with another number of rows, if
  /// there is one.
  std::optional<unsigned> withRows(unsigned candidate, int64_t rows) const;
  /// Returns the score of `SearchProblem::rankingEvaluator` for a family's
  /// program and a shape.
  double score(unsigned family, llvm::ArrayRef<int64_t> shape) const;
  /// Returns the scores of many families, in their order.
  std::vector<double> scoreAll(llvm::ArrayRef<unsigned> families,
                               llvm::ArrayRef<int64_t> shape) const;
  /// Computes the scores of many families for many shapes: that of a family at
  /// i and a shape at j is at i · shapes.size() + j. It takes less time than
  /// `scoreAll` for each shape, since the costs of a family are read once, and
  /// scores that the problem's memory has are not computed.
  std::vector<double> scoreShapes(llvm::ArrayRef<unsigned> families,
                                  llvm::ArrayRef<Shape> shapes) const;
  /// Returns a number that is equal for families and partitions whose running
  /// parts (`runningParts`) have the same text.
  unsigned runningNumber(unsigned family, const Partition &partition) const;
  /// Returns the candidate's block along the combine axis, in units of the
  /// granule that heights of its schedule have: rows of a thread, or of a warp.
  int64_t rows(unsigned candidate) const {
    return height(candidate) / granules[candidate];
  }
  int64_t height(unsigned candidate) const {
    return set.candidates[candidate].family.lowHeight();
  }
  int64_t granule(unsigned candidate) const { return granules[candidate]; }
  /// Returns a number that is equal for candidates that differ only in rows.
  unsigned layout(unsigned candidate) const { return layouts[candidate]; }

  const CandidateSet &set;
  std::vector<KernelFamily> families;
  /// Resources of each family, by the same index.
  std::vector<KernelResources> resources;

private:
  std::optional<unsigned> add(KernelFamily family, unsigned candidate);

  const SearchProblem &problem;
  /// Paths that combine two heights along the main axis.
  llvm::SmallPtrSet<const CodegenModel *, 4> combining;
  /// True if pairs have balanced partitions.
  bool balances = false;
  /// Candidate of each family (`candidateOf`).
  std::vector<unsigned> owners;
  /// Layout and granule of each candidate.
  std::vector<unsigned> layouts;
  std::vector<int64_t> granules;
  llvm::DenseMap<std::pair<unsigned, int64_t>, unsigned> byRows;
  llvm::DenseMap<unsigned, std::optional<unsigned>> singles;
  /// Costs of each family in the ranking evaluator.
  std::vector<const FamilyCosts *> costs;
  /// Families of pairs by axis, candidate and lower rows.
  llvm::DenseMap<std::tuple<unsigned, unsigned, int64_t>,
                 std::optional<unsigned>>
      pairs;
  /// Numbers of the families in the problem's memory, if it has one.
  std::vector<unsigned> memoryNumbers;
  /// Numbers of running parts by their text, and by family and a mask of the
  /// parts that run.
  mutable llvm::StringMap<unsigned> runningTexts;
  mutable llvm::DenseMap<std::pair<unsigned, unsigned>, unsigned>
      runningNumbers;
  /// Other axes (`otherAxes`) of each path.
  llvm::DenseMap<const CodegenModel *, llvm::SmallVector<unsigned, 2>>
      otherAxesOf;
};

} // namespace ftuner

#endif // FTUNER_SEARCH_RANKING_FAMILYTABLE_H
