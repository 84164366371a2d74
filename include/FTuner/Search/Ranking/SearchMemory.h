//===- SearchMemory.h - Memory of searches for one problem ------*- C++ -*-===//
#ifndef FTUNER_SEARCH_RANKING_SEARCHMEMORY_H
#define FTUNER_SEARCH_RANKING_SEARCHMEMORY_H

#include "FTuner/Search/Ranking/Candidates.h"
#include <map>
#include <unordered_map>
#include <utility>

namespace ftuner {

/// Scores of families for a list of shapes.
class ShapeScores {
public:
  explicit ShapeScores(size_t numShapes) : numShapes(numShapes) {}

  /// Returns the scores of a family; null if they are not known.
  const double *find(unsigned family) const;
  void keep(unsigned family, llvm::ArrayRef<double> familyScores);

private:
  size_t numShapes;
  /// Scores of each family by its number; NaN if they are not known.
  std::vector<double> scores;
};

/// Keeps what a search found for further searches of the same problem, with
/// other codegen paths or other rejected families. Not thread-safe.
class SearchMemory {
public:
  /// Candidates by path and alignment of the operands. They do not depend on
  /// the other paths of a problem.
  std::map<std::pair<const CodegenModel *, int64_t>, PathCandidates> candidates;

  /// Returns a number for the family, the same for equal families.
  unsigned numberOf(const KernelFamily &family);
  /// Returns the known scores for a list of shapes, which `ShapeScores` have by
  /// the numbers of the families.
  ShapeScores &scoresFor(llvm::ArrayRef<Shape> shapes) {
    return scores.try_emplace(shapes.vec(), shapes.size()).first->second;
  }

private:
  std::unordered_map<llvm::SmallVector<int64_t, 40>, unsigned,
                     ProgramNumbersHash>
      numbers;
  std::map<std::vector<Shape>, ShapeScores> scores;
};

} // namespace ftuner

#endif // FTUNER_SEARCH_RANKING_SEARCHMEMORY_H
