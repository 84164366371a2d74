//===- SiaProgram.cpp - SIA over a program's real cover -------------------===//
//
// The published sum over the metrics of what really runs: an exact cover of two
// uKernels has no padding on its combine axis, and all blocks fill waves
// together.
//
//===----------------------------------------------------------------------===//
#include "SiaSum.h"

using namespace ftuner;

namespace {
class SiaProgramCostModel final : public CostModel {
public:
  llvm::StringRef name() const override { return "sia-program"; }

  CostBreakdown evaluate(const Workload &workload,
                         llvm::ArrayRef<int64_t> shape, const Program &program,
                         const DeviceSpec &device, const CodegenModel &codegen,
                         const CostModelOptions &options) const override {
    return siaSum(programMetrics(workload, shape, program, device), options);
  }
};
} // namespace

namespace ftuner {
const CostModel &siaProgramCostModel() {
  static const SiaProgramCostModel model;
  return model;
}
} // namespace ftuner
