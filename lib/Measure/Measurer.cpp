//===- Measurer.cpp - Times and resources of families ---------------------===//
#include "FTuner/Measure/Measurer.h"

using namespace ftuner;

char NotMeasured::ID = 0;
char MeasurerFailed::ID = 0;

llvm::Expected<Measurement> Measurer::measure(const Workload &workload,
                                              const KernelFamily &family,
                                              llvm::ArrayRef<int64_t> shape) {
  MeasurementRequest request{&workload, family, Shape(shape)};
  std::vector<llvm::Expected<Measurement>> answers = measure(request);
  return std::move(answers.front());
}
