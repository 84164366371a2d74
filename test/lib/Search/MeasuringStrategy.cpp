//===- MeasuringStrategy.cpp - A strategy that measures -------------------===//
#include "MeasuringStrategy.h"
#include "FTuner/Schedule/Alignment.h"
#include "FTuner/Search/Setup/StrategyRegistry.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <random>

using namespace ftuner;

namespace {
struct MeasuringOptions {
  /// Programs of a shape that are measured.
  int64_t programs = 4;
  /// Shapes whose programs are measured.
  int64_t shapes = 4;
};
} // namespace

static const OptionTable<MeasuringOptions> &ownOptions() {
  using Options = MeasuringOptions;
  static const OptionTable<MeasuringOptions> table = {
      option("measured-programs", &Options::programs,
             "Best programs of a shape that are measured")
          .within(1, 64),
      option("measured-shapes", &Options::shapes,
             "Sampled shapes whose programs are measured")
          .within(1, 64),
  };
  return table;
}

static const SearchStrategy &ranking() { return *findSearchStrategy("ftuner"); }

/// So many numbers below `size`, ascending; equal for equal seeds on every
/// machine.
static std::vector<size_t> choose(size_t count, size_t size, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<size_t> numbers(size);
  for (size_t i = 0; i < size; ++i)
    numbers[i] = i;
  count = std::min(count, size);
  for (size_t i = 0; i < count; ++i)
    std::swap(numbers[i], numbers[i + random() % (size - i)]);
  numbers.resize(count);
  llvm::sort(numbers);
  return numbers;
}

namespace {
/// Measures the programs of shapes, as far as the budget goes.
class Judge {
public:
  Judge(const SearchProblem &problem, LoggingMeasurer &measurer)
      : problem(problem), measurer(measurer) {}

  /// The fastest of the families for a shape, by index; the first one among
  /// equals. Those that cannot be measured lose against those that can; none
  /// where that is all of them.
  std::optional<size_t> fastest(llvm::ArrayRef<KernelFamily> families,
                                const Shape &shape);

  int64_t measured = 0, failed = 0;

private:
  const SearchProblem &problem;
  LoggingMeasurer &measurer;
};
} // namespace

std::optional<size_t> Judge::fastest(llvm::ArrayRef<KernelFamily> families,
                                     const Shape &shape) {
  std::vector<MeasurementRequest> requests;
  for (const KernelFamily &family : families)
    requests.push_back({&problem.workload, family, shape});
  std::optional<size_t> best;
  double least = 0;
  for (auto [index, answer] : llvm::enumerate(measurer.measure(requests))) {
    if (!answer || !answer->microseconds) {
      llvm::consumeError(answer.takeError());
      ++failed;
      continue;
    }
    ++measured;
    if (best && *answer->microseconds >= least)
      continue;
    best = index;
    least = *answer->microseconds;
  }
  return best;
}

/// Lets a family serve one shape, given aligned pointers, and no other. Whether
/// the plan has it, or room for it.
static bool serve(const SearchProblem &problem, const Shape &shape,
                  const KernelFamily &family, Plan &plan) {
  auto place = llvm::find(plan.families, family);
  if (place == plan.families.end()) {
    if (static_cast<int64_t>(plan.families.size()) >=
        problem.options.maxKernels)
      return false;
    place = plan.families.insert(place, family);
  }
  auto index = static_cast<unsigned>(place - plan.families.begin());
  DispatchEntry entry{{}, index};
  for (int64_t size : shape)
    entry.box.push_back(SizeRange::fixed(size));
  plan.entries.insert(plan.entries.begin(), std::move(entry));
  for (ShapePrediction &prediction : plan.predictions)
    if (prediction.shape == shape) {
      double before = prediction.microseconds;
      prediction.family = index;
      prediction.microseconds = -problem.predict(family, shape).score;
      prediction.regret =
          (1 + prediction.regret) * prediction.microseconds / before - 1;
    }
  return true;
}

namespace {
class MeasuringStrategy final : public SearchStrategy {
public:
  llvm::StringRef name() const override { return "measuring"; }

  OptionDecls options() const override {
    return joined({ranking().options(), ownOptions().decls()});
  }

  llvm::Expected<Plan> search(const SearchProblem &problem,
                              const SearchContext &context) const override;
  llvm::Expected<std::vector<ShapeReport>>
  explain(const SearchProblem &problem, const SearchContext &context,
          llvm::ArrayRef<Shape> shapes) const override;
};
} // namespace

llvm::Expected<Plan>
MeasuringStrategy::search(const SearchProblem &problem,
                          const SearchContext &context) const {
  MeasuringOptions own = ownOptions().read(problem.options.own);
  llvm::Expected<std::unique_ptr<LoggingMeasurer>> measurer =
      context.openMeasurer(problem.device);
  if (!measurer)
    return measurer.takeError();
  SearchProblem ranked = problem;
  // Rankings are kept from the second program on.
  ranked.options.topK =
      std::max<int64_t>({problem.options.topK, own.programs, 2});
  llvm::Expected<Plan> plan = ranking().search(ranked, context);
  if (!plan)
    return plan;

  Judge judge(problem, **measurer);
  int64_t changed = 0;
  for (size_t sample :
       choose(own.shapes, plan->rankings.size(), context.seed)) {
    const Shape &shape = plan->rankings[sample].shape;
    // A shape that breaks the alignment is served by other entries.
    if (alignmentOf(problem.workload, shape) < plan->alignment())
      continue;
    std::vector<KernelFamily> families;
    for (const RankedProgram &program :
         llvm::ArrayRef(plan->rankings[sample].programs)
             .take_front(own.programs))
      if (program.family.alignment() <= plan->alignment())
        families.push_back(program.family);
    std::optional<size_t> best = judge.fastest(families, shape);
    if (best && !(plan->families[plan->familyFor(shape)] == families[*best]))
      changed += serve(problem, shape, families[*best], *plan);
  }
  for (ShapeRanking &kept : plan->rankings)
    kept.programs.resize(
        std::min<size_t>(kept.programs.size(), problem.options.topK));
  if (problem.options.topK == 1)
    plan->rankings.clear();
  plan->statistics.push_back({"measured", double(judge.measured)});
  plan->statistics.push_back({"not_measured", double(judge.failed)});
  plan->statistics.push_back({"changed_by_measurement", double(changed)});
  return plan;
}

llvm::Expected<std::vector<ShapeReport>>
MeasuringStrategy::explain(const SearchProblem &problem,
                           const SearchContext &context,
                           llvm::ArrayRef<Shape> shapes) const {
  MeasuringOptions own = ownOptions().read(problem.options.own);
  llvm::Expected<std::unique_ptr<LoggingMeasurer>> measurer =
      context.openMeasurer(problem.device);
  if (!measurer)
    return measurer.takeError();
  SearchProblem ranked = problem;
  ranked.options.topK = std::max<int64_t>(problem.options.topK, own.programs);
  auto reports = ranking().explain(ranked, context, shapes);
  if (!reports)
    return reports;
  Judge judge(problem, **measurer);
  for (ShapeReport &report : *reports) {
    std::vector<KernelFamily> families;
    for (const ReportedProgram &program :
         llvm::ArrayRef(report.programs).take_front(own.programs))
      families.push_back(program.family);
    if (std::optional<size_t> best = judge.fastest(families, report.shape))
      std::rotate(report.programs.begin(), report.programs.begin() + *best,
                  report.programs.begin() + *best + 1);
    report.programs.resize(
        std::min<size_t>(report.programs.size(), problem.options.topK));
  }
  return reports;
}

namespace ftuner {
const SearchStrategy &measuringStrategy() {
  static const MeasuringStrategy strategy;
  return strategy;
}
} // namespace ftuner
