//===- Sia.cpp - SIA as published -----------------------------------------===//
//
// Every uKernel is scored as if it covered the whole shape alone; a program of
// two has the mean of their scores (paper, equation 1).
//
//===----------------------------------------------------------------------===//
#include "SiaSum.h"

using namespace ftuner;

namespace {
class SiaCostModel final : public CostModel {
public:
  llvm::StringRef name() const override { return "sia"; }

  CostBreakdown evaluate(const Workload &workload,
                         llvm::ArrayRef<int64_t> shape, const Program &program,
                         const DeviceSpec &device, const CodegenModel &codegen,
                         const CostModelOptions &options) const override {
    ShapeMetrics metrics(workload, shape, device);
    const auto &parts = program.family->parts;
    if (program.cover.second == 0)
      return siaSum(metrics.ukernel(parts.front()), options);
    if (program.cover.first == 0)
      return siaSum(metrics.ukernel(parts.back()), options);
    // The sum is linear, so the mean of the scores is the score of the means.
    Metrics first = metrics.ukernel(parts.front());
    Metrics second = metrics.ukernel(parts.back());
    Metrics mean;
    mean.cmr = (first.cmr + second.cmr) / 2;
    mean.pad = (first.pad + second.pad) / 2;
    mean.occ = (first.occ + second.occ) / 2;
    return siaSum(mean, options);
  }
};
} // namespace

namespace ftuner {
const CostModel &siaCostModel() {
  static const SiaCostModel model;
  return model;
}
} // namespace ftuner
