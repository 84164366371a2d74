//===- PlanWorkloads.cpp - Searches the kernels of each workload ----------===//
#include "FTuner/Analysis/Stages.h"
#include "FTuner/Dialect/UKernel/Bridge/PlanAttributes.h"
#include "FTuner/Search/Setup/MeasurerFactory.h"
#include "FTuner/Search/Setup/SearchOptionList.h"
#include "FTuner/Transforms/PassOptionList.h"
#include "FTuner/Transforms/Passes.h"
#include "PlanRemarks.h"
#include "WorkloadPlanner.h"

namespace ftuner {
#define GEN_PASS_DEF_UKERNELPLANWORKLOADSPASS
#include "FTuner/Transforms/Passes.h.inc"
} // namespace ftuner

using namespace mlir;
using namespace ftuner;

namespace {

/// Operators without a plan, and operators with one.
struct ModuleWorkloads {
  SmallVector<ukernel::OperatorOpInterface> unplanned, planned;
};

FailureOr<ModuleWorkloads> collect(ModuleOp module) {
  ModuleWorkloads workloads;
  WalkResult result = module.walk([&](ukernel::OperatorOpInterface op) {
    bool isInKernel = op->getParentOfType<ukernel::KernelOp>() != nullptr;
    if (!op.hasTensors()) {
      if (isInKernel || op.getPlanAttr())
        return WalkResult::advance();
      op->emitOpError("expected tensors: plan before bufferization");
      return WalkResult::interrupt();
    }
    (op.getPlanAttr() ? workloads.planned : workloads.unplanned).push_back(op);
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  return workloads;
}

struct UKernelPlanWorkloadsPass
    : public ftuner::impl::UKernelPlanWorkloadsPassBase<
          UKernelPlanWorkloadsPass> {
  UKernelPlanWorkloadsPass() = default;
  UKernelPlanWorkloadsPass(const OptionValues &values, MeasurerSource measurers)
      : measurers(std::move(measurers)) {
    options.set(values);
  }
  /// Values of options are copied by MLIR.
  UKernelPlanWorkloadsPass(const UKernelPlanWorkloadsPass &other)
      : UKernelPlanWorkloadsPassBase(other), measurers(other.measurers) {}

  void runOnOperation() override {
    if (failed(planModule(getOperation())))
      signalPassFailure();
    // Operators get the names of plans, which workloads do not have.
    markAnalysesPreserved<WorkloadAnalysis>();
  }

private:
  LogicalResult planModule(ModuleOp module) {
    // Wrong options are errors even if the module has no operators.
    llvm::Expected<SearchSetup> setup = makeSearchSetup(options.values());
    if (!setup)
      return emitError(UnknownLoc::get(module.getContext()),
                       llvm::toString(setup.takeError()));
    if (failed(expectStages(module, getArgument(), {Stage::Formed})))
      return failure();
    FailureOr<ModuleWorkloads> workloads = collect(module);
    if (failed(workloads))
      return failure();
    if (workloads->unplanned.empty() && workloads->planned.empty())
      return success();
    FailureOr<DeviceSpec> device = deviceOf(module);
    FailureOr<PathSupport> support = PathSupport::forModule(module);
    if (failed(device) || failed(support))
      return failure();
    support->add(setup->paths.models);
    if (!workloads->unplanned.empty())
      remarkUnread(module, *setup);
    std::unique_ptr<Measurer> measurer;
    if (setup->options.measuring.isOn()) {
      auto made = measurers ? measurers(module, *setup, *device)
                            : makeMeasurer(*setup, *device);
      if (!made)
        return emitError(UnknownLoc::get(module.getContext()),
                         llvm::toString(made.takeError()));
      measurer = std::move(*made);
    }
    WorkloadPlanner planner(module, getAnalysis<WorkloadAnalysis>(), *setup,
                            *device, *support, measurer.get());
    for (ukernel::OperatorOpInterface op : workloads->planned)
      if (failed(planner.takePlan(op)))
        return failure();
    return planner.planAll(workloads->unplanned);
  }

  MeasurerSource measurers;
  PassOptionList options =
      PassOptionList::make<Option>(*this, searchOptionList().options());
};
} // namespace

std::unique_ptr<Pass>
ftuner::createUKernelPlanWorkloadsPass(const OptionValues &options,
                                       MeasurerSource measurers) {
  return std::make_unique<UKernelPlanWorkloadsPass>(options,
                                                    std::move(measurers));
}
