//===- RangeTest.cpp - Plans over whole ranges ----------------------------===//
//
// For every strategy: each declared shape is served by the entry of its cell
// and covered once; rejected families are never chosen.
//
//===----------------------------------------------------------------------===//
#include "../DeviceTest.h"
#include "../StubModel.h"
#include "FTuner/Schedule/Alignment.h"
#include "FTuner/Search/Planning/RankedStrategy.h"
#include "FTuner/Search/Ranking/Candidates.h"
#include "FTuner/Search/Setup/StrategyRegistry.h"
#include "FTuner/Workload/Sampling.h"
#include "llvm/ADT/STLExtras.h"
#include <gtest/gtest.h>
#include <set>

using namespace ftuner;

namespace {
class RangeTest : public DeviceTest {
protected:
  RangeTest() : DeviceTest("t4") {}

  SearchProblem problem(const Workload &workload) {
    return {workload, device, path, *findCostModel("sia-program"), options};
  }

  StubModel stub;
  const CodegenModel *path = &stub;
  SearchOptions options;
};
} // namespace

/// Calls `visit` for every shape of closed ranges, sizes 0 left out.
template <typename Visit>
static void forEachShape(const Workload &workload, Visit visit) {
  Shape shape;
  for (const Axis &axis : workload.axes)
    shape.push_back(smallestSize(axis));
  while (true) {
    visit(shape);
    unsigned axis = 0;
    for (; axis < shape.size(); ++axis) {
      const Axis &declared = workload.axes[axis];
      shape[axis] += declared.range.step;
      if (declared.range.contains(shape[axis]))
        break;
      shape[axis] = smallestSize(declared);
    }
    if (axis == shape.size())
      return;
  }
}

/// Returns the cell that a shape belongs to. On every axis that has cells, it
/// is the cell of the last representative r for which the size is above √(r ·
/// r'), where r' is the representative before r.
static size_t meantCell(const Workload &workload,
                        llvm::ArrayRef<ShapeCell> cells, const Shape &shape) {
  Shape meant = shape;
  for (unsigned axis = 0; axis < shape.size(); ++axis) {
    if (axis == workload.mainAxis() || !workload.axes[axis].isDynamic())
      continue;
    std::vector<int64_t> sizes = representativeSizes(workload.axes[axis]);
    meant[axis] = sizes.front();
    for (size_t i = 1; i < sizes.size(); ++i)
      if (shape[axis] * shape[axis] > sizes[i - 1] * sizes[i])
        meant[axis] = sizes[i];
  }
  meant[workload.mainAxis()] = 1;
  auto cell = llvm::find_if(cells, [&](const ShapeCell &candidate) {
    return candidate.representative == meant;
  });
  EXPECT_NE(cell, cells.end());
  return cell - cells.begin();
}

/// Workloads whose every shape is looked at.
static std::vector<Workload> smallWorkloads() {
  SizeRange n = SizeRange::fixed(96), k = SizeRange::fixed(40);
  Workload weighted = Workload::matmul({1, 40}, n, k);
  weighted.axes[0].weights = {{7, 1e300}, {13, 5e-324}};
  return {
      Workload::matmul({1, 40}, n, k),
      Workload::matmul({0, 40, 5}, n, k),
      Workload::matmul({0, 6, 8}, n, k),
      Workload::matmul(SizeRange::fixed(24), {3, 90, 3}, k),
      Workload::matmul({1, 24}, {5, 200, 13}, {1, 30}),
      Workload::batchMatmul({1, 9}, {2, 30, 7}, {1, 60, 4}, {8, 72, 16}),
      weighted,
  };
}

TEST_F(RangeTest, EveryShapeIsInTheCellMeant) {
  for (const Workload &workload : smallWorkloads()) {
    std::vector<ShapeCell> cells = shapeCells(workload, workload.mainAxis());
    forEachShape(workload, [&](const Shape &shape) {
      size_t meant = meantCell(workload, cells, shape);
      for (auto [index, cell] : llvm::enumerate(cells)) {
        bool holds = true;
        for (unsigned axis = 0; axis < shape.size(); ++axis)
          holds &= cell.box[axis].contains(shape[axis]);
        ASSERT_EQ(holds, index == meant);
      }
    });
  }
}

TEST_F(RangeTest, EveryStrategyServesEveryShape) {
  for (const Workload &workload : smallWorkloads())
    for (const SearchStrategy *strategy : searchStrategies()) {
      SearchProblem p = problem(workload);
      p.options.tileRule = TileRule::Divisors;
      llvm::Expected<Plan> plan = solve(p, *strategy);
      ASSERT_TRUE(static_cast<bool>(plan)) << llvm::toString(plan.takeError());
      unsigned mainAxis = workload.mainAxis();
      std::vector<ShapeCell> cells = shapeCells(workload, mainAxis);
      forEachShape(workload, [&](const Shape &shape) {
        auto holds = [&](const DispatchEntry &entry) {
          return entry.contains(shape);
        };
        ASSERT_EQ(llvm::count_if(plan->entries, holds), 1);
        const ShapeCell &cell = cells[meantCell(workload, cells, shape)];
        Shape representative =
            shapeAt(workload, cell, mainAxis, shape[mainAxis]);
        unsigned index = plan->familyFor(shape);
        ASSERT_EQ(index, plan->familyFor(representative));

        // Blocks along the combine axis hold each row once, and the padding is
        // the last block's.
        const KernelFamily &family = plan->families[index];
        int64_t extent = shape[family.combineAxis];
        Partition partition = partitionExtent(family, extent, 1);
        int64_t first = family.lowHeight(), second = family.highHeight();
        int64_t last = partition.second > 0 ? second : first;
        int64_t rows = partition.first * first + partition.second * second;
        ASSERT_TRUE(family.tiles.size() == 2 || partition.second == 0);
        ASSERT_EQ(rows, extent + partition.padded);
        ASSERT_LT(rows - last, extent);
        ASSERT_GE(rows, extent);
      });
      for (const SearchStatistic &statistic : plan->statistics)
        EXPECT_TRUE(statistic.value >= 0) << statistic.name;
    }
}

TEST_F(RangeTest, SizesBelowTheMinHaveItsProgram) {
  // Few rows, few columns, and both with rows that are not aligned.
  Workload tied = Workload::matmul({48, 64}, {48, 64}, SizeRange::fixed(64));
  tied.axes[0].symbols = tied.axes[1].symbols = {"T"};
  options.minGain = 1e-4;
  for (const Workload &workload :
       {Workload::matmul({48, 64}, SizeRange::fixed(2304),
                         SizeRange::fixed(768)),
        Workload::matmul(SizeRange::fixed(64), {48, 512, 16},
                         SizeRange::fixed(768)),
        tied}) {
    unsigned mainAxis = workload.mainAxis();
    SearchProblem p{workload, device, codegenModels(),
                    *findCostModel("latency"), options};
    llvm::Expected<Plan> plan = solve(p, *findSearchStrategy("ftuner"));
    ASSERT_TRUE(static_cast<bool>(plan)) << llvm::toString(plan.takeError());
    auto shapeOf = [&](int64_t size) {
      return shapeAt(workload, shapeCells(workload, mainAxis).front(), mainAxis,
                     size);
    };
    const SizeRange &range = workload.axes[mainAxis].range;
    for (bool isAligned : {true, false}) {
      int64_t alignment = isAligned ? plan->alignment() : 1;
      llvm::ArrayRef<DispatchEntry> entries =
          isAligned ? plan->entries : plan->unalignedEntries;
      if (entries.empty())
        continue;
      unsigned minFamily = plan->familyFor(shapeOf(range.min), alignment);
      for (int64_t size = 1; size < range.min; ++size) {
        EXPECT_TRUE(entryFor(entries, shapeOf(size)).has_value()) << size;
        EXPECT_EQ(plan->familyFor(shapeOf(size), alignment), minFamily) << size;
      }
    }
    // Beyond the greatest, where a family is chosen for large sizes.
    EXPECT_FALSE(entryFor(plan->entries, shapeOf(*range.max + 1)).has_value());
  }
}

TEST_F(RangeTest, RejectedFamiliesAreNeverChosen) {
  Workload workload = Workload::matmul({1, 24}, SizeRange::fixed(96), {1, 40});
  std::vector<Shape> shapes = {{1, 96, 40}, {13, 96, 7}, {24, 96, 33}};
  for (const SearchStrategy *strategy : searchStrategies())
    for (ProgramPool pool : {ProgramPool::Exact, ProgramPool::Tight}) {
      SCOPED_TRACE(strategy->name().str());
      SearchProblem p = problem(workload);
      p.options.pool = pool;
      p.options.topK = 20;
      if (strategy->name() == "exhaustive")
        p.options.tileRule = TileRule::Divisors;
      for (int round = 0; round < 4; ++round) {
        llvm::Expected<Plan> plan = solve(p, *strategy);
        ASSERT_TRUE(static_cast<bool>(plan))
            << llvm::toString(plan.takeError());
        auto reports = strategy->explain(p, {}, shapes);
        ASSERT_TRUE(static_cast<bool>(reports));
        std::vector<KernelFamily> used = plan->families;
        for (const ShapeRanking &ranking : plan->rankings)
          for (const RankedProgram &program : ranking.programs)
            used.push_back(program.family);
        for (const ShapeReport &report : *reports) {
          for (const ReportedProgram &program : report.programs)
            used.push_back(program.family);
          if (report.bestSingle)
            used.push_back(report.bestSingle->family);
        }
        for (const KernelFamily &family : used)
          EXPECT_FALSE(p.isRejected(family)) << family.str();
        llvm::append_range(p.rejected, plan->families);
      }
    }
}

TEST_F(RangeTest, AllRejectedIsAnError) {
  Workload workload =
      Workload::matmul({1, 4}, SizeRange::fixed(8), SizeRange::fixed(8));
  for (const SearchStrategy *strategy : searchStrategies()) {
    SearchProblem p = problem(workload);
    p.options.tileRule = TileRule::Divisors;
    std::string message;
    for (int round = 0; round < 400 && message.empty(); ++round) {
      llvm::Expected<Plan> plan = solve(p, *strategy);
      if (plan)
        llvm::append_range(p.rejected, plan->families);
      else
        message = llvm::toString(plan.takeError());
    }
    EXPECT_NE(message.find("of workload 'matmul'"), std::string::npos)
        << strategy->name().str() << ": " << message;
  }
}

TEST_F(RangeTest, HugeExtentsDoNotOverflow) {
  SizeRange huge{1, maxExtent}, step{maxExtent, std::nullopt, maxExtent};
  SizeRange open{1, std::nullopt};
  Workload tied = Workload::matmul(open, open, huge);
  tied.axes[0].symbols = tied.axes[1].symbols = {"T"};
  tied.axes[1].factor = maxExtent;
  options.maxKernels = 4;
  options.own["max-candidates"] = int64_t(4);
  for (const Workload &workload :
       {Workload::batchMatmul(huge, huge, huge, huge),
        Workload::batchMatmul(step, step, step, step),
        Workload::matmul(SizeRange::fixed(maxExtent),
                         SizeRange::fixed(maxExtent),
                         SizeRange::fixed(maxExtent)),
        tied})
    for (const char *strategy : {"ftuner", "roller"}) {
      llvm::Expected<Plan> plan =
          solve(problem(workload), *findSearchStrategy(strategy));
      ASSERT_TRUE(static_cast<bool>(plan)) << llvm::toString(plan.takeError());
      for (const SearchStatistic &statistic : plan->statistics)
        EXPECT_TRUE(statistic.value >= 0) << statistic.name;
    }
}

/// Returns true if the cost model orders the programs of a strategy of the
/// list, all of which rank.
static bool ranksByScore(const SearchProblem &problem,
                         const SearchStrategy &strategy) {
  const auto &ranking = static_cast<const RankedStrategy &>(strategy);
  return llvm::cantFail(ranking.makeRanker(problem, {}))->ranksByScore();
}

TEST_F(RangeTest, SizesThatBreakTheAlignmentHaveFamiliesOfTheirOwn) {
  options.minGain = 1e-4;
  // Of T × 64 by 64 × T, rows of three T in four are not whole vectors.
  Workload workload =
      Workload::matmul({1, 128}, {1, 128}, SizeRange::fixed(64));
  workload.axes[0].symbols = workload.axes[1].symbols = {"T"};
  for (const SearchStrategy *strategy : searchStrategies()) {
    SCOPED_TRACE(strategy->name().str());
    SearchProblem p{workload, device, codegenModels(),
                    *findCostModel("latency"), options};
    llvm::Expected<Plan> plan = solve(p, *strategy);
    ASSERT_TRUE(static_cast<bool>(plan)) << llvm::toString(plan.takeError());
    // Other strategies with an order of their own may have slow plans, of one
    // family or of many.
    bool isJudged = strategy->name() == "roller" ||
                    strategy->name() == "dietcode" ||
                    ranksByScore(p, *strategy);
    if (isJudged) {
      EXPECT_LE(plan->families.size(), 16u);
    }
    std::set<unsigned> serving;
    for (int64_t size = 1; size <= 128; ++size) {
      int64_t alignment = alignmentOf(workload, {size, size, 64});
      ASSERT_EQ(alignment == 16, size % 4 == 0);
      unsigned family = plan->familyFor({size, size, 64}, alignment);
      EXPECT_LE(plan->families[family].alignment(), alignment);
      if (alignment < 16)
        serving.insert(family);
    }
    // Walks of `gensor` for products as small as these end in one tile.
    if (isJudged && strategy->name() != "gensor") {
      EXPECT_GT(serving.size(), 2u);
    }
    // Families that the latency model ranks lose less than only the unaligned
    // general family.
    Plan less = *plan;
    less.unalignedEntries.clear();
    auto time = [&](const Plan &candidate) {
      double sum = 0;
      for (int64_t size = 1; size <= 128; ++size) {
        Shape shape = {size, size, 64};
        unsigned family =
            candidate.familyFor(shape, alignmentOf(workload, shape));
        sum -= p.predict(candidate.families[family], shape).score;
      }
      return sum;
    };
    if (isJudged && strategy->name() != "roller" &&
        strategy->name() != "gensor" && !plan->unalignedEntries.empty()) {
      EXPECT_LT(time(*plan), time(less));
    }
    // One kernel serves all.
    p.options.maxKernels = 1;
    plan = solve(p, *strategy);
    ASSERT_TRUE(static_cast<bool>(plan)) << llvm::toString(plan.takeError());
    EXPECT_EQ(plan->families.size(), 1u);
    EXPECT_TRUE(plan->unalignedEntries.empty());
  }
}

namespace {
/// Without vectors, only tiles of one element for each thread are free of
/// spills; with them, lower parts of pairs are not.
class SpillingModel : public StubModel {
public:
  int64_t spillFreeRegisters(const Workload &workload,
                             const KernelFamily &family) const override {
    UKernel first = family.ukernel(0);
    bool isSmall = first.registerTile[0] * first.registerTile[1] == 1;
    bool spills = family.takesAnyAlignment()
                      ? !isSmall
                      : family.tiles.size() == 2 && first.registerTile[0] < 4;
    return spills ? 256 : StubModel::spillFreeRegisters(workload, family);
  }
};
} // namespace

/// A family that has one more block from a size on is not kept up to the next
/// sample.
TEST_F(RangeTest, SizesAfterAStepHaveTheBestFamily) {
  Workload workload = Workload::matmul({1, 8192}, SizeRange::fixed(10240),
                                       SizeRange::fixed(1024));
  SearchProblem p{workload, device, path, *findCostModel("latency"), options};
  llvm::Expected<Plan> plan = solve(p, *findSearchStrategy("ftuner"));
  ASSERT_TRUE(static_cast<bool>(plan)) << llvm::toString(plan.takeError());
  int numSteps = 0;
  for (const KernelFamily &family : plan->families) {
    for (int64_t blocks = 1; blocks <= 32; ++blocks) {
      Shape shape{blocks * family.tiles.back()[0] + 1, 10240, 1024};
      auto timeOf = [&](const KernelFamily &other) {
        return -p.predict(other, shape).score;
      };
      double chosen = timeOf(plan->families[plan->familyFor(shape)]);
      // A family keeps what no other is more than 1 % faster for.
      for (const KernelFamily &other : plan->families)
        EXPECT_LE(chosen, 1.0102 * timeOf(other)) << shape[0] << other.str();
      ++numSteps;
    }
  }
  EXPECT_GT(numSteps, 0);
  for (size_t entry = 1; entry < plan->entries.size(); ++entry) {
    auto timeOf = [&](size_t number) {
      Shape first{plan->entries[entry].box[0].min, 10240, 1024};
      const KernelFamily &family = plan->families[plan->entries[number].family];
      return -p.predict(family, first).score;
    };
    EXPECT_GT(timeOf(entry - 1), 1.0098 * timeOf(entry)) << entry;
  }
}

namespace {
/// Counts over the entries of one list.
struct SteadyCounts {
  /// Cells of the other axes, cells that share entries with the cell before,
  /// and turns from one family to another along the main axis.
  size_t cells = 0, shared = 0, turns = 0;
};
} // namespace

/// Expects for the aligned, or for the unaligned, sizes of every cell that no
/// family of the list is more than 1 % faster than the chosen one, and that
/// neighbours turn to another family only for more than that.
static SteadyCounts expectSteady(const SearchProblem &problem, const Plan &plan,
                                 bool areAligned) {
  const Workload &workload = problem.workload;
  unsigned mainAxis = workload.mainAxis();
  llvm::ArrayRef<DispatchEntry> entries =
      areAligned ? plan.entries : plan.unalignedEntries;
  std::set<unsigned> families;
  for (const DispatchEntry &entry : entries)
    families.insert(entry.family);
  SteadyCounts counts;
  for (const ShapeCell &cell : shapeCells(workload, mainAxis)) {
    ++counts.cells;
    bool isShared = false;
    std::optional<unsigned> last;
    const Axis &axis = workload.axes[mainAxis];
    for (int64_t size = smallestSize(axis); axis.range.contains(size);
         size += axis.range.step) {
      Shape shape = shapeAt(workload, cell, mainAxis, size);
      if ((alignmentOf(workload, shape) >= plan.alignment()) != areAligned)
        continue;
      std::optional<unsigned> entry = entryFor(entries, shape);
      if (!entry) {
        ADD_FAILURE() << "no entry for size " << size;
        return counts;
      }
      auto timeOf = [&](unsigned family) {
        return -problem.predict(plan.families[family], shape).score;
      };
      unsigned chosen = entries[*entry].family;
      double best = timeOf(chosen);
      for (unsigned family : families)
        best = std::min(best, timeOf(family));
      EXPECT_LE(timeOf(chosen), 1.0102 * best) << size;
      // A cell that shares its entries turns where the first one of them does.
      for (unsigned other = 0; other < shape.size(); ++other)
        isShared |= other != mainAxis &&
                    entries[*entry].box[other].min < cell.box[other].min;
      if (last && *last != chosen && !isShared) {
        EXPECT_GT(timeOf(*last), 1.0098 * best) << size;
        ++counts.turns;
      }
      last = chosen;
    }
    counts.shared += isShared;
  }
  return counts;
}

TEST_F(RangeTest, CellsOfOtherAxesKeepFamiliesUntilOthersGain) {
  options.maxKernels = 6;
  Workload workload =
      Workload::matmul({1, 512}, {64, 160, 16}, SizeRange::fixed(64));
  SearchProblem p{workload, device, path, *findCostModel("latency"), options};
  llvm::Expected<Plan> plan = solve(p, *findSearchStrategy("ftuner"));
  ASSERT_TRUE(static_cast<bool>(plan)) << llvm::toString(plan.takeError());
  SteadyCounts counts = expectSteady(p, *plan, /*areAligned=*/true);
  EXPECT_GT(counts.cells, 4u);
  EXPECT_GT(counts.turns, 0u);
  EXPECT_GT(counts.shared, 0u);
  EXPECT_LT(counts.shared, counts.cells - 1);
}

TEST_F(RangeTest, UnalignedSizesKeepFamiliesUntilOthersGain) {
  options.minGain = 1e-4;
  Workload tied = Workload::matmul({1, 128}, {1, 128}, SizeRange::fixed(64));
  Workload two = tied;
  tied.axes[0].symbols = tied.axes[1].symbols = {"T"};
  size_t numShared = 0;
  for (const Workload &workload : {tied, two}) {
    SearchProblem p{workload, device, codegenModels(),
                    *findCostModel("latency"), options};
    llvm::Expected<Plan> plan = solve(p, *findSearchStrategy("ftuner"));
    ASSERT_TRUE(static_cast<bool>(plan)) << llvm::toString(plan.takeError());
    ASSERT_FALSE(plan->unalignedEntries.empty());
    for (bool areAligned : {true, false}) {
      SteadyCounts counts = expectSteady(p, *plan, areAligned);
      EXPECT_GT(counts.turns, 0u);
      numShared += counts.shared;
    }
  }
  EXPECT_GT(numShared, 0u);
}

TEST_F(RangeTest, NoKernelOfAPlanMaySpill) {
  SpillingModel spilling;
  path = &spilling;
  for (const Workload &workload :
       {Workload::matmul({1, 128}, SizeRange::fixed(640), SizeRange::fixed(64)),
        Workload::matmul({1, 128}, {636, 642}, SizeRange::fixed(64))})
    for (const char *costModel : {"sia", "sia-program", "latency"})
      for (const SearchStrategy *strategy : searchStrategies()) {
        SCOPED_TRACE(strategy->name().str() + " by " + costModel);
        SearchProblem p{workload, device, path, *findCostModel(costModel),
                        options};
        llvm::Expected<Plan> plan = solve(p, *strategy);
        ASSERT_TRUE(static_cast<bool>(plan))
            << llvm::toString(plan.takeError());
        for (const KernelFamily &family : plan->families)
          EXPECT_LE(spilling.spillFreeRegisters(workload, family),
                    device.registersPerThreadOf(family.threads()))
              << family.str();
        // The rule holds for plans from every source.
        plan->families[plan->unalignedGeneralFamily].tiles[0][0] *= 2;
        std::string error = llvm::toString(p.verify(*plan));
        EXPECT_NE(error.find("an estimate of 256 to be free of spills"),
                  std::string::npos)
            << error;
      }
}
