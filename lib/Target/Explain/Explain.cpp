//===- Explain.cpp - Why each workload is served as it is -----------------===//
#include "FTuner/Target/Explain.h"
#include "FTuner/Dialect/UKernel/Bridge/OperatorWorkload.h"
#include "FTuner/Dialect/UKernel/Bridge/PlanAttributes.h"
#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/HostAbi/HostAbi.h"

#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace ftuner;

/// Returns whether the explanations of two workloads are the same.
static bool isExplainedAlike(const WorkloadExplanation &lhs,
                             const WorkloadExplanation &rhs) {
  return lhs.planName == rhs.planName &&
         llvm::equal(lhs.workload.axes, rhs.workload.axes,
                     [](const Axis &a, const Axis &b) {
                       return a.factor == b.factor && a.symbols == b.symbols;
                     });
}

llvm::Expected<std::vector<WorkloadExplanation>>
ftuner::collectWorkloads(ModuleOp module) {
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
    workload.location = sourcePosition(op.getLoc());
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

std::string ftuner::didYouMean(llvm::StringRef name,
                               llvm::ArrayRef<std::string> known) {
  llvm::StringRef closest;
  unsigned minDistance = std::max<size_t>(name.size() / 2, 1) + 1;
  for (const std::string &candidate : known) {
    unsigned distance = name.edit_distance_insensitive(candidate);
    if (distance < minDistance) {
      minDistance = distance;
      closest = candidate;
    }
  }
  return closest.empty() ? "" : "; did you mean " + closest.str() + "?";
}

llvm::Error ftuner::checkSizeNames(ModuleOp module,
                                   llvm::ArrayRef<NamedSizes> sizes,
                                   bool withFunctions) {
  std::vector<std::string> known, ofFunctions;
  auto addTo = [](std::vector<std::string> &names) {
    return [&](std::string name) {
      if (!llvm::is_contained(names, name))
        names.push_back(std::move(name));
    };
  };
  module.walk([&](ukernel::OperatorOpInterface op) {
    if (op.hasTensors())
      llvm::for_each(sizeNames(toWorkload(op)), addTo(known));
  });
  for (auto func : module.getOps<func::FuncOp>())
    llvm::for_each(argumentSizeNames(func, func.getFunctionType()),
                   addTo(ofFunctions));
  // Without workloads these are all the names there are.
  if (known.empty() && withFunctions)
    known = ofFunctions;
  for (const NamedSizes &named : sizes)
    for (const auto &[name, size] : named) {
      if (llvm::is_contained(known, name) ||
          (withFunctions && llvm::is_contained(ofFunctions, name)))
        continue;
      return llvm::createStringError(
          "option --size: unknown name '" + name + "': expected " +
          (known.empty() ? "none, since all sizes are fixed"
                         : "one of " + llvm::join(known, ", ")) +
          didYouMean(name, known));
    }
  return llvm::Error::success();
}

/// Returns the named sizes, and in addition, by the names of a workload's axes,
/// the sizes that follow from given sizes of its function.
static NamedSizes withAxes(const NamedSizes &named,
                           const WorkloadExplanation &workload,
                           llvm::ArrayRef<FunctionWork> functions) {
  NamedSizes result = named;
  // A symbol may have the same name, and is another size.
  auto isSymbol = [&](llvm::StringRef name) {
    return llvm::any_of(workload.workload.axes, [&](const Axis &axis) {
      return llvm::is_contained(axis.symbols, name);
    });
  };
  for (const FunctionWork &function : functions) {
    std::vector<double> sizes;
    for (const std::string &name : function.sizeNames) {
      auto known = named.find(name);
      sizes.push_back(
          known == named.end() ? 0 : static_cast<double>(known->second));
    }
    auto isGiven = [&](AffineExpr formula) {
      return !formula
                  .walk([&](AffineExpr part) {
                    auto symbol = dyn_cast<AffineSymbolExpr>(part);
                    bool isMissing =
                        symbol &&
                        !named.count(function.sizeNames[symbol.getPosition()]);
                    return isMissing ? WalkResult::interrupt()
                                     : WalkResult::advance();
                  })
                  .wasInterrupted();
    };
    for (const LaunchWork &item : function.launches) {
      if (item.name != workload.name &&
          !llvm::is_contained(workload.equalWorkloads, item.name))
        continue;
      for (auto [extent, name] : llvm::zip(item.extents, item.axisNames)) {
        if (!extent || isSymbol(name) || !isGiven(extent))
          continue;
        if (std::optional<double> size = evaluate(extent, sizes))
          result.insert(
              {name, static_cast<int64_t>(
                         std::min(*size, static_cast<double>(maxExtent) + 1))});
      }
    }
  }
  return result;
}

/// Fills in the shapes and their explanations.
static llvm::Error explain(const SearchSetup &setup, const DeviceSpec &device,
                           llvm::ArrayRef<NamedSizes> sizes,
                           llvm::ArrayRef<FunctionWork> functions,
                           const SearchContext &context,
                           WorkloadExplanation &workload) {
  ShapeSamples samples;
  if (sizes.empty())
    samples = shapesAlongMainAxis(workload.workload, kMaxExplainedSizes);
  for (const NamedSizes &named : sizes) {
    llvm::Expected<Shape> shape =
        bindSizes(workload.workload, withAxes(named, workload, functions));
    if (!shape)
      return llvm::createStringError("option --size: " +
                                     llvm::toString(shape.takeError()));
    samples.shapes.push_back(std::move(*shape));
    samples.weights.push_back(1.0 / static_cast<double>(sizes.size()));
  }
  llvm::Expected<std::vector<ShapeExplanation>> explanations =
      explainShapes(setup.problem(workload.workload, device, workload.rejected),
                    *setup.strategy, workload.plan, samples.shapes, context);
  if (!explanations)
    return explanations.takeError();
  workload.shapes = std::move(*explanations);
  workload.weights = std::move(samples.weights);
  workload.summary = summarize(workload.shapes, workload.weights);
  return llvm::Error::success();
}

/// Returns the time of a workload's launch: from its explanation of the shape,
/// or else from its plan.
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

/// Leaves one function and the workloads that it launches.
static llvm::Error keepFunction(llvm::StringRef name,
                                std::vector<FunctionWork> &functions,
                                std::vector<WorkloadExplanation> &workloads) {
  auto isOther = [&](const FunctionWork &function) {
    return function.name != name;
  };
  if (llvm::all_of(functions, isOther)) {
    std::vector<std::string> known;
    for (const FunctionWork &function : functions)
      known.push_back(function.name);
    return llvm::createStringError(
        "option --function: expected one of the functions " +
        llvm::join(known, ", ") + ", but got '" + name + "'" +
        didYouMean(name, known));
  }
  llvm::erase_if(functions, isOther);
  llvm::erase_if(workloads, [&](const WorkloadExplanation &workload) {
    return llvm::none_of(
        functions.front().launches, [&](const LaunchWork &item) {
          return item.name == workload.name ||
                 llvm::is_contained(workload.equalWorkloads, item.name);
        });
  });
  return llvm::Error::success();
}

llvm::Expected<ModuleExplanation>
ftuner::explainModule(ModuleOp module, ModuleOp launching,
                      const SearchSetup &setup,
                      llvm::ArrayRef<NamedSizes> sizes,
                      const SearchContext &context, llvm::StringRef onlyOf) {
  FailureOr<DeviceSpec> device = deviceOf(module);
  if (failed(device))
    return llvm::createStringError("the module has no valid device");
  llvm::Expected<std::vector<WorkloadExplanation>> workloads =
      collectWorkloads(module);
  if (!workloads)
    return workloads.takeError();
  std::vector<FunctionWork> functions;
  if (launching)
    for (auto func : launching.getOps<func::FuncOp>())
      if (getAbiType(func))
        functions.push_back(collectWork(func));
  if (!launching && !onlyOf.empty())
    return llvm::createStringError(
        "option --function: the module has no lowering to "
        "launches, which tell its functions");
  if (!onlyOf.empty())
    if (llvm::Error error = keepFunction(onlyOf, functions, *workloads))
      return error;
  Calibration calibration = setup.calibrationFor(*device);
  std::string calibrationName =
      setup.costModel->calibrationName(setup.costOptions(*device));
  ModuleExplanation result{std::move(*device),
                           setup,
                           std::move(calibrationName),
                           transferError(calibration),
                           sizes.vec(),
                           std::move(*workloads),
                           {},
                           launching != nullptr};
  for (WorkloadExplanation &workload : result.workloads)
    if (llvm::Error error =
            explain(setup, result.device, sizes, functions, context, workload))
      return error;
  auto workloadTime = [&](const LaunchWork &item,
                          llvm::ArrayRef<int64_t> shape) {
    return timeOf(result, calibration, item, shape);
  };
  for (FunctionWork &function : functions)
    result.functions.push_back(
        reportWork(std::move(function),
                   {result.device, calibration, workloadTime, sizes}));
  if (result.workloads.empty() && result.functions.empty())
    return llvm::createStringError(
        "nothing to explain: the module has no planned workloads "
        "on tensors and no functions with launches");
  return result;
}
