//===- PlanWorkloads.cpp - Searches the kernels of each workload ----------===//
#include "FTuner/Analysis/Stages.h"
#include "FTuner/Dialect/UKernel/Bridge/OperatorWorkload.h"
#include "FTuner/Dialect/UKernel/Bridge/PlanAttributes.h"
#include "FTuner/Dialect/UKernel/IR/Images.h"
#include "FTuner/Search/Candidates.h"
#include "FTuner/Search/SearchOptions.h"
#include "FTuner/Search/SearchSetup.h"
#include "FTuner/Transforms/PassOptionList.h"
#include "FTuner/Transforms/Passes.h"
#include "FTuner/Workload/Sampling.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Remarks.h"
#include "mlir/IR/Threading.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

namespace ftuner {
#define GEN_PASS_DEF_UKERNELPLANWORKLOADSPASS
#include "FTuner/Transforms/Passes.h.inc"
} // namespace ftuner

using namespace mlir;
using namespace ftuner;

namespace {

/// Below this confidence a choice is called close.
constexpr double kCloseChoice = 0.65;

/// Equal text for workloads that pose the same problem to the same codegen
/// paths: the epilogue matters by the paths that compute it alone.
std::string keyOf(const Workload &workload, const PathSupport &support) {
  std::string key = workload.fingerprint(FingerprintOf::Search);
  llvm::raw_string_ostream os(key);
  llvm::interleaveComma(support.pathsFor(workload), os << ";");
  return key;
}

/// Sizes along the axes, e.g. "1-4 x 2304 x 768"; "1-" has no end.
std::string boxText(ArrayRef<SizeRange> box) {
  return llvm::join(
      llvm::map_range(box,
                      [](const SizeRange &range) {
                        std::string text = std::to_string(range.min);
                        if (range.isFixed())
                          return text;
                        text += "-";
                        return range.max ? text + std::to_string(*range.max)
                                         : text;
                      }),
      " x ");
}

/// Predicted times of a plan in one line.
std::string predictionText(const Plan &plan) {
  double least = plan.predictions.front().microseconds, most = least;
  const ShapePrediction *worst = &plan.predictions.front();
  size_t close = 0;
  for (const ShapePrediction &prediction : plan.predictions) {
    least = std::min(least, prediction.microseconds);
    most = std::max(most, prediction.microseconds);
    if (prediction.regret > worst->regret)
      worst = &prediction;
    close += prediction.confidence < kCloseChoice;
  }
  std::string sizes = llvm::join(
      llvm::map_range(worst->shape,
                      [](int64_t size) { return std::to_string(size); }),
      " x ");
  return llvm::formatv("{0} shapes are predicted to take {1} to {2} us by "
                       "calibration {3}, at worst {4} % over the fastest "
                       "program ({5}); {6} choices are closer than the error "
                       "of predictions tells",
                       plan.predictions.size(), llvm::format("%.4g", least),
                       llvm::format("%.4g", most), plan.calibration,
                       llvm::format("%.2f", 100 * worst->regret), sizes, close);
}

/// Tells which family serves which box, and what the search had to say.
void emitRemarks(ukernel::OperatorOpInterface op, StringRef symbol,
                 const Plan &plan) {
  auto function = op->getParentOfType<FunctionOpInterface>();
  auto options = [&](StringRef name) {
    return remark::RemarkOpts::name(name)
        .category("ukernel-plan-workloads")
        .function(function ? function.getName() : StringRef());
  };
  remark::passed(op.getLoc(), options("plan"))
      << llvm::formatv("@{0}: {1} kernel families, general {2}, "
                       "unaligned general {3}",
                       symbol, plan.families.size(), plan.generalFamily,
                       plan.unalignedGeneralFamily)
             .str();
  for (auto [index, family] : llvm::enumerate(plan.families))
    remark::passed(op.getLoc(), options("family"))
        << llvm::formatv("@{0}: family {1} is {2}", symbol, index, family.str())
               .str();
  auto emitEntries = [&](ArrayRef<DispatchEntry> entries, StringRef operands) {
    for (const DispatchEntry &entry : entries)
      remark::passed(op.getLoc(), options("dispatch"))
          << llvm::formatv("@{0}: {1}{2} by family {3}", symbol,
                           boxText(entry.box), operands, entry.family)
                 .str();
  };
  emitEntries(plan.entries, "");
  emitEntries(plan.unalignedEntries, ", not aligned,");
  if (!plan.predictions.empty())
    remark::analysis(op.getLoc(), options("prediction"))
        << llvm::formatv("@{0}: {1}", symbol, predictionText(plan)).str();
  for (const SearchStatistic &statistic : plan.statistics)
    remark::analysis(op.getLoc(), options("statistic"))
        << llvm::formatv("@{0}: {1} = {2}", symbol, statistic.name,
                         llvm::format("%.6g", statistic.value))
               .str();
  for (const std::string &text : plan.remarks)
    remark::missed(op.getLoc(), options("search"))
        << llvm::formatv("@{0}: {1}", symbol, text).str();
}

/// Elements of the largest result that blocks of the workload tile: those along
/// its rows and columns.
double largestResult(const Workload &workload) {
  double elements = 1;
  llvm::SmallVector<unsigned, 4> axes = workload.spaceAxes().list();
  for (unsigned axis : llvm::ArrayRef(axes).take_front(2))
    elements *= static_cast<double>(largestSize(workload.axes[axis]));
  return elements;
}

struct UKernelPlanWorkloadsPass
    : public ftuner::impl::UKernelPlanWorkloadsPassBase<
          UKernelPlanWorkloadsPass> {
  UKernelPlanWorkloadsPass() = default;
  explicit UKernelPlanWorkloadsPass(const OptionValues &values) {
    options.set(values);
  }
  /// Values of options are copied by MLIR.
  UKernelPlanWorkloadsPass(const UKernelPlanWorkloadsPass &other)
      : UKernelPlanWorkloadsPassBase(other) {}

  void runOnOperation() override {
    ModuleOp module = getOperation();
    // Options are wrong whether there is a workload or not.
    llvm::Expected<SearchSetup> given = makeSearchSetup(options.values());
    if (!given) {
      emitError(UnknownLoc::get(&getContext()),
                llvm::toString(given.takeError()));
      return signalPassFailure();
    }
    setup = std::move(*given);
    SmallVector<ukernel::OperatorOpInterface> workloads, planned;
    if (failed(expectStages(module, getArgument(), {Stage::Formed})) ||
        failed(collect(workloads, planned)))
      return signalPassFailure();
    if (workloads.empty() && planned.empty())
      return;
    FailureOr<DeviceSpec> device = deviceOf(module);
    FailureOr<PathSupport> support = PathSupport::of(module);
    if (failed(device) || failed(support))
      return signalPassFailure();
    support->add(setup.paths.models);
    if (!workloads.empty())
      for (const std::string &line : setup.unread)
        remark::missed(module.getLoc(),
                       remark::RemarkOpts::name("option").category(
                           "ukernel-plan-workloads"))
            << line;
    numPlans = 0;
    for (ukernel::OperatorOpInterface op : planned)
      if (failed(takePlan(op, *device)))
        return signalPassFailure();
    if (failed(planAll(workloads, *device, *support)))
      return signalPassFailure();
  }

private:
  /// Which codegen paths a search may take: all that are given, or those of
  /// them that need no exact architecture.
  enum class Paths { All, Portable };

  /// Workloads without a plan, and those with one.
  LogicalResult
  collect(SmallVectorImpl<ukernel::OperatorOpInterface> &workloads,
          SmallVectorImpl<ukernel::OperatorOpInterface> &planned) {
    WalkResult result =
        getOperation().walk([&](ukernel::OperatorOpInterface op) {
          bool isInKernel = op->getParentOfType<ukernel::KernelOp>() != nullptr;
          if (!op.hasTensors()) {
            if (isInKernel || op.getPlanAttr())
              return WalkResult::advance();
            op->emitOpError("expected tensors: plan before bufferization");
            return WalkResult::interrupt();
          }
          (op.getPlanAttr() ? planned : workloads).push_back(op);
          return WalkResult::advance();
        });
    return failure(result.wasInterrupted());
  }

  /// The plan that the workload names; its verifier has found it.
  static ukernel::PlanOp planOf(ukernel::OperatorOpInterface op) {
    return SymbolTable::lookupNearestSymbolFrom<ukernel::PlanOp>(
        op, op.getPlanAttr());
  }

  /// The plan for devices of other architectures; null where there is none.
  static ukernel::PlanOp portableOf(ukernel::PlanOp plan) {
    FlatSymbolRefAttr name = plan.getPortableAttr();
    return name ? SymbolTable::lookupNearestSymbolFrom<ukernel::PlanOp>(plan,
                                                                        name)
                : ukernel::PlanOp();
  }

  /// Checks the plans that the workload has, and replaces what they reject.
  LogicalResult takePlan(ukernel::OperatorOpInterface op,
                         const DeviceSpec &device) {
    ukernel::PlanOp plan = planOf(op);
    if (failed(replaceRejected(plan, op, device, Paths::All)) ||
        failed(checkPlan(plan, op, device)))
      return failure();
    ukernel::PlanOp portable = portableOf(plan);
    if (!portable)
      return success();
    if (failed(replaceRejected(portable, op, device, Paths::Portable)) ||
        failed(checkPlan(portable, op, device)))
      return failure();
    if (!toPlan(portable.getPlan()).needsExactArchitecture())
      return success();
    InFlightDiagnostic diagnostic = op->emitOpError(
        "expected a portable plan of families that run on other architectures");
    diagnostic.attachNote(portable.getLoc()) << "the plan is here";
    return diagnostic;
  }

  /// A plan may come from anywhere; kernels rely on its being legal.
  LogicalResult checkPlan(ukernel::PlanOp plan, ukernel::OperatorOpInterface op,
                          const DeviceSpec &device) {
    Plan given = toPlan(plan.getPlan());
    Workload workload = toWorkload(op);
    // Whichever paths compete in searches, plans may name others.
    SearchProblem problem = setup.problem(workload, device, {});
    problem.paths = codegenModels();
    llvm::Error error = problem.checkLegality(given);
    if (!error) {
      remarkSpills(op, plan, given, problem);
      return success();
    }
    InFlightDiagnostic diagnostic = op->emitOpError("expected a legal plan: ")
                                    << llvm::toString(std::move(error));
    diagnostic.attachNote(plan.getLoc()) << "the plan is here";
    return diagnostic;
  }

  /// Kernels that may spill are right, but slow.
  static void remarkSpills(ukernel::OperatorOpInterface op,
                           ukernel::PlanOp planOp, const Plan &plan,
                           const SearchProblem &problem) {
    for (auto [index, family] : llvm::enumerate(plan.families))
      if (llvm::Error error = checkSpillFree(problem, family))
        remark::missed(op.getLoc(), remark::RemarkOpts::name("spill").category(
                                        "ukernel-plan-workloads"))
            << llvm::formatv("@{0}: family {1} ({2}): {3}", planOp.getSymName(),
                             index, family.str(),
                             llvm::toString(std::move(error)))
                   .str();
  }

  /// Answers again where the plan holds a family that it rejects.
  LogicalResult replaceRejected(ukernel::PlanOp plan,
                                ukernel::OperatorOpInterface op,
                                const DeviceSpec &device, Paths paths) {
    if (!plan->hasAttr(kRejectedAttrName))
      return success();
    llvm::Expected<std::vector<KernelFamily>> rejected = rejectedFamilies(plan);
    if (!rejected)
      return plan.emitOpError(llvm::toString(rejected.takeError()));
    auto families = plan->getAttrOfType<ArrayAttr>(kRejectedAttrName);
    if (!llvm::any_of(plan.getPlan().getFamilies(), [&](Attribute family) {
          return llvm::is_contained(families, family);
        }))
      return success();
    llvm::Expected<Plan> answer =
        search(toWorkload(op), device, paths, std::move(*rejected));
    if (!answer)
      return op->emitError(llvm::toString(answer.takeError()));
    llvm::Expected<ukernel::PlanAttr> attribute =
        toAttribute(&getContext(), *answer);
    if (!attribute)
      return op->emitError(llvm::toString(attribute.takeError()));
    plan.setPlanAttr(*attribute);
    plan->removeAttr(kMeasuredAttrName);
    emitRemarks(op, plan.getSymName(), *answer);
    ukernel::PlanOp portable = portableOf(plan);
    if (portable && !answer->needsExactArchitecture()) {
      plan.removePortableAttr();
      if (SymbolTable::symbolKnownUseEmpty(portable, getOperation()))
        portable.erase();
    } else if (!portable && answer->needsExactArchitecture()) {
      SymbolTable symbols(getOperation());
      return addPortable(plan, op, searchPortable(toWorkload(op), device),
                         symbols);
    }
    return success();
  }

  llvm::Expected<Plan> search(const Workload &workload,
                              const DeviceSpec &device, Paths paths,
                              std::vector<KernelFamily> rejected = {}) const {
    SearchProblem problem =
        setup.problem(workload, device, std::move(rejected));
    SmallVector<const CodegenModel *> allowed(problem.paths);
    if (paths == Paths::Portable)
      llvm::erase_if(allowed, [](const CodegenModel *path) {
        return path->needsExactArchitecture();
      });
    if (allowed.empty())
      return llvm::createStringError("option 'paths' names none that runs "
                                     "there");
    problem.paths = allowed;
    llvm::Expected<Plan> plan = solve(problem, *setup.strategy);
    if (plan) {
      SmallVector<const CodegenModel *> proven(setup.paths.proven);
      llvm::erase_if(proven, [&](const CodegenModel *path) {
        return !llvm::is_contained(allowed, path);
      });
      plan->provenPaths = namesOf(proven, ",");
    }
    return plan;
  }

  /// Says what gated paths would gain that nobody has proven on a card: the
  /// predicted time of the shape that takes longest, planned by itself.
  void remarkUnproven(ukernel::OperatorOpInterface op, StringRef symbol,
                      const Workload &workload, const DeviceSpec &device,
                      const Plan &plan) {
    SmallVector<const CodegenModel *> waiting(setup.paths.unproven);
    llvm::erase_if(waiting, [&](const CodegenModel *path) {
      return errorToBool(path->supports(workload, device));
    });
    // The search takes as long as one of a single shape.
    if (waiting.empty() || plan.predictions.empty() ||
        !getContext().getRemarkEngine())
      return;
    const ShapePrediction &longest =
        *llvm::max_element(plan.predictions, [](const ShapePrediction &a,
                                                const ShapePrediction &b) {
          return a.microseconds < b.microseconds;
        });
    Workload single = workload;
    for (auto [axis, size] : llvm::zip_equal(single.axes, longest.shape)) {
      axis.range = SizeRange::fixed(size);
      axis.weights.clear();
    }
    SearchProblem problem = setup.problem(single, device);
    SmallVector<const CodegenModel *> paths(problem.paths);
    llvm::append_range(paths, waiting);
    problem.paths = paths;
    llvm::Expected<Plan> other = solve(problem, *setup.strategy);
    if (!other || other->predictions.empty())
      return llvm::consumeError(other.takeError());
    std::string sizes = llvm::join(
        llvm::map_range(longest.shape,
                        [](int64_t size) { return std::to_string(size); }),
        " x ");
    remark::missed(op.getLoc(), remark::RemarkOpts::name("gated").category(
                                    "ukernel-plan-workloads"))
        << llvm::formatv(
               "@{0}: without {1}, which 'ftuner check-gpu' has not proven on "
               "the card: {2} are predicted to take {3} us, with it {4} us; "
               "--paths={5} takes it unproven",
               symbol, namesOf(waiting, ", "), sizes,
               llvm::format("%.4g", longest.microseconds),
               llvm::format("%.4g", other->predictions.front().microseconds),
               namesOf(paths, ","))
               .str();
  }

  /// The plan for devices of other architectures than the device's exact one.
  llvm::Expected<Plan> searchPortable(const Workload &workload,
                                      const DeviceSpec &device) const {
    return search(workload, device, Paths::Portable);
  }

  /// Names the answer as the portable plan of `plan`. Where there is none, the
  /// module runs on the exact architecture alone.
  LogicalResult addPortable(ukernel::PlanOp plan,
                            ukernel::OperatorOpInterface op,
                            llvm::Expected<Plan> answer, SymbolTable &symbols) {
    if (!answer) {
      remark::missed(op.getLoc(), remark::RemarkOpts::name("portable")
                                      .category("ukernel-plan-workloads"))
          << llvm::formatv("@{0}: no plan for other architectures: {1}",
                           plan.getSymName(),
                           llvm::toString(answer.takeError()))
                 .str();
      return success();
    }
    OpBuilder b(plan.getContext());
    b.setInsertionPointAfter(plan);
    FailureOr<ukernel::PlanOp> portable = createPlan(
        op, (plan.getSymName() + ukernel::kPortableSuffix).str(), *answer, b);
    if (failed(portable))
      return failure();
    plan.setPortable(symbols.insert(*portable).getValue());
    emitRemarks(op, portable->getSymName(), *answer);
    return success();
  }

  /// Plans the workloads, equal ones once and different ones in parallel. Plans
  /// are numbered in the order of the workloads.
  LogicalResult planAll(ArrayRef<ukernel::OperatorOpInterface> workloads,
                        const DeviceSpec &device, const PathSupport &support) {
    struct Question {
      Workload workload;
      /// Workloads that the answer serves.
      SmallVector<ukernel::OperatorOpInterface> ops;
      std::optional<llvm::Expected<Plan>> answer;
      /// That without paths of an exact architecture, where the answer has one.
      std::optional<llvm::Expected<Plan>> portable;
    };
    std::vector<Question> questions;
    llvm::StringMap<size_t> numbers;
    for (ukernel::OperatorOpInterface op : workloads) {
      Workload workload = toWorkload(op);
      if (llvm::Error error = support.check(workload))
        return op->emitOpError(
                   "expected an operator that a codegen path computes: ")
               << llvm::toString(std::move(error));
      auto [it, isNew] =
          numbers.try_emplace(keyOf(workload, support), questions.size());
      if (isNew)
        questions.push_back(
            {std::move(workload), {}, std::nullopt, std::nullopt});
      questions[it->second].ops.push_back(op);
    }
    // Large workloads have many candidates: threads take those first, and what
    // is left at the end is short.
    std::vector<Question *> largestFirst;
    for (Question &question : questions)
      largestFirst.push_back(&question);
    llvm::stable_sort(largestFirst, [](const Question *a, const Question *b) {
      return largestResult(a->workload) > largestResult(b->workload);
    });
    parallelForEach(&getContext(), largestFirst, [&](Question *question) {
      question->answer.emplace(search(question->workload, device, Paths::All));
      llvm::Expected<Plan> &answer = *question->answer;
      if (answer && answer->needsExactArchitecture())
        question->portable.emplace(searchPortable(question->workload, device));
    });
    LogicalResult result = success();
    SymbolTable symbols(getOperation());
    OpBuilder b = OpBuilder::atBlockBegin(getOperation().getBody());
    for (Question &question : questions) {
      ukernel::OperatorOpInterface op = question.ops.front();
      llvm::Expected<Plan> &answer = *question.answer;
      if (!answer) {
        result = op->emitError(llvm::toString(answer.takeError()));
        continue;
      }
      FailureOr<ukernel::PlanOp> plan =
          createPlan(op, "plan_" + std::to_string(numPlans++), *answer, b);
      if (failed(plan)) {
        result = failure();
        continue;
      }
      auto name = FlatSymbolRefAttr::get(symbols.insert(*plan));
      for (ukernel::OperatorOpInterface served : question.ops)
        served.setPlanAttr(name);
      emitRemarks(op, name.getValue(), *answer);
      remarkUnproven(op, name.getValue(), question.workload, device, *answer);
      if (question.portable &&
          failed(
              addPortable(*plan, op, std::move(*question.portable), symbols)))
        result = failure();
    }
    return result;
  }

  FailureOr<ukernel::PlanOp> createPlan(ukernel::OperatorOpInterface op,
                                        StringRef name, const Plan &plan,
                                        OpBuilder &b) {
    llvm::Expected<ukernel::PlanAttr> attribute =
        toAttribute(&getContext(), plan);
    if (!attribute)
      return op->emitError(llvm::toString(attribute.takeError()));
    return ukernel::PlanOp::create(b, op.getLoc(), name, *attribute);
  }

  PassOptionList options =
      PassOptionList::make<Option>(*this, searchOptionList().options());
  SearchSetup setup;
  unsigned numPlans = 0;
};
} // namespace

std::unique_ptr<Pass>
ftuner::createUKernelPlanWorkloadsPass(const OptionValues &options) {
  return std::make_unique<UKernelPlanWorkloadsPass>(options);
}
