//===- RollerStrategy.cpp - Roller as a baseline --------------------------===//
//
// One program of one aligned uKernel for each shape, the best by Roller's own
// performance model of those that its tree constructs (RollerTree.h).
//
// A score is the predicted time of the shape's best program over that of the
// program, in (0, 1]: shares of the best compare across shapes, which predicted
// times do not, and the cost model of the problem would not be Roller. A tile
// that the tree did not construct for a shape scores less than those it did, by
// about half, so that the choice of few families does not search where Roller
// does not look.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Search/SearchOptions.h"
#include "RangePlanner.h"
#include "RollerTree.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include <limits>

using namespace ftuner;

namespace {
class RollerRanker final : public ProgramRanker {
public:
  RollerRanker(const SearchProblem &problem, const CandidateSet &set)
      : ProgramRanker(problem, set) {
    for (const Candidate &candidate : set.candidates)
      if (trees.empty() || trees.back().path != &candidate.family.path())
        trees.push_back({&candidate.family.path(),
                         RollerTree(problem, set, candidate.family.path())});
  }

  llvm::Expected<std::vector<RankedFamily>>
  rank(llvm::ArrayRef<int64_t> shape) override;
  double rate(const KernelFamily &family, const KernelResources &resources,
              llvm::ArrayRef<int64_t> shape, size_t sample) const override;
  void describe(ShapeReport &report) override;
  void report(Plan &plan, size_t numSamples) const override;

private:
  /// The tree of a codegen path.
  struct PathTree {
    const CodegenModel *path;
    RollerTree tree;
  };
  /// The variant of a constructed candidate with the step along the reduce axis
  /// that the problem's cost model prefers, if it predicts time.
  unsigned variantFor(const RollerTree &tree, unsigned constructed,
                      llvm::ArrayRef<int64_t> shape);

  /// What was constructed for a sample.
  struct Constructed {
    struct Tile {
      const CodegenModel *path;
      RollerTree::Tiles tiles;
      bool operator==(const Tile &other) const {
        return path == other.path && tiles == other.tiles;
      }
    };
    std::vector<Tile> tiles;
    double bestSeconds = 0;
    double leastScore = 1;
  };

  std::vector<PathTree> trees;
  std::vector<Constructed> samples;
  /// Of the shape that was ranked last.
  RollerCounts counts;
  /// Summed over the shapes so far.
  RollerCounts total;
  int64_t numPrograms = 0, numRelaxedWarps = 0, numRelaxedPadding = 0;
};
} // namespace

unsigned RollerRanker::variantFor(const RollerTree &tree, unsigned constructed,
                                  llvm::ArrayRef<int64_t> shape) {
  if (!problem.costModel.predictsTime())
    return constructed;
  unsigned chosen = constructed;
  double best = -std::numeric_limits<double>::infinity();
  for (unsigned variant : tree.variantsOf(constructed)) {
    std::optional<unsigned> family = table.single(variant);
    if (!family)
      continue;
    double score = table.score(*family, shape);
    if (score <= best)
      continue;
    best = score;
    chosen = variant;
  }
  return chosen;
}

llvm::Expected<std::vector<RankedFamily>>
RollerRanker::rank(llvm::ArrayRef<int64_t> shape) {
  counts = RollerCounts();
  std::vector<std::pair<double, unsigned>> timed;
  Constructed constructed;
  for (const auto &[path, tree] : trees) {
    RollerModel model(problem, *path, shape);
    for (unsigned constructedIndex : tree.construct(
             shape,
             [&](unsigned candidate) {
               return table.single(candidate).has_value();
             },
             counts)) {
      unsigned index = variantFor(tree, constructedIndex, shape);
      const Candidate &candidate = table.set.candidates[index];
      timed.emplace_back(model.seconds(candidate.ukernel, candidate.resources),
                         *table.single(index));
      constructed.tiles.push_back(
          {path, RollerTree::tilesOf(candidate.family.contractionAxes(),
                                     candidate.ukernel)});
    }
  }
  if (timed.empty())
    return llvm::createStringError("every aligned uKernel of workload '" +
                                   problem.workload.name + "' was rejected");
  total.registerTiles += counts.registerTiles;
  total.registerTilesKept += counts.registerTilesKept;
  total.blockTiles += counts.blockTiles;
  total.blockTilesKept += counts.blockTilesKept;
  numRelaxedWarps += counts.relaxedWarps;
  numRelaxedPadding += counts.relaxedPadding;
  numPrograms += timed.size();
  llvm::stable_sort(
      timed, [](const auto &a, const auto &b) { return a.first < b.first; });
  constructed.bestSeconds = timed.front().first;
  std::vector<RankedFamily> ranking;
  for (auto [seconds, family] : timed)
    ranking.push_back({family, constructed.bestSeconds / seconds});
  constructed.leastScore = ranking.back().score;
  samples.push_back(std::move(constructed));
  return ranking;
}

double RollerRanker::rate(const KernelFamily &family,
                          const KernelResources &resources,
                          llvm::ArrayRef<int64_t> shape, size_t sample) const {
  const Constructed &constructed = samples[sample];
  UKernel ukernel = family.ukernel(0);
  double score =
      constructed.bestSeconds /
      RollerModel(problem, family.path(), shape).seconds(ukernel, resources);
  if (llvm::is_contained(
          constructed.tiles,
          Constructed::Tile{
              &family.path(),
              RollerTree::tilesOf(family.contractionAxes(), ukernel)}))
    return score;
  return constructed.leastScore * score / (1 + score);
}

void RollerRanker::report(Plan &plan, size_t numSamples) const {
  auto add = [&](llvm::StringRef name, int64_t value) {
    plan.statistics.push_back({name.str(), static_cast<double>(value)});
  };
  add("register_tiles", total.registerTiles);
  add("after_register_tile", total.registerTilesKept);
  add("block_tiles", total.blockTiles);
  add("after_block_tile", total.blockTilesKept);
  auto addRelaxed = [&](llvm::StringRef name, int64_t count,
                        llvm::StringRef reason) {
    if (count == 0)
      return;
    add(("relaxed_" + name).str(), count);
    plan.remarks.push_back(("construction relaxed for " + llvm::Twine(count) +
                            " of " + llvm::Twine(numSamples) +
                            " shapes: " + reason)
                               .str());
  };
  addRelaxed("warps", numRelaxedWarps,
             "no block of at least 128 threads pads little enough");
  addRelaxed("padding", numRelaxedPadding, "every tile pads too much");
  add("programs", numPrograms);
}

void RollerRanker::describe(ShapeReport &report) {
  StageReport reg, block, scaleOut;
  reg.name = "register_tile";
  reg.requirement = "compute time ≥ shared memory time, or registers full";
  reg.before = counts.registerTiles;
  reg.kept = counts.registerTilesKept;
  block.name = "block_tile";
  block.requirement = "compute time ≥ device memory time, or block full";
  block.before = counts.blockTiles;
  block.kept = counts.blockTilesKept;
  block.relaxed = counts.relaxedWarps || counts.relaxedPadding;
  scaleOut.name = "scale_out";
  scaleOut.requirement = "blocks ≥ SMs, by halving; each program once";
  scaleOut.before = counts.blockTilesKept;
  scaleOut.kept = report.singlePrograms;
  report.stages = {reg, block, scaleOut};
}

namespace {
class RollerStrategy final : public SearchStrategy {
public:
  llvm::StringRef name() const override { return "roller"; }

  OptionDecls options() const override { return zetaOptions().decls(); }

  llvm::Expected<Plan> search(const SearchProblem &problem) const override {
    llvm::Expected<CandidateSet> set = enumerateAlignedTiles(problem);
    if (!set)
      return set.takeError();
    RollerRanker ranker(problem, *set);
    return planRange(ranker);
  }

  llvm::Expected<std::vector<ShapeReport>>
  explain(const SearchProblem &problem,
          llvm::ArrayRef<Shape> shapes) const override {
    llvm::Expected<CandidateSet> set = enumerateAlignedTiles(problem);
    if (!set)
      return set.takeError();
    RollerRanker ranker(problem, *set);
    return reportShapes(ranker, shapes);
  }
};
} // namespace

namespace ftuner {
const SearchStrategy &rollerStrategy() {
  static const RollerStrategy strategy;
  return strategy;
}
} // namespace ftuner
