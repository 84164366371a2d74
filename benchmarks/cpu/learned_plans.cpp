//===- learned_plans.cpp - Choices and cost of the cost model learned -----===//
//
// Built and run by learned_plans.py. Plans products by `latency` and by
// `learned`, and prints for each plan the seconds of its search, and the mean
// times of its programs over the samples as each of the two models predicts
// them, in microseconds:
//   product cost_model samples seconds families by_latency by_learned
//
//===----------------------------------------------------------------------===//
#include "FTuner/CostModel/CostModel.h"
#include "FTuner/Schedule/Alignment.h"
#include "FTuner/Schedule/CodegenModel.h"
#include "FTuner/Search/Problem/SearchStrategy.h"
#include "FTuner/Search/Ranking/ProgramRanker.h"
#include "FTuner/Search/Setup/StrategyRegistry.h"
#include "FTuner/Workload/Contraction.h"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>

using namespace ftuner;

static void print(const char *name, const Workload &workload,
                  const DeviceSpec &device, unsigned repeat) {
  SearchOptions options;
  options.cost.calibration = defaultCalibration(device);
  auto models = defaultCodegenModels();
  const CostModel *judges[] = {findCostModel("latency"),
                               findCostModel("learned")};
  for (const CostModel *model : judges) {
    std::vector<double> seconds;
    Plan plan;
    for (unsigned i = 0; i < repeat; ++i) {
      std::clock_t start = std::clock();
      SearchProblem problem{workload, device, models, *model, options};
      plan = llvm::cantFail(solve(problem, *findSearchStrategy("ftuner")));
      seconds.push_back(static_cast<double>(std::clock() - start) /
                        CLOCKS_PER_SEC);
    }
    RangeSamples samples(workload);
    double means[2] = {0, 0}, total = 0;
    for (size_t i = 0; i < samples.shapes.size(); ++i) {
      const Shape &shape = samples.shapes[i];
      const KernelFamily &family =
          plan.families[plan.familyFor(shape, alignmentOf(workload, shape))];
      for (unsigned judge = 0; judge < 2; ++judge) {
        SearchProblem problem{workload, device, models, *judges[judge],
                              options};
        means[judge] -=
            samples.weights[i] * problem.predict(family, shape).score;
      }
      total += samples.weights[i];
    }
    std::printf("%s %s %zu %.3f %zu %.3f %.3f\n", name,
                model->name().str().c_str(), samples.shapes.size(),
                *std::min_element(seconds.begin(), seconds.end()),
                plan.families.size(), means[0] / total, means[1] / total);
    std::fflush(stdout);
  }
}

int main(int argc, char **argv) {
  DeviceSpec device =
      llvm::cantFail(loadDeviceSpec(argc > 1 ? argv[1] : "h200"));
  unsigned repeat = argc > 2 ? std::max(1, std::atoi(argv[2])) : 3;
  auto product = [&](const char *name, int64_t n, int64_t k, bool isHalf) {
    Workload workload =
        Workload::matmul({1, 128, 1}, SizeRange::fixed(n), SizeRange::fixed(k));
    if (isHalf) {
      for (Operand &operand : workload.operands) {
        operand.elementType = ElementType::F16;
        operand.elementBytes = bytesOf(ElementType::F16);
      }
      changeContraction(workload, [](ContractionParts &parts) {
        parts.multipliedType = ElementType::F16;
      });
    }
    print(name, workload, device, repeat);
  };
  product("dense", 2304, 768, false);
  // The products of a layer of Llama-3-8B.
  product("llama-qkv", 6144, 4096, true);
  product("llama-output", 4096, 4096, true);
  product("llama-gate-up", 28672, 4096, true);
  product("llama-down", 4096, 14336, true);
}
