//===- Stages.cpp - Stages that passes build on ---------------------------===//
#include "FTuner/Analysis/Stages.h"
#include "FTuner/Analysis/ConstantValues.h"
#include "FTuner/Analysis/WorkloadMatching.h"
#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/HostAbi/HostAbi.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace ftuner;

namespace {
/// Texts of the diagnostic for an operator that violates a stage.
struct StageText {
  StringRef expected;
  StringRef producer;
};
} // namespace

static StageText textOf(Stage stage) {
  switch (stage) {
  case Stage::Formed:
    return {"a ukernel.workload in its place", "ukernel-form-workloads"};
  case Stage::Planned:
    return {"a plan", "ukernel-plan-workloads"};
  case Stage::Prepared:
    return {"a function of the host ABI", "ukernel-prepare-host"};
  case Stage::Bufferized:
    return {"buffers in place of tensors", "ftuner-bufferize"};
  case Stage::Dispatched:
    return {"launches in its place", "ukernel-dispatch-workloads"};
  case Stage::Outlined:
    return {"a launch in its place", "ukernel-lower-fallbacks"};
  case Stage::Emitted:
    return {"a gpu.module in its place", "convert-ukernel-to-gpu"};
  }
  llvm_unreachable("every stage has a text");
}

template <typename T>
static bool hasType(Operation *op) {
  auto isOne = [](Type type) { return isa<T>(type); };
  return llvm::any_of(op->getOperandTypes(), isOne) ||
         llvm::any_of(op->getResultTypes(), isOne);
}

/// Returns whether a function computes with tensors or buffers.
static bool worksOnShaped(func::FuncOp func) {
  return llvm::any_of(func.getArgumentTypes(), llvm::IsaPred<ShapedType>) ||
         func.walk([](Operation *op) {
               return hasType<ShapedType>(op) ? WalkResult::interrupt()
                                              : WalkResult::advance();
             })
             .wasInterrupted();
}

/// Returns whether `op`, a function or an operation in one, violates a stage:
/// the stage's pass would have replaced it.
static bool isLeftBefore(Stage stage, Operation *op,
                         const PathSupport &support) {
  auto workload = dyn_cast<ukernel::OperatorOpInterface>(op);
  switch (stage) {
  case Stage::Formed: {
    auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
    return linalgOp && !op->hasAttr(kConstantAttrName) &&
           !op->hasAttr(kLeftAttrName) &&
           matchWorkload(linalgOp, support, /*extents=*/nullptr);
  }
  case Stage::Planned:
    return workload && !workload.getPlanAttr();
  case Stage::Prepared: {
    auto func = dyn_cast<func::FuncOp>(op);
    return func && func.isPublic() && !getAbiType(func) && worksOnShaped(func);
  }
  case Stage::Bufferized:
    return hasType<TensorType>(op);
  case Stage::Dispatched:
    return workload != nullptr;
  case Stage::Outlined:
    return isa<linalg::LinalgOp, memref::CopyOp>(op);
  case Stage::Emitted:
    return isa<ukernel::KernelOp>(op);
  }
  llvm_unreachable("every stage has a rule");
}

/// Returns the first operator of the module that violates the stage.
static Operation *findLeftBefore(ModuleOp module, Stage stage,
                                 const PathSupport &support) {
  Operation *found = nullptr;
  for (Operation &top : *module.getBody()) {
    auto function = dyn_cast<FunctionOpInterface>(top);
    if (!isa<ukernel::KernelOp>(top) && (!function || function.isExternal()))
      continue;
    // Operations in a kernel do not count.
    auto visit = [&](Operation *op) {
      if (isLeftBefore(stage, op, support)) {
        found = op;
        return WalkResult::interrupt();
      }
      return isa<ukernel::KernelOp>(op) ? WalkResult::skip()
                                        : WalkResult::advance();
    };
    if (top.walk<WalkOrder::PreOrder>(visit).wasInterrupted())
      return found;
  }
  return nullptr;
}

LogicalResult ftuner::expectStages(ModuleOp module, StringRef pass,
                                   ArrayRef<Stage> stages) {
  FailureOr<PathSupport> support = PathSupport::forModule(module);
  if (failed(support))
    return failure();
  for (Stage stage : stages)
    if (Operation *op = findLeftBefore(module, stage, *support)) {
      StageText text = textOf(stage);
      return op->emitOpError("expected ")
             << text.expected << " before '" << pass << "': run '"
             << text.producer << "' first";
    }
  return success();
}
