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

/// Chooses at most `limit` further families, so that the weighted mean loss of
/// the shapes is small. The loss of a shape is the distance between the best
/// chosen score and the best of all, as a share of the latter; if scores are
/// negated times, it is the regret. Together with the families in `chosen`,
/// which are taken in any case, at least one family is chosen. The choice is
/// greedy: the family that lowers the loss most joins, the first among equals,
/// until no family lowers it by more than `minGain`. Then chosen families are
/// exchanged for others, the best exchange first, while an exchange lowers the
/// loss by a hundredth of a percent. `lossBounds` has a bound for each shape,
/// or infinity for a shape without a bound; if it is empty, no shape has a
/// bound. The loss of a shape with a bound is multiplied by 1 +
/// `tuning::priceOfMaxLoss` · (loss / bound)³, where the ratio counts as 2 at
/// most, so that few shapes lose more than their bound. On return each score is
/// replaced by its distance from the best of its shape, as a share of that: 0
/// for the best.
void chooseFamilies(ScoreMatrix &scores, llvm::ArrayRef<double> weights,
                    size_t limit, double minGain,
                    llvm::ArrayRef<double> lossBounds,
                    std::vector<unsigned> &chosen);

} // namespace ftuner

#endif // FTUNER_LIB_SEARCH_PLANNING_FAMILYSELECTION_H
