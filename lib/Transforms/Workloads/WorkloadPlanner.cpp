//===- WorkloadPlanner.cpp - Plans of a module's workloads ----------------===//
#include "WorkloadPlanner.h"
#include "MeasuringProgress.h"
#include "PlanRemarks.h"

#include "FTuner/Dialect/UKernel/Bridge/PlanAttributes.h"
#include "FTuner/Dialect/UKernel/IR/Images.h"
#include "FTuner/Search/Ranking/SearchMemory.h"
#include "FTuner/Search/Setup/MeasurerFactory.h"
#include "FTuner/Workload/Sampling.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Threading.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace ftuner;

/// Returns a text that workloads share if one search answers for them: they
/// pose the same problem to the same codegen paths. An epilogue matters only by
/// the paths that compute it.
static std::string makeKey(const Workload &workload,
                           const PathSupport &support) {
  std::string key = workload.fingerprint(FingerprintOf::Search);
  llvm::raw_string_ostream os(key);
  llvm::interleaveComma(support.pathsFor(workload), os << ";");
  return key;
}

/// Returns the number of elements of the largest result that blocks tile, along
/// its rows and columns.
static double maxResultElements(const Workload &workload) {
  double elements = 1;
  llvm::SmallVector<unsigned, 4> axes = workload.spaceAxes().list();
  for (unsigned axis : llvm::ArrayRef(axes).take_front(2))
    elements *= static_cast<double>(largestSize(workload.axes[axis]));
  return elements;
}

/// Returns the plan that an operator names; its verifier has found it.
static ukernel::PlanOp getPlan(ukernel::OperatorOpInterface op) {
  return SymbolTable::lookupNearestSymbolFrom<ukernel::PlanOp>(
      op, op.getPlanAttr());
}

/// Returns the plan for devices of other architectures; null if there is none.
static ukernel::PlanOp getPortable(ukernel::PlanOp plan) {
  FlatSymbolRefAttr name = plan.getPortableAttr();
  return name
             ? SymbolTable::lookupNearestSymbolFrom<ukernel::PlanOp>(plan, name)
             : ukernel::PlanOp();
}

LogicalResult WorkloadPlanner::takePlan(ukernel::OperatorOpInterface op) {
  ukernel::PlanOp plan = getPlan(op);
  if (failed(replaceRejected(plan, op, Paths::All)) ||
      failed(checkPlan(plan, op)))
    return failure();
  ukernel::PlanOp portable = getPortable(plan);
  if (!portable)
    return success();
  if (failed(replaceRejected(portable, op, Paths::Portable)) ||
      failed(checkPlan(portable, op)))
    return failure();
  if (!toPlan(portable.getPlan()).needsExactArchitecture())
    return success();
  InFlightDiagnostic diagnostic = op->emitOpError(
      "expected a portable plan of families that run on other architectures");
  diagnostic.attachNote(portable.getLoc()) << "the plan is here";
  return diagnostic;
}

LogicalResult WorkloadPlanner::checkPlan(ukernel::PlanOp plan,
                                         ukernel::OperatorOpInterface op) {
  const Plan &given = toPlan(plan.getPlan());
  // Plans may name families that do not compete in searches.
  SearchProblem problem = setup.problem(workloads.get(op), device, {});
  problem.paths = codegenModels();
  problem.options.closedFields = {};
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

LogicalResult WorkloadPlanner::replaceRejected(ukernel::PlanOp plan,
                                               ukernel::OperatorOpInterface op,
                                               Paths paths) {
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
      search(workloads.get(op), paths, std::move(*rejected));
  if (!answer)
    return op->emitError(llvm::toString(answer.takeError()));
  llvm::Expected<ukernel::PlanAttr> attribute =
      toAttribute(module.getContext(), *answer);
  if (!attribute)
    return op->emitError(llvm::toString(attribute.takeError()));
  plan.setPlanAttr(*attribute);
  plan->removeAttr(kMeasuredAttrName);
  remarkPlan(op, plan.getSymName(), *answer);
  ukernel::PlanOp portable = getPortable(plan);
  if (portable && !answer->needsExactArchitecture()) {
    plan.removePortableAttr();
    if (SymbolTable::symbolKnownUseEmpty(portable, module))
      portable.erase();
  } else if (!portable && answer->needsExactArchitecture()) {
    SymbolTable symbols(module);
    return addPortable(plan, op, search(workloads.get(op), Paths::Portable),
                       symbols);
  }
  return success();
}

/// Returns true if paths that need an exact architecture compete for the
/// workload.
static bool mayNeedExactArchitecture(const SearchProblem &problem) {
  auto paths =
      supportingModels(problem.paths, problem.workload, problem.device);
  if (!paths) {
    llvm::consumeError(paths.takeError());
    return false;
  }
  return llvm::any_of(*paths, [](const CodegenModel *path) {
    return path->needsExactArchitecture();
  });
}

llvm::Expected<Plan>
WorkloadPlanner::search(const Workload &workload, Paths paths,
                        std::vector<KernelFamily> rejected) const {
  SearchProblem problem = setup.problem(workload, device, std::move(rejected));
  return search(problem, paths);
}

llvm::Expected<Plan> WorkloadPlanner::search(SearchProblem &problem,
                                             Paths paths) const {
  SmallVector<const CodegenModel *> allowed(problem.paths);
  if (paths == Paths::Portable)
    llvm::erase_if(allowed, [](const CodegenModel *path) {
      return path->needsExactArchitecture();
    });
  if (allowed.empty())
    return llvm::createStringError(
        "options 'paths' and 'failed-paths' leave no codegen path that runs "
        "there");
  llvm::SaveAndRestore restrict(problem.paths,
                                ArrayRef<const CodegenModel *>(allowed));
  SearchContext context = measuringContext(setup, measurer);
  MeasuringProgress progress(problem.workload.name);
  context.progress = [&](int64_t done, int64_t total) {
    progress.show(done, total);
  };
  llvm::Expected<Plan> plan = solve(problem, *setup.strategy, context);
  if (plan) {
    SmallVector<Gate> proven(setup.paths.proven);
    llvm::erase_if(proven, [&](const Gate &gate) {
      return !llvm::is_contained(allowed, gate.path);
    });
    plan->provenPaths = namesOf(proven, ",");
  }
  return plan;
}

LogicalResult WorkloadPlanner::addPortable(ukernel::PlanOp plan,
                                           ukernel::OperatorOpInterface op,
                                           llvm::Expected<Plan> answer,
                                           SymbolTable &symbols) {
  if (!answer) {
    remarkNotPortable(op, plan.getSymName(), answer.takeError());
    return success();
  }
  OpBuilder b(plan.getContext());
  b.setInsertionPointAfter(plan);
  FailureOr<ukernel::PlanOp> portable = createPlan(
      op, (plan.getSymName() + ukernel::kPortableSuffix).str(), *answer, b);
  if (failed(portable))
    return failure();
  plan.setPortable(symbols.insert(*portable).getValue());
  remarkPlan(op, portable->getSymName(), *answer);
  return success();
}

LogicalResult
WorkloadPlanner::planAll(ArrayRef<ukernel::OperatorOpInterface> ops) {
  struct Question {
    const Workload &workload;
    /// Operators that the answer serves.
    SmallVector<ukernel::OperatorOpInterface> ops;
    std::optional<llvm::Expected<Plan>> answer;
    /// The answer without paths of an exact architecture, if `answer` has one.
    std::optional<llvm::Expected<Plan>> portable;
  };
  std::vector<Question> questions;
  llvm::StringMap<size_t> numbers;
  for (ukernel::OperatorOpInterface op : ops) {
    const Workload &workload = workloads.get(op);
    if (llvm::Error error = support.check(workload))
      return op->emitOpError(
                 "expected an operator that a codegen path computes: ")
             << llvm::toString(std::move(error));
    auto [it, isNew] =
        numbers.try_emplace(makeKey(workload, support), questions.size());
    if (isNew)
      questions.push_back({workload, {}, std::nullopt, std::nullopt});
    questions[it->second].ops.push_back(op);
  }
  // Large workloads have many candidates: threads take these first, so that the
  // last searches are short.
  std::vector<Question *> largestFirst;
  for (Question &question : questions)
    largestFirst.push_back(&question);
  llvm::stable_sort(largestFirst, [](const Question *a, const Question *b) {
    return maxResultElements(a->workload) > maxResultElements(b->workload);
  });
  auto plan = [&](Question *question) {
    SearchProblem problem = setup.problem(question->workload, device);
    if (mayNeedExactArchitecture(problem))
      problem.memory = std::make_shared<SearchMemory>();
    llvm::Expected<Plan> &answer =
        question->answer.emplace(search(problem, Paths::All));
    if (!answer || !answer->needsExactArchitecture())
      return;
    // The second search takes candidates, prices and scores from the first one,
    // but not its remarks.
    if (!problem.evaluator().remarks().empty()) {
      problem.madeEvaluator = nullptr;
      problem.memory = nullptr;
    }
    question->portable.emplace(search(problem, Paths::Portable));
  };
  // A measurer serves one search at a time.
  if (measurer)
    llvm::for_each(largestFirst, plan);
  else
    parallelForEach(module.getContext(), largestFirst, plan);
  LogicalResult result = success();
  SymbolTable symbols(module);
  OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
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
    remarkPlan(op, name.getValue(), *answer);
    remarkUnproven(op, name.getValue(), question.workload, device, *answer,
                   setup);
    if (question.portable &&
        failed(addPortable(*plan, op, std::move(*question.portable), symbols)))
      result = failure();
  }
  return result;
}

FailureOr<ukernel::PlanOp>
WorkloadPlanner::createPlan(ukernel::OperatorOpInterface op, StringRef name,
                            const Plan &plan, OpBuilder &b) {
  llvm::Expected<ukernel::PlanAttr> attribute =
      toAttribute(module.getContext(), plan);
  if (!attribute)
    return op->emitError(llvm::toString(attribute.takeError()));
  return ukernel::PlanOp::create(b, op.getLoc(), name, *attribute);
}
