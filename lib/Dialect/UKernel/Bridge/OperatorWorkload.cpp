//===- OperatorWorkload.cpp - Operators as the core sees them -------------===//
#include "FTuner/Dialect/UKernel/Bridge/OperatorWorkload.h"

#include "FTuner/Dialect/UKernel/Bridge/PlanAttributes.h"
#include "FTuner/Schedule/Alignment.h"
#include "FTuner/Schedule/CodegenModel.h"

#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace ftuner;

//===----------------------------------------------------------------------===//
// Axes
//===----------------------------------------------------------------------===//

/// Returns the sizes of the range that are at least 1; size 1 if no size is.
static SizeRange withoutZero(SizeRange range) {
  if (range.min >= 1)
    return range;
  if (range.max && *range.max < range.step)
    return SizeRange::fixed(1);
  return {range.step, range.max, range.step};
}

static Axis makeAxis(StringRef name, int64_t extent, ukernel::RangeAttr range) {
  Axis axis{name.str(), {}};
  if (ShapedType::isStatic(extent)) {
    axis.range = SizeRange::fixed(std::max<int64_t>(extent, 1));
    return axis;
  }
  if (!range)
    return axis;
  axis.range = withoutZero(toSizeRange(range));
  double sum = 0;
  for (const SizeWeight &entry : toWeights(range))
    if (axis.range.contains(entry.size)) {
      axis.weights.push_back(entry);
      sum += entry.weight;
    }
  if (!(sum > 0))
    axis.weights.clear();
  return axis;
}

/// Reads `ukernel.extents` into the axes; the dialect has verified it.
static void readExtents(ukernel::OperatorOpInterface op, Workload &workload) {
  auto extents =
      op->getAttrOfType<ArrayAttr>(ukernel::UKernelDialect::kExtentsAttrName);
  if (!extents)
    return;
  for (auto [axis, entry] : llvm::zip_equal(workload.axes, extents)) {
    auto product = dyn_cast<ArrayAttr>(entry);
    if (!product || !axis.isDynamic())
      continue;
    axis.factor = cast<IntegerAttr>(product[0]).getValue().getSExtValue();
    for (Attribute symbol : product.getValue().drop_front())
      axis.symbols.push_back(cast<StringAttr>(symbol).str());
  }
}

std::string ftuner::axisNameOf(ukernel::OperatorOpInterface op, unsigned axis) {
  return op.getAxisName(axis).upper();
}

Workload ftuner::toWorkload(ukernel::OperatorOpInterface op) {
  Workload workload;
  if (auto function = op->getParentOfType<FunctionOpInterface>())
    workload.name = function.getName().str();
  ArrayAttr ranges = op.getRangesAttr();
  SmallVector<int64_t, 4> extents = op.getStaticExtents();
  for (auto [axis, extent] : llvm::enumerate(extents))
    workload.axes.push_back(
        makeAxis(axisNameOf(op, axis), extent,
                 ranges ? cast<ukernel::RangeAttr>(ranges[axis])
                        : ukernel::RangeAttr()));
  addLoops(op.getFusedLoops(), ukernel::staticSizesOfDims(op), workload);
  addOperands(op, workload);
  readExtents(op, workload);
  op.describe(workload);
  return workload;
}

Workload ftuner::toUnrangedWorkload(ukernel::OperatorOpInterface op) {
  Workload workload = toWorkload(op);
  for (auto [axis, extent] :
       llvm::zip_equal(workload.axes, op.getStaticExtents()))
    if (ShapedType::isDynamic(extent))
      axis.range = {0, std::nullopt};
  return workload;
}

//===----------------------------------------------------------------------===//
// Support
//===----------------------------------------------------------------------===//

FailureOr<PathSupport> PathSupport::forModule(ModuleOp module) {
  PathSupport support;
  if (module->hasAttr(ukernel::UKernelDialect::kDeviceAttrName)) {
    FailureOr<DeviceSpec> device = deviceOf(module);
    if (failed(device))
      return failure();
    support.devices.push_back(std::move(*device));
    return support;
  }
  for (const std::string &name : builtinDeviceNames()) {
    llvm::Expected<DeviceSpec> device = loadDeviceSpec(name);
    if (!device)
      return module->emitOpError() << llvm::toString(device.takeError());
    support.devices.push_back(std::move(*device));
  }
  return support;
}

void PathSupport::add(ArrayRef<const CodegenModel *> others) {
  for (const CodegenModel *path : others)
    if (!llvm::is_contained(paths, path))
      paths.push_back(path);
}

PathSupport
PathSupport::restrictedTo(ArrayRef<const CodegenModel *> chosen) const {
  PathSupport support = *this;
  support.paths.assign(chosen.begin(), chosen.end());
  return support;
}

std::vector<StringRef> PathSupport::pathsFor(const Workload &workload) const {
  std::vector<StringRef> names;
  for (const CodegenModel *path : paths)
    for (const DeviceSpec &device : devices) {
      llvm::Error error = path->supports(workload, device);
      bool isSupported = !error;
      llvm::consumeError(std::move(error));
      if (!isSupported)
        continue;
      names.push_back(path->name());
      break;
    }
  return names;
}

llvm::Error PathSupport::check(const Workload &workload) const {
  std::vector<std::string> reasons;
  for (const CodegenModel *path : paths) {
    std::string reason;
    for (const DeviceSpec &device : devices) {
      llvm::Error error = path->supports(workload, device);
      if (!error)
        return error;
      std::string ofDevice = llvm::toString(std::move(error));
      // Reasons for other devices would add little.
      if (reason.empty())
        reason = std::move(ofDevice);
    }
    reasons.push_back(std::move(reason));
  }
  return llvm::createStringError(llvm::join(reasons, "; "));
}
