//===- Manifest.cpp - Description of a compiled module --------------------===//
#include "FTuner/Target/Manifest.h"
#include "FTuner/Dialect/UKernel/Bridge/PlanAttributes.h"
#include "FTuner/Dialect/UKernel/IR/Images.h"
#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/HostAbi/HostAbi.h"
#include "FTuner/PTX/Ptxas.h"
#include "FTuner/Schedule/FamilyJson.h"
#include "FTuner/Target/WorkReport.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Threading.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"

using namespace mlir;

namespace ftuner {

namespace {

/// Programs are listed for sizes up to this one.
constexpr int64_t kMaxListedSizes = 4096;

class ManifestWriter {
public:
  ManifestWriter(ModuleOp module, const PtxImages &ptx, llvm::raw_ostream &os)
      : module(module), ptx(ptx), json(os, /*IndentSize=*/2) {}

  LogicalResult write(const ManifestOptions &options);

private:
  /// A kernel of the module, in the order of its gpu.module.
  struct Kernel {
    gpu::GPUModuleOp op;
    ukernel::EntryAttr entry;
    /// Its translation, and the first image that holds it.
    const PtxKernel *ptx;
    const PtxModule *image;
    /// The workloads that it computes, and the number of its family in the plan
    /// of each; -1 where the plan does not have it. None of a fallback kernel.
    SmallVector<std::pair<StringRef, int64_t>> uses;
    std::optional<PtxResources> resources;
  };
  /// A workload and the plan that it was compiled by.
  struct WorkloadPlan {
    StringRef planName;
    const Plan *plan;
    ukernel::PlanAttr attribute;
    /// If resource feedback ran: figures of each family, and the families that
    /// it rejected.
    ArrayAttr measured;
    std::vector<KernelFamily> rejected;
  };

  LogicalResult collect();
  void measure();

  void writeDevice(const DeviceSpec &device);
  void writeFunction(func::FuncOp function, FunctionType type,
                     const DeviceSpec &device);
  /// Value `index` of a function under `key`, "arguments" or "results".
  void writeValue(func::FuncOp function, StringRef key, unsigned index,
                  Type type);
  void writeTensorMap(ukernel::TensorMapAttr map);
  void writeKernel(const Kernel &kernel);
  void writeWorkload(StringRef name, const WorkloadPlan &workload);
  void writeMeasured(Attribute figures);
  void writeEntries(StringRef key, ArrayRef<DispatchEntry> entries);
  void writePrograms(const Plan &plan);
  void writePredictions(const Plan &plan);
  void writeRankings(const Plan &plan);
  void writeSearch(const Plan &plan);
  std::string kernelOf(StringRef workload, int64_t family, bool addsSlices);

  ModuleOp module;
  const PtxImages &ptx;
  llvm::json::OStream json;
  std::vector<Kernel> kernels;
  llvm::MapVector<StringRef, WorkloadPlan> workloads;
};

} // namespace

/// Returns the name of a kernel's function, or of its module if it has no
/// function.
static StringRef entryNameOf(gpu::GPUModuleOp kernel) {
  for (auto function : kernel.getOps<LLVM::LLVMFuncOp>())
    if (function->hasAttr(NVVM::NVVMDialect::getKernelFuncAttrName()))
      return function.getName();
  return kernel.getName();
}

static std::string toString(Type type) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  type.print(stream);
  return text;
}

//===----------------------------------------------------------------------===//
// Collection
//===----------------------------------------------------------------------===//

LogicalResult ManifestWriter::collect() {
  for (auto op : module.getOps<ukernel::PlanOp>()) {
    auto names = op->getAttrOfType<ArrayAttr>(kWorkloadsAttrName);
    if (!names)
      continue;
    for (auto name : names.getAsRange<StringAttr>()) {
      llvm::Expected<std::vector<KernelFamily>> rejected = rejectedFamilies(op);
      if (!rejected)
        return op.emitError(llvm::toString(rejected.takeError()));
      workloads[name.getValue()] = {
          op.getSymName(), &toPlan(op.getPlan()), op.getPlan(),
          op->getAttrOfType<ArrayAttr>(kMeasuredAttrName),
          std::move(*rejected)};
    }
  }
  for (auto op : module.getOps<gpu::GPUModuleOp>()) {
    auto [image, translated] = ptx.find(entryNameOf(op));
    if (!translated)
      return op.emitError("expected a translation of the kernel");
    Kernel kernel{op,
                  op->getAttrOfType<ukernel::EntryAttr>(
                      ukernel::UKernelDialect::kEntryAttrName),
                  translated,
                  image,
                  {},
                  std::nullopt};
    if (!kernel.entry)
      return op.emitError("expected the attribute '")
             << ukernel::UKernelDialect::kEntryAttrName
             << "' of a compiled kernel";
    for (ukernel::UseAttr use : kernel.entry.getUses()) {
      if (!use.getWorkload())
        continue;
      StringRef workload = use.getWorkload().getValue();
      int64_t number = -1;
      if (auto *it = workloads.find(workload); it != workloads.end()) {
        ArrayRef<ukernel::FamilyAttr> families =
            it->second.attribute.getFamilies();
        const auto *found = llvm::find(families, use.getFamily());
        if (found != families.end())
          number = found - families.begin();
      }
      kernel.uses.push_back({workload, number});
    }
    kernels.push_back(kernel);
  }
  return success();
}

void ManifestWriter::measure() {
  std::optional<std::string> ptxas = findPtxas();
  if (!ptxas)
    return;
  std::vector<std::string> reasons(kernels.size());
  parallelFor(module.getContext(), 0, kernels.size(), [&](size_t index) {
    llvm::Expected<PtxResources> resources = measureResources(
        *ptxas, *kernels[index].ptx, kernels[index].image->target);
    if (resources)
      kernels[index].resources = *resources;
    else
      reasons[index] = llvm::toString(resources.takeError());
  });
  // The reason is most likely the same for all of them: one warning is enough.
  llvm::erase_if(reasons, [](const std::string &text) { return text.empty(); });
  if (!reasons.empty())
    mlir::emitWarning(UnknownLoc::get(module.getContext()),
                      "no resources in the manifest for ")
        << reasons.size() << " of " << kernels.size()
        << " kernels: " << reasons.front();
}

std::string ManifestWriter::kernelOf(StringRef workload, int64_t family,
                                     bool addsSlices) {
  for (const Kernel &kernel : kernels)
    if (kernel.op->hasAttr(kAddsSlicesAttrName) == addsSlices &&
        llvm::is_contained(kernel.uses, std::pair(workload, family)))
      return kernel.ptx->entry;
  return {};
}

//===----------------------------------------------------------------------===//
// Functions and kernels
//===----------------------------------------------------------------------===//

void ManifestWriter::writeDevice(const DeviceSpec &device) {
  json.attributeObject("device", [&] {
    json.attribute("name", device.name);
    json.attribute("architecture", device.architecture);
    json.attribute("compute_capability",
                   std::to_string(device.computeCapabilityMajor) + "." +
                       std::to_string(device.computeCapabilityMinor));
    json.attribute("chip", ptx.own.target.chip());
    if (ptx.portable)
      json.attribute("portable_chip", ptx.portable->target.chip());
  });
}

void ManifestWriter::writeValue(func::FuncOp function, StringRef key,
                                unsigned index, Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (StringRef name = getValueName(function, key, index); !name.empty())
    json.attribute("name", llvm::json::fixUTF8(name));
  json.attribute("kind", tensor ? "tensor" : "scalar");
  json.attribute("type", toString(tensor ? tensor.getElementType() : type));
  if (llvm::is_contained(getUnsigned(function, key), index))
    json.attribute("unsigned", true);
  if (!tensor)
    return;
  auto symbols = key == "arguments" && index < function.getNumArguments()
                     ? function.getArgAttrOfType<ArrayAttr>(
                           index, ukernel::UKernelDialect::kShapeAttrName)
                     : ArrayAttr();
  json.attributeArray("shape", [&] {
    for (auto [dim, size] : llvm::enumerate(tensor.getShape())) {
      auto symbol = symbols && dim < symbols.size()
                        ? dyn_cast<StringAttr>(symbols[dim])
                        : StringAttr();
      if (symbol)
        json.value(symbol.getValue());
      else if (ShapedType::isDynamic(size))
        json.value(nullptr);
      else
        json.value(size);
    }
  });
}

void ManifestWriter::writeFunction(func::FuncOp function, FunctionType type,
                                   const DeviceSpec &device) {
  std::string symbol = function.getName().str();
  auto source = function->getAttrOfType<StringAttr>(kSourceNameAttrName);
  Calibration calibration = kernelCalibration(device);
  auto workloadTime =
      [&](const LaunchWork &item,
          llvm::ArrayRef<int64_t> shape) -> std::optional<double> {
    auto *known = workloads.find(item.workload);
    if (known == workloads.end())
      return std::nullopt;
    return predictedByPlan(*known->second.plan, shape, calibration);
  };
  json.object([&] {
    json.attribute("name", source ? source.getValue() : StringRef(symbol));
    json.attribute("symbol", symbol);
    json.attribute("result_sizes_symbol", symbol + "_result_sizes");
    json.attribute("workspace_size_symbol", symbol + "_workspace_size");
    auto writeValues = [&](StringRef key, TypeRange types) {
      json.attributeArray(key, [&] {
        for (auto [index, type] : llvm::enumerate(types))
          json.object([&, index = index, type = type] {
            writeValue(function, key, index, type);
          });
      });
    };
    writeValues("arguments", type.getInputs());
    writeValues("results", type.getResults());
    FunctionReport report =
        reportWork(collectWork(function), {device, calibration, workloadTime});
    json.attributeObject("work", [&] { writeWork(json, report); });
  });
}

/// Writes a tensor map. Its names are names of the kernel's parameters.
void ManifestWriter::writeTensorMap(ukernel::TensorMapAttr map) {
  auto writeExtents = [&](StringRef key, ArrayAttr extents) {
    json.attributeArray(key, [&] {
      for (Attribute extent : extents) {
        if (auto name = dyn_cast<StringAttr>(extent))
          json.value(name.getValue());
        else
          json.value(cast<IntegerAttr>(extent).getInt());
      }
    });
  };
  json.attribute("pointer", map.getPointer());
  writeExtents("sizes", map.getSizes());
  writeExtents("strides", map.getStrides());
  writeSizes(json, "box", map.getBox());
  json.attribute("swizzle_bytes", map.getSwizzleBytes());
  json.attribute("l2_promotion_bytes", map.getL2PromotionBytes());
  if (!map.getFitBelow().empty())
    writeSizes(json, "fit_below", map.getFitBelow());
}

void ManifestWriter::writeKernel(const Kernel &kernel) {
  json.object([&] {
    json.attribute("entry", kernel.ptx->entry);
    if (ptx.portable)
      json.attributeArray("chips", [&] {
        for (const PtxModule *image : {&ptx.own, &*ptx.portable})
          if (image->find(kernel.ptx->entry))
            json.value(image->target.chip());
      });
    json.attributeArray("workloads", [&] {
      for (const auto &[workload, family] : kernel.uses)
        json.object([&, workload = workload, family = family] {
          json.attribute("workload", workload);
          if (family >= 0)
            json.attribute("family", family);
          else
            json.attribute("family", nullptr);
        });
    });
    json.attributeArray("block", [&] {
      json.value(kernel.entry.getThreads());
      json.value(1);
      json.value(1);
    });
    json.attribute("dynamic_shared_memory_bytes",
                   kernel.entry.getSharedMemoryBytes());
    json.attribute("alignment_bytes", kernel.entry.getAlignment());
    json.attributeArray("parameters", [&] {
      for (auto fields :
           kernel.entry.getParameters().getAsRange<DictionaryAttr>())
        json.object([&] {
          for (StringRef key : {"name", "kind", "type", "access"}) {
            Attribute value = fields.get(key);
            if (auto text = dyn_cast_or_null<StringAttr>(value))
              json.attribute(key, text.getValue());
            else if (auto type = dyn_cast_or_null<TypeAttr>(value))
              json.attribute(key, toString(type.getValue()));
          }
          if (auto map = fields.getAs<ukernel::TensorMapAttr>("map"))
            writeTensorMap(map);
        });
    });
    if (!kernel.resources) {
      json.attribute("resources", nullptr);
      return;
    }
    json.attributeObject("resources", [&] {
      json.attribute("registers_per_thread",
                     kernel.resources->registersPerThread);
      json.attribute("spill_store_bytes", kernel.resources->spillStoreBytes);
      json.attribute("spill_load_bytes", kernel.resources->spillLoadBytes);
      json.attribute("stack_bytes", kernel.resources->stackBytes);
    });
  });
}

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

/// Writes what resource feedback measured of a family.
void ManifestWriter::writeMeasured(Attribute figures) {
  auto fields = dyn_cast<DictionaryAttr>(figures);
  for (auto [key, name] :
       {std::pair(StringRef("measured_registers"), kMeasuredRegistersName),
        std::pair(StringRef("measured_spill_bytes"),
                  kMeasuredSpillBytesName)}) {
    auto value = fields ? fields.getAs<IntegerAttr>(name) : IntegerAttr();
    if (value)
      json.attribute(key, value.getInt());
    else
      json.attribute(key, nullptr);
  }
}

/// The axis that decides alone which entry holds a shape and how families cover
/// it, if they lie along it: elsewhere all boxes are equal, and of one size
/// where partitions are balanced.
static std::optional<unsigned> axisOfPrograms(const Plan &plan) {
  if (plan.entries.empty())
    return std::nullopt;
  const DispatchEntry &first = plan.entries.front();
  // The axis of the first family, unless it is one whose extent is known.
  unsigned axis = plan.families[first.family].combineAxis;
  if (first.box[axis].isFixed())
    for (const auto &[index, range] : llvm::enumerate(first.box))
      if (!range.isFixed())
        axis = index;
  for (const DispatchEntry &entry : plan.entries) {
    const KernelFamily &family = plan.families[entry.family];
    for (auto [index, ranges] :
         llvm::enumerate(llvm::zip_equal(entry.box, first.box))) {
      const auto &[range, firstRange] = ranges;
      bool decidesPartition =
          family.combineAxis == index ||
          (family.balancedSms != 0 && !family.isReduceAxis(index));
      bool isVague = decidesPartition && !range.isFixed();
      if (index != axis && (isVague || range.min != firstRange.min ||
                            range.max != firstRange.max))
        return std::nullopt;
    }
  }
  return axis;
}

void ManifestWriter::writeEntries(StringRef key,
                                  ArrayRef<DispatchEntry> entries) {
  json.attributeArray(key, [&] {
    for (const DispatchEntry &entry : entries)
      json.object([&] {
        json.attributeArray("box", [&] {
          for (const SizeRange &range : entry.box)
            json.object([&] {
              json.attribute("min", range.min);
              if (range.isOpen())
                json.attribute("max", nullptr);
              else
                json.attribute("max", *range.max);
            });
        });
        json.attribute("family", entry.family);
      });
  });
}

/// The program of every size that an entry holds, for aligned operands.
void ManifestWriter::writePrograms(const Plan &plan) {
  json.attributeArray("programs", [&] {
    std::optional<unsigned> axis = axisOfPrograms(plan);
    if (!axis)
      return;
    for (int64_t size = 1; size <= kMaxListedSizes; ++size) {
      auto entry = llvm::find_if(plan.entries, [&](const auto &entry) {
        return entry.box[*axis].contains(size);
      });
      if (entry == plan.entries.end())
        continue;
      const KernelFamily &family = plan.families[entry->family];
      json.object([&] {
        Shape shape;
        for (const SizeRange &range : entry->box)
          shape.push_back(range.min);
        shape[*axis] = size;
        json.attribute("axis", static_cast<int64_t>(family.combineAxis));
        json.attribute("size", size);
        json.attribute("extent", shape[family.combineAxis]);
        json.attribute("family", entry->family);
        writePartition(json, family, partitionShape(family, shape));
      });
    }
  });
}

/// Predicted times of the shapes that the search looked at, a line for each,
/// and the measured ones.
void ManifestWriter::writePredictions(const Plan &plan) {
  json.attributeArray("predictions", [&] {
    for (const ShapePrediction &prediction : plan.predictions)
      json.rawValue([&](llvm::raw_ostream &os) {
        os << "{\"shape\": [";
        llvm::interleaveComma(prediction.shape, os);
        os << llvm::format("], \"family\": %u, \"predicted_us\": %.6g, "
                           "\"regret\": %.6g, \"confidence\": %.6g",
                           prediction.family, prediction.microseconds,
                           prediction.regret, prediction.confidence);
        if (prediction.measuredMicroseconds > 0)
          os << llvm::format(", \"measured_us\": %.6g",
                             prediction.measuredMicroseconds);
        os << '}';
      });
  });
}

/// The best programs of the shapes that the search looked at.
void ManifestWriter::writeRankings(const Plan &plan) {
  json.attributeArray("rankings", [&] {
    for (const ShapeRanking &ranking : plan.rankings)
      json.object([&] {
        writeSizes(json, "shape", ranking.shape);
        json.attributeArray("programs", [&] {
          for (const RankedProgram &program : ranking.programs)
            json.object([&] {
              writeFamily(json, program.family);
              writePartition(json, program.family, program.partition);
              json.attribute("score", program.score);
              if (program.microseconds > 0)
                json.attribute("predicted_us", program.microseconds);
              else
                json.attribute("predicted_us", nullptr);
              if (program.measuredMicroseconds > 0)
                json.attribute("measured_us", program.measuredMicroseconds);
            });
        });
      });
  });
}

/// Writes how the plan was made.
void ManifestWriter::writeSearch(const Plan &plan) {
  json.attributeObject("search", [&] {
    for (auto [key, name] :
         {std::pair(StringRef("strategy"), StringRef(plan.strategy)),
          std::pair(StringRef("cost_model"), StringRef(plan.costModel)),
          std::pair(StringRef("calibration"), StringRef(plan.calibration))})
      if (name.empty())
        json.attribute(key, nullptr);
      else
        json.attribute(key, name);
    if (!plan.measurer.empty())
      json.attribute("measurer", plan.measurer);
    auto writeNames = [&](StringRef key, StringRef names) {
      json.attributeArray(key, [&] {
        for (StringRef name : llvm::split(names, ","))
          if (!name.empty())
            json.value(name);
      });
    };
    writeNames("paths", plan.paths);
    writeNames("proven_paths", plan.provenPaths);
  });
}

void ManifestWriter::writeWorkload(StringRef name,
                                   const WorkloadPlan &workload) {
  const Plan &plan = *workload.plan;
  json.object([&] {
    json.attribute("name", name);
    json.attribute("plan", workload.planName);
    std::string portable = (name + ukernel::kPortableSuffix).str();
    if (ptx.portable && workloads.count(portable))
      json.attribute("portable", portable);
    json.attributeArray("families", [&] {
      for (auto [index, family] : llvm::enumerate(plan.families))
        json.object([&, index = index, &family = family] {
          auto writeKernelOf = [&](StringRef key, bool addsSlices) {
            std::string kernel = kernelOf(name, index, addsSlices);
            if (kernel.empty())
              json.attribute(key, nullptr);
            else
              json.attribute(key, kernel);
          };
          writeKernelOf("kernel", /*addsSlices=*/false);
          if (family.reduceSplit > 1)
            writeKernelOf("sum_kernel", /*addsSlices=*/true);
          writeFamily(json, family);
          if (workload.measured && index < workload.measured.size())
            writeMeasured(workload.measured[index]);
        });
    });
    if (workload.measured)
      json.attributeArray("rejected_families", [&] {
        for (const KernelFamily &family : workload.rejected)
          json.object([&] { writeFamily(json, family); });
      });
    writeEntries("dispatch", plan.entries);
    json.attribute("general_family", plan.generalFamily);
    writeEntries("unaligned_dispatch", plan.unalignedEntries);
    json.attribute("unaligned_general_family", plan.unalignedGeneralFamily);
    writePrograms(plan);
    writePredictions(plan);
    writeRankings(plan);
    writeSearch(plan);
    json.attributeObject("statistics", [&] {
      for (const SearchStatistic &statistic : plan.statistics)
        json.attribute(statistic.name, statistic.value);
    });
  });
}

LogicalResult ManifestWriter::write(const ManifestOptions &options) {
  FailureOr<DeviceSpec> device = deviceOf(module);
  if (failed(device) || failed(collect()))
    return failure();
  if (options.hasResources)
    measure();
  json.object([&] {
    json.attribute("format_version", kManifestFormatVersion);
    writeDevice(*device);
    json.attributeArray("functions", [&] {
      for (auto function : module.getOps<func::FuncOp>())
        if (FunctionType type = getAbiType(function))
          writeFunction(function, type, *device);
    });
    json.attributeArray("kernels", [&] {
      for (const Kernel &kernel : kernels)
        writeKernel(kernel);
    });
    json.attributeArray("workloads", [&] {
      for (auto &[name, workload] : workloads)
        writeWorkload(name, workload);
    });
    if (!options.seconds.empty())
      json.attributeObject("seconds", [&] {
        for (auto &[stage, seconds] : options.seconds)
          json.attribute(stage, seconds);
      });
  });
  json.flush();
  return success();
}

LogicalResult writeManifest(ModuleOp module, const PtxImages &ptx,
                            const ManifestOptions &options,
                            llvm::raw_ostream &os) {
  ManifestWriter writer(module, ptx, os);
  if (failed(writer.write(options)))
    return failure();
  os << '\n';
  return success();
}

} // namespace ftuner
