//===- Predictor.h - A trained predictor of programs' times -----*- C++ -*-===//
//
// Evaluates what `ftuner learn train` wrote (docs/learned-model.md), without
// PyTorch: the network of CDMPP (EuroSys 2024, section 4.3),
//
//   statements × features, standardized, + positions → Transformer encoder →
//     a head for each number of statements → z_x
//   figures of the device, standardized → z_v
//   z_x ⊗ z_v, of several trees the mean by their blocks → decoder → label
//
// or boosted trees on the mean of the statements; and the label back to
// microseconds, or to a ratio to what `latency` predicts. Batch norms are
// folded into the layers before them. A file holds programs with what the
// training's libraries say of them (golden rows); a file that this code reads
// differently is refused.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_COSTMODEL_PREDICTOR_H
#define FTUNER_COSTMODEL_PREDICTOR_H

#include "FTuner/CostModel/CostModel.h"
#include "FTuner/CostModel/LatencyFormulas.h"
#include "FTuner/Schedule/ProgramFeatures.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ftuner {

/// Input of a predictor: one part of a program.
struct PredictorTree {
  /// Features of each statement.
  std::vector<ProgramFeatures> features;
  /// Places of statements in the tree's sequence (ProgramAst::ordering).
  llvm::SmallVector<int64_t, 8> ordering;
  /// Blocks that run the part, more than 0.
  double blocks = 1;
};

/// One tree for each part that has blocks; at least one tree.
using PredictorProgram = llvm::SmallVector<PredictorTree, 1>;

/// Returns the trees of a program for a shape (see `describeProgram`).
PredictorProgram predictorProgram(const Workload &workload,
                                  const Program &program,
                                  llvm::ArrayRef<int64_t> shape,
                                  const DeviceSpec &device);

/// Standard deviations of ln(predicted / measured), on rows that a predictor
/// was not trained on.
struct PredictorDeviation {
  int64_t rows = 0;
  /// Deviation of all rows from 0.
  double overall = 0;
  /// Deviation of the programs for one shape from their mean.
  double withinShape = 0;
};

class PredictorForm;

/// A file of `ftuner learn train`, to be evaluated. Immutable: several threads
/// may share one.
class Predictor final : public CostModelData {
public:
  ~Predictor() override;
  /// Reads the content of a file. An error names `sourceName` and says what is
  /// damaged or foreign: not a predictor file, another version, arrays of other
  /// shapes, values that are not numbers, golden rows that differ by more than
  /// `goldenError`.
  static llvm::Expected<std::shared_ptr<const Predictor>>
  parse(llvm::StringRef content, llvm::StringRef sourceName);
  /// Maximum difference of a golden row, as a share. A file for which f32 is
  /// less exact may state a larger one, up to `maxGoldenError`.
  static constexpr double goldenError = 1e-4, maxGoldenError = 1e-2;

  /// Returns the figures of a device in the form that `predict` takes. They
  /// have no effect after a training on one device, which cannot tell their
  /// effect.
  std::vector<float> encodeDevice(const LatencyDevice &device) const;
  /// Returns the reason why the predictor cannot predict a program, in words
  /// that follow "with"; empty if it can. The reason is a tree whose number of
  /// statements the training did not have, or more than `maxUnfamiliarShare` of
  /// unfamiliar features.
  std::string unknownIn(const PredictorProgram &program) const;
  /// Returns the share of the program's features that are unfamiliar: more than
  /// `featureMargin` outside the range that the same feature of the same
  /// statement had in the training. Returns 1 if the training had no tree with
  /// as many statements as one of the program's.
  double unfamiliarShare(const PredictorProgram &program) const;
  /// Margin around the ranges of the training. Features are logarithms to base
  /// 2, so 3 is a factor of eight.
  static constexpr double featureMargin = 3;
  static constexpr double maxUnfamiliarShare = 0.05;

  /// Predicts the microseconds of each program, or the ratio of its time to the
  /// prediction of `latency`. For a ratio, features are clamped to their ranges
  /// in the training, and so is the result. The training had trees with as many
  /// statements as each tree of the programs. `device` is an answer of
  /// `encodeDevice`.
  void predict(llvm::ArrayRef<const PredictorProgram *> programs,
               llvm::ArrayRef<float> device,
               llvm::MutableArrayRef<double> values) const;

  /// Returns whether the predictor predicts ratios to `latency`.
  bool corrects() const override { return isCorrection; }
  /// SHA-256 of the file, in hexadecimal digits.
  llvm::StringRef hash() const { return digest; }
  /// Returns the number of rows of the training by device; 0 for a device that
  /// the predictor was adapted to without times.
  const std::map<std::string, int64_t> &devices() const { return trainedOn; }
  /// Returns the deviation on a device; no value if all rows of the device were
  /// trained on.
  std::optional<PredictorDeviation> deviation(llvm::StringRef device) const;
  /// Returns the maximum difference of a golden row, as a share.
  double worstGoldenError() const { return goldenDifference; }

private:
  friend class PredictorReader;
  Predictor();

  std::unique_ptr<PredictorForm> form;
  bool isCorrection = false;
  /// Range of the ratios in the training.
  double minLabel = 0, maxLabel = 0;
  /// Ranges of the features in the training, by a tree's number of statements:
  /// the minima of all features, statement by statement, then all maxima in the
  /// same order.
  std::map<size_t, std::vector<float>> featureRanges;
  std::string digest;
  std::map<std::string, int64_t> trainedOn;
  std::map<std::string, PredictorDeviation, std::less<>> deviations;
  double goldenDifference = 0;
};

/// Returns the predictor of a built-in name, or else of the file at that path.
/// Equal contents are read once. An error says what is wrong with the file.
llvm::Expected<std::shared_ptr<const Predictor>>
loadPredictor(llvm::StringRef nameOrPath);
/// Names of the built-in predictors, sorted.
std::vector<std::string> builtinPredictorNames();

} // namespace ftuner

#endif // FTUNER_COSTMODEL_PREDICTOR_H
