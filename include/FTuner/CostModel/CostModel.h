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
  /// Figures that explain the terms and are none, e.g. resident blocks; their
  /// weight is 0.
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

/// How far a model trusts its own order of two programs.
struct ChoiceConfidence {
  /// How likely the program with the better score is really at least as fast:
  /// 0.5 to 1. 0.5 is all that a model can say which knows nothing of its
  /// errors.
  double probability = 0.5;
  /// What measuring both and taking the faster one gains on average, as a share
  /// of the time.
  double measurementGain = 0;
};

/// What an evaluator keeps of a family for all shapes.
class FamilyCosts {
public:
  virtual ~FamilyCosts() = default;
};

/// Scores the programs of one workload on one device. What depends on uKernels
/// alone is computed once for each, so the second program of a family costs
/// little. Not for several threads at once.
class CostEvaluator {
public:
  virtual ~CostEvaluator() = default;
  /// The score of a program for one shape (every extent ≥ 1). Finite for every
  /// feasible program.
  virtual double score(llvm::ArrayRef<int64_t> shape,
                       const Program &program) = 0;
  /// What the evaluator keeps of a family, and owns; null if that is nothing.
  /// Who scores one family again and again saves looking it up.
  virtual const FamilyCosts *costsOf(const KernelFamily &family) {
    return nullptr;
  }
  /// The score of a program whose family has these costs (an answer of
  /// `costsOf`).
  virtual double scoreWith(const FamilyCosts *costs,
                           llvm::ArrayRef<int64_t> shape,
                           const Program &program) {
    return score(shape, program);
  }
  /// The scores of many programs for one shape, each as `score` has it.
  /// `programs`, the costs of their families, and `scores` are of one size.
  virtual void scoreAll(llvm::ArrayRef<Program> programs,
                        llvm::ArrayRef<const FamilyCosts *> costs,
                        llvm::ArrayRef<int64_t> shape,
                        llvm::MutableArrayRef<double> scores) {
    for (size_t i = 0; i < programs.size(); ++i)
      scores[i] = scoreWith(costs[i], shape, programs[i]);
  }
  /// The scores of many programs, of a shape for each. `programs`, `shapes` and
  /// `scores` are of one size.
  virtual void scoreEach(llvm::ArrayRef<Program> programs,
                         llvm::ArrayRef<llvm::ArrayRef<int64_t>> shapes,
                         llvm::MutableArrayRef<double> scores) {
    for (size_t i = 0; i < programs.size(); ++i)
      scores[i] = score(shapes[i], programs[i]);
  }
  /// A score with its parts.
  virtual CostBreakdown evaluate(llvm::ArrayRef<int64_t> shape,
                                 const Program &program) = 0;
  /// How far to trust that a program of score `first` is at least as fast as
  /// one of `second` for the same shape, `first` ≥ `second`; -inf where there
  /// is no second. None if the model does not know how far its predictions are
  /// off, or predicts no times.
  virtual std::optional<ChoiceConfidence> confidence(double first,
                                                     double second) const {
    return std::nullopt;
  }
  /// What a reader of a plan must know of the scores so far, a line each.
  virtual std::vector<std::string> remarks() const { return {}; }
};

class CostModel {
public:
  virtual ~CostModel() = default;
  virtual llvm::StringRef name() const = 0;
  /// Whether scores are predicted times (negated microseconds) rather than
  /// figures of merit.
  virtual bool predictsTime() const { return false; }
  /// Options that the model reads from `CostModelOptions::own`.
  virtual OptionDecls options() const { return {}; }
  /// Loads the files that values of these options name; null if they name none.
  /// An error names the option.
  virtual llvm::Expected<std::shared_ptr<const CostModelData>>
  load(const OptionValues &given) const {
    return nullptr;
  }
  /// What stands before a model that is too slow for every program of a search;
  /// its predicted times have the same unit. None for the others.
  virtual std::optional<Prefilter>
  prefilter(const CostModelOptions &options) const {
    return std::nullopt;
  }
  /// Where the model's numbers come from, as plans and manifests say it.
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
