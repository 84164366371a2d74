//===- ModuleTrees.cpp - The trees of all launches of a module ------------===//
#include "FTuner/Target/ModuleTrees.h"
#include "FTuner/Analysis/KernelTree.h"
#include "FTuner/Dialect/UKernel/Bridge/PlanAttributes.h"
#include "FTuner/HostAbi/HostAbi.h"
#include "FTuner/Schedule/Alignment.h"
#include "FTuner/Schedule/FamilyJson.h"
#include "FTuner/Schedule/ProgramFeatures.h"
#include "FTuner/Support/TextTable.h"
#include "FTuner/Target/Explain.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace ftuner;

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

/// The sizes of a function that the named ones tell, by symbols or by axes of
/// its workloads. All must be told.
static llvm::Expected<std::vector<double>> sizesOf(const FunctionWork &work,
                                                   const NamedSizes &named) {
  std::vector<double> sizes(work.sizeNames.size(), 0);
  auto find = [&](llvm::StringRef name, size_t position) {
    auto known = named.find(name.str());
    if (known != named.end() && sizes[position] == 0)
      sizes[position] = static_cast<double>(known->second);
  };
  for (auto [position, name] : llvm::enumerate(work.sizeNames))
    find(name, position);
  for (const LaunchWork &item : work.launches)
    for (auto [extent, name] : llvm::zip(item.extents, item.axisNames))
      if (auto symbol = dyn_cast_or_null<AffineSymbolExpr>(extent))
        find(name, symbol.getPosition());
  std::vector<std::string> missing;
  for (auto [name, size] : llvm::zip_equal(work.sizeNames, sizes))
    if (size == 0)
      missing.push_back(name);
  if (!missing.empty())
    return llvm::createStringError("option --size: function '" + work.name +
                                   "': expected a size of " +
                                   llvm::join(missing, ", "));
  return sizes;
}

/// Returns a number of a launch; no value if it does not follow from the sizes
/// of the function, or if no launch can pass it. `reason` tells about the first
/// such number that no launch can pass.
static std::optional<int64_t>
valueOf(AffineExpr formula, ArrayRef<double> sizes, std::string &reason) {
  std::optional<double> value = evaluateSigned(formula, sizes);
  if (!value)
    return std::nullopt;
  bool isNegative = *value < 0;
  bool isTooLarge = *value > static_cast<double>(maxExtent);
  if (!isNegative && !isTooLarge)
    return static_cast<int64_t>(*value);
  if (reason.empty())
    reason = isNegative ? "a size is negative"
                        : "a size is beyond " + std::to_string(maxExtent);
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Trees
//===----------------------------------------------------------------------===//

namespace {
class ModuleDescriber {
public:
  ModuleDescriber(ModuleOp launching, const DeviceSpec &device,
                  ArrayRef<WorkloadExplanation> workloads)
      : launching(launching), device(device), workloads(workloads) {}

  llvm::Expected<CallTrees> describe(func::FuncOp func,
                                     std::vector<double> sizes);

private:
  void describeFallback(const LaunchWork &item, ArrayRef<double> sizes,
                        LaunchTrees &launch);
  llvm::Error describeWorkload(const LaunchWork &item, ArrayRef<double> sizes,
                               LaunchTrees &launch);

  ModuleOp launching;
  const DeviceSpec &device;
  ArrayRef<WorkloadExplanation> workloads;
};
} // namespace

void ModuleDescriber::describeFallback(const LaunchWork &item,
                                       ArrayRef<double> sizes,
                                       LaunchTrees &launch) {
  LaunchNumbers numbers;
  for (AffineExpr size : item.passedSizes)
    numbers.sizes.push_back(valueOf(size, sizes, launch.reason));
  for (AffineExpr stride : item.passedStrides)
    numbers.strides.push_back(valueOf(stride, sizes, launch.reason));
  if (!launch.reason.empty())
    return;
  auto kernel = launching.lookupSymbol<gpu::GPUModuleOp>(item.kernel);
  if (!kernel) {
    launch.reason = "its kernel is not known";
    return;
  }
  llvm::Expected<PartAst> part = ftuner::describeFallback(kernel, numbers);
  if (part)
    launch.parts.push_back(std::move(*part));
  else
    launch.reason = llvm::toString(part.takeError());
}

llvm::Error ModuleDescriber::describeWorkload(const LaunchWork &item,
                                              ArrayRef<double> sizes,
                                              LaunchTrees &launch) {
  const WorkloadExplanation *workload =
      llvm::find_if(workloads, [&](const WorkloadExplanation &some) {
        return some.name == item.name ||
               llvm::is_contained(some.equalWorkloads, item.name);
      });
  if (workload == workloads.end()) {
    launch.reason = "its plan is not known";
    return llvm::Error::success();
  }
  Shape shape;
  for (AffineExpr extent : item.extents) {
    std::optional<double> size = evaluateSigned(extent, sizes);
    if (!size || *size < 0) {
      launch.reason = size ? "a size is negative"
                           : "its sizes do not follow from those of the "
                             "function";
      return llvm::Error::success();
    }
    // Beyond the greatest extent by how much does not matter.
    shape.push_back(static_cast<int64_t>(
        std::min(*size, static_cast<double>(maxExtent + 1))));
  }
  if (llvm::Error error = checkExtents(workload->workload, shape))
    return llvm::createStringError("option --size: " +
                                   llvm::toString(std::move(error)));
  launch.shape = std::move(shape);
  if (llvm::is_contained(launch.shape, 0)) {
    launch.reason = "nothing is launched";
    return llvm::Error::success();
  }
  const Plan &plan = workload->plan;
  int64_t alignment = alignmentOf(workload->workload, launch.shape);
  launch.family = plan.families[plan.familyFor(launch.shape, alignment)];
  Program program{&*launch.family,
                  partitionShape(*launch.family, launch.shape)};
  launch.parts =
      describeProgram(workload->workload, program, launch.shape, device);
  return llvm::Error::success();
}

llvm::Expected<CallTrees> ModuleDescriber::describe(func::FuncOp func,
                                                    std::vector<double> sizes) {
  CallTrees call;
  call.sizes = std::move(sizes);
  FunctionWork work = collectWork(func, call.sizes);
  for (auto [number, item] : llvm::enumerate(work.launches)) {
    LaunchTrees &launch = call.launches.emplace_back();
    launch.launch = number;
    launch.times = evaluate(item.launches, call.sizes);
    if (item.isFallback())
      describeFallback(item, call.sizes, launch);
    else if (llvm::Error error = describeWorkload(item, call.sizes, launch))
      return error;
  }
  return call;
}

llvm::Expected<ModuleTrees>
ftuner::describeModule(ModuleOp planned, ModuleOp launching,
                       llvm::ArrayRef<NamedSizes> sizes) {
  FailureOr<DeviceSpec> device = deviceOf(planned);
  if (failed(device))
    return llvm::createStringError("the module has no valid device");
  llvm::Expected<std::vector<WorkloadExplanation>> workloads =
      collectWorkloads(planned);
  if (!workloads)
    return workloads.takeError();
  ModuleTrees trees{std::move(*device), {}};
  ModuleDescriber describer(launching, trees.device, *workloads);
  std::vector<NamedSizes> calls = sizes.vec();
  if (calls.empty())
    calls.emplace_back();
  for (auto func : launching.getOps<func::FuncOp>()) {
    if (!getAbiType(func))
      continue;
    FunctionTrees &function = trees.functions.emplace_back();
    function.work = collectWork(func);
    for (const NamedSizes &named : calls) {
      llvm::Expected<std::vector<double>> known = sizesOf(function.work, named);
      if (!known)
        return known.takeError();
      llvm::Expected<CallTrees> call =
          describer.describe(func, std::move(*known));
      if (!call)
        return call.takeError();
      function.calls.push_back(std::move(*call));
    }
  }
  return trees;
}

//===----------------------------------------------------------------------===//
// Output
//===----------------------------------------------------------------------===//

static std::string sizesText(const FunctionWork &work, const CallTrees &call) {
  std::vector<std::string> parts;
  for (auto [name, size] : llvm::zip_equal(work.sizeNames, call.sizes))
    parts.push_back(name + " = " + std::to_string(static_cast<int64_t>(size)));
  return parts.empty() ? "fixed sizes" : llvm::join(parts, ", ");
}

static std::string shapeText(const LaunchWork &item, const Shape &shape) {
  std::vector<std::string> parts;
  for (auto [name, size] : llvm::zip(item.axisNames, shape))
    parts.push_back(name + " = " + std::to_string(size));
  return llvm::join(parts, ", ");
}

void ftuner::writeTreesText(const ModuleTrees &trees, llvm::raw_ostream &os) {
  os << "Trees of programs for " << trees.device.name << "\n";
  for (const FunctionTrees &function : trees.functions)
    for (const CallTrees &call : function.calls) {
      os << "\nFunction " << function.work.name << " at "
         << sizesText(function.work, call) << "\n";
      for (const LaunchTrees &launch : call.launches) {
        const LaunchWork &item = function.work.launches[launch.launch];
        os << "\n  " << item.name << ": " << item.operatorName;
        if (!item.location.empty())
          os << " at " << item.location;
        if (!launch.times)
          os << ", in a loop";
        else if (*launch.times != 1)
          os << ", " << general(*launch.times) << " times";
        os << "\n";
        if (launch.family)
          os << "    " << shapeText(item, launch.shape) << "; "
             << launch.family->str() << "\n";
        if (!launch.reason.empty())
          os << "    no tree: " << launch.reason << "\n";
        for (const PartAst &part : launch.parts) {
          os << "    " << general(part.blocks) << " blocks\n";
          part.ast.print(os, /*indent=*/6);
        }
      }
    }
}

static void writeTree(llvm::json::OStream &json, const PartAst &part,
                      bool withFeatures) {
  json.object([&] {
    json.attribute("part", static_cast<int64_t>(part.part));
    json.attribute("blocks", part.blocks);
    part.ast.write(json);
    if (!withFeatures)
      return;
    json.attributeArray("features", [&] {
      for (const ProgramFeatures &features : programFeatures(part.ast))
        json.array([&] {
          for (float feature : features)
            json.value(feature);
        });
    });
  });
}

static void writeLaunch(llvm::json::OStream &json, const LaunchWork &item,
                        const LaunchTrees &launch, bool withFeatures) {
  json.object([&] {
    json.attribute(item.isFallback() ? "kernel" : "workload", item.name);
    json.attribute("operator", item.operatorName);
    json.attribute("location", item.location);
    if (launch.times)
      json.attribute("launches", *launch.times);
    else
      json.attribute("launches", nullptr);
    if (launch.family) {
      json.attributeArray("axes", [&] {
        for (const std::string &name : item.axisNames)
          json.value(name);
      });
      writeSizes(json, "shape", launch.shape);
      json.attributeObject("family",
                           [&] { writeFamily(json, *launch.family); });
    }
    json.attributeArray("trees", [&] {
      for (const PartAst &part : launch.parts)
        writeTree(json, part, withFeatures);
    });
    if (launch.reason.empty())
      json.attribute("reason", nullptr);
    else
      json.attribute("reason", launch.reason);
  });
}

void ftuner::writeTreesJson(const ModuleTrees &trees, bool withFeatures,
                            llvm::raw_ostream &os) {
  llvm::json::OStream json(os, /*IndentSize=*/withFeatures ? 0 : 2);
  json.object([&] {
    json.attribute("format_version", kTreesFormatVersion);
    json.attribute("device", trees.device.name);
    if (withFeatures)
      json.attributeArray("feature_names", [&] {
        for (const std::string &name : programFeatureNames())
          json.value(name);
      });
    json.attributeArray("functions", [&] {
      for (const FunctionTrees &function : trees.functions)
        json.object([&] {
          json.attribute("symbol", function.work.name);
          json.attributeArray("calls", [&] {
            for (const CallTrees &call : function.calls)
              json.object([&] {
                json.attributeObject("sizes", [&] {
                  for (auto [name, size] :
                       llvm::zip_equal(function.work.sizeNames, call.sizes))
                    json.attribute(name, static_cast<int64_t>(size));
                });
                json.attributeArray("launches", [&] {
                  for (const LaunchTrees &launch : call.launches)
                    writeLaunch(json, function.work.launches[launch.launch],
                                launch, withFeatures);
                });
              });
          });
        });
    });
  });
  os << "\n";
}
