//===- PredictorForest.h - Boosted trees as a predictor ---------*- C++ -*-===//
//
// A predictor whose label is the sum of decision trees (DecisionForest.h).
// Their inputs are the mean features of a program's statements, weighted by the
// blocks of its parts, and then the figures of its device. The order of
// statements does not count.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_COSTMODEL_PREDICTORFOREST_H
#define FTUNER_LIB_COSTMODEL_PREDICTORFOREST_H

#include "FTuner/CostModel/DecisionForest.h"
#include "PredictorForm.h"

namespace ftuner {

class PredictorForest final : public PredictorForm {
public:
  /// Trees over features and figures, in this order.
  DecisionForest trees;
  /// The summand that all labels share.
  double base = 0;

  std::vector<float> encodeDevice(llvm::ArrayRef<float> figures) const override;
  void predict(llvm::ArrayRef<const PredictorProgram *> programs,
               llvm::ArrayRef<float> device,
               llvm::MutableArrayRef<double> values) const override;
};

} // namespace ftuner

#endif // FTUNER_LIB_COSTMODEL_PREDICTORFOREST_H
