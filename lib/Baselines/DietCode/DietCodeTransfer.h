//===- DietCodeTransfer.h - Learned models that are kept --------*- C++ -*-===//
//
// A learned model of f_MK with the rows that it learned from, as a file, and
// how a search for another device goes on from it:
//
//   * the sum of its ensembles is the base score of the new one, whose trees
//     learn what is left of log throughput
//   * its rows stay, each with 0.1 · (rows of the target / rows of the source)
//     of its weight
//   * facts of the device are features of every row
//
// docs/dietcode.md describes the file.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_BASELINES_DIETCODE_DIETCODETRANSFER_H
#define FTUNER_LIB_BASELINES_DIETCODE_DIETCODETRANSFER_H

#include "FTuner/Device/DeviceSpec.h"
#include "TreeTrainer.h"

namespace ftuner {

/// Returns the names of the features of a device, which every row has.
llvm::ArrayRef<llvm::StringLiteral> deviceFeatureNames();
std::vector<float> deviceFeatures(const DeviceSpec &device);

struct LearnedModel {
  /// Device, workload and measurer of the training.
  std::string device, workload, measurer;
  /// Features of all rows, row by row (`DietCodeTuner::featureNames`), and
  /// useful FLOP/s of each row at full waves, above 0.
  std::vector<float> features;
  std::vector<double> throughputs;
  /// XGBoost's JSON of each ensemble, and what it says: their sum is the
  /// logarithm of the throughput over the best one.
  std::vector<std::string> texts;
  std::vector<BoostedTrees> ensembles;

  size_t size() const { return throughputs.size(); }
  float predict(llvm::ArrayRef<float> row) const;
};

/// Rows of a model with labels, log(throughput / best), less what `base`
/// predicts of each; weights are throughput / best times `weight`. Appended.
void appendRows(const LearnedModel &model, const LearnedModel *base,
                double weight, TrainingRows &rows);

/// Share of a source row's weight in a search with so many rows of its own.
double sourceWeight(size_t targetRows, size_t sourceRows);

/// Reads a file. An error names the file and says what was expected: the
/// format's version, these features, rows of as many numbers.
llvm::Expected<LearnedModel>
readLearnedModel(llvm::StringRef path,
                 llvm::ArrayRef<llvm::StringLiteral> featureNames);
/// Says why no file can be written there; leaves what there is.
llvm::Error checkWritable(llvm::StringRef path);
/// Replaces the file in one step.
llvm::Error writeLearnedModel(llvm::StringRef path, const LearnedModel &model,
                              llvm::ArrayRef<llvm::StringLiteral> featureNames);

} // namespace ftuner

#endif // FTUNER_LIB_BASELINES_DIETCODE_DIETCODETRANSFER_H
