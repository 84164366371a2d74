//===- FTunerStrategy.cpp - The search of FTuner --------------------------===//
//
// Algorithms 1 and 2 of the paper: candidates → filter → programs of one or two
// uKernels, ranked by the cost model. The range is planned from the rankings of
// sampled shapes (RangePlanner.h).
//
// A cost model that predicts time covers the effects behind the filter's
// metrics (padding, waves, memory traffic) and others that they leave out
// (latency, registers, bank conflicts). So with such a model and a tight pool,
// the uKernels that it predicts to be fastest for some shapes of the range join
// the uKernels that the filter kept, and only its scores rank programs.
//
//===----------------------------------------------------------------------===//
#include "FTuner/CostModel/Sia.h"
#include "FTuner/Search/Planning/RankedStrategy.h"
#include "FTuner/Search/Problem/SearchOptions.h"
#include "FTuner/Search/Problem/SearchTuning.h"
#include "FTuner/Search/Ranking/MainAxis.h"
#include "FTuner/Search/Ranking/ProgramMeasurements.h"
#include "FTuner/Search/Ranking/Reordering.h"
#include "FTuner/Search/Strategies/Combination.h"
#include "FTuner/Search/Strategies/Filter.h"
#include "ThroughputRating.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include <algorithm>
#include <limits>
#include <map>
#include <utility>

using namespace ftuner;

namespace {
class FTunerRanker final : public ProgramRanker {
public:
  FTunerRanker(const SearchProblem &problem, CandidateSet candidates)
      : ProgramRanker(problem, std::move(candidates)),
        isExact(problem.options.pool == ProgramPool::Exact),
        isSingle(problem.options.pool == ProgramPool::Single),
        predicts(problem.costModel.predictsTime() && !isExact),
        mainAxis(mainAxisOf(problem)), filter(problem, set) {}

  void prepare(llvm::ArrayRef<Shape> shapes) override;
  llvm::Expected<RankedShape> rank(llvm::ArrayRef<int64_t> shape) override;
  double rate(const KernelFamily &family, const KernelResources &resources,
              llvm::ArrayRef<int64_t> shape,
              const RankedShape &neighbour) const override;
  bool ranksByScore() const override { return !throughput; }
  void describe(const RankedShape &ranked, ShapeReport &report) override;
  void report(llvm::ArrayRef<RankedShape> samples, Plan &plan) const override;

private:
  /// The data by which programs of a shape are rated.
  struct ShapeDemands : RankedShape::Notes {
    /// The demands of the filter on each path's uKernels.
    FilterResult filter;
    /// True if some program of the pool is tight.
    bool isTight = false;
    /// The best score in the pool.
    double best = 0;
  };
  static const ShapeDemands &demandsOf(const RankedShape &ranked) {
    return static_cast<const ShapeDemands &>(*ranked.notes);
  }
  /// Returns the best program of one uKernel of K.Filter for a shape, whatever
  /// it pads; no value if all are rejected.
  std::optional<RankedFamily> bestCandidate(const RankedShape &ranked);
  /// Returns the filter's result for a shape; results of samples are prepared.
  FilterResult filterShape(llvm::ArrayRef<int64_t> shape);
  /// Returns a score, less the penalty for the demands of a shape that the
  /// program misses.
  double rated(double score, const KernelFamily &family,
               const KernelResources &resources, llvm::ArrayRef<int64_t> shape,
               const ShapeDemands &demands) const;
  /// Returns the families of the pool of a shape, each once.
  std::vector<unsigned> poolOf(llvm::ArrayRef<Survivor> survivors,
                               llvm::ArrayRef<int64_t> shape);
  /// Adds the families of a candidate and its neighbours in height. Heights h
  /// and h + 1 cover almost every extent. One of them is in K.Filter; a pair
  /// holds its higher part's program of one uKernel, so that one family serves
  /// this extent and its neighbours.
  void addNeighbours(unsigned candidate, std::vector<unsigned> &families);
  /// Returns pairs of heights along other axes than the candidates' combine
  /// axis, if their path can combine along them, for the candidates of the best
  /// families. If rows fill the SMs badly, columns may fill them well.
  std::vector<unsigned> pairsAcross(std::vector<RankedFamily> ranking);
  /// Returns the rows that a program pads, along the axis that its path
  /// combines heights along or, in an exact pool, along the main axis, even if
  /// its path cannot combine along it.
  int64_t padded(const KernelFamily &family, const Partition &partition,
                 llvm::ArrayRef<int64_t> shape) const;
  /// Returns whether the padding is less than one row of threads (the granule
  /// of heights) or, in an exact pool, 0.
  bool isTight(const KernelFamily &family, int64_t padded) const {
    return padded < (isExact ? 1 : family.path().heightGranule(family));
  }

  /// Marks the candidates with the best scores of each shape.
  void keepPredicted(llvm::ArrayRef<Shape> shapes);
  /// Returns the scores of the families of a pool, in their order.
  std::vector<double> scorePool(llvm::ArrayRef<unsigned> pool,
                                llvm::ArrayRef<int64_t> shape);
  /// Scores the families that all pools share for a sample and those after it,
  /// if samples are ranked in turn.
  void scoreNextSamples(llvm::ArrayRef<int64_t> shape);
  /// Returns whether `keptScores` has the scores of a sample.
  bool isScored(size_t sample) const {
    return sample >= firstScored && sample < firstScored + numScored;
  }

  bool isExact, isSingle;
  /// True if only the cost model's scores rank.
  bool predicts;
  unsigned mainAxis;
  CandidateFilter filter;
  /// The rating that replaces scores with the filter of the artifact.
  std::unique_ptr<ThroughputRating> throughput;
  struct Sample {
    size_t index;
    FilterResult filtered;
  };
  std::map<Shape, Sample> prepared;
  std::vector<Shape> samples;
  /// K.Filter: candidates that the filter kept for some shape of the range.
  llvm::BitVector isKept;
  /// Families of K.Filter and their neighbours, made for the first shape that
  /// asks for them.
  std::optional<std::vector<unsigned>> keptNeighbours;
  /// Scores of `keptNeighbours` for some samples in turn (`scoreShapes`), the
  /// first of these samples, and their number.
  std::vector<double> keptScores;
  size_t firstScored = 0, numScored = 0;
  /// For each family, its number in `keptNeighbours`; none behind the last one.
  std::vector<std::optional<unsigned>> keptNumbers;
  /// The sample that was ranked last.
  std::optional<size_t> lastSample;
  /// For each family, the number of the last pool that has it.
  std::vector<unsigned> lastPool;
  unsigned numPools = 0;
  /// K.Filter for CombinSearch.
  struct Combinables {
    std::vector<unsigned> candidates;
    std::vector<CombinableUKernel> ukernels;
  };
  /// Combinables by the axis that is covered and the granule of heights along
  /// it.
  std::map<std::pair<unsigned, int64_t>, Combinables> combinables;
  /// Counts over the samples only.
  FilterCounts counts;
};
} // namespace

void FTunerRanker::prepare(llvm::ArrayRef<Shape> shapes) {
  isKept.resize(set.candidates.size());
  for (const Shape &shape : shapes) {
    FilterResult result = filter.run(shape);
    for (const Survivor &survivor : result.survivors)
      isKept.set(survivor.candidate);
    prepared.try_emplace(shape, Sample{samples.size(), std::move(result)});
    samples.push_back(shape);
  }
  counts = filter.counts;
  // Only the reading `pareto` takes further candidates.
  FilterReading reading = filter.options.reading;
  if (reading == FilterReading::Artifact)
    throughput = std::make_unique<ThroughputRating>(problem, shapes);
  if (predicts && reading == FilterReading::Pareto) {
    size_t stride = ceilDiv(shapes.size(), tuning::maxPredictedShapes);
    std::vector<Shape> seen;
    for (size_t i = 0; i < shapes.size();
         i += i < tuning::allPredictedShapes ? 1 : stride)
      seen.push_back(shapes[i]);
    seen.push_back(shapes.back());
    keepPredicted(seen);
  }
  for (unsigned candidate : isKept.set_bits()) {
    const KernelFamily &family = set.candidates[candidate].family;
    unsigned axis = isExact ? mainAxis : family.combineAxis;
    Combinables &group = combinables[{axis, table.granule(candidate)}];
    group.candidates.push_back(candidate);
    group.ukernels.push_back(
        {family.tiles.front()[axis], table.layout(candidate)});
  }
}

int64_t FTunerRanker::padded(const KernelFamily &family,
                             const Partition &partition,
                             llvm::ArrayRef<int64_t> shape) const {
  if (!isExact || family.combineAxis == mainAxis)
    return partition.padded;
  // Its parts differ only along another axis.
  return ceilBy(shape[mainAxis], family.tiles.front()[mainAxis]) -
         shape[mainAxis];
}

void FTunerRanker::keepPredicted(llvm::ArrayRef<Shape> shapes) {
  std::vector<unsigned> candidates, families;
  for (unsigned i = 0; i < set.candidates.size(); ++i)
    if (std::optional<unsigned> family = table.single(i)) {
      candidates.push_back(i);
      families.push_back(*family);
    }
  std::vector<double> scores = table.scoreShapes(families, shapes);
  std::vector<std::pair<double, unsigned>> scored(candidates.size());
  size_t count = std::min(scored.size(), tuning::predictedPerShape);
  for (size_t shape = 0; shape < shapes.size(); ++shape) {
    for (auto [row, candidate] : llvm::enumerate(candidates))
      scored[row] = {-scores[row * shapes.size() + shape], candidate};
    std::partial_sort(scored.begin(), scored.begin() + count, scored.end());
    for (size_t i = 0; i < count; ++i)
      isKept.set(scored[i].second);
  }
}

/// Number of samples for which families are scored at once: enough to read the
/// costs of each family rarely, and few enough for their scores to be at hand.
static constexpr size_t kSamplesAtOnce = 16;

void FTunerRanker::scoreNextSamples(llvm::ArrayRef<int64_t> shape) {
  auto it = prepared.find(Shape(shape));
  if (it == prepared.end()) {
    lastSample = std::nullopt;
    return;
  }
  size_t sample = it->second.index;
  std::optional<size_t> last = std::exchange(lastSample, sample);
  if (isScored(sample) || !last || sample != *last + 1)
    return;
  firstScored = sample;
  numScored = std::min(kSamplesAtOnce, samples.size() - sample);
  keptScores = table.scoreShapes(
      *keptNeighbours, llvm::ArrayRef(samples).slice(firstScored, numScored));
}

std::vector<double> FTunerRanker::scorePool(llvm::ArrayRef<unsigned> pool,
                                            llvm::ArrayRef<int64_t> shape) {
  if (!predicts || !keptNeighbours)
    return table.scoreAll(pool, shape);
  scoreNextSamples(shape);
  if (!lastSample || !isScored(*lastSample))
    return table.scoreAll(pool, shape);
  std::vector<unsigned> others;
  auto keptNumber = [&](unsigned family) -> std::optional<unsigned> {
    return family < keptNumbers.size() ? keptNumbers[family] : std::nullopt;
  };
  for (unsigned family : pool)
    if (!keptNumber(family))
      others.push_back(family);
  std::vector<double> otherScores = table.scoreAll(others, shape);
  const double *nextOther = otherScores.data();
  std::vector<double> scores;
  scores.reserve(pool.size());
  for (unsigned family : pool) {
    std::optional<unsigned> number = keptNumber(family);
    scores.push_back(
        number ? keptScores[*number * numScored + *lastSample - firstScored]
               : *nextOther++);
  }
  return scores;
}

FilterResult FTunerRanker::filterShape(llvm::ArrayRef<int64_t> shape) {
  auto it = prepared.find(Shape(shape));
  return it == prepared.end() ? filter.run(shape) : it->second.filtered;
}

void FTunerRanker::addNeighbours(unsigned candidate,
                                 std::vector<unsigned> &families) {
  auto add = [&](std::optional<unsigned> family) {
    if (family)
      families.push_back(*family);
    return family.has_value();
  };
  int64_t rows = table.rows(candidate);
  if (!add(table.pair(candidate, rows - 1)))
    add(table.single(candidate));
  // Balanced partitions make use of any two heights.
  if (predicts)
    for (int64_t lower : {rows - 2, rows - 3, 3 * rows / 4, rows / 2, rows / 4})
      add(table.pair(candidate, lower));
  if (std::optional<unsigned> higher = table.withRows(candidate, rows + 1))
    add(table.pair(*higher, rows));
}

std::vector<unsigned> FTunerRanker::poolOf(llvm::ArrayRef<Survivor> survivors,
                                           llvm::ArrayRef<int64_t> shape) {
  std::vector<unsigned> pool;
  ++numPools;
  auto add = [&](unsigned family) {
    lastPool.resize(table.families.size());
    if (std::exchange(lastPool[family], numPools) != numPools)
      pool.push_back(family);
  };
  if (isSingle) {
    auto addSingle = [&](unsigned candidate) {
      if (std::optional<unsigned> family = table.single(candidate))
        add(*family);
    };
    llvm::for_each(isKept.set_bits(), addSingle);
    for (const Survivor &survivor : survivors)
      addSingle(survivor.candidate);
    return pool;
  }
  // uProg of algorithm 2. A program that pads less than a row of threads covers
  // the next multiple of these threads exactly. A tight pool has no pairs with
  // a divisor, since the divisor needs no partner.
  Pairing pairing = isExact ? Pairing::Printed : Pairing::NoDivisors;
  for (const auto &[key, group] : combinables) {
    auto [axis, granule] = key;
    int64_t covered = isExact ? shape[axis] : ceilBy(shape[axis], granule);
    for (const PooledProgram &program :
         combinSearch(group.ukernels, covered, pairing)) {
      unsigned first = group.candidates[program.first];
      std::optional<unsigned> family;
      if (program.second)
        family =
            table.pair(group.candidates[*program.second], table.rows(first));
      else if (isExact)
        family = table.single(first);
      if (family)
        add(*family);
    }
  }
  if (isExact && !pool.empty())
    return pool;

  if (!keptNeighbours) {
    keptNeighbours.emplace();
    for (unsigned candidate : isKept.set_bits())
      addNeighbours(candidate, *keptNeighbours);
    keptNumbers.resize(table.families.size());
    llvm::erase_if(*keptNeighbours, [&](unsigned family) {
      return std::exchange(keptNumbers[family], 0u).has_value();
    });
    for (auto [number, family] : llvm::enumerate(*keptNeighbours))
      keptNumbers[family] = number;
  }
  llvm::for_each(*keptNeighbours, add);
  // All survivors of a sample are in K.Filter.
  std::vector<unsigned> others;
  for (const Survivor &survivor : survivors)
    if (!isKept.test(survivor.candidate))
      addNeighbours(survivor.candidate, others);
  llvm::for_each(others, add);
  return pool;
}

llvm::Expected<RankedShape> FTunerRanker::rank(llvm::ArrayRef<int64_t> shape) {
  FilterResult result = filterShape(shape);
  std::vector<unsigned> pool = poolOf(result.survivors, shape);
  if (pool.empty()) // All that passed were rejected.
    for (unsigned i = 0; i < set.candidates.size() && pool.empty(); ++i)
      if (std::optional<unsigned> family = table.single(i))
        pool.push_back(*family);
  if (pool.empty())
    return llvm::createStringError("every uKernel of workload '" +
                                   problem.workload.name + "' was rejected");

  auto isTightProgram = [&](unsigned index) {
    const KernelFamily &family = table.families[index];
    return isTight(family,
                   padded(family, partitionShape(family, shape), shape));
  };
  auto demands = std::make_shared<ShapeDemands>();
  demands->filter.demands = std::move(result.demands);
  demands->isTight =
      !predicts && !isSingle && llvm::any_of(pool, isTightProgram);
  if (demands->isTight)
    llvm::erase_if(pool,
                   [&](unsigned index) { return !isTightProgram(index); });
  demands->best = -std::numeric_limits<double>::infinity();
  RankedShape ranked{Shape(shape), {}, static_cast<int64_t>(pool.size())};
  std::vector<RankedFamily> &ranking = ranked.programs;
  auto add = [&](llvm::ArrayRef<unsigned> families,
                 llvm::ArrayRef<double> scores) {
    for (auto [index, score] : llvm::zip_equal(families, scores)) {
      demands->best = std::max(demands->best, score);
      ranking.push_back({index, score});
    }
  };
  add(pool, scorePool(pool, shape));
  if (predicts && !isSingle) {
    double minScore =
        demands->best + tuning::minAcrossGain * std::abs(demands->best);
    std::vector<unsigned> acrossPairs = pairsAcross(ranking);
    ranked.numRated += acrossPairs.size();
    size_t numAlong = ranking.size();
    add(acrossPairs, table.scoreAll(acrossPairs, shape));
    ranking.erase(std::remove_if(ranking.begin() + numAlong, ranking.end(),
                                 [&](const RankedFamily &program) {
                                   return program.score < minScore;
                                 }),
                  ranking.end());
  }
  for (auto &[index, score] : ranking)
    score = rated(score, table.families[index], table.resources[index], shape,
                  *demands);
  ranked.notes = std::move(demands);
  sortByScore(ranking);
  return ranked;
}

std::vector<unsigned>
FTunerRanker::pairsAcross(std::vector<RankedFamily> ranking) {
  size_t count = std::min(ranking.size(), tuning::maxAcross);
  std::partial_sort(ranking.begin(), ranking.begin() + count, ranking.end(),
                    [](const RankedFamily &a, const RankedFamily &b) {
                      return a.score > b.score;
                    });
  ranking.resize(count);
  std::vector<unsigned> pairs;
  llvm::SmallDenseSet<unsigned> seen;
  for (const RankedFamily &ranked : ranking) {
    unsigned candidate = table.candidateOf(ranked.family);
    if (!seen.insert(candidate).second)
      continue;
    for (unsigned axis : table.otherAxes(candidate)) {
      int64_t rows = table.rowsAlong(axis, candidate);
      for (int64_t lower : {rows - 1, rows - 2, 3 * rows / 4, rows / 2})
        if (std::optional<unsigned> pair =
                table.pairAlong(axis, candidate, lower))
          if (!llvm::is_contained(pairs, *pair))
            pairs.push_back(*pair);
    }
  }
  return pairs;
}

std::optional<RankedFamily>
FTunerRanker::bestCandidate(const RankedShape &ranked) {
  const Shape &shape = ranked.shape;
  ShapeDemands demands = demandsOf(ranked);
  demands.isTight = false;
  std::optional<RankedFamily> best;
  auto visit = [&](unsigned candidate) {
    std::optional<unsigned> family = table.single(candidate);
    if (!family)
      return;
    const KernelFamily &single = table.families[*family];
    double rating = rated(table.score(*family, shape), single,
                          table.resources[*family], shape, demands);
    if (ranked.reordered)
      rating = ranked.reordered->score({&single, partitionShape(single, shape)},
                                       rating);
    if (ranked.measured)
      rating = measurements()->rate(single, shape, ranked, rating, rating);
    if (!best || rating > best->score)
      best = {*family, rating};
  };
  for (const Survivor &survivor : filterShape(shape).survivors)
    visit(survivor.candidate);
  llvm::for_each(isKept.set_bits(), visit);
  return best;
}

double FTunerRanker::rate(const KernelFamily &family,
                          const KernelResources &resources,
                          llvm::ArrayRef<int64_t> shape,
                          const RankedShape &neighbour) const {
  return rated(problem.score(family, shape), family, resources, shape,
               demandsOf(neighbour));
}

double FTunerRanker::rated(double score, const KernelFamily &family,
                           const KernelResources &resources,
                           llvm::ArrayRef<int64_t> shape,
                           const ShapeDemands &demands) const {
  if (throughput)
    return throughput->rate(family, shape, score);
  if (predicts || isSingle)
    return score;
  Partition partition = partitionShape(family, shape);
  double missing = 0;
  int64_t wasted = padded(family, partition, shape);
  if (demands.isTight && !isTight(family, wasted))
    missing += static_cast<double>(wasted) /
               (shape[isExact ? mainAxis : family.combineAxis] + wasted);
  if (!isExact) {
    // Each part by the rows that it computes.
    ShapeMetrics metrics(problem.workload, shape, problem.device,
                         metricOptions().read(problem.options.own));
    Demands asked = demands.filter.demandsOf(family.path());
    int64_t counts[] = {partition.first, partition.second};
    double rows = shape[family.combineAxis] + partition.padded;
    for (unsigned part = 0; part < family.tiles.size(); ++part)
      if (counts[part] > 0)
        missing +=
            counts[part] * family.height(part) / rows *
            filter.violation(asked, metrics.ukernel(family, part), resources);
  }
  if (missing == 0)
    return score;
  return std::min(score, demands.best) - missing * std::abs(demands.best);
}

void FTunerRanker::describe(const RankedShape &ranked, ShapeReport &report) {
  filter.run(report.shape, report.stages);
  // The ranking has programs of one uKernel that is not a candidate: one height
  // of a pair, along any axis. A tight or exact pool lacks programs of
  // candidates that pad more.
  std::optional<RankedFamily> single = bestCandidate(ranked);
  if (single &&
      (!report.bestSingle || single->score > report.bestSingle->rating))
    report.bestSingle = reportRanked(*this, ranked, *single);
}

void FTunerRanker::report(llvm::ArrayRef<RankedShape> samples,
                          Plan &plan) const {
  auto add = [&](llvm::Twine name, double value) {
    plan.statistics.push_back({name.str(), value});
  };
  for (FilterStage stage : filterStages(filter.options.reading)) {
    llvm::StringRef name = filterStageName(stage);
    add("after_" + name, counts.kept[stage]);
    if (counts.relaxed[stage] == 0)
      continue;
    add("relaxed_" + name, counts.relaxed[stage]);
    plan.remarks.push_back(("filter stage " + name + " relaxed for " +
                            llvm::Twine(counts.relaxed[stage]) + " of " +
                            llvm::Twine(samples.size()) +
                            " shapes: no candidate would be left")
                               .str());
  }
  llvm::append_range(plan.remarks, mainAxisRemarks(problem, set));
  add("ukernels", isKept.count());
  add("programs", countRated(samples));
}

namespace {
class FTunerStrategy final : public RankedStrategy {
public:
  llvm::StringRef name() const override { return "ftuner"; }

  OptionDecls options() const override {
    // The filter limits candidates by the published sum.
    return joined({tileRuleOptions().decls(), candidateOptions().decls(),
                   zetaOptions().decls(), filterOptions().decls(),
                   siaOptions().decls(), metricOptions().decls()});
  }

  std::vector<std::string>
  unreadOptions(const OptionValues &given) const override {
    return unreadFilterOptions(given);
  }

  llvm::Expected<std::unique_ptr<ProgramRanker>>
  makeRanker(const SearchProblem &problem,
             const SearchContext &) const override {
    llvm::Expected<CandidateSet> set = enumerateCandidates(problem);
    if (!set)
      return set.takeError();
    return std::make_unique<FTunerRanker>(problem, std::move(*set));
  }
};
} // namespace

namespace ftuner {
const SearchStrategy &ftunerStrategy() {
  static const FTunerStrategy strategy;
  return strategy;
}
} // namespace ftuner
