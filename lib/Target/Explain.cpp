//===- Explain.cpp - Why each workload is served as it is -----------------===//
#include "FTuner/Target/Explain.h"
#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/Transforms/HostAbi.h"
#include "FTuner/Transforms/PlanAttributes.h"

#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace ftuner;

static llvm::Error makeError(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

/// "file:line:column" of the innermost position that is known.
static std::string textOf(Location location) {
  std::string text;
  location->walk([&](Location inner) {
    auto position = dyn_cast<FileLineColLoc>(inner);
    if (!position)
      return WalkResult::advance();
    text = llvm::formatv("{0}:{1}:{2}", position.getFilename().getValue(),
                         position.getLine(), position.getColumn());
    return WalkResult::interrupt();
  });
  return text;
}

/// Whether the same is said about two workloads.
static bool isExplainedAlike(const WorkloadExplanation &lhs,
                             const WorkloadExplanation &rhs) {
  return lhs.planName == rhs.planName &&
         llvm::equal(lhs.workload.axes, rhs.workload.axes,
                     [](const Axis &a, const Axis &b) {
                       return a.factor == b.factor && a.symbols == b.symbols;
                     });
}

/// The planned workloads on tensors, those that are explained alike as one.
static llvm::Expected<std::vector<WorkloadExplanation>>
collectWorkloads(ModuleOp module) {
  std::vector<WorkloadExplanation> result;
  llvm::StringMap<unsigned> numbers;
  llvm::Error error = llvm::Error::success();
  module.walk([&](ukernel::WorkloadOp op) {
    auto plan = op.getPlanAttr() && op->getNumResults() > 0
                    ? SymbolTable::lookupNearestSymbolFrom<ukernel::PlanOp>(
                          op, op.getPlanAttr())
                    : ukernel::PlanOp();
    if (!plan)
      return WalkResult::advance();
    WorkloadExplanation workload;
    workload.workload = toWorkload(op);
    // As kernels are named.
    std::string function = toIdentifier(workload.workload.name);
    workload.name = function + "_" + std::to_string(numbers[function]++);
    workload.workload.name = workload.name;
    workload.location = textOf(op.getLoc());
    workload.planName = plan.getSymName().str();
    auto known =
        llvm::find_if(result, [&](const WorkloadExplanation &explained) {
          return isExplainedAlike(explained, workload);
        });
    if (known != result.end()) {
      known->equalWorkloads.push_back(workload.name);
      return WalkResult::advance();
    }
    llvm::Expected<Plan> decoded = toPlan(plan.getPlan());
    if (!decoded) {
      error = llvm::joinErrors(std::move(error), decoded.takeError());
      return WalkResult::interrupt();
    }
    llvm::Expected<std::vector<KernelFamily>> rejected = rejectedFamilies(plan);
    if (!rejected) {
      error = llvm::joinErrors(std::move(error), rejected.takeError());
      return WalkResult::interrupt();
    }
    workload.plan = std::move(*decoded);
    workload.rejected = std::move(*rejected);
    result.push_back(std::move(workload));
    return WalkResult::advance();
  });
  if (error)
    return error;
  if (result.empty())
    return makeError(
        "nothing to explain: the module has no planned workloads on tensors");
  return result;
}

/// Every size must belong to some workload: a misspelt name is an error.
static llvm::Error checkNames(llvm::ArrayRef<WorkloadExplanation> workloads,
                              const NamedSizes &sizes) {
  std::vector<std::string> known;
  for (const WorkloadExplanation &workload : workloads)
    for (const std::string &name : sizeNames(workload.workload))
      if (!llvm::is_contained(known, name))
        known.push_back(name);
  for (const auto &[name, size] : sizes)
    if (!llvm::is_contained(known, name))
      return makeError("option --size: unknown name '" + name + "': expected " +
                       (known.empty() ? "none, since all sizes are fixed"
                                      : "one of " + llvm::join(known, ", ")));
  return llvm::Error::success();
}

/// Fills in the shapes and what is said about them.
static llvm::Error explain(const SearchSetup &setup, const DeviceSpec &device,
                           const NamedSizes &sizes,
                           WorkloadExplanation &workload) {
  ShapeSamples samples;
  if (sizes.empty()) {
    samples = shapesAlongMainAxis(workload.workload, kMaxExplainedSizes);
  } else {
    llvm::Expected<Shape> shape = bindSizes(workload.workload, sizes);
    if (!shape)
      return makeError("option --size: " + llvm::toString(shape.takeError()));
    samples = {{std::move(*shape)}, {1}};
  }
  llvm::Expected<std::vector<ShapeExplanation>> explanations =
      explainShapes(setup.problem(workload.workload, device, workload.rejected),
                    *setup.strategy, workload.plan, samples.shapes);
  if (!explanations)
    return explanations.takeError();
  workload.shapes = std::move(*explanations);
  workload.weights = std::move(samples.weights);
  workload.summary = summarize(workload.shapes, workload.weights);
  return llvm::Error::success();
}

llvm::Expected<ModuleExplanation>
ftuner::explainModule(ModuleOp module, const SearchSetup &setup,
                      const NamedSizes &sizes) {
  FailureOr<DeviceSpec> device = deviceOf(module);
  if (failed(device))
    return makeError("the module has no valid device");
  llvm::Expected<std::vector<WorkloadExplanation>> workloads =
      collectWorkloads(module);
  if (!workloads)
    return workloads.takeError();
  if (llvm::Error error = checkNames(*workloads, sizes))
    return error;
  std::string calibration = setup.calibrationFor(*device).name;
  ModuleExplanation result{std::move(*device), setup, std::move(calibration),
                           sizes, std::move(*workloads)};
  for (WorkloadExplanation &workload : result.workloads)
    if (llvm::Error error = explain(setup, result.device, sizes, workload))
      return error;
  return result;
}
