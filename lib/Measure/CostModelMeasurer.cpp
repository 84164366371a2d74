//===- CostModelMeasurer.cpp - A cost model in a device's place -----------===//
#include "FTuner/Measure/CostModelMeasurer.h"

using namespace ftuner;

CostModelMeasurer::CostModelMeasurer(const DeviceSpec &device,
                                     const CostModel &model,
                                     const CostModelOptions &options)
    : device(device), model(model), options(options),
      title(("model:" + model.name()).str()) {}

std::vector<llvm::Expected<Measurement>>
CostModelMeasurer::measure(llvm::ArrayRef<MeasurementRequest> requests) {
  std::vector<llvm::Expected<Measurement>> answers;
  // Requests of one workload mostly come one after the other.
  std::unique_ptr<CostEvaluator> evaluator;
  const Workload *workload = nullptr;
  for (const MeasurementRequest &request : requests) {
    const KernelFamily &family = request.family;
    const CodegenModel &path = family.path();
    if (llvm::Error error = path.check(*request.workload, family, device)) {
      answers.push_back(std::move(error));
      continue;
    }
    if (request.workload != workload) {
      workload = request.workload;
      evaluator = model.createEvaluator(*workload, device, options);
    }
    Program program{&family, partitionShape(family, request.shape)};
    Measurement measurement;
    measurement.microseconds = -evaluator->score(request.shape, program);
    measurement.registersPerThread =
        path.resources(*workload, family).registersPerThread;
    answers.push_back(measurement);
  }
  return answers;
}
