//===- SiaProgram.cpp - SIA over a program's real partition ---------------===//
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
} // namespace

namespace ftuner {
const CostModel &siaProgramCostModel() {
  static const SiaCostModel<Evaluator> model("sia-program");
  return model;
}
} // namespace ftuner
