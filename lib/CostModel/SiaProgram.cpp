//===- SiaProgram.cpp - SIA over a program's real partition
//-------------------===//
//
// The published sum over the metrics of what really runs: an exact partition of
// two uKernels has no padding on its combine axis, and all blocks fill waves
// together.
//
//===----------------------------------------------------------------------===//
#include "SiaSum.h"

using namespace ftuner;

namespace {
class Evaluator final : public SiaEvaluator {
public:
  using SiaEvaluator::SiaEvaluator;

private:
  Metrics metrics(const ShapeMetrics &shape,
                  const Program &program) const override {
    return shape.program(program);
  }
};

class SiaProgramCostModel final : public CostModel {
public:
  llvm::StringRef name() const override { return "sia-program"; }
  OptionDecls options() const override {
    return joined({siaOptions().decls(), metricOptions().decls()});
  }

  std::unique_ptr<CostEvaluator>
  createEvaluator(const Workload &workload, const DeviceSpec &device,
                  const CostModelOptions &options) const override {
    return std::make_unique<Evaluator>(workload, device, options);
  }
};
} // namespace

namespace ftuner {
const CostModel &siaProgramCostModel() {
  static const SiaProgramCostModel model;
  return model;
}
} // namespace ftuner
