//===- Iree.cpp - Planned modules for IREE --------------------------------===//
#include "FTuner/Target/Iree.h"
#include "FTuner/Analysis/Stages.h"
#include "FTuner/Dialect/UKernel/Bridge/PlanAttributes.h"
#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/HostAbi/HostAbi.h"
#include "FTuner/Kernel/Fallback/SumKernel.h"
#include "FTuner/Kernel/KernelParameters.h"
#include "FTuner/Kernel/SplitReduction.h"
#include "FTuner/PTX/PTX.h"
#include "FTuner/Pipelines/Pipelines.h"
#include "FTuner/Target/Library.h"
#include "IreeDispatch.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/xxhash.h"
#include <list>

using namespace mlir;
using namespace ftuner;
using iree::WorkloadKernels;
using ukernel::OperatorOpInterface;
using ukernel::ParameterKind;

/// Maximum numbers that IREE's runtimes pass.
static constexpr size_t kMaxBindings = 16, kMaxConstants = 64;

/// Constants that are left for the parameters of kernels. On the CPU, the
/// number of the kernel and the blocks are constants, too, and IREE may pass
/// where each tensor begins, in 64 bits.
static size_t maxConstants(IreeTarget target, size_t bindings) {
  return target == IreeTarget::Cpu ? kMaxConstants - 2 - 2 * bindings
                                   : kMaxConstants;
}

static size_t countBindings(const KernelSignature &signature) {
  return llvm::count_if(signature.getParameters(),
                        [](const KernelParameter &parameter) {
                          return parameter.kind == ParameterKind::Pointer;
                        });
}

/// Returns whether a dispatch can pass so many parameters.
static bool canPass(const KernelSignature &signature, IreeTarget target) {
  size_t bindings = countBindings(signature);
  return bindings <= kMaxBindings &&
         signature.getParameters().size() - bindings <=
             maxConstants(target, bindings);
}

/// Digits that differ where kernels of a workload do: names of kernels are to
/// be unique in all programs of a process.
static std::string digestOf(const IsolatedOperator &isolated,
                            ArrayRef<ukernel::FamilyAttr> families,
                            ArrayRef<unsigned> used, bool hasSlices,
                            Attribute device) {
  std::string text;
  llvm::raw_string_ostream os(text);
  isolated.function.get()->print(os, OpPrintingFlags().useLocalScope());
  os << device << hasSlices;
  for (unsigned family : used)
    os << ' ' << family << families[family];
  return llvm::utohexstr(static_cast<uint32_t>(llvm::xxh3_64bits(text)),
                         /*LowerCase=*/true, /*Width=*/8);
}

namespace {

class IreeConverter {
public:
  IreeConverter(ModuleOp module, const IreeOptions &options)
      : module(module), options(options), symbols(module) {}
  FailureOr<IreeKernels> convert();

private:
  WorkloadKernels *kernelsOf(OperatorOpInterface op);
  LogicalResult addKernels(WorkloadKernels &workload, const DeviceSpec &device,
                           StringRef prefix);
  LogicalResult addSlices(WorkloadKernels &workload, unsigned family,
                          ukernel::FamilyAttr split, const DeviceSpec &device);
  FailureOr<EmittedKernel> buildKernel(OpBuilder &b, OperatorOpInterface op,
                                       ukernel::FamilyAttr family,
                                       StringRef name,
                                       const DeviceSpec &device) const;
  LogicalResult expectPassable(OperatorOpInterface op,
                               const KernelSignature &signature) const;
  LogicalResult translateKernels();
  FailureOr<std::string> assembleKernels();
  void removeOwnAttributes();

  ModuleOp module;
  const IreeOptions &options;
  SymbolTable symbols;
  std::list<WorkloadKernels> workloads;
  IreeKernels kernels;
};

} // namespace

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// IREE passes bindings and constants of 32 bits alone.
FailureOr<EmittedKernel>
IreeConverter::buildKernel(OpBuilder &b, OperatorOpInterface op,
                           ukernel::FamilyAttr family, StringRef name,
                           const DeviceSpec &device) const {
  FailureOr<EmittedKernel> emitted =
      buildGpuModule(b, op, family, name, device);
  if (succeeded(emitted) && emitted->signature.hasTensorMaps())
    return op->emitOpError("expected a plan of kernels without tensor maps, "
                           "which IREE cannot pass, but got ")
           << family;
  return emitted;
}

LogicalResult IreeConverter::addKernels(WorkloadKernels &workload,
                                        const DeviceSpec &device,
                                        StringRef prefix) {
  OperatorOpInterface op = workload.isolated.op;
  auto plan = symbols.lookup<ukernel::PlanOp>(workload.planName.getValue());
  if (!plan)
    return op->emitOpError("expected a ukernel.plan named ")
           << workload.planName;
  workload.plan = toPlan(plan.getPlan());
  // Without, all families of the plan take any address.
  if (options.hasAnyAddress && workload.plan.needsAlignment()) {
    workload.plan.entries = workload.plan.unalignedEntries;
    workload.plan.generalFamily = workload.plan.unalignedGeneralFamily;
  }
  auto families = plan.getPlan().getFamilies();
  std::vector<unsigned> used = workload.plan.usedFamilies();
  auto isSplit = [&](unsigned family) {
    return families[family].getSplit() != 1;
  };
  auto signature = [&](bool hasSlices) {
    Type slices;
    if (hasSlices)
      slices = op.getSliceStates().front().elementType;
    KernelSignature result = signatureOf(op, slices);
    if (llvm::any_of(used, [&](unsigned family) {
          return families[family].getTiles().size() == 2 &&
                 !(hasSlices && isSplit(family));
        }))
      result.addPart(module.getContext());
    return result;
  };
  // Where IREE cannot pass one more tensor, families run without slices.
  // Likewise where kernels merge slices, in more launches than two.
  bool hasSlices = op.supportsSlices() && !op.mergesInKernels() &&
                   llvm::any_of(used, isSplit) &&
                   canPass(signature(/*hasSlices=*/true), options.target);
  workload.signature = signature(hasSlices);
  if (failed(expectPassable(op, workload.signature)))
    return failure();
  std::string name =
      (prefix + "_" +
       digestOf(workload.isolated, families, used, hasSlices,
                (*kernels.module)
                    ->getAttr(ukernel::UKernelDialect::kDeviceAttrName)))
          .str();
  iree::describe(workload.choice, name, workload.signature);

  auto b = OpBuilder::atBlockEnd(kernels.module->getBody());
  for (unsigned family : used) {
    if (hasSlices && isSplit(family)) {
      if (failed(addSlices(workload, family, families[family], device)))
        return failure();
      continue;
    }
    workload.plan.families[family].reduceSplit = 1;
    FailureOr<EmittedKernel> emitted =
        buildKernel(b, op, wholeFamily(families[family]),
                    name + "_k" + std::to_string(family), device);
    if (failed(emitted))
      return failure();
    if (hasSlices)
      replaceParameters(*emitted, workload.signature);
    workload.choice.kernels.push_back(iree::toKernel(
        emitted->module, family, workload.plan.families[family].alignment()));
  }
  if (hasSlices)
    iree::describe(workload.slices, name + "_slices", workload.sliceSignature);
  return success();
}

/// The two kernels of a family with slices.
LogicalResult IreeConverter::addSlices(WorkloadKernels &workload,
                                       unsigned family,
                                       ukernel::FamilyAttr split,
                                       const DeviceSpec &device) {
  OperatorOpInterface op = workload.isolated.op;
  auto b = OpBuilder::atBlockEnd(kernels.module->getBody());
  std::string name = (workload.choice.name + "_k" + Twine(family)).str();
  FailureOr<EmittedKernel> emitted = buildKernel(b, op, split, name, device);
  if (failed(emitted))
    return failure();
  if (workload.slices.kernels.empty() || emitted->signature.hasPart())
    workload.sliceSignature = emitted->signature;
  workload.slices.kernels.push_back(iree::toKernel(
      emitted->module, family, workload.plan.families[family].alignment()));

  FailureOr<gpu::GPUModuleOp> sum = buildSumKernel(
      *kernels.module, op, split, name + "_sum", workload.signature);
  if (failed(sum))
    return failure();
  workload.choice.kernels.push_back(
      iree::toKernel(*sum, family, /*alignment=*/1));
  return expectPassable(op, emitted->signature);
}

LogicalResult
IreeConverter::expectPassable(OperatorOpInterface op,
                              const KernelSignature &signature) const {
  if (canPass(signature, options.target))
    return success();
  size_t bindings = countBindings(signature);
  if (bindings > kMaxBindings)
    return op->emitOpError("expected at most ")
           << kMaxBindings << " tensors, which IREE can pass, but got "
           << bindings;
  return op->emitOpError("expected at most ")
         << maxConstants(options.target, bindings)
         << " values of 32 bits beside " << bindings
         << " tensors, which IREE can pass, but got "
         << signature.getParameters().size() - bindings;
}

WorkloadKernels *IreeConverter::kernelsOf(OperatorOpInterface op) {
  IsolatedOperator isolated = isolate(op);
  for (WorkloadKernels &workload : workloads)
    if (workload.planName == op.getPlanAttr() &&
        computeTheSame(workload.isolated.op, isolated.op))
      return &workload;
  WorkloadKernels &workload = workloads.emplace_back();
  workload.isolated = std::move(isolated);
  workload.planName = op.getPlanAttr();
  return &workload;
}

LogicalResult IreeConverter::translateKernels() {
  PassManager pm(module.getContext());
  buildKernelLoweringPipeline(pm);
  if (failed(pm.run(*kernels.module)))
    return failure();
  FailureOr<PtxModule> ptx = translateToPtx(*kernels.module);
  if (failed(ptx))
    return failure();
  kernels.ptx = std::move(*ptx);
  return success();
}

/// The cubin for the executable.
FailureOr<std::string> IreeConverter::assembleKernels() {
  GpuArchitecture architecture =
      options.architecture.value_or(kernels.ptx.target.architecture);
  FailureOr<std::vector<LibraryCubin>> cubins =
      assembleCubins(*kernels.module, {kernels.ptx, std::nullopt},
                     options.ptxas, architecture);
  if (failed(cubins))
    return failure();
  return std::move(cubins->front().bytes);
}

//===----------------------------------------------------------------------===//
// The module
//===----------------------------------------------------------------------===//

/// Removes FTuner's attributes: from here on the module is only IREE's.
void IreeConverter::removeOwnAttributes() {
  auto isOwn = [](NamedAttribute attribute) {
    return attribute.getNameDialect() &&
           isa<ukernel::UKernelDialect>(attribute.getNameDialect());
  };
  for (auto plan : llvm::make_early_inc_range(module.getOps<ukernel::PlanOp>()))
    plan.erase();
  module->walk([&](Operation *op) {
    for (NamedAttribute attribute : llvm::to_vector(op->getDiscardableAttrs()))
      if (isOwn(attribute))
        op->removeDiscardableAttr(attribute.getName());
    auto function = dyn_cast<FunctionOpInterface>(op);
    if (!function)
      return;
    for (unsigned index = 0; index < function.getNumArguments(); ++index)
      for (NamedAttribute attribute :
           llvm::to_vector(function.getArgAttrs(index)))
        if (isOwn(attribute))
          function.removeArgAttr(index, attribute.getName());
  });
}

/// IREE fuses operators that widen packed integers into products that it
/// compiles. An unfused one loads vectors under a mask if a size is dynamic,
/// and IREE's lowering for the CPU does not support that.
static void warnOfPackedNumbers(ModuleOp module) {
  module.walk([](linalg::LinalgOp op) {
    for (Type type : op->getOperandTypes()) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      auto integer = tensor ? dyn_cast<IntegerType>(tensor.getElementType())
                            : IntegerType();
      if (!integer || integer.getWidth() < 2 || integer.getWidth() >= 8 ||
          tensor.hasStaticShape() ||
          op.getNumParallelLoops() != op.getNumLoops())
        continue;
      op->emitWarning("IREE may refuse this operator for the CPU: it reads ")
          << integer << " of a dynamic size, and the product behind it is "
          << "FTuner's";
      return;
    }
  });
}

FailureOr<IreeKernels> IreeConverter::convert() {
  FailureOr<DeviceSpec> device = deviceOf(module);
  if (failed(device) ||
      failed(expectStages(module, "ftuner-to-iree", {Stage::Planned})))
    return failure();
  kernels.module = ModuleOp::create(module.getLoc());
  (*kernels.module)
      ->setAttr(ukernel::UKernelDialect::kDeviceAttrName,
                toAttribute(module.getContext(), *device));

  for (auto function : module.getOps<FunctionOpInterface>()) {
    if (function.isExternal())
      continue;
    FunctionOperators work = collectOperatorWork(function);
    if (!work.operators.empty() || !work.unknown.empty())
      kernels.work.push_back(std::move(work));
  }
  SmallVector<std::pair<OperatorOpInterface, WorkloadKernels *>> dispatches;
  llvm::StringMap<int64_t> workloadsOfFunction;
  WalkResult walk = module.walk([&](OperatorOpInterface op) {
    if (!op.getFusedLoops().empty()) {
      op->emitOpError("expected axes that are not fused: others have no "
                      "dispatch in IREE yet");
      return WalkResult::interrupt();
    }
    if (!op.hasTensors()) {
      op->emitOpError("expected an operator on tensors");
      return WalkResult::interrupt();
    }
    Operation *function =
        op->getParentWithTrait<OpTrait::IsIsolatedFromAbove>();
    auto name =
        function->getAttrOfType<StringAttr>(SymbolTable::getSymbolAttrName());
    std::string prefix =
        toIdentifier(name ? name.getValue() : StringRef("workload"));
    prefix += "_" + std::to_string(workloadsOfFunction[prefix]++);
    WorkloadKernels *workload = kernelsOf(op);
    if (workload->choice.kernels.empty() &&
        failed(addKernels(*workload, *device, prefix)))
      return WalkResult::interrupt();
    dispatches.push_back({op, workload});
    return WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return failure();
  if (!dispatches.empty()) {
    if (options.target == IreeTarget::Cpu)
      warnOfPackedNumbers(module);
    if (failed(translateKernels()))
      return failure();
    for (auto [op, workload] : dispatches) {
      op->replaceAllUsesWith(
          iree::buildDispatches(op, *workload, options.target));
      kernels.numDispatches += workload->hasSlices() ? 2 : 1;
      op->erase();
    }
    SmallVector<iree::Choice> choices;
    for (const WorkloadKernels &workload : workloads) {
      if (workload.hasSlices())
        choices.push_back(workload.slices);
      choices.push_back(workload.choice);
    }
    FailureOr<std::string> image = kernels.ptx.text;
    if (!options.ptxas.empty())
      image = assembleKernels();
    if (failed(image))
      return failure();
    iree::buildExecutable(module, options.target, kIreeExecutableName, choices,
                          *image);
  }
  removeOwnAttributes();
  return std::move(kernels);
}

namespace {
struct ConvertToIreePass
    : public PassWrapper<ConvertToIreePass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ConvertToIreePass)
  explicit ConvertToIreePass(IreeOptions options,
                             IreeKernels *kernels = nullptr)
      : options(std::move(options)), kernels(kernels) {}
  ConvertToIreePass(const ConvertToIreePass &other)
      : PassWrapper(other), options(other.options), kernels(other.kernels) {}
  StringRef getArgument() const override { return "ukernel-to-iree"; }
  StringRef getDescription() const override {
    return "Turn planned workloads on tensors into dispatches of IREE";
  }
  void getDependentDialects(DialectRegistry &registry) const override {
    registerKernelDialects(registry);
    // What sums of slices are outlined with.
    registry.insert<affine::AffineDialect, cf::ControlFlowDialect,
                    linalg::LinalgDialect>();
  }
  void runOnOperation() override {
    FailureOr<IreeKernels> result = convertToIree(getOperation(), options);
    if (failed(result))
      return signalPassFailure();
    restoreIreeFunctions(getOperation());
    if (kernels)
      *kernels = std::move(*result);
  }

private:
  IreeOptions options;
  IreeKernels *kernels;
};

struct AdoptIreePass
    : public PassWrapper<AdoptIreePass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(AdoptIreePass)
  StringRef getArgument() const override { return "ukernel-adopt-iree"; }
  StringRef getDescription() const override {
    return "Make functions of IREE's, until ukernel-to-iree";
  }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<func::FuncDialect, ukernel::UKernelDialect>();
  }
  void runOnOperation() override {
    if (failed(expectUnregisteredDialects(getOperation())))
      return signalPassFailure();
    adoptIreeFunctions(getOperation());
  }
};
} // namespace

void ftuner::buildIreePipeline(OpPassManager &pm, const FTunerOptions &options,
                               const IreeOptions &iree, IreeKernels *kernels) {
  pm.addPass(std::make_unique<AdoptIreePass>());
  FTunerOptions own;
  own.copyOptionValuesFrom(options);
  // IREE passes bindings and constants of 32 bits, and encodes nothing.
  own.set("tensor-maps", false);
  buildPartialFrontEndPipeline(pm, own);
  pm.addPass(std::make_unique<ConvertToIreePass>(iree, kernels));
}

void ftuner::registerIreePipeline() {
  registerOptionPipeline(
      kIreePipelineName,
      "Form and plan the workloads, and turn them into dispatches of IREE",
      [](OpPassManager &pm, const FTunerOptions &options) {
        buildIreePipeline(pm, options);
      });
}

FailureOr<IreeKernels> ftuner::convertToIree(ModuleOp module,
                                             const IreeOptions &iree) {
  return IreeConverter(module, iree).convert();
}
