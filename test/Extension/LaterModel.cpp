//===- LaterModel.cpp - A cost model that comes later, for tests ----------===//
//
// Predicts what `latency` does, and trusts its own choices as far as its own
// option says.
//
//===----------------------------------------------------------------------===//
#include "FTuner/CostModel/CostModel.h"

using namespace ftuner;

namespace {
struct LaterOptions {
  /// Probability that the better one of two programs is the better one; 0 for
  /// a model that does not know.
  double trust = 0.75;
};

class Evaluator final : public CostEvaluator {
public:
  Evaluator(std::unique_ptr<CostEvaluator> latency, double trust)
      : latency(std::move(latency)), trust(trust) {}

  double score(llvm::ArrayRef<int64_t> shape, const Program &program) override {
    return latency->score(shape, program);
  }
  CostBreakdown evaluate(llvm::ArrayRef<int64_t> shape,
                         const Program &program) override {
    return latency->evaluate(shape, program);
  }
  std::optional<ChoiceConfidence> confidence(double, double) const override {
    if (trust == 0)
      return std::nullopt;
    return ChoiceConfidence{trust, 0.03125};
  }

private:
  std::unique_ptr<CostEvaluator> latency;
  double trust;
};
} // namespace

static const OptionTable<LaterOptions> &ownOptions() {
  static const OptionTable<LaterOptions> table = {
      option("trust", &LaterOptions::trust,
             "Confidence in every choice; 0: not known")
          .within(0, 1),
  };
  return table;
}

namespace {
class LaterCostModel final : public CostModel {
public:
  llvm::StringRef name() const override { return "later-model"; }
  bool predictsTime() const override { return true; }
  OptionDecls options() const override { return ownOptions().decls(); }

  std::unique_ptr<CostEvaluator>
  createEvaluator(const Workload &workload, const DeviceSpec &device,
                  const CostModelOptions &options) const override {
    return std::make_unique<Evaluator>(
        findCostModel("latency")->createEvaluator(workload, device,
                                                  options),
        ownOptions().read(options.own).trust);
  }
};
} // namespace

namespace ftuner {
const CostModel &laterCostModel() {
  static const LaterCostModel model;
  return model;
}
} // namespace ftuner
