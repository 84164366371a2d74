//===- prediction_time.cpp - Time of a prediction -------------------------===//
//
// Built and run by prediction_time.py. For Dense (M, 2304, 768), M = 1…128 and
// M = 16…2048, prints for each cost model, in microseconds:
//   program   one program for one size, its uKernels known
//   ukernel   the first program of a uKernel, which prices it (for `latency`:
//             counts of instructions and bank conflicts of all its accesses)
//   search    choosing the kernels of the whole range
//
//===----------------------------------------------------------------------===//
#include "FTuner/CostModel/CostModel.h"
#include "FTuner/Schedule/CodegenModel.h"
#include "FTuner/Search/Problem/SearchStrategy.h"
#include "FTuner/Search/Ranking/Candidates.h"
#include "FTuner/Search/Setup/StrategyRegistry.h"
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>

using namespace ftuner;

namespace {

template <typename Function>
double microseconds(Function function) {
  auto start = std::chrono::steady_clock::now();
  function();
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now() - start)
      .count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Timed {
  double program = 0, ukernel = 0, search = 0;
  size_t candidates = 0;
};

Timed measure(const Workload &workload, const DeviceSpec &device,
              const CostModel &model, unsigned repeat) {
  SearchOptions options;
  options.cost.calibration = kernelCalibration(device);
  auto makeProblem = [&] {
    return SearchProblem{workload, device, codegenModels(), model, options};
  };
  std::vector<double> searches, programs, ukernels;
  Timed timed;
  for (unsigned i = 0; i < repeat; ++i)
    searches.push_back(microseconds([&] {
      SearchProblem problem = makeProblem();
      llvm::cantFail(
          findSearchStrategy("ftuner")->search(problem, {}).takeError());
    }));
  timed.search = median(searches);

  // Families of one and of two uKernels of the candidates.
  SearchProblem problem = makeProblem();
  CandidateSet set = llvm::cantFail(enumerateCandidates(problem));
  timed.candidates = set.candidates.size();
  std::mt19937 random(1);
  std::vector<KernelFamily> families;
  while (families.size() < 256)
    families.push_back(set.candidates[random() % set.candidates.size()].family);
  std::vector<Shape> shapes;
  const SizeRange &range = workload.axes[matmulAxes.m].range;
  for (int64_t rows = range.min; rows <= *range.max; rows += range.step)
    shapes.push_back({rows, 2304, 768});
  double sum = 0;
  for (unsigned i = 0; i < repeat; ++i) {
    std::unique_ptr<CostEvaluator> evaluator =
        model.createEvaluator(workload, device, options.cost);
    auto scoreAll = [&](llvm::ArrayRef<int64_t> shape) {
      for (const KernelFamily &family : families)
        sum +=
            evaluator->score(shape, {&family, partitionShape(family, shape)});
    };
    ukernels.push_back(microseconds([&] { scoreAll(shapes.back()); }) /
                       families.size());
    programs.push_back(microseconds([&] {
                         for (const Shape &shape : shapes)
                           scoreAll(shape);
                       }) /
                       (families.size() * shapes.size()));
  }
  timed.program = median(programs);
  timed.ukernel = median(ukernels);
  // Keeps the loops.
  if (sum == 1)
    std::printf("\n");
  return timed;
}

} // namespace

int main(int argc, char **argv) {
  std::string name = argc > 1 ? argv[1] : "h200";
  unsigned repeat = argc > 2 ? std::max(1, std::atoi(argv[2])) : 5;
  DeviceSpec device = llvm::cantFail(loadDeviceSpec(name));
  for (SizeRange rows : {SizeRange{1, 128, 1}, SizeRange{16, 2048, 16}}) {
    Workload workload =
        Workload::matmul(rows, SizeRange::fixed(2304), SizeRange::fixed(768));
    for (const CostModel *model : costModels()) {
      Timed timed = measure(workload, device, *model, repeat);
      std::printf("%s %lld %lld %.4f %.4f %.1f %zu\n",
                  model->name().str().c_str(), static_cast<long long>(rows.min),
                  static_cast<long long>(*rows.max), timed.program,
                  timed.ukernel, timed.search, timed.candidates);
    }
  }
}
