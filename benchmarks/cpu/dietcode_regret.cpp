//===- dietcode_regret.cpp - Loss of a measured search --------------------===//
//
// Built and run by dietcode_experiments.py. Plans one of DietCode's workloads
// with a strategy that measures, and a cost model in the device's place. For
// every size of the range: the time of the plan's program, and the best time of
// all kernels that the search had measured. All times are the stand-in's.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Schedule/Alignment.h"
#include "FTuner/Search/Setup/MeasurerFactory.h"
#include "FTuner/Search/Setup/SearchOptionList.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"
#include <limits>
#include <map>
#include <set>

using namespace ftuner;

namespace {
/// Passes requests on, and keeps the families that had a time.
class WatchedMeasurer final : public Measurer {
public:
  explicit WatchedMeasurer(Measurer &inner) : inner(inner) {}

  llvm::StringRef name() const override { return inner.name(); }
  bool measuresTime() const override { return inner.measuresTime(); }
  std::vector<llvm::Expected<Measurement>>
  measure(llvm::ArrayRef<MeasurementRequest> requests) override {
    numAsked += static_cast<int64_t>(requests.size());
    std::vector<llvm::Expected<Measurement>> found = inner.measure(requests);
    for (auto [request, answer] : llvm::zip_equal(requests, found))
      if (answer)
        families.try_emplace(request.family.str(), request.family);
    return found;
  }

  int64_t numAsked = 0;
  std::map<std::string, KernelFamily> families;

private:
  Measurer &inner;
};
} // namespace

/// Dense with M = T or 16·T, and products of 192 heads, NT and NN, for T from
/// 1 to 128.
static std::optional<Workload> workloadOf(llvm::StringRef name) {
  SizeRange lengths{1, 128, 1};
  SizeRange n = SizeRange::fixed(2304), k = SizeRange::fixed(768);
  SizeRange heads = SizeRange::fixed(192), width = SizeRange::fixed(64);
  if (name == "dense")
    return Workload::matmul(lengths, n, k, false, true);
  if (name == "dense16")
    return Workload::matmul({16, 2048, 16}, n, k, false, true);
  // Axes M, N, K, B.
  Workload workload;
  unsigned second;
  if (name == "nt") {
    workload =
        Workload::batchMatmul(heads, lengths, lengths, width, false, true);
    second = matmulAxes.n;
  } else if (name == "nn") {
    workload =
        Workload::batchMatmul(heads, lengths, width, lengths, false, false);
    second = matmulAxes.k;
  } else {
    return std::nullopt;
  }
  workload.axes[matmulAxes.m].symbols = {"T"};
  workload.axes[second].symbols = {"T"};
  return workload;
}

static int fail(const llvm::Twine &text) {
  llvm::errs() << "error: " << text << "\n";
  return 1;
}

int main(int argc, char **argv) {
  if (argc < 3)
    return fail("usage: dietcode_regret dense|dense16|nt|nn DEVICE "
                "[OPTION=VALUE…]");
  std::optional<Workload> workload = workloadOf(argv[1]);
  if (!workload)
    return fail(llvm::Twine("no workload '") + argv[1] + "'");
  llvm::Expected<DeviceSpec> device = loadDeviceSpec(argv[2]);
  if (!device)
    return fail(llvm::toString(device.takeError()));
  OptionValues given = {{"strategy", std::string("dietcode")},
                        {"measurer", std::string("model:latency")},
                        {"measure-budget", int64_t(1'000'000)}};
  for (int i = 3; i < argc; ++i) {
    auto [name, text] = llvm::StringRef(argv[i]).split('=');
    const DeclaredOption *option = searchOptionList().find(name);
    if (!option)
      return fail("no option '" + name + "'");
    llvm::Expected<OptionValue> value = option->decl->parse(text);
    if (!value)
      return fail("option '" + name +
                  "': " + llvm::toString(value.takeError()));
    given.insert_or_assign(name.str(), *value);
  }
  llvm::Expected<SearchSetup> setup = makeSearchSetup(given);
  if (!setup)
    return fail(llvm::toString(setup.takeError()));
  llvm::Expected<std::unique_ptr<Measurer>> standIn =
      makeMeasurer(*setup, *device);
  if (!standIn)
    return fail(llvm::toString(standIn.takeError()));
  WatchedMeasurer watched(**standIn);
  SearchProblem problem = setup->problem(*workload, *device);
  llvm::Expected<Plan> plan =
      solve(problem, *setup->strategy, measuringContext(*setup, &watched));
  if (!plan)
    return fail(llvm::toString(plan.takeError()));

  auto timeOf = [&](const KernelFamily &family, const Shape &shape) {
    return -problem.predict(family, shape).score;
  };
  // What was measured, and for operands of any alignment its variants.
  std::map<std::string, KernelFamily> unaligned;
  for (const auto &[name, family] : watched.families)
    for (const KernelFamily &variant : family.path().unalignedVariants(family))
      unaligned.try_emplace(variant.str(), variant);
  llvm::json::Array sizes;
  unsigned mainAxis = workload->mainAxis();
  const SizeRange &range = workload->axes[mainAxis].range;
  for (int64_t size = range.min; size <= *range.max; size += range.step) {
    Shape shape;
    for (const Axis &axis : workload->axes)
      shape.push_back(axis.isDynamic() ? size : axis.range.min);
    int64_t alignment = alignmentOf(*workload, shape);
    unsigned family = plan->familyFor(shape, alignment);
    double best = std::numeric_limits<double>::infinity();
    std::string bestName;
    for (const auto *families : {&watched.families, &unaligned})
      for (const auto &[name, candidate] : *families)
        if (candidate.alignment() <= alignment)
          if (double time = timeOf(candidate, shape); time < best) {
            best = time;
            bestName = name;
          }
    sizes.push_back(
        llvm::json::Object{{"size", size},
                           {"us", timeOf(plan->families[family], shape)},
                           {"best_us", best},
                           {"family", plan->families[family].str()},
                           {"best", bestName},
                           {"aligned", alignment >= plan->alignment()}});
  }
  llvm::json::Object statistics;
  for (const SearchStatistic &statistic : plan->statistics)
    statistics[statistic.name] = statistic.value;
  llvm::json::Object result{
      {"workload", argv[1]},
      {"device", device->name},
      {"measurer", plan->measurer},
      {"asked", watched.numAsked},
      {"measured_families", static_cast<int64_t>(watched.families.size())},
      {"families", static_cast<int64_t>(plan->families.size())},
      {"leaves", static_cast<int64_t>(plan->entries.size())},
      {"statistics", std::move(statistics)},
      {"sizes", std::move(sizes)}};
  llvm::outs() << llvm::json::Value(std::move(result)) << "\n";
}
