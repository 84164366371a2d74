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
    if (program.partition.second == 0)
      return shape.ukernel(family, 0);
    if (program.partition.first == 0)
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
} // namespace

const OptionTable<SiaOptions> &ftuner::siaOptions() {
  using Options = SiaOptions;
  // Far beyond any weight of one metric against another; scores stay finite.
  static constexpr double huge = 1e9;
  static const OptionTable<SiaOptions> table = {
      option("c0", &Options::c0,
             "SIA weighs the compute-to-memory ratio by this coefficient")
          .within(-huge, huge),
      option("c1", &Options::c1, "SIA weighs the padding by this coefficient")
          .within(-huge, huge),
      option("c2", &Options::c2, "SIA weighs the occupancy by this coefficient")
          .within(-huge, huge),
  };
  return table;
}

namespace ftuner {
const CostModel &siaCostModel() {
  static const SiaCostModel<Evaluator> model("sia");
  return model;
}
} // namespace ftuner
