//===- PlanWorkloads.cpp - Searches the kernels of each workload ----------===//
#include "FTuner/Search/SearchStrategy.h"
#include "FTuner/Transforms/Passes.h"
#include "FTuner/Transforms/PlanAttributes.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

namespace ftuner {
#define GEN_PASS_DEF_UKERNELPLANWORKLOADSPASS
#include "FTuner/Transforms/Passes.h.inc"
} // namespace ftuner

using namespace mlir;
using namespace ftuner;

namespace {

/// The codegen path that emits the kernels of plans.
constexpr StringLiteral kPath = "simt";

/// Equal text for workloads that pose the same problem.
std::string keyOf(const Workload &workload) {
  std::string key;
  llvm::raw_string_ostream os(key);
  for (const Axis &axis : workload.axes) {
    os << llvm::formatv("{0}:{1}-{2}/{3}[", axis.name, axis.range.min,
                        axis.range.max.value_or(-1), axis.range.step);
    for (const SizeWeight &entry : axis.weights)
      os << llvm::formatv("{0}={1:E17},", entry.size, entry.weight);
    os << "]";
  }
  for (const Operand &operand : workload.operands) {
    os << llvm::formatv(";{0}:{1}(", static_cast<int>(operand.role),
                        operand.elementBytes);
    llvm::interleaveComma(operand.axes, os);
    os << ")";
  }
  os << llvm::formatv("*{0:E17}", workload.flopsPerPoint);
  return key;
}

template <typename T>
std::string namesOf(ArrayRef<const T *> known) {
  return llvm::join(
      llvm::map_range(known, [](const T *item) { return item->name(); }), ", ");
}

/// Sizes along the axes, e.g. "1-4 x 2304 x 768"; "1-" has no end.
std::string boxText(ArrayRef<SizeRange> box) {
  return llvm::join(
      llvm::map_range(box,
                      [](const SizeRange &range) {
                        std::string text = std::to_string(range.min);
                        if (range.isFixed())
                          return text;
                        text += "-";
                        return range.max ? text + std::to_string(*range.max)
                                         : text;
                      }),
      " x ");
}

/// Tells which family serves which box, and what the search had to say.
void emitRemarks(ukernel::WorkloadOp op, StringRef symbol, const Plan &plan) {
  auto function = op->getParentOfType<FunctionOpInterface>();
  auto options = [&](StringRef name) {
    return remark::RemarkOpts::name(name)
        .category("ukernel-plan-workloads")
        .function(function ? function.getName() : StringRef());
  };
  remark::passed(op.getLoc(), options("plan"))
      << llvm::formatv("@{0}: {1} kernel families, general {2}, fallback {3}",
                       symbol, plan.families.size(), plan.generalFamily,
                       plan.fallbackFamily)
             .str();
  for (auto [index, family] : llvm::enumerate(plan.families))
    remark::passed(op.getLoc(), options("family"))
        << llvm::formatv("@{0}: family {1} is {2}", symbol, index, family.str())
               .str();
  for (const DispatchEntry &entry : plan.entries)
    remark::passed(op.getLoc(), options("dispatch"))
        << llvm::formatv("@{0}: {1} by family {2}", symbol, boxText(entry.box),
                         entry.family)
               .str();
  for (const std::string &text : plan.remarks)
    remark::missed(op.getLoc(), options("search"))
        << llvm::formatv("@{0}: {1}", symbol, text).str();
}

struct UKernelPlanWorkloadsPass
    : public ftuner::impl::UKernelPlanWorkloadsPassBase<
          UKernelPlanWorkloadsPass> {
  using UKernelPlanWorkloadsPassBase::UKernelPlanWorkloadsPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(findImplementations(module)))
      return signalPassFailure();
    // Options are wrong whether there is a workload or not.
    if (llvm::Error error = searchOptions().check()) {
      module.emitError(llvm::toString(std::move(error)));
      return signalPassFailure();
    }
    SmallVector<ukernel::WorkloadOp> workloads;
    module.walk([&](ukernel::WorkloadOp op) {
      if (op->getNumResults() != 0 && !op.getPlanAttr())
        workloads.push_back(op);
    });
    if (workloads.empty())
      return;
    FailureOr<DeviceSpec> device = deviceOf(module);
    if (failed(device))
      return signalPassFailure();
    if (topK > 1)
      module.emitWarning("option 'top-k' has no effect yet: one program is "
                         "kept for each shape");
    numPlans = 0;
    SymbolTable symbols(module);
    llvm::StringMap<FlatSymbolRefAttr> plans;
    OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
    for (ukernel::WorkloadOp op : workloads) {
      Workload workload = toWorkload(op);
      FlatSymbolRefAttr &plan = plans[keyOf(workload)];
      if (!plan) {
        std::optional<Plan> answer = search(op, workload, *device);
        FailureOr<ukernel::PlanOp> planOp =
            answer ? createPlan(op, *answer, b)
                   : FailureOr<ukernel::PlanOp>(failure());
        if (failed(planOp))
          return signalPassFailure();
        plan = FlatSymbolRefAttr::get(symbols.insert(*planOp));
        emitRemarks(op, plan.getValue(), *answer);
      }
      op.setPlanAttr(plan);
    }
  }

private:
  LogicalResult findImplementations(ModuleOp module) {
    searchStrategy = findSearchStrategy(strategy);
    if (!searchStrategy)
      return module.emitError("option 'strategy': expected one of ")
             << namesOf(searchStrategies()) << ", but got '"
             << strategy.getValue() << "'";
    model = findCostModel(costModel);
    if (!model)
      return module.emitError("option 'cost-model': expected one of ")
             << namesOf(costModels()) << ", but got '" << costModel.getValue()
             << "'";
    codegen = findCodegenModel(kPath);
    if (!codegen)
      return module.emitError("expected a codegen path '") << kPath << "'";
    return success();
  }

  SearchOptions searchOptions() const {
    SearchOptions options;
    options.epsilonMin = epsilonMin;
    options.epsilonMax = epsilonMax;
    options.epsilonStep = epsilonStep;
    options.lambdaMin = lambdaMin;
    options.lambdaMax = lambdaMax;
    options.lambdaStep = lambdaStep;
    options.zeta = zeta;
    options.psi = psi;
    options.activeBlocksPerSm = activeBlocks;
    options.cost = {c0, c1, c2};
    options.topK = topK;
    options.maxKernels = maxKernels;
    options.maxCandidates = maxCandidates;
    return options;
  }

  std::optional<Plan> search(ukernel::WorkloadOp op, const Workload &workload,
                             const DeviceSpec &device) {
    SearchProblem problem{workload, device, *codegen, *model, searchOptions()};
    llvm::Expected<Plan> plan = solve(problem, *searchStrategy);
    if (plan)
      return std::move(*plan);
    op.emitError(llvm::toString(plan.takeError()));
    return std::nullopt;
  }

  FailureOr<ukernel::PlanOp> createPlan(ukernel::WorkloadOp op,
                                        const Plan &plan, OpBuilder &b) {
    llvm::Expected<ukernel::PlanAttr> attribute =
        toAttribute(&getContext(), plan);
    if (!attribute)
      return op.emitError(llvm::toString(attribute.takeError()));
    std::string name = "plan_" + std::to_string(numPlans++);
    return ukernel::PlanOp::create(b, op.getLoc(), name, *attribute);
  }

  const SearchStrategy *searchStrategy = nullptr;
  const CostModel *model = nullptr;
  const CodegenModel *codegen = nullptr;
  unsigned numPlans = 0;
};
} // namespace
