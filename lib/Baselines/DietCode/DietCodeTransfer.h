//===- DietCodeTransfer.h - Learned models that are kept --------*- C++ -*-===//
//
// A learned model of f_MK with the rows that it learned from, as a file, and
// how a search for another device goes on from it:
//
//   * the sum of its ensembles is the base score of the new model, whose trees
//     learn the rest of log throughput
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

/// A model of throughput with the rows that it was trained on.
struct LearnedModel {
  /// Device, workload and measurer of the training.
  std::string device, workload, measurer;
  /// Features of all rows, row by row (`DietCodeTuner::featureNames`), and
  /// useful FLOP/s of each row at full waves, above 0.
  std::vector<float> features;
  std::vector<double> throughputs;
  /// The ensembles of boosted trees, as XGBoost's JSON and parsed. Each
  /// corrects the sum of those before it (see `predict`).
  std::vector<std::string> texts;
  std::vector<BoostedTrees> ensembles;

  size_t size() const { return throughputs.size(); }
  /// Returns ln(throughput / best throughput) that the model predicts for the
  /// features of a row: the sum of what the ensembles predict.
  float predict(llvm::ArrayRef<float> row) const;
};

/// Appends the rows of `model` to `rows`. A row's label is
/// ln(throughput / best throughput) less the prediction of `base`, if there is
/// one; its weight is throughput / best throughput times `weight`.
void appendRows(const LearnedModel &model, const LearnedModel *base,
                double weight, TrainingRows &rows);

/// Returns the factor for weights of rows from the source device, in a search
/// that has `targetRows` rows of the target device.
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
