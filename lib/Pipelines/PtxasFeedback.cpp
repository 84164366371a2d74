//===- PtxasFeedback.cpp - Real registers and spills into the search ------===//
//
// The search estimates registers. Here the kernels of its plans are assembled,
// and what spills is rejected, as often as the search answers with families
// that were not measured before.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Dialect/UKernel/Bridge/PlanAttributes.h"
#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/Pipelines/Passes.h"
#include "FTuner/Pipelines/Pipelines.h"
#include "FTuner/Target/Ptxas.h"
#include "FTuner/Transforms/Passes.h"
#include "FTuner/Transforms/Stages.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Remarks.h"
#include "mlir/IR/Threading.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

namespace ftuner {
#define GEN_PASS_DEF_UKERNELPTXASFEEDBACKPASS
#include "FTuner/Pipelines/Passes.h.inc"
} // namespace ftuner

using namespace mlir;
using namespace ftuner;

namespace {

/// Rounds of search and assembly. A round rejects whole sets of families, so a
/// search that keeps on choosing what spills has a wrong estimate of registers,
/// which more rounds would not mend.
constexpr int64_t kMaxRounds = 8;

/// Registers of a thread are allocated in multiples of this, 256 for a warp
/// (CUDA programming guide, technical specifications, compute capability 3.0
/// and newer).
constexpr int64_t kRegisterGranule = 8;

/// The largest figures of a family's kernels.
struct FamilyFigures {
  int64_t threads = 0;
  int64_t registers = 0;
  int64_t spillBytes = 0;
};

/// A lowered kernel of plans.
struct PlanKernel {
  struct Use {
    StringAttr plan;
    ukernel::UseAttr use;
  };
  SmallVector<Use> uses;
  int64_t threads;
};

/// Assembles the kernels of a module's plans, each once: as long as the search
/// replaces plans in place, equal families of a workload have equal kernels.
class KernelMeter {
public:
  KernelMeter(ModuleOp module, StringRef ptxas)
      : module(module), ptxas(ptxas) {}

  /// Measures the kernels that were not measured before.
  LogicalResult measure();

  /// The figures of a plan's family; null where no shape needs it.
  const FamilyFigures *find(ukernel::PlanOp plan,
                            ukernel::FamilyAttr family) const {
    auto it = figures.find({plan.getSymNameAttr(), family});
    return it == figures.end() ? nullptr : &it->second;
  }

private:
  OwningOpRef<ModuleOp> lowerKernels(SmallVectorImpl<PlanKernel> &kernels);

  ModuleOp module;
  StringRef ptxas;
  /// By the names of workloads and #ukernel.family.
  llvm::DenseSet<std::pair<Attribute, Attribute>> measured;
  /// By the names of plans and #ukernel.family.
  llvm::DenseMap<std::pair<Attribute, Attribute>, FamilyFigures> figures;
};

/// Lowers a copy of the module, and moves the kernels of its plans that were
/// not measured before to a module of their own. Null after an error. Remarks
/// and warnings are left to the lowering that counts.
OwningOpRef<ModuleOp>
KernelMeter::lowerKernels(SmallVectorImpl<PlanKernel> &kernels) {
  OwningOpRef<ModuleOp> copy = module.clone();
  {
    ScopedDiagnosticHandler quiet(
        module.getContext(), [](Diagnostic &diagnostic) {
          // Success swallows the diagnostic; failure hands it on.
          return success(diagnostic.getSeverity() != DiagnosticSeverity::Error);
        });
    PassManager pm(module.getContext());
    buildBackEndPipeline(pm, {});
    if (failed(pm.run(*copy)))
      return {};
  }
  llvm::DenseMap<StringAttr, StringAttr> planOf;
  for (auto plan : copy->getOps<ukernel::PlanOp>())
    if (auto names = plan->getAttrOfType<ArrayAttr>(kWorkloadsAttrName))
      for (auto name : names.getAsRange<StringAttr>())
        planOf[name] = plan.getSymNameAttr();
  OwningOpRef<ModuleOp> result = ModuleOp::create(module.getLoc());
  (*result)->setAttrs((*copy)->getAttrDictionary());
  for (auto kernel :
       llvm::make_early_inc_range(copy->getOps<gpu::GPUModuleOp>())) {
    auto entry = kernel->getAttrOfType<ukernel::EntryAttr>(
        ukernel::UKernelDialect::kEntryAttrName);
    SmallVector<PlanKernel::Use> uses;
    if (entry)
      for (ukernel::UseAttr use : entry.getUses())
        if (StringAttr plan = planOf.lookup(use.getWorkload());
            plan && !measured.contains({use.getWorkload(), use.getFamily()}))
          uses.push_back({plan, use});
    if (uses.empty())
      continue;
    kernels.push_back({uses, entry.getThreads()});
    kernel->remove();
    result->push_back(kernel);
  }
  return result;
}

LogicalResult KernelMeter::measure() {
  SmallVector<PlanKernel> kernels;
  OwningOpRef<ModuleOp> lowered = lowerKernels(kernels);
  if (!lowered)
    return failure();
  if (kernels.empty())
    return success();
  FailureOr<PtxModule> ptx = translateToPtx(*lowered);
  if (failed(ptx))
    return failure();
  SmallVector<PtxResources> resources(kernels.size());
  SmallVector<std::string> errors(kernels.size());
  parallelFor(module.getContext(), 0, kernels.size(), [&](size_t index) {
    llvm::Expected<PtxResources> answer =
        measureResources(ptxas, ptx->kernels[index], ptx->target);
    if (answer)
      resources[index] = *answer;
    else
      errors[index] = llvm::toString(answer.takeError());
  });
  for (const std::string &error : errors)
    if (!error.empty())
      return emitError(UnknownLoc::get(module.getContext()),
                       "option 'ptxas-feedback': ")
             << error;
  for (auto [kernel, needs] : llvm::zip_equal(kernels, resources)) {
    for (const auto &[plan, use] : kernel.uses) {
      measured.insert({use.getWorkload(), use.getFamily()});
      FamilyFigures &worst = figures[{plan, use.getFamily()}];
      worst.threads = std::max(worst.threads, kernel.threads);
      worst.registers = std::max(worst.registers, needs.registersPerThread);
      worst.spillBytes = std::max(worst.spillBytes, needs.spillBytes());
    }
  }
  return success();
}

std::string textOf(ukernel::FamilyAttr attribute) {
  return toKernelFamily(attribute).str();
}

/// Why the family must not be used; empty if it may.
std::string objectionTo(const FamilyFigures &figures,
                        const DeviceSpec &device) {
  if (figures.spillBytes > 0)
    return llvm::formatv("spills {0} bytes at {1} registers",
                         figures.spillBytes, figures.registers);
  int64_t needed =
      figures.threads *
      static_cast<int64_t>(llvm::alignTo(figures.registers, kRegisterGranule));
  if (needed > device.registersPerBlock)
    return llvm::formatv("needs {0} registers for each block of {1} threads, "
                         "but the device has {2}",
                         needed, figures.threads, device.registersPerBlock);
  return {};
}

remark::RemarkOpts remarkOptions(StringRef name) {
  return remark::RemarkOpts::name(name).category("ukernel-ptxas-feedback");
}

/// A family that must not be used.
struct Objection {
  ukernel::FamilyAttr family;
  /// The family, and e.g. "spills 24 bytes at 255 registers".
  std::string text;
};

/// The plan's families that must not be used.
SmallVector<Objection> objectionsTo(ukernel::PlanOp plan,
                                    const KernelMeter &meter,
                                    const DeviceSpec &device) {
  SmallVector<Objection> objections;
  for (ukernel::FamilyAttr family : plan.getPlan().getFamilies()) {
    const FamilyFigures *figures = meter.find(plan, family);
    std::string reason = figures ? objectionTo(*figures, device) : "";
    if (!reason.empty())
      objections.push_back({family, textOf(family) + " " + reason});
  }
  return objections;
}

/// Adds to the families that the plan must not have.
void reject(ukernel::PlanOp plan, ArrayRef<Objection> objections) {
  SmallVector<Attribute> rejected;
  if (auto known = plan->getAttrOfType<ArrayAttr>(kRejectedAttrName))
    llvm::append_range(rejected, known);
  for (const Objection &objection : objections) {
    rejected.push_back(objection.family);
    remark::missed(plan.getLoc(), remarkOptions("rejected"))
        << ("@" + plan.getSymName() + ": family " + objection.text).str();
  }
  plan->setAttr(kRejectedAttrName, ArrayAttr::get(plan.getContext(), rejected));
}

llvm::Error addStatistics(ukernel::PlanOp op, int64_t rounds,
                          int64_t rejected) {
  Plan plan = toPlan(op.getPlan());
  plan.statistics.push_back({"ptxas_rounds", static_cast<double>(rounds)});
  plan.statistics.push_back({"ptxas_rejected", static_cast<double>(rejected)});
  llvm::Expected<ukernel::PlanAttr> attribute =
      toAttribute(op.getContext(), plan);
  if (!attribute)
    return attribute.takeError();
  op.setPlanAttr(*attribute);
  return llvm::Error::success();
}

/// Notes the figures of the families that the plan has in the end.
LogicalResult recordFigures(ukernel::PlanOp plan, const KernelMeter &meter,
                            int64_t rounds) {
  Builder b(plan.getContext());
  ukernel::PlanAttr attribute = plan.getPlan();
  SmallVector<Attribute> measured;
  int64_t count = 0, registers = 0;
  for (ukernel::FamilyAttr family : attribute.getFamilies()) {
    NamedAttrList fields;
    if (const FamilyFigures *figures = meter.find(plan, family)) {
      ++count;
      registers = std::max(registers, figures->registers);
      fields.set(kMeasuredRegistersName,
                 b.getI64IntegerAttr(figures->registers));
      fields.set(kMeasuredSpillBytesName,
                 b.getI64IntegerAttr(figures->spillBytes));
    }
    measured.push_back(fields.getDictionary(b.getContext()));
  }
  // A plan without kernels was not measured.
  if (count == 0)
    return success();
  plan->setAttr(kMeasuredAttrName, b.getArrayAttr(measured));
  auto rejected = plan->getAttrOfType<ArrayAttr>(kRejectedAttrName);
  size_t numRejected = rejected ? rejected.size() : 0;
  if (llvm::Error error = addStatistics(plan, rounds, numRejected))
    return plan.emitOpError(llvm::toString(std::move(error)));
  remark::passed(plan.getLoc(), remarkOptions("measured"))
      << llvm::formatv("@{0}: {1} families measured in round {2}, at most {3} "
                       "registers; {4} families rejected",
                       plan.getSymName(), count, rounds, registers, numRejected)
             .str();
  return success();
}

/// Warns of families that stay although they should not.
void warnOf(ukernel::PlanOp plan, ArrayRef<Objection> objections,
            const Twine &reason) {
  for (const Objection &objection : objections)
    mlir::emitWarning(plan.getLoc(), "option 'ptxas-feedback': ")
        << reason << ": @" << plan.getSymName() << " keeps family "
        << objection.text;
}

struct UKernelPtxasFeedbackPass
    : public ftuner::impl::UKernelPtxasFeedbackPassBase<
          UKernelPtxasFeedbackPass> {
  using UKernelPtxasFeedbackPassBase::UKernelPtxasFeedbackPassBase;

  /// Those of the pipelines that the pass runs.
  void getDependentDialects(DialectRegistry &registry) const override {
    OpPassManager backEnd(ModuleOp::getOperationName());
    buildBackEndPipeline(backEnd, {});
    backEnd.getDependentDialects(registry);
    for (const OpPassManager &pipeline : search)
      pipeline.getDependentDialects(registry);
  }

  LogicalResult initialize(MLIRContext *context) override {
    if (search.empty()) {
      OpPassManager pipeline(ModuleOp::getOperationName());
      pipeline.addPass(createUKernelPlanWorkloadsPass());
      search.push_back(pipeline);
    }
    return success();
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    std::optional<std::string> ptxas = findPtxas();
    if (!ptxas) {
      emitError(UnknownLoc::get(&getContext()),
                "option 'ptxas-feedback': expected a ptxas on PATH or in "
                "CUDA_HOME");
      return signalPassFailure();
    }
    if (failed(expectStages(module, getArgument(),
                            {Stage::Formed, Stage::Planned})))
      return signalPassFailure();
    SmallVector<StringAttr> plans;
    for (auto plan : module.getOps<ukernel::PlanOp>())
      plans.push_back(plan.getSymNameAttr());
    if (plans.empty())
      return;
    FailureOr<DeviceSpec> device = deviceOf(module);
    if (failed(device))
      return signalPassFailure();

    KernelMeter meter(module, *ptxas);
    llvm::DenseSet<StringAttr> settled;
    for (int64_t round = 1;; ++round) {
      if (failed(meter.measure()))
        return signalPassFailure();
      bool changed = false;
      for (StringAttr name : plans)
        if (!settled.contains(name)) {
          if (searchAgain(name, meter, *device, round))
            changed = true;
          else
            settled.insert(name);
        }
      if (changed)
        continue;
      for (StringAttr name : plans)
        if (ukernel::PlanOp plan = planNamed(name);
            plan && failed(recordFigures(plan, meter, round)))
          return signalPassFailure();
      return;
    }
  }

private:
  /// Null where the pipelines of the search removed the plan.
  ukernel::PlanOp planNamed(StringAttr name) {
    return dyn_cast_or_null<ukernel::PlanOp>(
        SymbolTable::lookupSymbolIn(getOperation(), name));
  }

  /// Rejects families of the plan and replaces it. Returns false if it stays as
  /// it is.
  bool searchAgain(StringAttr name, const KernelMeter &meter,
                   const DeviceSpec &device, int64_t round);

  /// Runs the pipelines of the search. Errors mean that there is no other plan:
  /// the first becomes `error`. Warnings were given before.
  LogicalResult runSearch(std::string &error) {
    ScopedDiagnosticHandler collector(
        &getContext(), [&](Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() == DiagnosticSeverity::Error &&
              error.empty())
            error = diagnostic.str();
          return success(diagnostic.getSeverity() !=
                         DiagnosticSeverity::Remark);
        });
    for (OpPassManager &pipeline : search)
      if (failed(runPipeline(pipeline, getOperation())))
        return failure();
    return success();
  }
};

bool UKernelPtxasFeedbackPass::searchAgain(StringAttr name,
                                           const KernelMeter &meter,
                                           const DeviceSpec &device,
                                           int64_t round) {
  ukernel::PlanOp plan = planNamed(name);
  if (!plan)
    return false;
  SmallVector<Objection> objections = objectionsTo(plan, meter, device);
  if (objections.empty())
    return false;
  if (round == kMaxRounds) {
    warnOf(plan, objections, "no end after " + Twine(round) + " rounds");
    return false;
  }
  DictionaryAttr before = plan->getAttrDictionary();
  reject(plan, objections);
  std::string error;
  if (succeeded(runSearch(error)))
    return true;
  if ((plan = planNamed(name))) {
    plan->setAttrs(before);
    warnOf(plan, objections, "no other plan (" + Twine(error) + ")");
  }
  return false;
}

} // namespace
