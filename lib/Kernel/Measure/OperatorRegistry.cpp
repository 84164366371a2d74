//===- OperatorRegistry.cpp - Operators behind workloads ------------------===//
#include "FTuner/Kernel/Measure/OperatorRegistry.h"
#include "FTuner/Dialect/UKernel/Bridge/OperatorWorkload.h"
#include "FTuner/Kernel/KernelBuilder.h"
#include "FTuner/Measure/MeasurementLog.h"

using namespace mlir;
using namespace ftuner;

static std::unique_ptr<OperatorRegistry::Entry>
makeEntry(ukernel::OperatorOpInterface op) {
  auto entry = std::make_unique<OperatorRegistry::Entry>();
  entry->module = ModuleOp::create(op.getLoc());
  IsolatedOperator isolated = isolate(op);
  entry->op = isolated.op;
  entry->module->push_back(isolated.function.release());
  return entry;
}

const Workload &OperatorRegistry::add(ukernel::OperatorOpInterface op,
                                      StringRef name) {
  std::unique_ptr<Entry> made = makeEntry(op);
  for (const std::unique_ptr<Entry> &entry : entries)
    if (computeTheSame(entry->op, made->op))
      return entry->workload;
  made->workload = toWorkload(op);
  made->workload.name = name.str();
  entries.push_back(std::move(made));
  return entries.back()->workload;
}

std::string
OperatorRegistry::Entry::objectionTo(ArrayRef<int64_t> shape) const {
  SmallVector<int64_t, 4> extents =
      ukernel::OperatorOpInterface(op).getStaticExtents();
  if (!ukernel::OperatorOpInterface(op).getFusedLoops().empty())
    return "expected axes that are not fused, of whose loops a shape does not "
           "tell the extents";
  if (shape.size() != extents.size())
    return "expected " + std::to_string(extents.size()) + " sizes, but got " +
           std::to_string(shape.size());
  for (auto [axis, extent, size] :
       llvm::zip_equal(workload.axes, extents, shape)) {
    bool isFixed = !ShapedType::isDynamic(extent);
    if (size < 1 || (isFixed && size != extent))
      return "expected " +
             (isFixed ? std::to_string(extent) : std::string("at least 1")) +
             " along " + axis.name + ", but got " + std::to_string(size);
  }
  return {};
}

/// Whether the workload may be that of the entry's operator.
static bool isAlike(const OperatorRegistry::Entry &entry,
                    const Workload &workload) {
  if (entry.workload.fingerprint(FingerprintOf::Kernels) !=
      workload.fingerprint(FingerprintOf::Kernels))
    return false;
  // Some shape of the workload.
  auto shape = llvm::map_to_vector(
      workload.axes, [](const Axis &axis) { return axis.range.min; });
  for (auto [axis, extent] : llvm::zip_equal(
           workload.axes,
           ukernel::OperatorOpInterface(entry.op).getStaticExtents()))
    if (!ShapedType::isDynamic(extent) && !axis.range.isFixed())
      return false;
  return entry.objectionTo(shape).empty();
}

const OperatorRegistry::Entry *
OperatorRegistry::find(const Workload &workload) const {
  for (const std::unique_ptr<Entry> &entry : entries)
    if (&entry->workload == &workload)
      return entry.get();
  for (const std::unique_ptr<Entry> &entry : entries)
    if (isAlike(*entry, workload))
      return entry.get();
  return nullptr;
}
