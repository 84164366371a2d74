//===- PredictorForm.h - Computation of a predictor -------------*- C++ -*-===//
//
// A file of a predictor holds a network (PredictorNetwork.h) or boosted trees
// (PredictorForest.h). Both give transformed labels.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_COSTMODEL_PREDICTORFORM_H
#define FTUNER_LIB_COSTMODEL_PREDICTORFORM_H

#include "FTuner/CostModel/Predictor.h"

namespace ftuner {

/// Transform between labels and the times or ratios that they stand for
/// (python/ftuner/learned/labels.py).
struct LabelTransform {
  enum class Kind { BoxCox, YeoJohnson, Quantile, None };
  Kind kind = Kind::None;
  std::vector<double> values;
  double mean = 0, deviation = 1, shift = 0;
  double minimum = 1e-3, maximum = 1e12;
  /// Returns the microseconds, or the ratio, of a label: from `minimum` to
  /// `maximum`, and NaN for a label that is not finite.
  double backward(double label) const;
};

/// Number of figures of a device that predictors read.
#define FTUNER_LATENCY_LEARNED_DEVICE(MEMBER, NAME, VALUE) +1
inline constexpr size_t numDeviceFigures =
#include "FTuner/CostModel/LatencyRecords.def"
    ;

/// Computes microseconds or ratios of programs.
class PredictorForm {
public:
  virtual ~PredictorForm();

  LabelTransform labels;

  /// Figures of a device, as logarithms, the way `predict` takes them; none for
  /// the mean of the devices of the training.
  virtual std::vector<float>
  encodeDevice(llvm::ArrayRef<float> figures) const = 0;
  /// Labels, transformed back.
  virtual void predict(llvm::ArrayRef<const PredictorProgram *> programs,
                       llvm::ArrayRef<float> device,
                       llvm::MutableArrayRef<double> values) const = 0;
};

} // namespace ftuner

#endif // FTUNER_LIB_COSTMODEL_PREDICTORFORM_H
