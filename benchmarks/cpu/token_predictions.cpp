//===- token_predictions.cpp - Predicted times of f16 products ------------===//
//
// Built and run by benchmarks/latency_model/predict_tokens.py, for a device,
// the codegen paths that compete ("auto": what the compiler takes), whether
// kernels may take tensor maps, whether weights are packed, and a calibration
// in place of the device's. Reads lines "N K M…": products of M × K by the
// transpose of N × K in f16, accumulated in f32. For each line makes the plan
// for 1 to the most rows, as the compiler does, and prints for each M, tab
// separated: N, K, M, the predicted microseconds of the program that the plan
// dispatches to, and its family.
//
//===----------------------------------------------------------------------===//
#include "FTuner/CostModel/CostModel.h"
#include "FTuner/Schedule/CodegenModel.h"
#include "FTuner/Search/Problem/SearchStrategy.h"
#include "FTuner/Search/Setup/SearchOptionList.h"
#include "FTuner/Search/Setup/StrategyRegistry.h"
#include "FTuner/Workload/Contraction.h"
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <sstream>

using namespace ftuner;

static Workload productOf(int64_t maxRows, int64_t columns, int64_t depth,
                          bool isPacked) {
  Workload workload = Workload::matmul(
      SizeRange{1, maxRows, 1}, SizeRange::fixed(columns),
      SizeRange::fixed(depth), /*transposeLhs=*/false, /*transposeRhs=*/true);
  for (Operand &operand : workload.operands) {
    operand.elementType = ElementType::F16;
    operand.elementBytes = bytesOf(ElementType::F16);
    operand.isPacked = isPacked && operand.role == OperandRole::Rhs;
  }
  changeContraction(workload, [](ContractionParts &parts) {
    parts.multipliedType = ElementType::F16;
  });
  return workload;
}

int main(int argc, char **argv) {
  llvm::ArrayRef<char *> arguments(argv, static_cast<size_t>(argc));
  bool hasMaps = true, isPacked = false, isKnown = arguments.size() > 1;
  llvm::StringRef calibration;
  for (llvm::StringRef word :
       arguments.drop_front(std::min<size_t>(arguments.size(), 3))) {
    if (word == "no-maps")
      hasMaps = false;
    else if (word == "packed")
      isPacked = true;
    else if (word.consume_front("calibration="))
      calibration = word;
    else
      isKnown = false;
  }
  if (!isKnown) {
    std::fprintf(stderr,
                 "usage: token_predictions DEVICE [PATHS [no-maps] [packed] "
                 "[calibration=NAME]] < PRODUCTS\n");
    return 2;
  }
  auto fail = [](llvm::Error error) {
    std::fprintf(stderr, "error: %s\n",
                 llvm::toString(std::move(error)).c_str());
    return 1;
  };
  llvm::Expected<DeviceSpec> device = loadDeviceSpec(argv[1]);
  if (!device)
    return fail(device.takeError());
  SearchChoice choice;
  if (arguments.size() > 2)
    choice.paths = arguments[2];
  llvm::Expected<ChosenPaths> paths = readPaths(choice);
  if (!paths)
    return fail(paths.takeError());
  SearchOptions options;
  options.closedFields = paths->closedFields;
  options.tensorMaps = hasMaps;
  options.cost.calibration = kernelCalibration(*device);
  if (!calibration.empty()) {
    llvm::Expected<Calibration> found = loadCalibration(calibration);
    if (!found)
      return fail(found.takeError());
    options.cost.calibration = *found;
  }
  const SearchStrategy &strategy = *findSearchStrategy("ftuner");
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream words(line);
    int64_t columns = 0, depth = 0;
    if (!(words >> columns >> depth))
      continue;
    std::vector<int64_t> rows;
    for (int64_t m = 0; words >> m;)
      rows.push_back(m);
    if (rows.empty())
      continue;
    Workload workload = productOf(*std::max_element(rows.begin(), rows.end()),
                                  columns, depth, isPacked);
    SearchProblem problem{workload, *device, paths->models,
                          *findCostModel("latency"), options};
    llvm::Expected<Plan> plan = solve(problem, strategy);
    if (!plan)
      return fail(plan.takeError());
    for (int64_t m : rows) {
      Shape shape = {m, columns, depth};
      const KernelFamily &family = plan->families[plan->familyFor(shape)];
      std::printf(
          "%lld\t%lld\t%lld\t%.3f\t%s\n", static_cast<long long>(columns),
          static_cast<long long>(depth), static_cast<long long>(m),
          problem.predict(family, shape).score * -1, family.str().c_str());
    }
    std::fflush(stdout);
  }
  return 0;
}
