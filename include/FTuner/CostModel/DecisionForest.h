//===- DecisionForest.h - Sums of decision trees ----------------*- C++ -*-===//
//
// The evaluation of gradient-boosted regression trees: each tree leads a row of
// inputs to one of its leaves, and the values of these leaves are added up.
// Formats of files (Predictor.h, and XGBoost's in lib/Baselines/DietCode)
// differ in how they state a decision; their readers bring it into the one form
// below.
//
// Source: Chen, Guestrin, "XGBoost: A Scalable Tree Boosting System", KDD 2016.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_COSTMODEL_DECISIONFOREST_H
#define FTUNER_COSTMODEL_DECISIONFOREST_H

#include "llvm/ADT/ArrayRef.h"
#include <cassert>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace ftuner {

class DecisionForest {
public:
  /// A decision or, if it has no input, a leaf.
  struct Node {
    /// Position of the input in a row; negative for a leaf.
    int32_t input = -1;
    /// An input below the threshold goes left, another one right. A leaf's
    /// value.
    float threshold = 0;
    /// Positions of the children in their tree, greater than the node's own.
    uint32_t left = 0, right = 0;
    /// Sends an input that is not a number to the left.
    bool unknownGoesLeft = false;
  };

  /// Returns the threshold of a decision that sends inputs up to `last`, that
  /// one included, to the left.
  static float thresholdUpTo(float last) {
    return std::nextafter(last, std::numeric_limits<float>::infinity());
  }

  /// Appends a tree, the root of which is its first node. Children lie after
  /// their parents, so that every walk ends.
  void add(llvm::ArrayRef<Node> tree) {
    assert(!tree.empty() && "expected a root");
    roots.push_back(nodes.size());
    nodes.insert(nodes.end(), tree.begin(), tree.end());
  }

  /// Returns `base` and the value of each tree for a row, added up in the order
  /// of the trees and in the type of `base`.
  template <typename Number>
  Number sum(llvm::ArrayRef<float> row, Number base) const {
    for (size_t root : roots)
      base += leafOf(&nodes[root], row).threshold;
    return base;
  }

  size_t numTrees() const { return roots.size(); }

private:
  static const Node &leafOf(const Node *tree, llvm::ArrayRef<float> row) {
    const Node *node = tree;
    while (node->input >= 0) {
      float value = row[node->input];
      bool goesLeft =
          std::isnan(value) ? node->unknownGoesLeft : value < node->threshold;
      node = &tree[goesLeft ? node->left : node->right];
    }
    return *node;
  }

  /// Nodes of all trees, one tree after another, and where each tree begins.
  std::vector<Node> nodes;
  std::vector<size_t> roots;
};

} // namespace ftuner

#endif // FTUNER_COSTMODEL_DECISIONFOREST_H
