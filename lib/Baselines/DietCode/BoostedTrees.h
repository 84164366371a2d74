//===- BoostedTrees.h - Gradient-boosted regression trees -------*- C++ -*-===//
//
// The sum of the leaves that a row of features reaches in each of many trees,
// above a base score. Trees are trained by XGBoost's library (TreeTrainer.h)
// and evaluated here, so that whoever has a trained model needs no library.
//
// Source: Chen, Guestrin, "XGBoost: A Scalable Tree Boosting System", KDD 2016;
// the JSON of its versions 1.7 to 3.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_BASELINES_DIETCODE_BOOSTEDTREES_H
#define FTUNER_LIB_BASELINES_DIETCODE_BOOSTEDTREES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <vector>

namespace ftuner {

class BoostedTrees {
public:
  /// Reads the model that XGBoost writes as JSON: trees (`gbtree`) for one
  /// target with an objective that leaves sums as they are
  /// (`reg:squarederror`), and numerical features. An error says what was
  /// expected; a model that is read can be evaluated.
  static llvm::Expected<BoostedTrees> parse(llvm::StringRef json);

  /// Of a row with a value for each feature; not-a-number: not known.
  float predict(llvm::ArrayRef<float> features) const;
  size_t numTrees() const { return roots.size(); }
  size_t numFeatures() const { return features; }

private:
  struct Node {
    /// Children by their place in `nodes`; a leaf has none.
    int32_t left = -1, right = -1;
    /// Below the threshold goes left; of a leaf, its value.
    float threshold = 0;
    uint32_t feature = 0;
    bool unknownGoesLeft = false;
  };
  /// Of all trees, one after another, and where each begins.
  std::vector<Node> nodes;
  std::vector<size_t> roots;
  float base = 0;
  size_t features = 0;
};

} // namespace ftuner

#endif // FTUNER_LIB_BASELINES_DIETCODE_BOOSTEDTREES_H
