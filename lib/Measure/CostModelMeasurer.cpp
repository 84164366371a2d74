//===- CostModelMeasurer.cpp - A cost model in a device's place -----------===//
#include "FTuner/Measure/CostModelMeasurer.h"

using namespace ftuner;

CostModelMeasurer::CostModelMeasurer(const DeviceSpec &device,
                                     const CostModel &model,
                                     const CostModelOptions &options)
    : device(device), model(model), options(options),
      title(("model:" + model.name() + "@" + model.calibrationName(options))
                .str()) {}

std::vector<llvm::Expected<Measurement>>
CostModelMeasurer::measure(llvm::ArrayRef<MeasurementRequest> requests) {
  std::vector<llvm::Expected<Measurement>> answers;
  // Requests of one workload, and of one shape, mostly come one after the
  // other.
  std::unique_ptr<CostEvaluator> evaluator;
  const Workload *workload = nullptr;
  while (!requests.empty()) {
    const Shape &shape = requests.front().shape;
    if (requests.front().workload != workload) {
      workload = requests.front().workload;
      evaluator = model.createEvaluator(*workload, device, options);
    }
    auto together = requests.take_while([&](const MeasurementRequest &request) {
      return request.workload == workload && request.shape == shape;
    });
    requests = requests.drop_front(together.size());
    size_t first = answers.size();
    std::vector<Program> programs;
    std::vector<const FamilyCosts *> costs;
    for (const MeasurementRequest &request : together) {
      const KernelFamily &family = request.family;
      const CodegenModel &path = family.path();
      if (llvm::Error error = path.check(*workload, family, device)) {
        answers.push_back(std::move(error));
        continue;
      }
      programs.push_back({&family, partitionShape(family, shape)});
      costs.push_back(evaluator->costsOf(family));
      Measurement measurement;
      measurement.registersPerThread =
          path.resources(*workload, family).registersPerThread;
      answers.push_back(measurement);
    }
    std::vector<double> scores(programs.size());
    evaluator->scoreAll(programs, costs, shape, scores);
    auto score = scores.begin();
    for (llvm::Expected<Measurement> &answer :
         llvm::MutableArrayRef(answers).drop_front(first))
      if (answer)
        answer->microseconds = -*score++;
  }
  return answers;
}
