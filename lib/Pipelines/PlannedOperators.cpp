//===- PlannedOperators.cpp - Operators on buffers with plans -------------===//
#include "FTuner/Pipelines/PlannedOperators.h"
#include "FTuner/HostAbi/HostAbi.h"
#include "FTuner/Kernel/KernelBuilder.h"
#include "FTuner/Pipelines/Pipelines.h"
#include "FTuner/Transforms/Passes.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace ftuner;

static LogicalResult lowerToBuffers(ModuleOp module) {
  ScopedDiagnosticHandler quiet(
      module.getContext(), [](Diagnostic &diagnostic) {
        // Success swallows the diagnostic; failure hands it on.
        return success(diagnostic.getSeverity() != DiagnosticSeverity::Error);
      });
  PassManager pm(module.getContext());
  pm.addPass(createUKernelPrepareHostPass());
  buildBufferizationPipeline(pm);
  return pm.run(module);
}

/// Calls a function for each operator of a copy on buffers, with the workload
/// of the registry.
static LogicalResult forEachOperator(
    ModuleOp module, OperatorRegistry &operators,
    llvm::function_ref<bool(ukernel::OperatorOpInterface)> isWanted,
    llvm::function_ref<void(ukernel::OperatorOpInterface, const Workload &)>
        visit) {
  OwningOpRef<ModuleOp> copy = module.clone();
  if (failed(lowerToBuffers(*copy)))
    return failure();
  SmallVector<ukernel::OperatorOpInterface> found;
  copy->walk([&](ukernel::OperatorOpInterface op) {
    if (isWanted(op) && !op->getParentOfType<ukernel::KernelOp>())
      found.push_back(op);
  });
  llvm::StringMap<int64_t> workloadsOfFunction;
  for (ukernel::OperatorOpInterface op : found) {
    makeInnermostContiguous(op);
    std::string name =
        toIdentifier(op->getParentOfType<FunctionOpInterface>().getName());
    name += "_" + std::to_string(workloadsOfFunction[name]++);
    visit(op, operators.add(op, name));
  }
  return success();
}

FailureOr<PlannedOperators>
ftuner::collectPlannedOperators(ModuleOp module, OperatorRegistry &operators) {
  PlannedOperators result;
  auto visit = [&](ukernel::OperatorOpInterface op, const Workload &workload) {
    result[op.getPlanAttr().getAttr()].insert(&workload);
    auto plan = SymbolTable::lookupNearestSymbolFrom<ukernel::PlanOp>(
        op, op.getPlanAttr());
    if (plan && plan.getPortableAttr())
      result[plan.getPortableAttr().getAttr()].insert(&workload);
  };
  auto isPlanned = [](ukernel::OperatorOpInterface op) {
    return op.getPlanAttr() != nullptr;
  };
  if (failed(forEachOperator(module, operators, isPlanned, visit)))
    return failure();
  return result;
}

LogicalResult ftuner::collectOperators(ModuleOp module,
                                       OperatorRegistry &operators) {
  return forEachOperator(
      module, operators, [](ukernel::OperatorOpInterface) { return true; },
      [](ukernel::OperatorOpInterface, const Workload &) {});
}
