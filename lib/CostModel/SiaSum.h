//===- SiaSum.h - The weighted sum of SIA -----------------------*- C++ -*-===//
#ifndef FTUNER_LIB_COSTMODEL_SIASUM_H
#define FTUNER_LIB_COSTMODEL_SIASUM_H

#include "FTuner/CostModel/CostModel.h"
#include "FTuner/CostModel/Metrics.h"
#include "FTuner/CostModel/Sia.h"
#include <optional>

namespace ftuner {

/// c0 · CMR + c1 · Pad + c2 · Occ (paper, equation 1).
inline CostBreakdown siaSum(const Metrics &metrics, const SiaOptions &options) {
  CostBreakdown breakdown;
  breakdown.terms = {{"cmr", metrics.cmr, options.c0},
                     {"pad", metrics.pad, options.c1},
                     {"occ", metrics.occ, options.c2}};
  for (const CostTerm &term : breakdown.terms)
    breakdown.score += term.weight * term.value;
  return breakdown;
}

/// Scores by a sum over metrics; subclasses say of what.
class SiaEvaluator : public CostEvaluator {
public:
  SiaEvaluator(const Workload &workload, const DeviceSpec &device,
               const CostModelOptions &options)
      : workload(workload), device(device),
        options(siaOptions().read(options.own)),
        metricOptions(ftuner::metricOptions().read(options.own)) {}

  double score(llvm::ArrayRef<int64_t> shape, const Program &program) override {
    Metrics sum = metrics(shapeMetrics(shape), program);
    return options.c0 * sum.cmr + options.c1 * sum.pad + options.c2 * sum.occ;
  }
  CostBreakdown evaluate(llvm::ArrayRef<int64_t> shape,
                         const Program &program) override {
    return siaSum(metrics(shapeMetrics(shape), program), options);
  }

private:
  virtual Metrics metrics(const ShapeMetrics &shape,
                          const Program &program) const = 0;

  const ShapeMetrics &shapeMetrics(llvm::ArrayRef<int64_t> shape) {
    if (!cached || llvm::ArrayRef<int64_t>(cachedShape) != shape) {
      cachedShape.assign(shape.begin(), shape.end());
      cached.emplace(workload, shape, device, metricOptions);
    }
    return *cached;
  }

  const Workload &workload;
  const DeviceSpec &device;
  SiaOptions options;
  MetricOptions metricOptions;
  /// The shape that was scored last, with its metrics.
  Shape cachedShape;
  std::optional<ShapeMetrics> cached;
};

/// The cost model with that evaluator, a `SiaEvaluator`.
template <typename Evaluator>
class SiaCostModel final : public CostModel {
public:
  explicit SiaCostModel(llvm::StringLiteral name) : ownName(name) {}

  llvm::StringRef name() const override { return ownName; }
  OptionDecls options() const override {
    return joined({siaOptions().decls(), metricOptions().decls()});
  }
  std::unique_ptr<CostEvaluator>
  createEvaluator(const Workload &workload, const DeviceSpec &device,
                  const CostModelOptions &options) const override {
    return std::make_unique<Evaluator>(workload, device, options);
  }

private:
  llvm::StringLiteral ownName;
};

} // namespace ftuner

#endif // FTUNER_LIB_COSTMODEL_SIASUM_H
