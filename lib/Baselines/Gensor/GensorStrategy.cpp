//===- GensorStrategy.cpp - Gensor as a baseline --------------------------===//
//
// Several Markov walks for each shape (GensorWalk.h). Their results become
// programs of one uKernel, the nearest that a codegen path can emit, and the
// cost model ranks them. docs/gensor.md compares this with the paper.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Baselines/ConstructibleTiles.h"
#include "FTuner/Baselines/SinglePrograms.h"
#include "FTuner/Search/Planning/RankedStrategy.h"
#include "FTuner/Search/Problem/SearchOptions.h"
#include "FTuner/Search/Ranking/ShapeSeed.h"
#include "GensorTuning.h"
#include "GensorWalk.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <map>
#include <set>

using namespace ftuner;

namespace {
/// The strips of a result's program.
enum class StripChoice {
  /// The strips of the walk.
  Walk,
  /// The strips of the walk or the path's own, whichever the cost model
  /// prefers.
  Priced,
};

struct WalkOptions : GensorOptions {
  int64_t walks = 16;
  int64_t seed = 0;
  bool hasVirtualThreads = true;
  StripChoice strips = StripChoice::Priced;
  bool scalesOut = true;
  bool walksReduce = false;
};
} // namespace

static const OptionTable<WalkOptions> &ownOptions() {
  using Options = WalkOptions;
  static const OptionTable<WalkOptions> table = {
      option("walks", &Options::walks,
             "The strategy 'gensor' takes this number of independent walks for "
             "each shape")
          .within(1, 4096),
      option("gensor-back", static_cast<double Options::*>(&Options::back),
             "A walk undoes a step with this share of the step's own benefit; "
             "at 0 walks never go back")
          .within(0, 1),
      option("gensor-seed", &Options::seed,
             "The walks of 'gensor' begin with this seed")
          .within(0, 1'000'000),
      option("virtual-threads", &Options::hasVirtualThreads,
             "Walks set virtual threads; otherwise the strips of a thread are "
             "the path's own"),
      option("gensor-policy",
             static_cast<GensorPolicy Options::*>(&Options::policy),
             "A walk draws its next action by 'roulette', or takes the "
             "likeliest one ('greedy')",
             {{"roulette", GensorPolicy::Roulette},
              {"greedy", GensorPolicy::Greedy}})
          .testing(),
      option("gensor-strips", &Options::strips,
             "A result's program has the strips of the 'walk', or those of the "
             "walk and of the path that the cost model prefers ('priced')",
             {{"walk", StripChoice::Walk}, {"priced", StripChoice::Priced}}),
      option("scale-out", &Options::scalesOut,
             "Results with fewer blocks than SMs are also halved, and blocks "
             "may have fewer than 128 threads"),
      option("walk-reduce", &Options::walksReduce,
             "The k tile is an axis of walks; traffic is then counted in "
             "sectors of 32 bytes"),
  };
  return table;
}

using Pair = GensorState::Pair;

/// Strips that are the path's own.
static constexpr Pair ownStrips = {0, 0};

namespace {
/// Candidates, and the strips of each one's workers.
struct StrippedCandidates {
  CandidateSet set;
  std::vector<Pair> strips;
};

class GensorRanker final : public ProgramRanker {
public:
  GensorRanker(const SearchProblem &problem, StrippedCandidates candidates,
               const WalkOptions &options, uint64_t seed);

  llvm::Expected<RankedShape> rank(llvm::ArrayRef<int64_t> shape) override;
  void describe(const RankedShape &ranked, ShapeReport &report) override;
  void report(llvm::ArrayRef<RankedShape> samples, Plan &plan) const override;

private:
  /// Block and register tile.
  using Tiles = std::pair<Pair, Pair>;
  /// Candidates of a codegen path.
  struct PathTiles {
    const CodegenModel *path;
    int64_t threadsPerWorker = 1;
    /// Multiples of which steps along the reduce axis are.
    int64_t depth = 1;
    bool hasVirtualThreads = false;
    struct Tile {
      Tiles tiles;
      /// Binary logarithms of both.
      std::array<double, 4> logs;
      /// Threads of a block.
      int64_t threads;
    };
    /// Each once, in the order of candidates.
    std::vector<Tile> tiles;
    /// With the strips of workers.
    std::map<std::pair<Tiles, Pair>, std::vector<unsigned>> candidates;
    /// Tiles that were found so far, by the minimum number of threads of a
    /// block.
    std::map<std::pair<Tiles, int64_t>, const Tile *> nearest;
  };
  /// The walks of one shape, one path's after another's.
  struct Walked : RankedShape::Notes {
    std::vector<GensorWalk> walks;
    /// For the family of each program its walk, and the number of steps that
    /// led there.
    std::map<unsigned, std::pair<size_t, size_t>> origins;
    int64_t numStates = 0, numResults = 0;
  };
  static const Walked &walkedFor(const RankedShape &ranked) {
    return static_cast<const Walked &>(*ranked.notes);
  }

  GensorFacts factsOf(const PathTiles &path,
                      llvm::ArrayRef<int64_t> shape) const;
  /// Returns the tile that is nearest to a result, in doublings, among tiles of
  /// at least `minThreads` threads. If no tile has so many, all tiles count.
  const PathTiles::Tile &nearestTile(PathTiles &path, const GensorState &result,
                                     int64_t minThreads);
  /// Returns the families of a result; an empty set if all were rejected.
  std::set<unsigned> familiesOf(PathTiles &path, const GensorModel &model,
                                const GensorState &result,
                                llvm::ArrayRef<int64_t> shape);
  /// The family of a tile with strips, with the step along the reduce axis that
  /// the cost model prefers, or that is nearest to the result's; none if all
  /// were rejected.
  std::optional<unsigned> familyOf(const PathTiles &path, const Tiles &tiles,
                                   const Pair &strips, int64_t depth,
                                   llvm::ArrayRef<int64_t> shape);

  const WalkOptions options;
  const uint64_t seed;
  const ContractionAxes axes;
  std::vector<PathTiles> paths;
};
} // namespace

GensorRanker::GensorRanker(const SearchProblem &problem,
                           StrippedCandidates candidates,
                           const WalkOptions &options, uint64_t seed)
    : ProgramRanker(problem, std::move(candidates.set)), options(options),
      seed(seed),
      axes(ContractionAxes::forReduceAxes(problem.workload.reduceAxes())) {
  std::set<std::pair<const CodegenModel *, Tiles>> known;
  for (auto [index, candidate] : llvm::enumerate(set.candidates)) {
    const UKernel &u = candidate.ukernel;
    const CodegenModel *model = &candidate.family.path();
    // Candidates with slices come after the other candidates of all paths.
    auto path = llvm::find_if(
        paths, [&](const PathTiles &other) { return other.path == model; });
    if (path == paths.end()) {
      paths.push_back(
          {model,
           candidate.resources.threads / u.workers,
           model->createSpace(problem.workload, problem.device)->reduceGranule,
           false,
           {},
           {},
           {}});
      path = std::prev(paths.end());
    }
    const Pair &strips = candidates.strips[index];
    path->hasVirtualThreads |= strips != ownStrips;
    Tiles tiles = {{u.blockTile[axes.m], u.blockTile[axes.n]},
                   {u.registerTile[axes.m], u.registerTile[axes.n]}};
    if (known.insert({model, tiles}).second) {
      auto log = [](int64_t size) {
        return std::log2(static_cast<double>(size));
      };
      const auto &[block, reg] = tiles;
      path->tiles.push_back(
          {tiles,
           {log(block[0]), log(block[1]), log(reg[0]), log(reg[1])},
           candidate.resources.threads});
    }
    path->candidates[{tiles, strips}].push_back(index);
  }
}

GensorFacts GensorRanker::factsOf(const PathTiles &path,
                                  llvm::ArrayRef<int64_t> shape) const {
  const DeviceSpec &device = problem.device;
  ContractionView product(problem.workload);
  GensorFacts facts;
  facts.m = shape[axes.m];
  facts.n = shape[axes.n];
  facts.k = shape[axes.k];
  for (unsigned axis : product.batchAxes().list())
    facts.batch *= static_cast<double>(shape[axis]);
  facts.lhsBytes = static_cast<double>(product.lhs().elementBytes);
  facts.rhsBytes = static_cast<double>(product.rhs().elementBytes);
  facts.outputBytes = static_cast<double>(product.output().elementBytes);
  facts.depth = path.depth;
  facts.sharedMemoryBytes =
      static_cast<double>(device.sharedMemoryPerBlockBytes);
  facts.registers =
      static_cast<double>(device.maxRegistersPerThread * path.threadsPerWorker);
  facts.dramBytesPerCycle =
      device.dramGbps * 1e3 /
      (device.clockMhz * static_cast<double>(device.smCount));
  facts.hasVirtualThreads = path.hasVirtualThreads;
  facts.walksReduce = options.walksReduce;
  facts.reduceContiguous = {product.lhs().contiguousAxis() == axes.k,
                            product.rhs().contiguousAxis() == axes.k};
  return facts;
}

const GensorRanker::PathTiles::Tile &
GensorRanker::nearestTile(PathTiles &path, const GensorState &result,
                          int64_t minThreads) {
  auto [it, isNew] = path.nearest.try_emplace(
      {{result.block, result.reg}, minThreads}, nullptr);
  if (!isNew)
    return *it->second;
  std::array<double, 4> logs;
  for (unsigned axis : {0u, 1u}) {
    logs[axis] = std::log2(static_cast<double>(result.block[axis]));
    logs[2 + axis] = std::log2(static_cast<double>(result.reg[axis]));
  }
  auto key = [&](const PathTiles::Tile &tile) {
    double distance = 0;
    for (unsigned i = 0; i < logs.size(); ++i)
      distance += std::abs(tile.logs[i] - logs[i]);
    return std::pair(tile.threads < minThreads, distance);
  };
  it->second = &*llvm::min_element(
      path.tiles, [&](const PathTiles::Tile &a, const PathTiles::Tile &b) {
        return key(a) < key(b);
      });
  return *it->second;
}

std::set<unsigned> GensorRanker::familiesOf(PathTiles &path,
                                            const GensorModel &model,
                                            const GensorState &result,
                                            llvm::ArrayRef<int64_t> shape) {
  std::set<unsigned> families;
  auto record = [&](const GensorState &state, int64_t minThreads) {
    const PathTiles::Tile &tile = nearestTile(path, state, minThreads);
    Pair own = ownStrips;
    auto add = [&](const Pair &strips) {
      if (std::optional<unsigned> family =
              familyOf(path, tile.tiles, strips, state.depth, shape))
        families.insert(*family);
    };
    if (!path.hasVirtualThreads || options.strips == StripChoice::Priced)
      add(own);
    if (!path.hasVirtualThreads)
      return;
    // If the register tile is not the walk's, its strips are chosen anew.
    GensorState emitted = state;
    emitted.level = 1;
    std::tie(emitted.block, emitted.reg) = tile.tiles;
    if (emitted.reg != state.reg)
      emitted.virtualThreads = {1, 1};
    add(model.complete(emitted).virtualThreads);
  };
  record(result, tuning::minGensorThreads);
  if (!options.scalesOut)
    return families;
  record(result, 1);
  GensorState scaled =
      model.scaledOut(result, static_cast<double>(problem.device.smCount));
  if (!(scaled == result)) {
    record(scaled, tuning::minGensorThreads);
    record(scaled, 1);
  }
  return families;
}

std::optional<unsigned> GensorRanker::familyOf(const PathTiles &path,
                                               const Tiles &tiles,
                                               const Pair &strips,
                                               int64_t depth,
                                               llvm::ArrayRef<int64_t> shape) {
  auto variants = path.candidates.find({tiles, strips});
  // No strips that the path knows are feasible for these tiles.
  if (variants == path.candidates.end())
    variants = path.candidates.find({tiles, ownStrips});
  if (variants == path.candidates.end())
    return std::nullopt;
  auto distance = [&](unsigned variant) {
    int64_t size = set.candidates[variant].ukernel.blockTile[axes.k];
    return depth == 0 ? 0.0
                      : std::abs(std::log2(static_cast<double>(size)) -
                                 std::log2(static_cast<double>(depth)));
  };
  std::optional<unsigned> best;
  std::tuple<double, double> bestKey;
  for (unsigned variant : variants->second) {
    std::optional<unsigned> family = table.single(variant);
    if (!family)
      continue;
    std::tuple key = {distance(variant), problem.costModel.predictsTime()
                                             ? -table.score(*family, shape)
                                             : 0.0};
    if (best && bestKey <= key)
      continue;
    best = family;
    bestKey = key;
  }
  return best;
}

llvm::Expected<RankedShape> GensorRanker::rank(llvm::ArrayRef<int64_t> shape) {
  auto walked = std::make_shared<Walked>();
  std::vector<unsigned> families;
  for (PathTiles &path : paths) {
    GensorModel model(factsOf(path, shape), options);
    std::set<GensorState> states, known;
    for (int64_t walk = 0; walk < options.walks; ++walk) {
      walked->walks.push_back(
          walkGensor(model, seedOf({walk}, seedOf(shape, seed))));
      const GensorWalk &last = walked->walks.back();
      for (const GensorStep &step : last.steps)
        states.insert(step.to);
      walked->numResults += last.results.size();
      for (const GensorWalk::Result &result : last.results) {
        if (!known.insert(result.state).second)
          continue;
        for (unsigned family : familiesOf(path, model, result.state, shape))
          if (walked->origins
                  .try_emplace(family, std::pair(walked->walks.size() - 1,
                                                 result.numSteps))
                  .second)
            families.push_back(family);
      }
    }
    walked->numStates += states.size();
  }
  // Every one was rejected: others in the order of preference.
  for (unsigned i = 0; i < set.candidates.size() && families.empty(); ++i)
    if (std::optional<unsigned> family = table.single(i))
      families.push_back(*family);
  if (families.empty())
    return llvm::createStringError("every aligned uKernel of workload '" +
                                   problem.workload.name + "' was rejected");
  RankedShape ranked = rankByScore(table, families, shape);
  ranked.notes = std::move(walked);
  return ranked;
}

void GensorRanker::describe(const RankedShape &ranked, ShapeReport &report) {
  const Walked &walked = walkedFor(ranked);
  StageReport results;
  results.name = "walks";
  results.requirement = "each program once: the nearest that a path can emit";
  results.before = walked.numResults;
  results.kept = ranked.numRated;
  report.stages = {results};
  auto origin = walked.origins.find(ranked.programs.front().family);
  if (origin == walked.origins.end())
    return;
  auto [walk, numSteps] = origin->second;
  for (const GensorStep &step :
       llvm::ArrayRef(walked.walks[walk].steps).take_front(numSteps))
    report.construction.push_back(
        {step.action.str(), step.probability, step.to.str()});
}

void GensorRanker::report(llvm::ArrayRef<RankedShape> samples,
                          Plan &plan) const {
  int64_t numSteps = 0, numStates = 0, numResults = 0, numBacktracks = 0,
          numRefused = 0;
  for (const RankedShape &sample : samples) {
    const Walked &walked = walkedFor(sample);
    numStates += walked.numStates;
    numResults += walked.numResults;
    for (const GensorWalk &walk : walked.walks) {
      numSteps += walk.steps.size();
      numBacktracks += walk.numBacktracks;
      numRefused += walk.numRefused;
    }
  }
  for (auto [name, count] :
       {std::pair("steps", numSteps), std::pair("states", numStates),
        std::pair("results", numResults),
        std::pair("backtracks", numBacktracks),
        std::pair("refused", numRefused),
        std::pair("programs", countRated(samples))})
    plan.statistics.push_back({name, static_cast<double>(count)});
}

/// Gives each candidate every number of strips that divides its register tile;
/// where the path knows none, or with `keepsOwn`, its own.
static StrippedCandidates withStrips(const SearchProblem &problem,
                                     CandidateSet set, bool keepsOwn) {
  ContractionAxes axes =
      ContractionAxes::forReduceAxes(problem.workload.reduceAxes());
  StrippedCandidates result;
  auto add = [&](Candidate candidate, Pair strips) {
    result.set.candidates.push_back(std::move(candidate));
    result.strips.push_back(strips);
  };
  std::vector<Candidate> candidates = std::move(set.candidates);
  result.set = std::move(set);
  result.set.candidates.clear();
  for (const Candidate &candidate : candidates) {
    const CodegenModel &path = candidate.family.path();
    const BlockTile &reg = candidate.ukernel.registerTile;
    if (keepsOwn)
      add(candidate, ownStrips);
    bool hasAny = keepsOwn;
    for (int64_t m = 1; m <= reg[axes.m]; m *= 2)
      for (int64_t n = 1; n <= reg[axes.n]; n *= 2) {
        auto schedule =
            path.withVirtualThreads(candidate.family.schedule, {m, n});
        if (!schedule)
          continue;
        Candidate stripped = candidate;
        stripped.family.schedule = *schedule;
        if (!isFeasible(problem, stripped.family))
          continue;
        stripped.resources = path.resources(problem.workload, stripped.family);
        add(std::move(stripped), {m, n});
        hasAny = true;
      }
    if (!hasAny)
      add(candidate, ownStrips);
  }
  return result;
}

namespace {
class GensorStrategy final : public RankedStrategy {
public:
  llvm::StringRef name() const override { return "gensor"; }

  OptionDecls options() const override {
    return joined({ownOptions().decls(), constructionOptions()});
  }

  llvm::Expected<std::unique_ptr<ProgramRanker>>
  makeRanker(const SearchProblem &problem,
             const SearchContext &context) const override;
};
} // namespace

llvm::Expected<std::unique_ptr<ProgramRanker>>
GensorStrategy::makeRanker(const SearchProblem &problem,
                           const SearchContext &context) const {
  if (!problem.workload.isContraction())
    return rankSinglePrograms(problem, name());
  WalkOptions own = ownOptions().read(problem.options.own);
  auto enumerate = [&](int64_t minThreads) {
    return enumerateConstructibleTiles(
        problem, RegisterTiles::Any,
        [&](const Candidate &c) { return c.resources.threads >= minThreads; });
  };
  llvm::Expected<CandidateSet> set =
      enumerate(own.scalesOut ? 1 : tuning::minGensorThreads);
  if (!set && !own.scalesOut) {
    // Small shapes have no such blocks.
    llvm::consumeError(set.takeError());
    set = enumerate(1);
  }
  if (!set)
    return set.takeError();
  StrippedCandidates candidates =
      own.hasVirtualThreads
          ? withStrips(problem, std::move(*set),
                       own.strips == StripChoice::Priced)
          : StrippedCandidates{
                *set, std::vector<Pair>(set->candidates.size(), ownStrips)};
  // The seed follows from the workload's content, not from its name.
  std::vector<int64_t> content = {own.seed};
  for (const Operand &operand : problem.workload.operands) {
    content.push_back(operand.elementBytes);
    content.push_back(static_cast<int64_t>(operand.role));
  }
  for (const Axis &axis : problem.workload.axes) {
    content.push_back(axis.range.min);
    content.push_back(axis.range.max.value_or(0));
  }
  return std::make_unique<GensorRanker>(problem, std::move(candidates), own,
                                        seedOf(content, context.seed));
}

namespace ftuner {
const SearchStrategy &gensorStrategy() {
  static const GensorStrategy strategy;
  return strategy;
}
} // namespace ftuner
