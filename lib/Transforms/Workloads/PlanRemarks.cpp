//===- PlanRemarks.cpp - Remarks on plans ---------------------------------===//
#include "PlanRemarks.h"
#include "FTuner/Search/Problem/Feasibility.h"

#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace ftuner;

static remark::RemarkOpts remarkOptions(StringRef name) {
  return remark::RemarkOpts::name(name).category("ukernel-plan-workloads");
}

/// Confidence below which a choice is called close.
static constexpr double kCloseChoice = 0.65;

/// Returns the sizes along the axes, e.g. "1-4 x 2304 x 768"; "1-" is open.
static std::string boxText(ArrayRef<SizeRange> box) {
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

/// Returns the predicted times of a plan in one line.
static std::string predictionText(const Plan &plan) {
  double shortest = plan.predictions.front().microseconds, longest = shortest;
  const ShapePrediction *worst = &plan.predictions.front();
  size_t close = 0;
  for (const ShapePrediction &prediction : plan.predictions) {
    shortest = std::min(shortest, prediction.microseconds);
    longest = std::max(longest, prediction.microseconds);
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
                       plan.predictions.size(), llvm::format("%.4g", shortest),
                       llvm::format("%.4g", longest), plan.calibration,
                       llvm::format("%.2f", 100 * worst->regret), sizes, close);
}

void ftuner::remarkPlan(ukernel::OperatorOpInterface op, StringRef symbol,
                        const Plan &plan) {
  auto function = op->getParentOfType<FunctionOpInterface>();
  auto options = [&](StringRef name) {
    return remarkOptions(name).function(function ? function.getName()
                                                 : StringRef());
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

/// Returns true if the plan has families behind the gate.
static bool hasBehind(const Plan &plan, const Gate &gate) {
  return llvm::any_of(plan.families, [&](const KernelFamily &family) {
    return &family.path() == gate.path &&
           (!gate.field ||
            withDefaults(family.schedule, {gate.field}) != family.schedule);
  });
}

void ftuner::remarkUnproven(ukernel::OperatorOpInterface op, StringRef symbol,
                            const Workload &workload, const DeviceSpec &device,
                            const Plan &plan, const SearchSetup &setup) {
  SmallVector<Gate> waiting(setup.paths.unproven);
  llvm::erase_if(waiting, [&](const Gate &gate) {
    return errorToBool(gate.path->supports(workload, device));
  });
  // The search below is for a single shape, so it is short.
  if (waiting.empty() || plan.predictions.empty() ||
      !op->getContext()->getRemarkEngine())
    return;
  const ShapePrediction &longest = *llvm::max_element(
      plan.predictions, [](const ShapePrediction &a, const ShapePrediction &b) {
        return a.microseconds < b.microseconds;
      });
  Workload single = workload;
  for (auto [axis, size] : llvm::zip_equal(single.axes, longest.shape)) {
    axis.range = SizeRange::fixed(size);
    axis.weights.clear();
  }
  SearchProblem problem = setup.problem(single, device);
  SmallVector<const CodegenModel *> paths(problem.paths);
  for (const Gate &gate : waiting)
    if (!llvm::is_contained(paths, gate.path))
      paths.push_back(gate.path);
  problem.paths = paths;
  llvm::erase_if(problem.options.closedFields, [&](const ScheduleField *field) {
    return llvm::any_of(waiting,
                        [&](const Gate &gate) { return gate.field == field; });
  });
  problem.options.measuring = {};
  llvm::Expected<Plan> other = solve(problem, *setup.strategy);
  if (!other || other->predictions.empty())
    return llvm::consumeError(other.takeError());
  if (other->predictions.front().microseconds >= longest.microseconds)
    return;
  llvm::erase_if(waiting,
                 [&](const Gate &gate) { return !hasBehind(*other, gate); });
  if (waiting.empty())
    return;
  std::string sizes = llvm::join(
      llvm::map_range(longest.shape,
                      [](int64_t size) { return std::to_string(size); }),
      " x ");
  remark::missed(op.getLoc(), remarkOptions("gated"))
      << llvm::formatv(
             "@{0}: without {1}, which 'ftuner check-gpu' has not proven on "
             "the card: {2} are predicted to take {3} us, with {6} {4} us; "
             "--paths={5} takes it unproven",
             symbol, namesOf(waiting, ", "), sizes,
             llvm::format("%.4g", longest.microseconds),
             llvm::format("%.4g", other->predictions.front().microseconds),
             namesOf(paths, ","), waiting.size() > 1 ? "them" : "it")
             .str();
}

void ftuner::remarkSpills(ukernel::OperatorOpInterface op,
                          ukernel::PlanOp planOp, const Plan &plan,
                          const SearchProblem &problem) {
  for (auto [index, family] : llvm::enumerate(plan.families))
    if (llvm::Error error = checkSpillFree(problem, family))
      remark::missed(op.getLoc(), remarkOptions("spill"))
          << llvm::formatv("@{0}: family {1} ({2}): {3}", planOp.getSymName(),
                           index, family.str(),
                           llvm::toString(std::move(error)))
                 .str();
}

void ftuner::remarkUnread(ModuleOp module, const SearchSetup &setup) {
  for (const std::string &line : setup.unread)
    remark::missed(module.getLoc(), remarkOptions("option")) << line;
}

void ftuner::remarkNotPortable(ukernel::OperatorOpInterface op,
                               StringRef symbol, llvm::Error error) {
  remark::missed(op.getLoc(), remarkOptions("portable"))
      << llvm::formatv("@{0}: no plan for other architectures: {1}", symbol,
                       llvm::toString(std::move(error)))
             .str();
}
