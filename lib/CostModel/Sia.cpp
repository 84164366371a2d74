//===- Sia.cpp - SIA as published -----------------------------------------===//
//
// Every uKernel is scored as if it covered the whole shape alone; a program of
// two has the mean of their scores (paper, equation 1).
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
    const KernelFamily &family = *program.family;
    unsigned last = family.tiles.size() - 1;
    if (program.cover.second == 0)
      return shape.ukernel(family, 0);
    if (program.cover.first == 0)
      return shape.ukernel(family, last);
    // The sum is linear, so the mean of the scores is the score of the means.
    Metrics first = shape.ukernel(family, 0);
    Metrics second = shape.ukernel(family, last);
    Metrics mean;
    mean.cmr = (first.cmr + second.cmr) / 2;
    mean.pad = (first.pad + second.pad) / 2;
    mean.occ = (first.occ + second.occ) / 2;
    return mean;
  }
};

class SiaCostModel final : public CostModel {
public:
  llvm::StringRef name() const override { return "sia"; }

  std::unique_ptr<CostEvaluator>
  createEvaluator(const Workload &workload, const DeviceSpec &device,
                  const CostModelOptions &options) const override {
    return std::make_unique<Evaluator>(workload, device, options);
  }
};
} // namespace

namespace ftuner {
const CostModel &siaCostModel() {
  static const SiaCostModel model;
  return model;
}
} // namespace ftuner
