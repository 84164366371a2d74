//===- PtxasFeedback.cpp - Real registers and spills into the search ------===//
//
// The search estimates registers. Here the kernels of its plans are assembled,
// and what spills is rejected, as often as the search answers with families
// that were not measured before.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Analysis/Stages.h"
#include "FTuner/Dialect/UKernel/Bridge/PlanAttributes.h"
#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/Kernel/Measure/PtxasMeasurer.h"
#include "FTuner/PTX/Ptxas.h"
#include "FTuner/Pipelines/Passes.h"
#include "FTuner/Pipelines/Pipelines.h"
#include "FTuner/Pipelines/PlannedOperators.h"
#include "FTuner/Transforms/Passes.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Remarks.h"
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

/// Asks the assembler about the families of a module's plans.
class KernelMeter {
public:
  /// Lowers a copy of the module as far as operators on buffers. Emits an error
  /// if that fails.
  static FailureOr<KernelMeter>
  create(ModuleOp module, const DeviceSpec &device, StringRef ptxas);

  /// Measures what was not measured before.
  LogicalResult measure(ModuleOp module);

  /// The figures of a plan's family; null where no shape needs it.
  const FamilyFigures *find(ukernel::PlanOp plan,
                            ukernel::FamilyAttr family) const {
    auto it = figures.find({plan.getSymNameAttr(), family});
    return it == figures.end() ? nullptr : &it->second;
  }

private:
  KernelMeter() = default;

  // The measurer refers to these.
  std::unique_ptr<OperatorRegistry> operators;
  std::unique_ptr<KernelCompiler> compiler;
  std::unique_ptr<PtxasMeasurer> measurer;
  PlannedOperators planned;
  /// By the names of plans and #ukernel.family.
  llvm::DenseMap<std::pair<Attribute, Attribute>, FamilyFigures> figures;
};

FailureOr<KernelMeter> KernelMeter::create(ModuleOp module,
                                           const DeviceSpec &device,
                                           StringRef ptxas) {
  MLIRContext *context = module.getContext();
  KernelMeter meter;
  meter.operators = std::make_unique<OperatorRegistry>();
  llvm::Expected<KernelCompiler> compiler =
      KernelCompiler::create(context, device, buildKernelLoweringPipeline);
  if (!compiler)
    return emitError(UnknownLoc::get(context), "option --ptxas-feedback: ")
           << llvm::toString(compiler.takeError());
  meter.compiler = std::make_unique<KernelCompiler>(std::move(*compiler));
  meter.measurer = std::make_unique<PtxasMeasurer>(
      *meter.operators, *meter.compiler, ptxas.str());

  FailureOr<PlannedOperators> planned =
      collectPlannedOperators(module, *meter.operators);
  if (failed(planned))
    return failure();
  meter.planned = std::move(*planned);
  return std::move(meter);
}

LogicalResult KernelMeter::measure(ModuleOp module) {
  std::vector<MeasurementRequest> requests;
  SmallVector<std::pair<StringAttr, ukernel::FamilyAttr>> kernels;
  for (auto op : module.getOps<ukernel::PlanOp>()) {
    StringAttr name = op.getSymNameAttr();
    const Plan &plan = toPlan(op.getPlan());
    for (const Workload *workload : planned.lookup(name))
      for (unsigned number : plan.usedFamilies()) {
        // Registers do not depend on the shape.
        requests.push_back(
            {workload, plan.families[number], Shape(workload->axes.size(), 1)});
        kernels.push_back({name, op.getPlan().getFamilies()[number]});
      }
  }
  std::string error;
  std::vector<llvm::Expected<Measurement>> answers =
      measurer->measure(requests);
  for (auto [request, kernel, answer] :
       llvm::zip_equal(requests, kernels, answers)) {
    if (!answer) {
      std::string text = llvm::toString(answer.takeError());
      if (error.empty())
        error = std::move(text);
      continue;
    }
    FamilyFigures &worst = figures[kernel];
    worst.threads = std::max(worst.threads, request.family.threads());
    worst.registers = std::max(worst.registers, *answer->registersPerThread);
    worst.spillBytes = std::max(worst.spillBytes, *answer->spillBytes);
  }
  if (!error.empty())
    return emitError(UnknownLoc::get(module.getContext()),
                     "option --ptxas-feedback: ")
           << error;
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
    mlir::emitWarning(plan.getLoc(), "option --ptxas-feedback: ")
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
    buildBackEndPipeline(backEnd);
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
                "option --ptxas-feedback: expected a ptxas on PATH or in "
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

    FailureOr<KernelMeter> meter = KernelMeter::create(module, *device, *ptxas);
    if (failed(meter))
      return signalPassFailure();
    llvm::DenseSet<StringAttr> settled;
    for (int64_t round = 1;; ++round) {
      if (failed(meter->measure(module)))
        return signalPassFailure();
      bool changed = false;
      for (StringAttr name : plans)
        if (!settled.contains(name)) {
          if (searchAgain(name, *meter, *device, round))
            changed = true;
          else
            settled.insert(name);
        }
      if (changed)
        continue;
      for (StringAttr name : plans)
        if (ukernel::PlanOp plan = planNamed(name);
            plan && failed(recordFigures(plan, *meter, round)))
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
