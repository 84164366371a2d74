//===- LaterStrategy.cpp - A strategy that comes later, for tests ---------===//
//
// Answers as `ftuner` does, and shows that it knows the values of its own
// options, which nobody else has heard of.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Search/Problem/SearchStrategy.h"
#include "FTuner/Search/Setup/StrategyRegistry.h"
#include "llvm/Support/FileSystem.h"

using namespace ftuner;

namespace {
enum class Crossover { Uniform, Points };

struct LaterOptions {
  /// Programs of a generation.
  int64_t population = 64;
  /// Share of programs that change.
  double mutation = 0.125;
  Crossover crossover = Crossover::Uniform;
  /// A file whose size is a statistic; empty for none.
  std::string recipe;
};

/// Bytes of a file; 0 without one.
double sizeOf(llvm::StringRef path) {
  uint64_t size = 0;
  if (!path.empty())
    llvm::sys::fs::file_size(path, size);
  return static_cast<double>(size);
}
} // namespace

static const OptionTable<LaterOptions> &ownOptions() {
  using Options = LaterOptions;
  static const OptionTable<LaterOptions> table = {
      option(
          "population", &Options::population,
          "The strategy 'later' keeps this number of programs of a generation")
          .within(1, 4096),
      option("mutation", &Options::mutation,
             "This share of programs changes in a generation")
          .within(0, 1),
      option("crossover", &Options::crossover,
             "Programs are mixed uniformly ('uniform'), or at 'points'",
             {{"uniform", Crossover::Uniform}, {"points", Crossover::Points}}),
      option("recipe", &Options::recipe,
             "The strategy 'later' reads its recipe from this file")
          .file(OptionFile::Access::Read),
  };
  return table;
}

namespace {
class LaterStrategy final : public SearchStrategy {
public:
  llvm::StringRef name() const override { return "later"; }

  OptionDecls options() const override { return ownOptions().decls(); }

  llvm::Expected<Plan> search(const SearchProblem &problem,
                              const SearchContext &context) const override {
    LaterOptions own = ownOptions().read(problem.options.own);
    llvm::Expected<Plan> plan =
        findSearchStrategy("ftuner")->search(problem, context);
    if (!plan)
      return plan;
    plan->statistics.push_back(
        {"later_population", static_cast<double>(own.population)});
    plan->statistics.push_back({"later_mutation", own.mutation});
    plan->statistics.push_back(
        {"later_points", own.crossover == Crossover::Points ? 1.0 : 0.0});
    plan->statistics.push_back({"later_recipe_bytes", sizeOf(own.recipe)});
    return plan;
  }

  llvm::Expected<std::vector<ShapeReport>>
  explain(const SearchProblem &problem, const SearchContext &context,
          llvm::ArrayRef<Shape> shapes) const override {
    return findSearchStrategy("ftuner")->explain(problem, context, shapes);
  }
};
} // namespace

namespace ftuner {
const SearchStrategy &laterStrategy() {
  static const LaterStrategy strategy;
  return strategy;
}
} // namespace ftuner
