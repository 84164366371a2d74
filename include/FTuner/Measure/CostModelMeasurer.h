//===- CostModelMeasurer.h - A cost model in a device's place ---*- C++ -*-===//
#ifndef FTUNER_MEASURE_COSTMODELMEASURER_H
#define FTUNER_MEASURE_COSTMODELMEASURER_H

#include "FTuner/CostModel/CostModel.h"
#include "FTuner/Measure/Measurer.h"

namespace ftuner {

/// Answers with predicted times and the path's estimate of registers, as if a
/// device had been asked: what strategies that measure are tried with where
/// there is none. Nothing of it was measured.
class CostModelMeasurer final : public Measurer {
public:
  /// The model predicts time. Device and model outlive the measurer.
  CostModelMeasurer(const DeviceSpec &device, const CostModel &model,
                    const CostModelOptions &options);

  /// "model:latency@h200", with the model's `calibrationName`: nobody takes its
  /// answers for measured ones, or for those with other constants.
  llvm::StringRef name() const override { return title; }
  bool measuresTime() const override { return true; }
  using Measurer::measure;
  std::vector<llvm::Expected<Measurement>>
  measure(llvm::ArrayRef<MeasurementRequest> requests) override;

private:
  const DeviceSpec &device;
  const CostModel &model;
  CostModelOptions options;
  std::string title;
};

} // namespace ftuner

#endif // FTUNER_MEASURE_COSTMODELMEASURER_H
