//===- RollerStrategy.cpp - Roller as a baseline --------------------------===//
//
// One program of one aligned uKernel for each shape: among the programs that
// the tree constructs (RollerTree.h), the best by Roller's own performance
// model.
//
// A score is the predicted time of the shape's best program divided by the
// program's predicted time, in (0, 1]. Shares of the best can be compared
// across shapes, which predicted times cannot, and the cost model of the
// problem would not be Roller. A tile that the tree did not construct for a
// shape scores about half, so that the choice of few families does not search
// where Roller does not look.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Baselines/ConstructibleTiles.h"
#include "FTuner/Baselines/SinglePrograms.h"
#include "FTuner/Search/Planning/RankedStrategy.h"
#include "FTuner/Search/Problem/SearchOptions.h"
#include "RollerTree.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include <limits>

using namespace ftuner;

namespace {
class RollerRanker final : public ProgramRanker {
public:
  RollerRanker(const SearchProblem &problem, CandidateSet candidates)
      : ProgramRanker(problem, std::move(candidates)) {
    for (const Candidate &candidate : set.candidates)
      if (trees.empty() || trees.back().path != &candidate.family.path())
        trees.push_back({&candidate.family.path(),
                         RollerTree(problem, set, candidate.family.path())});
  }

  llvm::Expected<RankedShape> rank(llvm::ArrayRef<int64_t> shape) override;
  bool ranksByScore() const override { return false; }
  double rate(const KernelFamily &family, const KernelResources &resources,
              llvm::ArrayRef<int64_t> shape,
              const RankedShape &neighbour) const override;
  void describe(const RankedShape &ranked, ShapeReport &report) override;
  void report(llvm::ArrayRef<RankedShape> samples, Plan &plan) const override;

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

  /// The programs that were constructed for a shape.
  struct Constructed : RankedShape::Notes {
    struct Tile {
      const CodegenModel *path;
      RollerTree::Tiles tiles;
      bool operator==(const Tile &other) const {
        return path == other.path && tiles == other.tiles;
      }
    };
    std::vector<Tile> tiles;
    double bestSeconds = 0;
    double minScore = 1;
    RollerCounts counts;
  };
  static const Constructed &constructedFor(const RankedShape &ranked) {
    return static_cast<const Constructed &>(*ranked.notes);
  }

  std::vector<PathTree> trees;
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

llvm::Expected<RankedShape> RollerRanker::rank(llvm::ArrayRef<int64_t> shape) {
  std::vector<std::pair<double, unsigned>> timed;
  auto constructed = std::make_shared<Constructed>();
  for (const auto &[path, tree] : trees) {
    RollerModel model(problem, *path, shape);
    for (unsigned constructedIndex : tree.construct(
             shape,
             [&](unsigned candidate) {
               return table.single(candidate).has_value();
             },
             constructed->counts)) {
      unsigned index = variantFor(tree, constructedIndex, shape);
      const Candidate &candidate = set.candidates[index];
      timed.emplace_back(model.seconds(candidate.ukernel, candidate.resources),
                         *table.single(index));
      constructed->tiles.push_back(
          {path, RollerTree::tilesOf(candidate.family.contractionAxes(),
                                     candidate.ukernel)});
    }
  }
  if (timed.empty())
    return llvm::createStringError("every aligned uKernel of workload '" +
                                   problem.workload.name + "' was rejected");
  llvm::stable_sort(
      timed, [](const auto &a, const auto &b) { return a.first < b.first; });
  constructed->bestSeconds = timed.front().first;
  RankedShape ranked{Shape(shape), {}};
  for (auto [seconds, family] : timed)
    ranked.programs.push_back({family, constructed->bestSeconds / seconds});
  ranked.numRated = timed.size();
  constructed->minScore = ranked.programs.back().score;
  ranked.notes = std::move(constructed);
  return ranked;
}

double RollerRanker::rate(const KernelFamily &family,
                          const KernelResources &resources,
                          llvm::ArrayRef<int64_t> shape,
                          const RankedShape &neighbour) const {
  const Constructed &constructed = constructedFor(neighbour);
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
  return constructed.minScore * score / (1 + score);
}

void RollerRanker::report(llvm::ArrayRef<RankedShape> samples,
                          Plan &plan) const {
  RollerCounts total;
  int64_t numRelaxedWarps = 0, numRelaxedPadding = 0;
  for (const RankedShape &sample : samples) {
    const RollerCounts &counts = constructedFor(sample).counts;
    total.registerTiles += counts.registerTiles;
    total.registerTilesKept += counts.registerTilesKept;
    total.blockTiles += counts.blockTiles;
    total.blockTilesKept += counts.blockTilesKept;
    numRelaxedWarps += counts.relaxedWarps;
    numRelaxedPadding += counts.relaxedPadding;
  }
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
                            " of " + llvm::Twine(samples.size()) +
                            " shapes: " + reason)
                               .str());
  };
  addRelaxed("warps", numRelaxedWarps,
             "no block of at least 128 threads pads little enough");
  addRelaxed("padding", numRelaxedPadding, "every tile pads too much");
  add("programs", countRated(samples));
}

void RollerRanker::describe(const RankedShape &ranked, ShapeReport &report) {
  const RollerCounts &counts = constructedFor(ranked).counts;
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
class RollerStrategy final : public RankedStrategy {
public:
  llvm::StringRef name() const override { return "roller"; }

  OptionDecls options() const override { return constructionOptions(); }

  llvm::Expected<std::unique_ptr<ProgramRanker>>
  makeRanker(const SearchProblem &problem,
             const SearchContext &) const override {
    if (!problem.workload.isContraction())
      return rankSinglePrograms(problem, name());
    llvm::Expected<CandidateSet> set = enumerateAlignedTiles(problem);
    if (!set)
      return set.takeError();
    return std::make_unique<RollerRanker>(problem, std::move(*set));
  }
};
} // namespace

namespace ftuner {
const SearchStrategy &rollerStrategy() {
  static const RollerStrategy strategy;
  return strategy;
}
} // namespace ftuner
