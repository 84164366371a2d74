//===- CostModel.h - Scores of programs -------------------------*- C++ -*-===//
#ifndef FTUNER_COSTMODEL_COSTMODEL_H
#define FTUNER_COSTMODEL_COSTMODEL_H

#include "FTuner/CostModel/Calibration.h"
#include "FTuner/Device/DeviceSpec.h"
#include "FTuner/Schedule/CodegenModel.h"
#include "FTuner/Workload/Workload.h"
#include <memory>
#include <string>
#include <vector>

namespace ftuner {

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

struct CostModelOptions {
  /// Coefficients of SIA (paper, equation 1).
  double c0 = 1, c1 = 1, c2 = 1;
  /// Constants of `latency`.
  Calibration calibration = globalCalibration();
};

/// Scores the programs of one workload on one device. What depends on uKernels
/// alone is computed once for each, so the second program of a family costs
/// little. Not for several threads at once.
class CostEvaluator {
public:
  virtual ~CostEvaluator() = default;
  /// The score of a program for one shape (every extent ≥ 1). Finite for every
  /// legal program.
  virtual double score(llvm::ArrayRef<int64_t> shape,
                       const Program &program) = 0;
  /// The same with its parts.
  virtual CostBreakdown evaluate(llvm::ArrayRef<int64_t> shape,
                                 const Program &program) = 0;
};

class CostModel {
public:
  virtual ~CostModel() = default;
  virtual llvm::StringRef name() const = 0;
  /// Whether scores are predicted times (negated microseconds) rather than
  /// figures of merit.
  virtual bool predictsTime() const { return false; }
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
    return createEvaluator(workload, device, options)
        ->evaluate(shape, program);
  }
};

const CostModel *findCostModel(llvm::StringRef name);
llvm::ArrayRef<const CostModel *> costModels();

} // namespace ftuner

#endif // FTUNER_COSTMODEL_COSTMODEL_H
