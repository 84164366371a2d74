//===- CostModel.h - Scores of programs -------------------------*- C++ -*-===//
#ifndef FTUNER_COSTMODEL_COSTMODEL_H
#define FTUNER_COSTMODEL_COSTMODEL_H

#include "FTuner/Codegen/CodegenModel.h"
#include "FTuner/Device/DeviceSpec.h"
#include "FTuner/Search/UKernel.h"
#include "FTuner/Workload/Workload.h"
#include <string>
#include <vector>

namespace ftuner {

/// One term of a score: weight · value.
struct CostTerm {
  std::string name;
  double value = 0;
  double weight = 1;
};

/// A score with its parts. Higher scores are better in every model; a model
/// that predicts time negates it.
struct CostBreakdown {
  double score = 0;
  std::vector<CostTerm> terms;
};

/// Coefficients of SIA (paper, equation 1).
struct CostModelOptions {
  double c0 = 1, c1 = 1, c2 = 1;
};

class CostModel {
public:
  virtual ~CostModel() = default;
  virtual llvm::StringRef name() const = 0;
  /// Scores a program for one shape (every extent ≥ 1). Finite for every legal
  /// program.
  virtual CostBreakdown evaluate(const Workload &workload,
                                 llvm::ArrayRef<int64_t> shape,
                                 const Program &program,
                                 const DeviceSpec &device,
                                 const CodegenModel &codegen,
                                 const CostModelOptions &options) const = 0;
};

const CostModel *findCostModel(llvm::StringRef name);
llvm::ArrayRef<const CostModel *> costModels();

} // namespace ftuner

#endif // FTUNER_COSTMODEL_COSTMODEL_H
