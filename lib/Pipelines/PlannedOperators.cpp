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

FailureOr<PlannedOperators>
ftuner::collectPlannedOperators(ModuleOp module, OperatorRegistry &operators) {
  OwningOpRef<ModuleOp> copy = module.clone();
  if (failed(lowerToBuffers(*copy)))
    return failure();
  SmallVector<ukernel::OperatorOpInterface> found;
  copy->walk([&](ukernel::OperatorOpInterface op) {
    if (op.getPlanAttr() && !op->getParentOfType<ukernel::KernelOp>())
      found.push_back(op);
  });
  PlannedOperators result;
  llvm::StringMap<int64_t> workloadsOfFunction;
  for (ukernel::OperatorOpInterface op : found) {
    makeInnermostContiguous(op);
    std::string name =
        toIdentifier(op->getParentOfType<FunctionOpInterface>().getName());
    name += "_" + std::to_string(workloadsOfFunction[name]++);
    const Workload *workload = &operators.add(op, name);
    result[op.getPlanAttr().getAttr()].insert(workload);
    auto plan = SymbolTable::lookupNearestSymbolFrom<ukernel::PlanOp>(
        *copy, op.getPlanAttr());
    if (plan && plan.getPortableAttr())
      result[plan.getPortableAttr().getAttr()].insert(workload);
  }
  return result;
}
