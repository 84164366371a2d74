//===- BoostedTrees.h - Gradient-boosted regression trees -------*- C++ -*-===//
//
// A base score plus the sum of decision trees (DecisionForest.h). XGBoost's
// library trains them (TreeTrainer.h); to evaluate a trained model, nobody
// needs that library.
//
// Source: Chen, Guestrin, "XGBoost: A Scalable Tree Boosting System", KDD 2016;
// the JSON of its versions 1.7 to 3.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_BASELINES_DIETCODE_BOOSTEDTREES_H
#define FTUNER_LIB_BASELINES_DIETCODE_BOOSTEDTREES_H

#include "FTuner/CostModel/DecisionForest.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace ftuner {

class BoostedTrees {
public:
  /// Reads the model that XGBoost writes as JSON: trees (`gbtree`) for one
  /// target with an objective that leaves sums as they are
  /// (`reg:squarederror`), and numerical features. An error says what was
  /// expected; a model that is read can be evaluated.
  static llvm::Expected<BoostedTrees> parse(llvm::StringRef json);

  /// Returns the prediction for a row with a value for each feature; a value
  /// that is not known is not a number.
  float predict(llvm::ArrayRef<float> row) const {
    return trees.sum(row, base);
  }
  size_t numTrees() const { return trees.numTrees(); }
  size_t numFeatures() const { return features; }

private:
  DecisionForest trees;
  float base = 0;
  size_t features = 0;
};

} // namespace ftuner

#endif // FTUNER_LIB_BASELINES_DIETCODE_BOOSTEDTREES_H
