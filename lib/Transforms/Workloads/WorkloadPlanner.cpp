//===- WorkloadPlanner.cpp - Plans of a module's workloads ----------------===//
#include "WorkloadPlanner.h"
#include "MeasuringProgress.h"
#include "PlanRemarks.h"

#include "FTuner/Dialect/UKernel/Bridge/PlanAttributes.h"
#include "FTuner/Dialect/UKernel/IR/Images.h"
#include "FTuner/Search/Setup/MeasurerFactory.h"
#include "FTuner/Workload/Sampling.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Threading.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace ftuner;

/// Equal text for workloads that pose the same problem to the same codegen
/// paths: the epilogue matters by the paths that compute it alone.
static std::string keyOf(const Workload &workload, const PathSupport &support) {
  std::string key = workload.fingerprint(FingerprintOf::Search);
  llvm::raw_string_ostream os(key);
  llvm::interleaveComma(support.pathsFor(workload), os << ";");
  return key;
}

/// Elements of the largest result that blocks of the workload tile: those along
/// its rows and columns.
static double largestResult(const Workload &workload) {
  double elements = 1;
  llvm::SmallVector<unsigned, 4> axes = workload.spaceAxes().list();
  for (unsigned axis : llvm::ArrayRef(axes).take_front(2))
    elements *= static_cast<double>(largestSize(workload.axes[axis]));
  return elements;
}

/// The plan that the workload names; its verifier has found it.
static ukernel::PlanOp planOf(ukernel::OperatorOpInterface op) {
  return SymbolTable::lookupNearestSymbolFrom<ukernel::PlanOp>(
      op, op.getPlanAttr());
}

/// The plan for devices of other architectures; null where there is none.
static ukernel::PlanOp portableOf(ukernel::PlanOp plan) {
  FlatSymbolRefAttr name = plan.getPortableAttr();
  return name
             ? SymbolTable::lookupNearestSymbolFrom<ukernel::PlanOp>(plan, name)
             : ukernel::PlanOp();
}

LogicalResult WorkloadPlanner::takePlan(ukernel::OperatorOpInterface op) {
  ukernel::PlanOp plan = planOf(op);
  if (failed(replaceRejected(plan, op, Paths::All)) ||
      failed(checkPlan(plan, op)))
    return failure();
  ukernel::PlanOp portable = portableOf(plan);
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
  Plan given = toPlan(plan.getPlan());
  Workload workload = toWorkload(op);
  // Whichever families compete in searches, plans may name others.
  SearchProblem problem = setup.problem(workload, device, {});
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
      search(toWorkload(op), paths, std::move(*rejected));
  if (!answer)
    return op->emitError(llvm::toString(answer.takeError()));
  llvm::Expected<ukernel::PlanAttr> attribute =
      toAttribute(module.getContext(), *answer);
  if (!attribute)
    return op->emitError(llvm::toString(attribute.takeError()));
  plan.setPlanAttr(*attribute);
  plan->removeAttr(kMeasuredAttrName);
  remarkPlan(op, plan.getSymName(), *answer);
  ukernel::PlanOp portable = portableOf(plan);
  if (portable && !answer->needsExactArchitecture()) {
    plan.removePortableAttr();
    if (SymbolTable::symbolKnownUseEmpty(portable, module))
      portable.erase();
  } else if (!portable && answer->needsExactArchitecture()) {
    SymbolTable symbols(module);
    return addPortable(plan, op, search(toWorkload(op), Paths::Portable),
                       symbols);
  }
  return success();
}

bool WorkloadPlanner::mayNeedExactArchitecture(const Workload &workload) const {
  SearchProblem problem = setup.problem(workload, device, {});
  auto paths = supportingModels(problem.paths, workload, device);
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
  SmallVector<const CodegenModel *> allowed(problem.paths);
  if (paths == Paths::Portable)
    llvm::erase_if(allowed, [](const CodegenModel *path) {
      return path->needsExactArchitecture();
    });
  if (allowed.empty())
    return llvm::createStringError(
        "options 'paths' and 'failed-paths' leave no codegen path that runs "
        "there");
  problem.paths = allowed;
  SearchContext context = measuringContext(setup, measurer);
  MeasuringProgress progress(workload.name);
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
WorkloadPlanner::planAll(ArrayRef<ukernel::OperatorOpInterface> workloads) {
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
  // Most answers where an exact architecture may be needed do need it, so the
  // portable one is searched for beside.
  struct Search {
    Question *question;
    Paths paths;
  };
  std::vector<Search> searches;
  for (Question *question : largestFirst) {
    searches.push_back({question, Paths::All});
    if (mayNeedExactArchitecture(question->workload))
      searches.push_back({question, Paths::Portable});
  }
  auto run = [&](const Search &next) {
    Question &question = *next.question;
    auto &answer =
        next.paths == Paths::All ? question.answer : question.portable;
    answer.emplace(search(question.workload, next.paths));
  };
  auto needsPortable = [](Question &question) {
    llvm::Expected<Plan> &answer = *question.answer;
    return answer && answer->needsExactArchitecture();
  };
  // A measurer serves one search at a time, and no needless one.
  if (measurer) {
    for (const Search &next : searches)
      if (next.paths == Paths::All || needsPortable(*next.question))
        run(next);
  } else {
    parallelForEach(module.getContext(), searches, run);
  }
  for (Question &question : questions)
    if (question.portable && !needsPortable(question)) {
      llvm::consumeError(question.portable->takeError());
      question.portable.reset();
    }
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
