//===- RandomStrategy.cpp - Random draws as a baseline --------------------===//
//
// Draws a few candidates of HardwareAlign (Candidates.h) for each shape, with
// equal odds, and ranks them by the cost model. With `measure=filter` all of
// them are measured: this is random search, against which other strategies are
// compared with as many measurements.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Search/Planning/RankedStrategy.h"
#include "FTuner/Search/Problem/SearchOptions.h"
#include "FTuner/Search/Ranking/ShapeSeed.h"
#include "FTuner/Support/RandomDraws.h"
#include "llvm/ADT/DenseSet.h"
#include <random>

using namespace ftuner;

namespace {
struct RandomOptions {
  /// Number of candidates that are drawn for each shape.
  int64_t draws = 10;
  int64_t seed = 0;
};
} // namespace

static const OptionTable<RandomOptions> &ownOptions() {
  using Options = RandomOptions;
  static const OptionTable<RandomOptions> table = {
      option("draws", &Options::draws,
             "The strategy 'random' draws this number of candidates for each "
             "shape")
          .within(1, 1 << 20),
      option("draw-seed", &Options::seed,
             "The draws of the strategy 'random' begin with this seed")
          .within(0, 1'000'000),
  };
  return table;
}

namespace {
class RandomRanker final : public ProgramRanker {
public:
  RandomRanker(const SearchProblem &problem, CandidateSet candidates,
               int64_t draws, uint64_t seed)
      : ProgramRanker(problem, std::move(candidates)), draws(draws),
        seed(seed) {
    for (unsigned i = 0; i < set.candidates.size(); ++i)
      if (std::optional<unsigned> family = table.single(i))
        families.push_back(*family);
  }

  llvm::Expected<RankedShape> rank(llvm::ArrayRef<int64_t> shape) override;
  void report(llvm::ArrayRef<RankedShape> samples, Plan &plan) const override {
    plan.statistics.push_back(
        {"programs", static_cast<double>(countRated(samples))});
  }

private:
  /// The families to draw from, one for each candidate.
  std::vector<unsigned> families;
  int64_t draws;
  uint64_t seed;
};
} // namespace

llvm::Expected<RankedShape> RandomRanker::rank(llvm::ArrayRef<int64_t> shape) {
  if (families.empty())
    return llvm::createStringError("every uKernel of workload '" +
                                   problem.workload.name + "' was rejected");
  size_t count = std::min<size_t>(draws, families.size());
  std::mt19937_64 random(seedOf(shape, seed));
  // Floyd's algorithm draws without repetition.
  std::vector<unsigned> drawn;
  llvm::DenseSet<size_t> seen;
  for (size_t last = families.size() - count; last < families.size(); ++last) {
    size_t index = drawBelow(last + 1, random);
    if (!seen.insert(index).second) {
      index = last;
      seen.insert(index);
    }
    drawn.push_back(families[index]);
  }
  return rankByScore(table, drawn, shape);
}

namespace {
class RandomStrategy final : public RankedStrategy {
public:
  llvm::StringRef name() const override { return "random"; }

  OptionDecls options() const override {
    return joined({ownOptions().decls(), tileRuleOptions().decls(),
                   candidateOptions().decls(), zetaOptions().decls()});
  }

  llvm::Expected<std::unique_ptr<ProgramRanker>>
  makeRanker(const SearchProblem &problem,
             const SearchContext &context) const override {
    RandomOptions own = ownOptions().read(problem.options.own);
    llvm::Expected<CandidateSet> set = enumerateCandidates(problem);
    if (!set)
      return set.takeError();
    return std::make_unique<RandomRanker>(problem, std::move(*set), own.draws,
                                          seedOf({own.seed}, context.seed));
  }
};
} // namespace

namespace ftuner {
const SearchStrategy &randomStrategy() {
  static const RandomStrategy strategy;
  return strategy;
}
} // namespace ftuner
