//===- FamilySelection.h - Few families for many shapes ---------*- C++ -*-===//
#ifndef FTUNER_LIB_SEARCH_PLANNING_FAMILYSELECTION_H
#define FTUNER_LIB_SEARCH_PLANNING_FAMILYSELECTION_H

#include "llvm/ADT/ArrayRef.h"
#include <vector>

namespace ftuner {

/// Scores of every family (row) for every shape (column).
class ScoreMatrix {
public:
  ScoreMatrix(size_t families, size_t shapes)
      : shapes(shapes), scores(families * shapes) {}

  double &at(size_t family, size_t shape) {
    return scores[family * shapes + shape];
  }
  double at(size_t family, size_t shape) const {
    return scores[family * shapes + shape];
  }
  size_t numShapes() const { return shapes; }
  size_t numFamilies() const { return shapes ? scores.size() / shapes : 0; }

private:
  size_t shapes;
  std::vector<double> scores;
};

/// Chooses at most `limit` (with those chosen already at least one) further
/// families so that the shapes lose little: the best chosen score against the
/// best of all, as a share of the latter, in the weighted mean. Where scores
/// are negated times that is the mean regret. Greedy: the one that lowers the
/// loss most joins, the first among equals, until none lowers it by more than
/// `minGain`; then chosen ones are exchanged for others, the best exchange
/// first, while that lowers the loss by a hundredth of a percent. What a
/// shape with a bound in `lossBounds` loses (empty: no shape has one; infinity:
/// this one has none) counts 1 + `tuning::priceOfMaxLoss` · (loss / bound)³
/// times as much, with a share of 2 at most, so that few lose more than that.
/// `chosen` holds the families that are taken in any case. Scores become what
/// they are above the best of their shape, in shares of it: 0 for the best.
void chooseFamilies(ScoreMatrix &scores, llvm::ArrayRef<double> weights,
                    size_t limit, double minGain,
                    llvm::ArrayRef<double> lossBounds,
                    std::vector<unsigned> &chosen);

} // namespace ftuner

#endif // FTUNER_LIB_SEARCH_PLANNING_FAMILYSELECTION_H
