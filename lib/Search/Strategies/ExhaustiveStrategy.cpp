//===- ExhaustiveStrategy.cpp - Every program of a small space ------------===//
//
// Scores, for every shape that the search looks at, every candidate of
// HardwareAlign (Candidates.h) and every pair of a candidate with a uKernel of
// fewer rows, without a filter or a preference. Its best score is the optimum
// of the cost model over the space of programs, a bound for other strategies.
//
// The space is walked completely or not at all: beyond `tuning::maxEvaluations`
// the answer is an error.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Search/Planning/RankedStrategy.h"
#include "FTuner/Search/Problem/SearchOptions.h"
#include "FTuner/Search/Problem/SearchTuning.h"
#include "FTuner/Search/Ranking/MainAxis.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

using namespace ftuner;

namespace {
class ExhaustiveRanker final : public ProgramRanker {
public:
  ExhaustiveRanker(const SearchProblem &problem, CandidateSet set);

  llvm::Error check(size_t numShapes) const override;
  llvm::Expected<RankedShape> rank(llvm::ArrayRef<int64_t> shape) override;
  void describe(const RankedShape &ranked, ShapeReport &report) override;
  void report(llvm::ArrayRef<RankedShape> samples, Plan &plan) const override;

private:
  /// Returns the maximum number of programs of one shape: one for each uKernel
  /// and pair.
  int64_t programsPerShape() const { return programs.size(); }

  /// A family. The flags are true if its first, or second, part by itself is
  /// also a family of the search.
  struct Entry {
    unsigned family = 0;
    bool hasFirstAsFamily = false;
    bool hasSecondAsFamily = false;
  };
  /// Programs of one uKernel, then pairs.
  std::vector<Entry> programs;
  int64_t numSingles = 0;
};
} // namespace

ExhaustiveRanker::ExhaustiveRanker(const SearchProblem &problem,
                                   CandidateSet candidates)
    : ProgramRanker(problem, std::move(candidates)) {
  for (unsigned i = 0; i < set.candidates.size(); ++i)
    if (std::optional<unsigned> family = table.single(i))
      programs.push_back({*family});
  numSingles = programs.size();
  for (unsigned high = 0; high < set.candidates.size(); ++high)
    for (int64_t rows = 1; rows < table.rows(high); ++rows)
      if (std::optional<unsigned> family = table.pair(high, rows)) {
        std::optional<unsigned> low = table.withRows(high, rows);
        programs.push_back({*family, low && table.single(*low),
                            table.single(high).has_value()});
      }
  for (unsigned wide = 0; wide < set.candidates.size(); ++wide)
    for (unsigned axis : table.otherAxes(wide))
      for (int64_t rows = 1; rows < table.rowsAlong(axis, wide); ++rows)
        if (std::optional<unsigned> family = table.pairAlong(axis, wide, rows))
          programs.push_back({*family, false, table.single(wide).has_value()});
}

llvm::Error ExhaustiveRanker::check(size_t numShapes) const {
  int64_t perShape = programs.size();
  if (perShape == 0)
    return llvm::createStringError("every uKernel of workload '" +
                                   problem.workload.name + "' was rejected");
  if (static_cast<int64_t>(numShapes) <= tuning::maxEvaluations / perShape)
    return llvm::Error::success();
  return llvm::createStringError(
      llvm::inconvertibleErrorCode(),
      "strategy 'exhaustive': expected at most " +
          llvm::Twine(tuning::maxEvaluations) + " evaluations for workload '" +
          problem.workload.name + "', but got " + llvm::Twine(perShape) +
          " programs for each of " + llvm::Twine(numShapes) +
          " shapes; fewer sizes in the ranges (a larger step or a smaller "
          "maximum) "
          "or tile-rule 'divisors' make the space smaller");
}

llvm::Expected<RankedShape>
ExhaustiveRanker::rank(llvm::ArrayRef<int64_t> shape) {
  std::vector<unsigned> families;
  for (const Entry &entry : programs) {
    const KernelFamily &family = table.families[entry.family];
    if (family.tiles.size() == 2) {
      // If only one part runs, the program equals the program of the family
      // that has only this part.
      Partition partition = partitionShape(family, shape);
      if ((partition.first == 0 && entry.hasSecondAsFamily) ||
          (partition.second == 0 && entry.hasFirstAsFamily))
        continue;
    }
    families.push_back(entry.family);
  }
  RankedShape ranked{Shape(shape), {}};
  for (auto [family, score] :
       llvm::zip_equal(families, table.scoreAll(families, shape)))
    ranked.programs.push_back({family, score});
  ranked.numRated = ranked.programs.size();
  sortByScore(ranked.programs);
  return ranked;
}

void ExhaustiveRanker::describe(const RankedShape &ranked,
                                ShapeReport &report) {
  StageReport stage;
  stage.name = "programs";
  stage.requirement = "distinct, since every part runs";
  stage.before = programsPerShape();
  stage.kept = report.singlePrograms + report.pairPrograms;
  report.stages.push_back(std::move(stage));
}

void ExhaustiveRanker::report(llvm::ArrayRef<RankedShape> samples,
                              Plan &plan) const {
  auto add = [&](llvm::StringRef name, int64_t value) {
    plan.statistics.push_back({name.str(), static_cast<double>(value)});
  };
  llvm::append_range(plan.remarks, mainAxisRemarks(problem, set));
  add("single_families", numSingles);
  add("pair_families", programsPerShape() - numSingles);
  add("programs", countRated(samples));
}

namespace {
class ExhaustiveStrategy final : public RankedStrategy {
public:
  llvm::StringRef name() const override { return "exhaustive"; }

  OptionDecls options() const override {
    return joined({tileRuleOptions().decls(), candidateOptions().decls(),
                   zetaOptions().decls()});
  }

  llvm::Expected<std::unique_ptr<ProgramRanker>>
  makeRanker(const SearchProblem &problem,
             const SearchContext &) const override {
    llvm::Expected<CandidateSet> set = enumerateCandidates(problem);
    if (!set)
      return set.takeError();
    return std::make_unique<ExhaustiveRanker>(problem, std::move(*set));
  }
};
} // namespace

namespace ftuner {
const SearchStrategy &exhaustiveStrategy() {
  static const ExhaustiveStrategy strategy;
  return strategy;
}
} // namespace ftuner
