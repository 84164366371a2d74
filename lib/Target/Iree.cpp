//===- Iree.cpp - Planned modules for IREE --------------------------------===//
#include "FTuner/Target/Iree.h"
#include "FTuner/Dialect/UKernel/Bridge/PlanAttributes.h"
#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/Dialect/UKernel/Utils/IndexArithmetic.h"
#include "FTuner/Kernel/KernelBuilder.h"
#include "FTuner/PTX/PTX.h"
#include "FTuner/Pipelines/Pipelines.h"
#include "FTuner/Schedule/Grid.h"
#include "FTuner/Target/Library.h"
#include "FTuner/Transforms/FamilyDispatch.h"
#include "FTuner/Transforms/HostAbi.h"
#include "FTuner/Transforms/Stages.h"
#include "IreeOps.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/MapVector.h"
#include <list>

using namespace mlir;
using namespace ftuner;
using ukernel::OperatorOpInterface;
using ukernel::ParameterKind;

/// What IREE's runtimes pass at most.
static constexpr size_t kMaxBindings = 16, kMaxConstants = 64;

/// Constants that are left for the parameters of kernels. On the CPU, the
/// number of the kernel and the blocks are constants, too, and IREE may pass
/// where each tensor begins, in 64 bits.
static size_t maxConstants(IreeTarget target, size_t bindings) {
  return target == IreeTarget::Cpu ? kMaxConstants - 2 - 2 * bindings
                                   : kMaxConstants;
}

namespace {

/// Equal workloads with one plan, and their kernels, whose numbers are those of
/// the families.
struct WorkloadKernels {
  /// On buffers.
  IsolatedOperator isolated;
  FlatSymbolRefAttr planName;
  Plan plan;
  iree::Choice choice;
  /// That with most parameters: others lack the part.
  KernelSignature signature;
};

class IreeConverter {
public:
  IreeConverter(ModuleOp module, const IreeOptions &options)
      : module(module), options(options), symbols(module) {}
  FailureOr<IreeKernels> convert();

private:
  WorkloadKernels *kernelsOf(OperatorOpInterface op);
  LogicalResult addKernels(WorkloadKernels &workload, const DeviceSpec &device,
                           StringRef prefix);
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
  for (unsigned family : workload.plan.usedFamilies())
    if (workload.plan.families[family].reduceSplit != 1)
      return op->emitOpError("expected families without split-K, which are two "
                             "launches, but got ")
             << plan.getPlan().getFamilies()[family];
  workload.choice.name = prefix;
  auto b = OpBuilder::atBlockEnd(kernels.module->getBody());
  for (unsigned family : workload.plan.usedFamilies()) {
    std::string name = (prefix + "_k" + Twine(family)).str();
    FailureOr<EmittedKernel> emitted = buildGpuModule(
        b, op, plan.getPlan().getFamilies()[family], name, device);
    if (failed(emitted))
      return failure();
    if (workload.choice.kernels.empty() || emitted->signature.hasPart())
      workload.signature = emitted->signature;
    auto entry = emitted->module->getAttrOfType<ukernel::EntryAttr>(
        ukernel::UKernelDialect::kEntryAttrName);
    workload.choice.kernels.push_back(
        {name, family, entry.getThreads(), entry.getSharedMemoryBytes(),
         workload.plan.families[family].alignment()});
  }
  for (const KernelParameter &parameter : workload.signature.getParameters())
    if (parameter.kind == ParameterKind::Pointer)
      workload.choice.isReadOnly.push_back(*parameter.access ==
                                           ukernel::ParameterAccess::Read);
    else
      ++workload.choice.constants;
  size_t bindings = workload.choice.isReadOnly.size();
  size_t constants = workload.choice.constants;
  if (bindings > kMaxBindings)
    return op->emitOpError("expected at most ")
           << kMaxBindings << " tensors, which IREE can pass, but got "
           << bindings;
  size_t limit = maxConstants(options.target, bindings);
  if (constants > limit)
    return op->emitOpError("expected at most ")
           << limit << " values of 32 bits beside " << bindings
           << " tensors, which IREE can pass, but got " << constants;
  return success();
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
      assembleCubins(*kernels.module, kernels.ptx, options.ptxas, architecture);
  if (failed(cubins))
    return failure();
  return std::move(cubins->front().bytes);
}

//===----------------------------------------------------------------------===//
// The host
//===----------------------------------------------------------------------===//

/// A value in 32 bits, or one half of one in 64.
static Value toI32(ImplicitLocOpBuilder &b, Value value, ParameterKind kind) {
  Type type = value.getType();
  if (type.isIndex()) {
    value = arith::IndexCastOp::create(b,
                                       kind == ParameterKind::Size ||
                                               kind == ParameterKind::Stride ||
                                               kind == ParameterKind::Part
                                           ? b.getI32Type()
                                           : b.getI64Type(),
                                       value);
  } else if (isa<FloatType>(type)) {
    value = arith::BitcastOp::create(
        b, b.getIntegerType(type.getIntOrFloatBitWidth()), value);
  }
  if (kind == ParameterKind::ScalarHigh) {
    Value half = arith::ConstantOp::create(b, b.getI64IntegerAttr(32));
    value = arith::ShRUIOp::create(b, value, half);
  }
  unsigned width = value.getType().getIntOrFloatBitWidth();
  if (width > 32)
    return arith::TruncIOp::create(b, b.getI32Type(), value);
  if (width < 32)
    return arith::ExtUIOp::create(b, b.getI32Type(), value);
  return value;
}

namespace {
/// The host's side of one workload.
class DispatchBuilder {
public:
  DispatchBuilder(OperatorOpInterface op, const WorkloadKernels &workload)
      : b(op.getLoc(), op), math(b), op(op), workload(workload) {
    for (unsigned axis = 0; axis < op.getNumAxes(); ++axis) {
      auto [source, dim] = op.getExtentSource(axis);
      extents.push_back(size(source, dim));
    }
  }
  Operation *build(IreeTarget target);

private:
  Value size(Value tensor, int64_t dim) {
    return b.createOrFold<tensor::DimOp>(tensor, dim);
  }
  /// Elements from one index of a dense tensor's dimension to the next.
  Value stride(Value tensor, int64_t dim);
  /// Whether rows are whole vectors; tensors begin at aligned addresses.
  Value buildAligned(int64_t alignment);
  Value buildFamily();
  /// Blocks of the launch, and of its first part.
  std::pair<Value, Value> buildBlocks(Value family);
  Value constantFor(const KernelParameter &parameter, Value firstBlocks);

  ImplicitLocOpBuilder b;
  ukernel::IndexArithmetic math;
  OperatorOpInterface op;
  const WorkloadKernels &workload;
  SmallVector<Value> extents;
};
} // namespace

Value DispatchBuilder::stride(Value tensor, int64_t dim) {
  Value result = math.constant(1);
  int64_t rank = cast<RankedTensorType>(tensor.getType()).getRank();
  for (int64_t inner = dim + 1; inner < rank; ++inner)
    result = math.mul(result, size(tensor, inner));
  return result;
}

Value DispatchBuilder::buildAligned(int64_t alignment) {
  // Rows that are whole vectors are so far apart, too.
  Value remainders = math.constant(0);
  for (auto [axis, elements] : elementsAlongAxes(vectorOperands(op), alignment))
    remainders = b.createOrFold<arith::OrIOp>(
        remainders, math.rem(extents[axis], elements));
  return math.compare(arith::CmpIPredicate::eq, remainders, math.constant(0));
}

Value DispatchBuilder::buildFamily() {
  const Plan &plan = workload.plan;
  Value family = buildFamilyOfShape(b, plan.entries, plan.generalFamily,
                                    extents, /*hasSwitches=*/false);
  if (!plan.needsAlignment())
    return family;
  Value unaligned = buildFamilyOfShape(b, plan.unalignedEntries,
                                       plan.unalignedGeneralFamily, extents,
                                       /*hasSwitches=*/false);
  return math.select(buildAligned(plan.alignment()), family, unaligned);
}

std::pair<Value, Value> DispatchBuilder::buildBlocks(Value family) {
  ArrayRef<iree::Kernel> kernels = workload.choice.kernels;
  auto count = [&](const iree::Kernel &kernel) {
    auto [first, blocks] =
        launchOf(math, gridOf(workload.plan.families[kernel.number]), extents);
    return SmallVector<Value, 2>{blocks, first};
  };
  ArrayRef<iree::Kernel> others = kernels.drop_back();
  if (others.empty()) {
    SmallVector<Value, 2> counts = count(kernels.back());
    return {counts[0], counts[1]};
  }
  auto cases = llvm::map_to_vector(
      others, [](const iree::Kernel &kernel) { return kernel.number; });
  SmallVector<Type> types(2, b.getIndexType());
  auto choice =
      scf::IndexSwitchOp::create(b, types, family, cases, cases.size());
  OpBuilder::InsertionGuard guard(b);
  for (auto [number, kernel] : llvm::enumerate(kernels)) {
    b.createBlock(number < others.size() ? &choice.getCaseRegions()[number]
                                         : &choice.getDefaultRegion());
    scf::YieldOp::create(b, count(kernel));
  }
  return {choice.getResult(0), choice.getResult(1)};
}

Value DispatchBuilder::constantFor(const KernelParameter &parameter,
                                   Value firstBlocks) {
  switch (parameter.kind) {
  case ParameterKind::Size:
    return parameter.operand
               ? size(op->getOperand(*parameter.operand), parameter.index)
               : extents[parameter.index];
  case ParameterKind::Stride:
    return stride(op->getOperand(*parameter.operand), parameter.index);
  case ParameterKind::Scalar:
  case ParameterKind::ScalarLow:
  case ParameterKind::ScalarHigh:
    return op->getOperand(*parameter.operand);
  case ParameterKind::Part:
    return firstBlocks;
  case ParameterKind::Pointer:
    break;
  }
  llvm_unreachable("a pointer is a binding");
}

Operation *DispatchBuilder::build(IreeTarget target) {
  Value family = buildFamily();
  auto [blocks, firstBlocks] = buildBlocks(family);
  unsigned output = op.getOutputOperand().getOperandNumber();
  iree::Dispatch dispatch{target,
                          kIreeExecutableName.str(),
                          workload.choice,
                          family,
                          blocks,
                          /*arguments=*/{},
                          op->getResult(0).getType(),
                          op->getOperand(output),
                          /*tied=*/std::nullopt};
  for (const KernelParameter &parameter : workload.signature.getParameters()) {
    if (parameter.kind != ParameterKind::Pointer) {
      dispatch.arguments.push_back(
          toI32(b, constantFor(parameter, firstBlocks), parameter.kind));
      continue;
    }
    if (parameter.operand == output && !op.readsOutput())
      continue;
    if (parameter.operand == output)
      dispatch.tied = dispatch.arguments.size();
    dispatch.arguments.push_back(op->getOperand(*parameter.operand));
  }
  return iree::buildDispatch(b, dispatch);
}

//===----------------------------------------------------------------------===//
// The module
//===----------------------------------------------------------------------===//

/// The module is nobody's but IREE's from here on.
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
    if (failed(translateKernels()))
      return failure();
    for (auto [op, workload] : dispatches) {
      Operation *dispatch =
          DispatchBuilder(op, *workload).build(options.target);
      op->getResult(0).replaceAllUsesWith(dispatch->getResult(0));
      op->erase();
    }
    auto choices =
        llvm::map_to_vector(workloads, [](const WorkloadKernels &workload) {
          return workload.choice;
        });
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
  // A dispatch is one launch.
  own.set("split-k", false);
  buildPartialFrontEndPipeline(pm, own);
  pm.addPass(std::make_unique<ConvertToIreePass>(iree, kernels));
}

void ftuner::registerIreePipeline() {
  PassPipelineRegistration<FTunerOptions>(
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
