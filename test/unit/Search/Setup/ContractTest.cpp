//===- ContractTest.cpp - Contract of strategies and cost models ----------===//
//
// Strategies with cost models over devices and workloads, every pair of them:
// the plan verifies, scores are finite, every size is served, and the same
// question gets the same answer.
//
//===----------------------------------------------------------------------===//
#include "../../Scale.h"
#include "../StubModel.h"
#include "FTuner/Dispatch/Intervals.h"
#include "FTuner/Search/Problem/SearchStrategy.h"
#include "FTuner/Search/Setup/StrategyRegistry.h"
#include "FTuner/Workload/Contraction.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <gtest/gtest.h>
#include <list>
#include <map>
#include <set>

using namespace ftuner;

namespace {
struct NamedWorkload {
  const char *name;
  Workload workload;
};
} // namespace

/// The workload with factors of f16 and a sum in f32.
static Workload inHalfPrecision(Workload workload) {
  for (Operand &operand : workload.operands)
    if (operand.role == OperandRole::Lhs || operand.role == OperandRole::Rhs) {
      operand.elementType = ElementType::F16;
      operand.elementBytes = bytesOf(ElementType::F16);
    }
  changeContraction(workload, [](ContractionParts &parts) {
    parts.multipliedType = ElementType::F16;
  });
  return workload;
}

/// Products with batch axes.
static std::vector<NamedWorkload> batchWorkloads() {
  SizeRange open{1, std::nullopt}, t{1, 128}, d = SizeRange::fixed(64);
  // The paper's BatchMatmul: 192 x T x T x 64, one T.
  Workload scores =
      Workload::batchMatmul(SizeRange::fixed(192), t, t, d, false, true);
  scores.axes[0].symbols = scores.axes[1].symbols = {"T"};
  // A bias for each element of the batch.
  Workload biased = scores;
  biased.operands.push_back({OperandRole::Extra, {3}});
  return {
      {"scores", scores},
      {"biased", biased},
      {"values", Workload::batchMatmul({1, 192}, t, d, t)},
      {"allOpenBatch", Workload::batchMatmul(open, open, open, open)},
  };
}

static std::vector<NamedWorkload> workloads() {
  SizeRange n = SizeRange::fixed(2304), k = SizeRange::fixed(768);
  SizeRange open{1, std::nullopt};
  Workload weighted = Workload::matmul({1, 128}, n, k);
  weighted.axes[0].weights = {{53, 10}, {128, 1}};
  return {
      {"dense", Workload::matmul({1, 128}, n, k)},
      {"dense16", Workload::matmul({16, 2048, 16}, n, k)},
      {"nt", Workload::matmul({1, 128}, n, k, false, true)},
      {"tn", Workload::matmul({1, 64}, n, k, true, false)},
      {"static", Workload::matmul(SizeRange::fixed(512), n, k)},
      {"one", Workload::matmul(SizeRange::fixed(1), SizeRange::fixed(1),
                               SizeRange::fixed(1))},
      {"odd", Workload::matmul({1, 40}, SizeRange::fixed(1009),
                               SizeRange::fixed(331))},
      {"open", Workload::matmul(open, n, k)},
      {"openN", Workload::matmul(SizeRange::fixed(64), open, k)},
      {"openK", Workload::matmul(SizeRange::fixed(64), n, open)},
      {"allOpen", Workload::matmul(open, open, open)},
      {"zero", Workload::matmul({0, 8}, n, k)},
      {"rows", Workload::matmul(SizeRange::fixed(10000000),
                                SizeRange::fixed(64), SizeRange::fixed(64))},
      {"large", Workload::matmul({1, 10000000, 7}, SizeRange::fixed(64),
                                 SizeRange::fixed(64))},
      {"weighted", weighted},
  };
}

static DeviceSpec load(llvm::StringRef name) {
  llvm::Expected<DeviceSpec> device = loadDeviceSpec(name);
  EXPECT_TRUE(static_cast<bool>(device));
  return *device;
}

/// A text of everything that a plan decides.
static std::string textOf(const Plan &plan) {
  std::string text;
  for (const KernelFamily &family : plan.families)
    text += family.str() + "\n";
  for (const DispatchEntry &entry : plan.entries) {
    for (const SizeRange &range : entry.box)
      text += std::to_string(range.min) + "-" +
              std::to_string(range.max.value_or(-1)) + " ";
    text += std::to_string(entry.family) + "\n";
  }
  text += std::to_string(plan.unalignedEntries.size()) + " " +
          std::to_string(plan.generalFamily) + " " +
          std::to_string(plan.unalignedGeneralFamily);
  return text;
}

static void checkScores(const SearchProblem &problem, const Plan &plan) {
  const Workload &workload = problem.workload;
  unsigned axis = workload.mainAxis();
  const SizeRange &range = workload.axes[axis].range;
  for (int64_t size : {int64_t(1), int64_t(53), int64_t(128), int64_t(2048),
                       int64_t(100000), int64_t(10000000)}) {
    Shape shape;
    for (const Axis &other : workload.axes)
      shape.push_back(std::max<int64_t>(other.range.min, 1));
    if (!range.isFixed())
      shape[axis] = size;
    const KernelFamily &family = plan.families[plan.familyFor(shape)];
    Program program{&family, partitionShape(family, shape)};
    CostBreakdown breakdown = problem.costModel.evaluate(
        workload, shape, program, problem.device, problem.options.cost);
    EXPECT_TRUE(std::isfinite(breakdown.score));
  }
}

/// Returns whether the strategy takes the workload and is quick enough here:
/// `roller` takes products, and `exhaustive` is for small spaces.
static bool isAsked(const SearchStrategy &strategy, const Workload &workload) {
  if (strategy.name() == "roller")
    return workload.isContraction();
  return strategy.name() != "exhaustive" ||
         llvm::none_of(workload.axes,
                       [](const Axis &axis) { return axis.isDynamic(); });
}

namespace {
/// A question for the search.
struct Question {
  const DeviceSpec *device;
  const NamedWorkload *workload;
  const SearchStrategy *strategy;
  const CostModel *model;

  /// The pairs of its parts that some question must have. Workloads and models
  /// are a pair only if `everyModel`.
  std::vector<std::pair<const void *, const void *>>
  pairs(bool everyModel) const {
    std::vector<std::pair<const void *, const void *>> result{
        {device, workload},
        {device, strategy},
        {device, model},
        {workload, strategy},
        {strategy, model}};
    if (everyModel)
      result.push_back({workload, model});
    return result;
  }
};
} // namespace

/// Few of the questions with all of their pairs: again and again one of those
/// that have most of the pairs that are left.
static std::vector<Question> choosePairwise(std::vector<Question> questions,
                                            bool everyModel) {
  std::set<std::pair<const void *, const void *>> left;
  for (const Question &question : questions)
    for (auto pair : question.pairs(everyModel))
      left.insert(pair);
  auto gain = [&](const Question &question) {
    return llvm::count_if(question.pairs(everyModel),
                          [&](auto pair) { return left.count(pair); });
  };
  std::vector<Question> chosen;
  while (!left.empty()) {
    auto best =
        llvm::max_element(questions, [&](const Question &a, const Question &b) {
          return gain(a) < gain(b);
        });
    for (auto pair : best->pairs(everyModel))
      left.erase(pair);
    chosen.push_back(*best);
  }
  return chosen;
}

static void checkPlan(const SearchProblem &problem, const NamedWorkload &named,
                      const Plan &plan) {
  checkScores(problem, plan);
  // One dynamic axis decides alone.
  int dynamic = 0;
  unsigned deciding = named.workload.mainAxis();
  for (auto [index, axis] : llvm::enumerate(named.workload.axes))
    if (axis.isDynamic()) {
      ++dynamic;
      deciding = index;
    }
  if (dynamic > 1)
    return;
  auto cells = planCells(plan.entries, deciding);
  EXPECT_TRUE(cells && cells->size() <= 1);
}

/// The workloads that some of the paths take on a device. Where they take none
/// in f32, those in half precision, which are searched in the same way; where
/// they take no products, sums of rows.
static std::vector<NamedWorkload>
supportedWorkloads(llvm::ArrayRef<const CodegenModel *> paths,
                   const DeviceSpec &device) {
  std::vector<NamedWorkload> result;
  auto addSupported = [&](std::vector<NamedWorkload> some, bool isHalf) {
    for (NamedWorkload &named : some) {
      if (isHalf)
        named.workload = inHalfPrecision(std::move(named.workload));
      if (auto supporting = supportingModels(paths, named.workload, device))
        result.push_back(std::move(named));
      else
        llvm::consumeError(supporting.takeError());
    }
  };
  for (bool isHalf : {false, true})
    if (result.empty()) {
      addSupported(workloads(), isHalf);
      addSupported(batchWorkloads(), isHalf);
    }
  if (result.empty())
    addSupported({{"rows", Workload::rowSums({1, 512}, {1, 2048})},
                  {"openRows",
                   Workload::rowSums({1, std::nullopt}, SizeRange::fixed(768))},
                  {"fixedRows", Workload::rowSums(SizeRange::fixed(64),
                                                  SizeRange::fixed(1000))}},
                 /*isHalf=*/false);
  if (result.empty())
    addSupported({{"points", Workload::vectorSum({1, 100000})},
                  {"openPoints", Workload::vectorSum({1, std::nullopt})},
                  {"fixedPoints", Workload::vectorSum(SizeRange::fixed(4099))}},
                 /*isHalf=*/false);
  return result;
}

/// One workload of each kind of sizes, for several paths at once and for stubs.
/// Where all axes are open, a search takes seconds: that is asked of each path
/// alone.
static const std::set<std::string> kWorkloadsOfVariants = {
    "dense", "odd", "one", "openN", "zero", "scores", "values"};

/// Every pair of a device, a workload, a strategy and a cost model, but those
/// of workloads and models only with `everyModel`, which doubles the time. All
/// workloads, unless `names` says which.
static void walk(llvm::ArrayRef<const CodegenModel *> paths,
                 llvm::ArrayRef<const char *> deviceNames, bool everyModel,
                 const std::set<std::string> &names = {}) {
  std::list<DeviceSpec> devices;
  // Workloads of the same name are one to choose by.
  std::map<std::string, NamedWorkload> named;
  std::vector<Question> questions;
  for (const char *deviceName : deviceNames) {
    const DeviceSpec &device = devices.emplace_back(load(deviceName));
    for (NamedWorkload &supported : supportedWorkloads(paths, device)) {
      if (!names.empty() && !names.count(supported.name))
        continue;
      auto half =
          supported.workload.mainComputation().operations.front().operandType;
      auto [place, isNew] = named.try_emplace(
          supported.name + std::to_string(static_cast<int>(half)),
          std::move(supported));
      for (const SearchStrategy *strategy : searchStrategies())
        for (const CostModel *model : costModels())
          if (isAsked(*strategy, place->second.workload))
            questions.push_back({&device, &place->second, strategy, model});
    }
  }
  ASSERT_FALSE(questions.empty());

  std::set<std::pair<const SearchStrategy *, const CostModel *>> askedAgain;
  for (const Question &question :
       choosePairwise(std::move(questions), everyModel)) {
    SCOPED_TRACE(question.device->name + " " + question.workload->name + " " +
                 question.strategy->name().str() + " " +
                 question.model->name().str());
    SearchProblem problem{question.workload->workload,
                          *question.device,
                          paths,
                          *question.model,
                          {}};
    // Of `dietcode` and `gensor`, which have what must hold after few of them.
    problem.options.own["trials"] = int64_t(64);
    problem.options.own["walks"] = int64_t(4);
    llvm::Expected<Plan> plan = solve(problem, *question.strategy);
    if (!plan) {
      ADD_FAILURE() << llvm::toString(plan.takeError());
      continue;
    }
    checkPlan(problem, *question.workload, *plan);
    if (!askedAgain.insert({question.strategy, question.model}).second)
      continue;
    llvm::Expected<Plan> again = solve(problem, *question.strategy);
    ASSERT_TRUE(static_cast<bool>(again));
    EXPECT_EQ(textOf(*plan), textOf(*again));
  }
}

namespace {
class ContractOfPath : public testing::TestWithParam<const CodegenModel *> {};
} // namespace

TEST_P(ContractOfPath, Holds) {
  walk(GetParam(), {"k80", "h200", "v100", "orin-nano"}, runsEverything());
}

INSTANTIATE_TEST_SUITE_P(Contract, ContractOfPath,
                         testing::ValuesIn(codegenModels().begin(),
                                           codegenModels().end()),
                         [](const auto &info) {
                           return info.param->name().str();
                         });

TEST(Contract, HoldsForAStubPath) {
  StubModel stub;
  walk(&stub, {"p4", "a100"}, /*everyModel=*/false, kWorkloadsOfVariants);
}

TEST(Contract, HoldsForAPathWhoseWorkersAreWarps) {
  StubModel stub;
  stub.threadsPerWorker = 32;
  stub.maxRows = stub.maxColumns = 16;
  walk(&stub, {"a100"}, /*everyModel=*/false, kWorkloadsOfVariants);
}

TEST(Contract, HoldsForManyPaths) {
  StubModel stub;
  llvm::SmallVector<const CodegenModel *> paths(codegenModels());
  paths.push_back(&stub);
  walk(paths, {"h200", "t4"}, /*everyModel=*/false, kWorkloadsOfVariants);
}

TEST(Contract, HoldsForAPathThatCombinesTheOtherAxis) {
  StubModel stub({matmulAxes.n});
  walk(&stub, {"t4"}, /*everyModel=*/false, kWorkloadsOfVariants);
}

TEST(Contract, HoldsForAPathThatCombinesNothing) {
  StubModel stub(llvm::SmallVector<unsigned>{});
  walk(&stub, {"t4"}, /*everyModel=*/false, kWorkloadsOfVariants);
}

TEST(Contract, MaxKernelsBoundsTheFamilies) {
  DeviceSpec device = load("a100");
  Workload workload =
      Workload::matmul({1, 128}, SizeRange::fixed(2304), SizeRange::fixed(768));
  StubModel stub;
  const CodegenModel *path = &stub;
  size_t previous = 0;
  for (int64_t maxKernels : {1, 2, 3, 4, 8, 16, 64}) {
    SearchProblem problem{workload, device, path, *findCostModel("sia"), {}};
    problem.options.maxKernels = maxKernels;
    llvm::Expected<Plan> plan = solve(problem, *searchStrategies().front());
    ASSERT_TRUE(static_cast<bool>(plan)) << llvm::toString(plan.takeError());
    EXPECT_LE(plan->families.size(), static_cast<size_t>(maxKernels));
    EXPECT_GE(plan->families.size(), previous);
    previous = plan->families.size();
  }
  EXPECT_GT(previous, 4u);
}

TEST(Contract, DenseTilesAreRichInArithmeticForManyRows) {
  // For every size from 1024 rows on, loads from shared memory are few beside
  // the multiply-adds: rm · rn against (rm + rn) / 4 vector loads.
  Workload workload = Workload::matmul({16, 2048, 16}, SizeRange::fixed(2304),
                                       SizeRange::fixed(768));
  for (const char *name : {"a100", "h200"})
    for (const CostModel *model : costModels()) {
      DeviceSpec device = load(name);
      SearchProblem problem{workload, device, codegenModels(), *model, {}};
      llvm::Expected<Plan> plan = solve(problem, *searchStrategies().front());
      ASSERT_TRUE(static_cast<bool>(plan)) << llvm::toString(plan.takeError());
      for (int64_t rows = 1024; rows <= 2048; rows += 16) {
        const KernelFamily &family =
            plan->families[plan->familyFor({rows, 2304, 768})];
        for (unsigned part = 0; part < family.tiles.size(); ++part) {
          UKernel u = family.ukernel(part);
          double products = u.registerTile[0] * u.registerTile[1];
          double loads = (u.registerTile[0] + u.registerTile[1]) / 4.0;
          EXPECT_GE(products / (products + loads), 0.9) << family.str();
          EXPECT_GE(products, 32) << family.str();
        }
        EXPECT_GE(family.threads(), 128) << family.str();
        EXPECT_EQ(768 % family.tiles[0][2], 0) << family.str();
        EXPECT_EQ(family.alignment(), 16) << family.str();
      }
    }
}

TEST(Contract, UnalignedSizesGetAlignedAndFallbackFamilies) {
  // N is contiguous and dynamic: aligned families are checked at run time.
  DeviceSpec device = load("h200");
  Workload workload =
      Workload::matmul(SizeRange::fixed(64), {1, 512}, SizeRange::fixed(768));
  SearchProblem problem{
      workload, device, codegenModels(), *findCostModel("sia"), {}};
  llvm::Expected<Plan> plan = solve(problem, *searchStrategies().front());
  ASSERT_TRUE(static_cast<bool>(plan)) << llvm::toString(plan.takeError());
  EXPECT_EQ(plan->families[plan->generalFamily].alignment(), 16);
  EXPECT_TRUE(plan->families[plan->unalignedGeneralFamily].takesAnyAlignment());
  EXPECT_EQ(plan->alignment(), 16);
  EXPECT_FALSE(plan->remarks.empty());
}
