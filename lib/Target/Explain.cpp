//===- Explain.cpp - Why each workload is served as it is -----------------===//
#include "FTuner/Target/Explain.h"
#include "FTuner/Dialect/UKernel/Bridge/OperatorWorkload.h"
#include "FTuner/Dialect/UKernel/Bridge/PlanAttributes.h"
#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/Transforms/HostAbi.h"

#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace ftuner;

static llvm::Error makeError(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
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
  module.walk([&](ukernel::OperatorOpInterface op) {
    auto plan = op.getPlanAttr() && op.hasTensors()
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
    workload.location = positionOf(op.getLoc());
    workload.planName = plan.getSymName().str();
    auto known =
        llvm::find_if(result, [&](const WorkloadExplanation &explained) {
          return isExplainedAlike(explained, workload);
        });
    if (known != result.end()) {
      known->equalWorkloads.push_back(workload.name);
      return WalkResult::advance();
    }
    llvm::Expected<std::vector<KernelFamily>> rejected = rejectedFamilies(plan);
    if (!rejected) {
      error = llvm::joinErrors(std::move(error), rejected.takeError());
      return WalkResult::interrupt();
    }
    workload.plan = toPlan(plan.getPlan());
    workload.rejected = std::move(*rejected);
    if (FlatSymbolRefAttr name = plan.getPortableAttr()) {
      auto portable =
          SymbolTable::lookupNearestSymbolFrom<ukernel::PlanOp>(plan, name);
      workload.portable = toPlan(portable.getPlan());
      workload.portableName = name.getValue().str();
    }
    result.push_back(std::move(workload));
    return WalkResult::advance();
  });
  if (error)
    return error;
  return result;
}

/// Every size must belong to some workload: a misspelt name is an error.
static llvm::Error checkNames(llvm::ArrayRef<WorkloadExplanation> workloads,
                              llvm::ArrayRef<FunctionWork> functions,
                              const NamedSizes &sizes) {
  std::vector<std::string> known;
  auto add = [&](const std::string &name) {
    if (!llvm::is_contained(known, name))
      known.push_back(name);
  };
  for (const WorkloadExplanation &workload : workloads)
    llvm::for_each(sizeNames(workload.workload), add);
  // Without workloads these are all the names there are.
  for (const FunctionWork &function : functions)
    for (const std::string &name : function.sizeNames)
      if (workloads.empty() || sizes.count(name))
        add(name);
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

/// The error for a module without workloads: what its functions launch instead.
static llvm::Error nothingToExplain(llvm::ArrayRef<FunctionReport> functions) {
  std::string text =
      "nothing to explain: the module has no planned workloads on tensors";
  for (const FunctionReport &function : functions)
    if (std::string warning = function.warning(); !warning.empty())
      text += "\n" + function.work.name + ": " + warning;
  return makeError(text);
}

/// The time of a workload's launch: what its explanation says of the shape, or
/// else what its plan does.
static std::optional<double> timeOf(const ModuleExplanation &explanation,
                                    const Calibration &calibration,
                                    const LaunchWork &item,
                                    llvm::ArrayRef<int64_t> shape) {
  for (const WorkloadExplanation &workload : explanation.workloads) {
    if (workload.name != item.name &&
        !llvm::is_contained(workload.equalWorkloads, item.name))
      continue;
    for (const ShapeExplanation &known : workload.shapes)
      if (llvm::ArrayRef<int64_t>(known.report.shape) == shape)
        return known.program.microseconds();
    return predictedByPlan(workload.plan, shape, calibration);
  }
  return std::nullopt;
}

llvm::Expected<ModuleExplanation>
ftuner::explainModule(ModuleOp module, ModuleOp launching,
                      const SearchSetup &setup, const NamedSizes &sizes) {
  FailureOr<DeviceSpec> device = deviceOf(module);
  if (failed(device))
    return makeError("the module has no valid device");
  llvm::Expected<std::vector<WorkloadExplanation>> workloads =
      collectWorkloads(module);
  if (!workloads)
    return workloads.takeError();
  std::vector<FunctionWork> functions;
  if (launching)
    for (auto func : launching.getOps<func::FuncOp>())
      if (getAbiType(func))
        functions.push_back(collectWork(func));
  if (llvm::Error error = checkNames(*workloads, functions, sizes))
    return error;
  Calibration calibration = setup.calibrationFor(*device);
  ModuleExplanation result{
      std::move(*device),    setup, calibration.name,    sizes,
      std::move(*workloads), {},    launching != nullptr};
  for (WorkloadExplanation &workload : result.workloads)
    if (llvm::Error error = explain(setup, result.device, sizes, workload))
      return error;
  auto workloadTime = [&](const LaunchWork &item,
                          llvm::ArrayRef<int64_t> shape) {
    return timeOf(result, calibration, item, shape);
  };
  for (FunctionWork &function : functions)
    result.functions.push_back(
        reportWork(std::move(function),
                   {result.device, calibration, workloadTime, sizes}));
  if (result.workloads.empty())
    return nothingToExplain(result.functions);
  return result;
}
