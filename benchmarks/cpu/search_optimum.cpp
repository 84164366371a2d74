//===- search_optimum.cpp - The optimum over all programs -----------------===//
//
// Built and run by search_optimum.py. Walks every feasible program of the SIMT
// path with the widest accesses that the shapes allow: all blocks of whole
// warps, all register tiles, depths and stages, alone and in pairs of all
// heights along m, with balanced and with exact partitions. No other rule,
// preference or filter of the search applies. Prints, for each number of rows
// of Dense (M, 2304, 768), the predicted microseconds of the best of all of
// them, of the best that `exhaustive` finds, and of the best that `ftuner`
// ranks, and the best program of all.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Codegen/Simt/SimtSchedule.h"
#include "FTuner/CostModel/CostModel.h"
#include "FTuner/Schedule/Alignment.h"
#include "FTuner/Search/Problem/SearchStrategy.h"
#include "FTuner/Search/Problem/ShapeReport.h"
#include "FTuner/Search/Ranking/Candidates.h"
#include "FTuner/Search/Setup/StrategyRegistry.h"
#include <cstdio>
#include <limits>

using namespace ftuner;

namespace {

constexpr int64_t kMaxRows = 16;

struct Best {
  double microseconds = std::numeric_limits<double>::infinity();
  std::string program;
};

class Walk {
public:
  Walk(const SearchProblem &problem, std::vector<Shape> shapes)
      : problem(problem), shapes(std::move(shapes)), best(this->shapes.size()) {
  }

  void run() {
    int64_t maxThreads = problem.device.maxThreadsPerBlock;
    for (int64_t m = 1; m <= maxThreads; ++m)
      for (int64_t n = 1; m * n <= maxThreads; ++n)
        if (m * n % 32 == 0)
          visitThreads(m, n);
  }

  const std::vector<Best> &found() const { return best; }
  int64_t numPrograms() const { return programs; }

private:
  void visitThreads(int64_t m, int64_t n);
  void visitPairs(const KernelFamily &single, int64_t rows);
  void score(const KernelFamily &family);

  const SearchProblem &problem;
  std::vector<Shape> shapes;
  std::vector<Best> best;
  /// Prices of uKernels are kept for a layout of threads at a time.
  std::unique_ptr<CostEvaluator> evaluator;
  int64_t programs = 0;
};

} // namespace

void Walk::visitThreads(int64_t m, int64_t n) {
  evaluator = problem.costModel.createEvaluator(
      problem.workload, problem.device, problem.options.cost);
  SimtSchedule schedule;
  schedule.threadsM = m;
  schedule.threadsN = n;
  bool isAligned = reachableAlignment(problem.workload) >= widestAccessBytes;
  schedule.vectorWidth = isAligned ? 4 : 1;
  for (int64_t rows = 1; rows <= kMaxRows; ++rows)
    for (int64_t columns : {1, 2, 4, 8})
      for (int64_t depth : {8, 16, 24, 32})
        for (int64_t stages : {2, 3, 4}) {
          schedule.stages = stages;
          KernelFamily family = simtFamily(schedule, rows, columns, depth);
          if (!isFeasible(problem, family))
            continue;
          score(family);
          visitPairs(family, rows);
        }
}

void Walk::visitPairs(const KernelFamily &single, int64_t highRows) {
  for (int64_t rows = 1; rows < highRows; ++rows) {
    KernelFamily pair = single;
    BlockTile low = single.tiles.front();
    low[matmulAxes.m] = low[matmulAxes.m] / highRows * rows;
    pair.tiles.insert(pair.tiles.begin(), low);
    if (!isFeasible(problem, pair))
      continue;
    for (int64_t sms : {problem.device.smCount, int64_t(0)}) {
      pair.balancedSms = sms;
      score(pair);
    }
  }
}

void Walk::score(const KernelFamily &family) {
  ++programs;
  for (size_t i = 0; i < shapes.size(); ++i) {
    double microseconds = -evaluator->score(
        shapes[i], {&family, partitionShape(family, shapes[i])});
    if (microseconds < best[i].microseconds)
      best[i] = {microseconds, family.str()};
  }
}

/// The best program that a strategy knows for each shape, in microseconds.
static std::vector<double> bestOf(const char *strategy,
                                  const SearchProblem &problem,
                                  llvm::ArrayRef<Shape> shapes) {
  std::vector<double> result;
  for (const ShapeReport &report : llvm::cantFail(
           findSearchStrategy(strategy)->explain(problem, {}, shapes)))
    result.push_back(report.programs.front().microseconds());
  return result;
}

int main(int argc, char **argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: search_optimum DEVICE ROWS…\n");
    return 2;
  }
  llvm::Expected<DeviceSpec> device = loadDeviceSpec(argv[1]);
  if (!device) {
    std::fprintf(stderr, "error: %s\n",
                 llvm::toString(device.takeError()).c_str());
    return 1;
  }
  SearchOptions options;
  options.cost.calibration = kernelCalibration(*device);
  std::vector<Shape> shapes;
  int64_t maxRows = 1;
  for (int i = 2; i < argc; ++i) {
    int64_t rows = std::max(1, std::atoi(argv[i]));
    shapes.push_back({rows, 2304, 768});
    maxRows = std::max(maxRows, rows);
  }
  Workload workload = Workload::matmul(
      SizeRange{1, maxRows, 1}, SizeRange::fixed(2304), SizeRange::fixed(768));
  SearchProblem problem{workload, *device, codegenModels(),
                        *findCostModel("latency"), options};
  Walk walk(problem, shapes);
  walk.run();
  std::vector<double> exhaustive = bestOf("exhaustive", problem, shapes);
  std::vector<double> ftuner = bestOf("ftuner", problem, shapes);
  for (size_t i = 0; i < shapes.size(); ++i)
    std::printf("%lld\t%.6f\t%.6f\t%.6f\t%lld\t%s\n",
                static_cast<long long>(shapes[i][matmulAxes.m]),
                walk.found()[i].microseconds, exhaustive[i], ftuner[i],
                static_cast<long long>(walk.numPrograms()),
                walk.found()[i].program.c_str());
}
