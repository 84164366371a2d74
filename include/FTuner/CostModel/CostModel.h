//===- CostModel.h - Scores of programs -------------------------*- C++ -*-===//
#ifndef FTUNER_COSTMODEL_COSTMODEL_H
#define FTUNER_COSTMODEL_COSTMODEL_H

#include "FTuner/CostModel/Calibration.h"
#include "FTuner/Device/DeviceSpec.h"
#include "FTuner/Schedule/CodegenModel.h"
#include "FTuner/Support/Options.h"
#include "FTuner/Workload/Workload.h"
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ftuner {

class CostModel;

/// One term of a score: weight · value.
struct CostTerm {
  std::string name;
  double value = 0;
  double weight = 1;
};

/// A score with its parts. Higher scores are better in every model; one that
/// predicts time scores with the negated microseconds.
struct CostBreakdown {
  double score = 0;
  std::vector<CostTerm> terms;
  /// Figures that explain the terms, e.g. resident blocks. They are not part of
  /// the score: their weight is 0.
  std::vector<CostTerm> figures;
};

/// Data that a cost model loads from files that its options name.
class CostModelData {
public:
  virtual ~CostModelData() = default;
  /// Returns whether the data correct predictions of `latency` with the
  /// constants of their training (`defaultCalibration`).
  virtual bool corrects() const { return false; }
};

struct CostModelOptions {
  /// Constants of `latency`. They are shared: `learned`, the prices of fallback
  /// kernels, searches for slices and explanations read them, too.
  Calibration calibration = globalCalibration();
  /// Values of the options that models declare for themselves
  /// (`CostModel::options`).
  OptionValues own = {};
  /// Data of the models that have loaded some (`CostModel::load`).
  std::map<const CostModel *, std::shared_ptr<const CostModelData>> loaded = {};
};

/// The calibration that `latency` is asked to use, by the option that it
/// declares; none where each device has its own or the global one. An error
/// names the option.
llvm::Expected<std::optional<Calibration>>
givenCalibration(const OptionValues &given);

/// A cheaper model that ranks programs first, and how many of its best ones of
/// each shape a model orders anew.
struct Prefilter {
  const CostModel *model = nullptr;
  int64_t programs = 0;
};

/// A model's confidence in its own order of two programs.
struct ChoiceConfidence {
  /// Probability, 0.5 to 1, that the program with the better score is really at
  /// least as fast. It is 0.5 for a model that does not know its errors.
  double probability = 0.5;
  /// Mean gain of measuring both programs and taking the faster one, as a share
  /// of the time.
  double measurementGain = 0;
};

/// Costs of a family that an evaluator computes once for all shapes.
class FamilyCosts {
public:
  virtual ~FamilyCosts() = default;
};

/// Scores the programs of one workload on one device. Costs that depend only on
/// a uKernel are computed once, so the second program of a family is cheap.
/// Several threads must not share an evaluator.
class CostEvaluator {
public:
  virtual ~CostEvaluator() = default;
  /// Returns the score of a program for one shape (every extent ≥ 1). It is
  /// finite for every feasible program.
  virtual double score(llvm::ArrayRef<int64_t> shape,
                       const Program &program) = 0;
  /// Returns the costs of a family, which the evaluator owns; null if it keeps
  /// none. A caller that scores one family many times saves looking them up.
  virtual const FamilyCosts *costsOf(const KernelFamily &family) {
    return nullptr;
  }
  /// Returns the score of a program whose family has these costs (an answer of
  /// `costsOf`).
  virtual double scoreWith(const FamilyCosts *costs,
                           llvm::ArrayRef<int64_t> shape,
                           const Program &program) {
    return score(shape, program);
  }
  /// Computes the scores of many programs for one shape, as `score` does.
  /// `programs`, the costs of their families, and `scores` have one size.
  virtual void scoreAll(llvm::ArrayRef<Program> programs,
                        llvm::ArrayRef<const FamilyCosts *> costs,
                        llvm::ArrayRef<int64_t> shape,
                        llvm::MutableArrayRef<double> scores) {
    for (size_t i = 0; i < programs.size(); ++i)
      scores[i] = scoreWith(costs[i], shape, programs[i]);
  }
  /// Computes the scores of many programs, each for its own shape. `programs`,
  /// `shapes` and `scores` have one size.
  virtual void scoreEach(llvm::ArrayRef<Program> programs,
                         llvm::ArrayRef<llvm::ArrayRef<int64_t>> shapes,
                         llvm::MutableArrayRef<double> scores) {
    for (size_t i = 0; i < programs.size(); ++i)
      scores[i] = score(shapes[i], programs[i]);
  }
  /// Returns a score with its parts.
  virtual CostBreakdown evaluate(llvm::ArrayRef<int64_t> shape,
                                 const Program &program) = 0;
  /// Returns the confidence that a program of score `first` is at least as fast
  /// as one of `second` for the same shape; `first` ≥ `second`, and `second` is
  /// -inf if there is only one program. Returns no value if the model does not
  /// know how far its predictions are off, or does not predict times.
  virtual std::optional<ChoiceConfidence> confidence(double first,
                                                     double second) const {
    return std::nullopt;
  }
  /// Returns remarks for readers of a plan on the scores so far, a line each.
  virtual std::vector<std::string> remarks() const { return {}; }
};

class CostModel {
public:
  virtual ~CostModel() = default;
  virtual llvm::StringRef name() const = 0;
  /// Returns whether scores are predicted times (negated microseconds) rather
  /// than figures of merit.
  virtual bool predictsTime() const { return false; }
  /// Returns the options that the model reads from `CostModelOptions::own`.
  virtual OptionDecls options() const { return {}; }
  /// Loads the files that values of these options name; null if they name none.
  /// An error names the option.
  virtual llvm::Expected<std::shared_ptr<const CostModelData>>
  load(const OptionValues &given) const {
    return nullptr;
  }
  /// Returns the prefilter of a model that is too slow for every program of a
  /// search; its predicted times have the same unit. Other models have no
  /// prefilter.
  virtual std::optional<Prefilter>
  prefilter(const CostModelOptions &options) const {
    return std::nullopt;
  }
  /// Returns the name of the source of the model's numbers, for plans and
  /// manifests.
  virtual std::string calibrationName(const CostModelOptions &options) const {
    return options.calibration.name;
  }
  /// Workload and device outlive the evaluator; options are copied. Programs
  /// may be of several codegen paths.
  virtual std::unique_ptr<CostEvaluator>
  createEvaluator(const Workload &workload, const DeviceSpec &device,
                  const CostModelOptions &options) const = 0;
  /// Scores a single program.
  CostBreakdown evaluate(const Workload &workload,
                         llvm::ArrayRef<int64_t> shape, const Program &program,
                         const DeviceSpec &device,
                         const CostModelOptions &options) const {
    return createEvaluator(workload, device, options)->evaluate(shape, program);
  }
};

const CostModel *findCostModel(llvm::StringRef name);
llvm::ArrayRef<const CostModel *> costModels();

} // namespace ftuner

#endif // FTUNER_COSTMODEL_COSTMODEL_H
