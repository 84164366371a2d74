//===- TreeTrainer.h - Trains boosted trees ---------------------*- C++ -*-===//
#ifndef FTUNER_LIB_BASELINES_DIETCODE_TREETRAINER_H
#define FTUNER_LIB_BASELINES_DIETCODE_TREETRAINER_H

#include "BoostedTrees.h"
#include <memory>
#include <string>

namespace ftuner {

/// Rows of features, row by row, with a label for each.
struct TrainingRows {
  size_t numFeatures = 0;
  std::vector<float> features, labels;
  /// Weight of each row; if empty, all are 1.
  std::vector<float> weights;
  /// Base score of each row; if empty, the mean that the library takes.
  std::vector<float> baseScores;

  size_t size() const { return labels.size(); }
};

/// Options under XGBoost's names, with the defaults of DietCode's artifact.
struct TreeOptions {
  int64_t maxDepth = 10;
  double eta = 0.2, gamma = 0.001, minChildWeight = 0;
  /// Maximum number of trees, and the number of trees in a row that do not
  /// lower the training error after which training ends.
  int64_t maxRounds = 1000, patience = 50;
  int64_t seed = 0;
};

/// XGBoost's library, opened at run time.
class TreeTrainer {
public:
  /// Opens the library: the file of that path, or, where it is empty, what the
  /// environment variable FTUNER_XGBOOST_LIBRARY names, or else
  /// libxgboost.so.0 or libxgboost.so of the system. An error says which
  /// package is missing.
  static llvm::Expected<std::unique_ptr<TreeTrainer>>
  open(const std::string &path = {});
  ~TreeTrainer();

  /// One thread, so that the same rows give the same trees.
  llvm::Expected<BoostedTrees> train(const TrainingRows &rows,
                                     const TreeOptions &options) const;
  /// Like `train`, as JSON; also returns the library's own predictions for the
  /// rows.
  llvm::Expected<std::string>
  trainJson(const TrainingRows &rows, const TreeOptions &options,
            std::vector<float> *predictions = nullptr) const;

private:
  struct Library;
  explicit TreeTrainer(std::unique_ptr<Library> library);
  std::unique_ptr<Library> library;
};

} // namespace ftuner

#endif // FTUNER_LIB_BASELINES_DIETCODE_TREETRAINER_H
