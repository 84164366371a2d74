//===- RangePlanner.cpp - From ranked shapes to a plan --------------------===//
#include "RangePlanner.h"
#include "FamilySelection.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

using namespace ftuner;

/// Most sizes of the main axis that are ranked; families for sizes between them
/// come from their neighbours.
static constexpr int64_t maxRankedSizes = 256;
/// The same where other dynamic axes multiply the shapes.
static constexpr int64_t maxRankedShapes = 384;
/// Fewest of them in one cell, however many cells there are.
static constexpr int64_t minRankedSizes = 8;
/// Samples of a main axis with too many sizes to enumerate, for all cells of
/// the other axes together.
static constexpr int64_t maxDispatchSamples = 2048;
/// The same for one cell.
static constexpr int64_t maxDispatchSamplesPerCell = 768;
/// Fewest samples of one cell, however many cells there are.
static constexpr int64_t minDispatchSamplesPerCell = 64;
/// Best programs of a shape whose families may be chosen: the first ones, and
/// further ones whose scores lose less than a share of the best.
static constexpr size_t leastProposals = 12;
static constexpr size_t mostProposals = 1024;
static constexpr double proposedLoss = 0.15;
/// Weight of a shape beyond a closed range, as a share of all in the range.
static constexpr double generalWeight = 0.01;
/// Best programs of a shape that breaks the alignment which are proposed as
/// families without.
static constexpr size_t unalignedProposals = 32;
/// Shapes that the fallback family is rated on.
static constexpr int64_t maxFallbackShapes = 12;
/// Reduce tiles of families without alignment beside those of the best
/// programs: less to copy in a step.
static constexpr int64_t scalarReduceTiles[] = {16, 8};
/// Extent far beyond a range, for the general family.
static constexpr int64_t generalExtent = 4096;

namespace {
class RangePlanner {
public:
  explicit RangePlanner(ProgramRanker &ranker)
      : ranker(ranker), problem(ranker.problem), workload(problem.workload),
        mainAxis(workload.mainAxis()), samples(workload), cells(samples.cells) {
  }

  llvm::Expected<Plan> run();

private:
  const KernelFamily &family(unsigned index) const {
    return ranker.table.families[index];
  }
  llvm::Error rankSamples();
  /// Keeps the best programs of a shape in the plan.
  void keepBest(const Shape &shape, llvm::ArrayRef<RankedFamily> ranking);
  llvm::Error chooseForRange(const KernelFamily &fallback);
  /// A shape far beyond a closed range.
  Shape generalShape() const;
  /// A family without alignment requirements.
  llvm::Expected<KernelFamily> chooseFallback() const;
  /// Whether the sizes allow the widest vectors that some sizes do.
  bool isAligned(llvm::ArrayRef<int64_t> shape) const;
  /// The best programs of samples that break the alignment, as families without
  /// alignment requirements.
  std::vector<KernelFamily> unalignedFamilies() const;
  /// Of families of the plan, the best for a shape of a cell.
  unsigned bestFamily(llvm::ArrayRef<unsigned> candidates, size_t cell,
                      int64_t size) const;
  /// Sends every shape to one of the first `numFamilies` of the plan, and
  /// unaligned operands, where sizes cause them, to one of those without
  /// alignment requirements.
  void assignShapes(size_t numFamilies);
  /// Sends every shape to one of some families of the plan. If told, only sizes
  /// that are aligned, or that are not, count where a cell has such.
  std::vector<DispatchEntry> assign(llvm::ArrayRef<unsigned> candidates,
                                    llvm::ArrayRef<SizeSample> sizes,
                                    std::optional<bool> areAligned) const;
  /// Entries of one cell along the main axis.
  std::vector<DispatchEntry> assignCell(llvm::ArrayRef<unsigned> candidates,
                                        size_t cell,
                                        llvm::ArrayRef<SizeSample> sizes) const;
  /// Replaces pairs of which only one part runs, where that is certain.
  void dropIdleParts();
  void removeUnusedFamilies();
  /// Predicted times of the plan for the samples.
  void predictSamples();
  void reportSamples();
  void reportPlan();

  ProgramRanker &ranker;
  const SearchProblem &problem;
  const Workload &workload;
  unsigned mainAxis;
  RangeSamples samples;
  llvm::ArrayRef<ShapeCell> cells;
  /// The best programs of each sample.
  std::vector<std::vector<RankedFamily>> rankings;
  /// Whether some samples break the alignment, and some do not.
  bool isMixed = false;
  /// Of the plan's families, while entries are assigned.
  std::vector<KernelResources> familyResources;
  bool isExhaustive = false;
  /// Share of the best proposed ratings that the chosen families lose, as the
  /// weighted mean over the samples; of predicted times, the mean regret.
  double scoreLoss = 0;
  Plan plan;
};
} // namespace

RangeSamples::RangeSamples(const Workload &workload) {
  unsigned mainAxis = workload.mainAxis();
  cells = shapeCells(workload, mainAxis);
  int64_t limit = std::clamp<int64_t>(maxRankedShapes / cells.size(),
                                      minRankedSizes, maxRankedSizes);
  sizes = sampleSizes(workload.axes[mainAxis], limit);
  for (const SizeSample &size : sizes)
    for (const ShapeCell &cell : cells) {
      shapes.push_back(shapeAt(workload, cell, mainAxis, size.size));
      weights.push_back(size.weight * cell.weight);
    }
}

/// The ranking without families that run the same program as one before: they
/// differ in a part that has no blocks.
static std::vector<RankedFamily>
distinctPrograms(const FamilyTable &table, llvm::ArrayRef<RankedFamily> ranking,
                 llvm::ArrayRef<int64_t> shape) {
  std::vector<RankedFamily> result;
  std::set<std::string> seen;
  for (const RankedFamily &ranked : ranking) {
    const KernelFamily &family = table.families[ranked.family];
    Cover cover = coverShape(family, shape);
    if (seen.insert(runningParts(family, cover).str()).second)
      result.push_back(ranked);
  }
  return result;
}

/// Drops programs that are not worth proposing.
static void keepProposals(std::vector<RankedFamily> &ranking) {
  double best = ranking.front().score;
  double least = best - proposedLoss * std::abs(best);
  size_t count = std::min(ranking.size(), leastProposals);
  while (count < std::min(ranking.size(), mostProposals) &&
         ranking[count].score >= least)
    ++count;
  ranking.resize(count);
}

llvm::Error RangePlanner::rankSamples() {
  ranker.prepare(samples.shapes);
  for (const Shape &shape : samples.shapes) {
    auto ranking = ranker.rank(shape);
    if (!ranking)
      return ranking.takeError();
    if (problem.options.topK > 1)
      keepBest(shape, *ranking);
    keepProposals(*ranking);
    rankings.push_back(std::move(*ranking));
  }
  return llvm::Error::success();
}

Shape RangePlanner::generalShape() const {
  Shape shape;
  for (const Axis &axis : workload.axes)
    shape.push_back(largestSize(axis));
  shape[mainAxis] = std::max(generalExtent, 4 * shape[mainAxis]);
  return shape;
}

/// Visits the family without alignment requirements, then with less to copy in
/// a step.
static void
forEachScalar(KernelFamily family,
              llvm::function_ref<void(const KernelFamily &)> visit) {
  family.vectorWidth = 1;
  visit(family);
  for (int64_t tile : scalarReduceTiles)
    if (tile < family.parts.front().smemTile[Workload::kK]) {
      for (UKernel &part : family.parts)
        part.smemTile[Workload::kK] = tile;
      visit(family);
    }
}

llvm::Expected<KernelFamily> RangePlanner::chooseFallback() const {
  // Shapes that always take this family, for their sizes break the alignment;
  // without such, all: their operands may.
  std::vector<size_t> served;
  for (auto [index, shape] : llvm::enumerate(samples.shapes))
    if (problem.codegen.vectorWidth(workload, shape) == 1)
      served.push_back(index);
  if (served.empty())
    for (size_t i = 0; i < rankings.size(); ++i)
      served.push_back(i);
  // Parts of the best programs of some of these, rated over them.
  std::vector<size_t> chosen;
  size_t stride = ceilDiv(served.size(), maxFallbackShapes);
  for (size_t i = 0; i < served.size(); i += stride)
    chosen.push_back(served[i]);
  chosen.push_back(served.back());

  std::optional<KernelFamily> best;
  double bestRating = 0;
  std::vector<KernelFamily> seen;
  auto visit = [&](const KernelFamily &single) {
    if (llvm::is_contained(seen, single))
      return;
    seen.push_back(single);
    if (problem.isRejected(single) || !isLegal(problem, single))
      return;
    KernelResources resources = problem.codegen.resources(workload, single);
    double total = 0;
    for (size_t i : chosen)
      total += samples.weights[i] *
               ranker.rate(single, resources, samples.shapes[i], i);
    if (best && total <= bestRating)
      return;
    best = single;
    bestRating = total;
  };
  for (size_t proposer : chosen)
    for (const RankedFamily &ranked : rankings[proposer]) {
      KernelFamily single = family(ranked.family);
      single.parts.erase(single.parts.begin(), single.parts.end() - 1);
      single.balancedSms = 0;
      forEachScalar(std::move(single), visit);
    }
  if (best)
    return std::move(*best);
  // None of them is legal without vectors: any that is.
  llvm::Expected<CandidateSet> set = enumerateCandidates(problem, 1);
  if (!set)
    return set.takeError();
  for (unsigned i = 0; i < set->candidates.size(); ++i)
    visit(set->single(i));
  if (best)
    return std::move(*best);
  return llvm::createStringError(
      "every uKernel without alignment of workload '" + workload.name +
      "' was rejected");
}

bool RangePlanner::isAligned(llvm::ArrayRef<int64_t> shape) const {
  return problem.codegen.vectorWidth(workload, shape) >=
         ranker.table.set.prototype.vectorWidth;
}

std::vector<KernelFamily> RangePlanner::unalignedFamilies() const {
  std::vector<KernelFamily> result;
  std::set<std::string> seen;
  auto propose = [&](const KernelFamily &scalar) {
    if (seen.insert(scalar.str()).second && !problem.isRejected(scalar) &&
        isLegal(problem, scalar))
      result.push_back(scalar);
  };
  for (auto [shape, ranking] : llvm::zip_equal(samples.shapes, rankings)) {
    if (isAligned(shape))
      continue;
    for (const RankedFamily &ranked :
         llvm::ArrayRef(ranking).take_front(unalignedProposals))
      forEachScalar(family(ranked.family), propose);
  }
  return result;
}

llvm::Error RangePlanner::chooseForRange(const KernelFamily &fallback) {
  std::vector<KernelFamily> proposed;
  llvm::DenseSet<unsigned> seen;
  auto propose = [&](unsigned index) {
    if (seen.insert(index).second)
      proposed.push_back(family(index));
  };
  for (llvm::ArrayRef<RankedFamily> ranking : rankings)
    for (const RankedFamily &ranked : ranking)
      propose(ranked.family);
  // Shapes and weights of the columns.
  std::vector<Shape> shapes = samples.shapes;
  std::vector<double> weights = samples.weights;
  const SizeRange &range = workload.axes[mainAxis].range;
  bool isClosed = !range.isFixed() && !range.isOpen();
  if (isClosed) {
    shapes.push_back(generalShape());
    double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    weights.push_back(generalWeight * total);
    auto ranking = ranker.rank(shapes.back());
    if (!ranking)
      return ranking.takeError();
    propose(ranking->front().family);
  }

  // Families that want alignment leave other shapes to the fallback.
  size_t numAligned = proposed.size();
  std::vector<unsigned> chosen;
  if (isMixed) {
    llvm::append_range(proposed, unalignedFamilies());
    chosen.push_back(proposed.size());
    proposed.push_back(fallback);
  }
  std::vector<bool> areAligned;
  for (const Shape &shape : shapes)
    areAligned.push_back(isAligned(shape));
  ScoreMatrix scores(proposed.size(), shapes.size());
  // From the last row on, that of the fallback.
  for (size_t row = proposed.size(); row-- > 0;) {
    KernelResources needs = problem.codegen.resources(workload, proposed[row]);
    for (auto [column, shape] : llvm::enumerate(shapes)) {
      bool isServed = !isMixed || row >= numAligned || areAligned[column];
      scores.at(row, column) =
          isServed ? ranker.rate(proposed[row], needs, shape, column)
                   : scores.at(proposed.size() - 1, column);
    }
  }

  // One kernel is the fallback.
  chooseFamilies(scores, weights, problem.options.maxKernels - 1, chosen);
  auto bestRow = [&](size_t column) {
    return *llvm::max_element(chosen, [&](unsigned a, unsigned b) {
      return scores.at(a, column) < scores.at(b, column);
    });
  };
  double sum = 0, total = 0;
  for (auto [column, weight] : llvm::enumerate(samples.weights)) {
    sum -= weight * scores.at(bestRow(column), column);
    total += weight;
  }
  scoreLoss = sum / total;
  if (isMixed) {
    // The fallback joins the plan behind the others.
    chosen.erase(chosen.begin());
    llvm::stable_sort(chosen, [&](unsigned a, unsigned b) {
      return (a < numAligned) > (b < numAligned);
    });
  }
  if (isClosed && !chosen.empty()) {
    unsigned row = bestRow(shapes.size() - 1);
    if (row >= numAligned)
      row = chosen.front();
    plan.generalFamily = llvm::find(chosen, row) - chosen.begin();
  }
  for (unsigned row : chosen)
    plan.families.push_back(proposed[row]);
  return llvm::Error::success();
}

unsigned RangePlanner::bestFamily(llvm::ArrayRef<unsigned> candidates,
                                  size_t cell, int64_t size) const {
  // Sizes between the ranked ones belong to the sample below.
  auto next = llvm::upper_bound(samples.sizes, size,
                                [](int64_t value, const SizeSample &sample) {
                                  return value < sample.size;
                                });
  size_t row = std::max<ptrdiff_t>(next - samples.sizes.begin() - 1, 0);
  Shape shape = shapeAt(workload, cells[cell], mainAxis, size);
  unsigned best = candidates.front();
  double bestRating = -std::numeric_limits<double>::infinity();
  for (unsigned family : candidates) {
    double rating = ranker.rate(plan.families[family], familyResources[family],
                                shape, row * cells.size() + cell);
    if (rating <= bestRating)
      continue;
    best = family;
    bestRating = rating;
  }
  return best;
}

std::vector<DispatchEntry>
RangePlanner::assignCell(llvm::ArrayRef<unsigned> candidates, size_t cell,
                         llvm::ArrayRef<SizeSample> sizes) const {
  const Axis &axis = workload.axes[mainAxis];
  std::vector<DispatchEntry> entries;
  for (auto [index, sample] : llvm::enumerate(sizes)) {
    unsigned best = bestFamily(candidates, cell, sample.size);
    std::optional<int64_t> end = axis.range.max;
    if (index + 1 < sizes.size())
      end = sizes[index + 1].size - 1;
    if (!entries.empty() && entries.back().family == best) {
      entries.back().box[mainAxis].max = end;
      continue;
    }
    DispatchEntry entry{cells[cell].box, best};
    entry.box[mainAxis] = {entries.empty() ? axis.range.min : sample.size, end,
                           1};
    entries.push_back(std::move(entry));
  }
  return entries;
}

/// Whether two lists send the sizes of the main axis to the same families.
static bool agreeAlong(unsigned axis, llvm::ArrayRef<DispatchEntry> a,
                       llvm::ArrayRef<DispatchEntry> b) {
  return llvm::equal(a, b, [&](const DispatchEntry &x, const DispatchEntry &y) {
    return x.family == y.family && x.box[axis].min == y.box[axis].min &&
           x.box[axis].max == y.box[axis].max;
  });
}

void RangePlanner::assignShapes(size_t numFamilies) {
  const Axis &axis = workload.axes[mainAxis];
  std::optional<int64_t> count = axis.range.count();
  isExhaustive = count && *count <= maxEnumeratedSizes && cells.size() == 1;
  int64_t limit =
      std::clamp<int64_t>(maxDispatchSamples / cells.size(),
                          minDispatchSamplesPerCell, maxDispatchSamplesPerCell);
  std::vector<SizeSample> sizes =
      sampleSizes(axis, isExhaustive ? maxEnumeratedSizes : limit);

  for (const KernelFamily &family : plan.families)
    familyResources.push_back(problem.codegen.resources(workload, family));
  std::vector<unsigned> candidates(numFamilies);
  std::iota(candidates.begin(), candidates.end(), 0);
  auto assignAligned = [&](std::optional<bool> areAligned) {
    plan.entries = assign(candidates, sizes, areAligned);
    // Beyond an open range lie only sizes below its least.
    if (axis.range.isFixed() || axis.range.isOpen())
      plan.generalFamily = plan.entries.front().family;
  };
  if (!isMixed)
    return assignAligned(std::nullopt);
  assignAligned(true);
  if (plan.alignedWidth() == 1) // Of which all operands are.
    return assignAligned(std::nullopt);
  candidates.clear();
  for (auto [index, family] : llvm::enumerate(plan.families))
    if (family.vectorWidth == 1)
      candidates.push_back(index);
  if (candidates.size() > 1)
    plan.unalignedEntries = assign(candidates, sizes, false);
}

std::vector<DispatchEntry>
RangePlanner::assign(llvm::ArrayRef<unsigned> candidates,
                     llvm::ArrayRef<SizeSample> sizes,
                     std::optional<bool> areAligned) const {
  std::vector<std::vector<DispatchEntry>> byCell;
  for (size_t cell = 0; cell < cells.size(); ++cell) {
    std::vector<SizeSample> counting;
    if (areAligned)
      llvm::copy_if(sizes, std::back_inserter(counting),
                    [&](const SizeSample &sample) {
                      return isAligned(shapeAt(workload, cells[cell], mainAxis,
                                               sample.size)) == *areAligned;
                    });
    byCell.push_back(assignCell(
        candidates, cell, counting.empty() ? sizes : llvm::ArrayRef(counting)));
  }
  bool decidesAlone = llvm::all_of(byCell, [&](const auto &entries) {
    return agreeAlong(mainAxis, entries, byCell.front());
  });
  if (decidesAlone) {
    // The class of a shape is a function of one size.
    byCell.resize(1);
    for (DispatchEntry &entry : byCell.front())
      for (unsigned other = 0; other < entry.box.size(); ++other)
        if (other != mainAxis && workload.axes[other].isDynamic())
          entry.box[other] = {0, std::nullopt, 1};
  }
  std::vector<DispatchEntry> all;
  for (const std::vector<DispatchEntry> &entries : byCell)
    llvm::append_range(all, entries);
  return all;
}

void RangePlanner::dropIdleParts() {
  if (!isExhaustive || mainAxis != ranker.table.set.prototype.combineAxis)
    return;
  // Blocks of each part over all sizes.
  std::vector<Cover> blocks(plan.families.size());
  for (llvm::ArrayRef<DispatchEntry> entries :
       {llvm::ArrayRef(plan.entries), llvm::ArrayRef(plan.unalignedEntries)}) {
    const DispatchEntry *entry = entries.data();
    for (const SizeSample &sample :
         sampleSizes(workload.axes[mainAxis], maxEnumeratedSizes)) {
      if (entries.empty())
        break;
      while (*entry->box[mainAxis].max < sample.size)
        ++entry;
      Cover cover =
          coverShape(plan.families[entry->family],
                     shapeAt(workload, cells.front(), mainAxis, sample.size));
      blocks[entry->family].first += cover.first;
      blocks[entry->family].second += cover.second;
    }
  }
  for (auto [index, family] : llvm::enumerate(plan.families)) {
    if (blocks[index].blocks() == 0 || index == plan.generalFamily)
      continue;
    KernelFamily running = runningParts(family, blocks[index]);
    if (!problem.isRejected(running))
      family = std::move(running);
  }
}

void RangePlanner::removeUnusedFamilies() {
  std::vector<unsigned> uses(plan.families.size(), 0);
  ++uses[plan.generalFamily];
  ++uses[plan.fallbackFamily];
  for (const DispatchEntry &entry :
       llvm::concat<const DispatchEntry>(plan.entries, plan.unalignedEntries))
    ++uses[entry.family];
  std::vector<unsigned> newIndex(plan.families.size(), 0);
  std::vector<KernelFamily> kept;
  for (unsigned i = 0; i < plan.families.size(); ++i) {
    if (!uses[i])
      continue;
    newIndex[i] = llvm::find(kept, plan.families[i]) - kept.begin();
    if (newIndex[i] == kept.size())
      kept.push_back(plan.families[i]);
  }
  plan.families = std::move(kept);
  plan.generalFamily = newIndex[plan.generalFamily];
  plan.fallbackFamily = newIndex[plan.fallbackFamily];
  for (DispatchEntry &entry :
       llvm::concat<DispatchEntry>(plan.entries, plan.unalignedEntries))
    entry.family = newIndex[entry.family];
}

void RangePlanner::reportSamples() {
  auto add = [&](llvm::StringRef name, double value) {
    plan.statistics.push_back({name.str(), value});
  };
  const CandidateSet &set = ranker.table.set;
  add("candidates_by_rules", set.numByRules);
  add("candidates_whole_warps", set.numWholeWarps);
  add("candidates_emittable", set.numEmittable);
  add("candidates_added", set.numAdded);
  add("candidates", set.candidates.size());
  add("shapes", rankings.size());
  ranker.report(plan, rankings.size());
}

void RangePlanner::reportPlan() {
  plan.statistics.push_back({"families", double(plan.families.size())});
  plan.statistics.push_back({"score_loss", scoreLoss});
  double sum = 0, worst = 0, total = 0;
  for (auto [prediction, weight] :
       llvm::zip_equal(plan.predictions, samples.weights)) {
    sum += weight * prediction.regret;
    worst = std::max(worst, prediction.regret);
    total += weight;
  }
  plan.statistics.push_back({"mean_regret", sum / total});
  plan.statistics.push_back({"worst_regret", worst});
  const CandidateSet &set = ranker.table.set;
  if (set.prototype.vectorWidth >
      problem.codegen.guaranteedVectorWidth(workload))
    plan.remarks.push_back("sizes may break the alignment of vector accesses: "
                           "such calls take families without");
}

/// Six significant digits: more than predictions can say, and short in the text
/// of a plan.
static double rounded(double value) {
  if (value == 0 || !std::isfinite(value))
    return value;
  double unit = std::pow(10, 5 - std::floor(std::log10(std::abs(value))));
  return std::round(value * unit) / unit;
}

void RangePlanner::keepBest(const Shape &shape,
                            llvm::ArrayRef<RankedFamily> ranking) {
  ShapeRanking kept{shape, {}};
  std::vector<RankedFamily> programs =
      distinctPrograms(ranker.table, ranking, shape);
  for (const RankedFamily &ranked :
       llvm::ArrayRef(programs).take_front(problem.options.topK)) {
    const KernelFamily &program = family(ranked.family);
    kept.programs.push_back({program, coverShape(program, shape), ranked.score,
                             rounded(-problem.predict(program, shape).score)});
  }
  plan.rankings.push_back(std::move(kept));
}

void RangePlanner::predictSamples() {
  for (auto [sample, shape] : llvm::enumerate(samples.shapes)) {
    auto microseconds = [&, &shape = shape](const KernelFamily &family) {
      return -problem.predict(family, shape).score;
    };
    ShapePrediction prediction;
    prediction.shape = shape;
    prediction.family =
        plan.familyFor(shape, problem.codegen.vectorWidth(workload, shape));
    prediction.microseconds = microseconds(plan.families[prediction.family]);
    // The fastest and the next one of the programs that were ranked best, and
    // the plan's own.
    double best = prediction.microseconds;
    double next = std::numeric_limits<double>::infinity();
    for (const RankedFamily &ranked :
         distinctPrograms(ranker.table, rankings[sample], shape)) {
      double time = microseconds(family(ranked.family));
      if (time == best) // Most often the plan's own program.
        continue;
      next = std::min(next, std::max(time, best));
      best = std::min(best, time);
    }
    prediction.regret = prediction.microseconds / best - 1;
    prediction.confidence = problem.predictor()
                                .confidence(-best, -next)
                                .value_or(ChoiceConfidence())
                                .probability;
    for (double *figure :
         {&prediction.microseconds, &prediction.regret, &prediction.confidence})
      *figure = rounded(*figure);
    plan.predictions.push_back(std::move(prediction));
  }
}

llvm::Expected<Plan> RangePlanner::run() {
  if (llvm::Error error = rankSamples())
    return error;
  reportSamples();
  size_t numAligned = llvm::count_if(
      samples.shapes, [&](const Shape &shape) { return isAligned(shape); });
  isMixed = numAligned > 0 && numAligned < samples.shapes.size();
  llvm::Expected<KernelFamily> fallback = chooseFallback();
  if (!fallback)
    return fallback.takeError();
  if (problem.options.maxKernels > 1)
    if (llvm::Error error = chooseForRange(*fallback))
      return error;
  size_t numChosen = plan.families.size();
  plan.fallbackFamily = numChosen;
  plan.families.push_back(std::move(*fallback));
  assignShapes(std::max<size_t>(numChosen, 1));

  dropIdleParts();
  removeUnusedFamilies();
  predictSamples();
  reportPlan();
  return std::move(plan);
}

llvm::Expected<Plan> ftuner::planRange(ProgramRanker &ranker) {
  return RangePlanner(ranker).run();
}

ReportedProgram ftuner::reportProgram(const SearchProblem &problem,
                                      const KernelFamily &family,
                                      llvm::ArrayRef<int64_t> shape) {
  ReportedProgram program;
  program.family = family;
  program.cover = coverShape(family, shape);
  program.metrics = programMetrics(problem.workload, shape,
                                   {&family, program.cover}, problem.device);
  program.score = problem.evaluate(family, shape);
  program.predicted = problem.predict(family, shape);
  program.rating = program.score.score;
  return program;
}

/// Fills the programs of a report from a ranking, best first: the best
/// `options.topK`, the best single one, and how many there are of each kind.
static void reportRanking(const ProgramRanker &ranker,
                          llvm::ArrayRef<RankedFamily> ranking,
                          ShapeReport &report) {
  const SearchProblem &problem = ranker.problem;
  for (const RankedFamily &ranked :
       distinctPrograms(ranker.table, ranking, report.shape)) {
    const KernelFamily &family = ranker.table.families[ranked.family];
    Cover cover = coverShape(family, report.shape);
    bool isPair = cover.first > 0 && cover.second > 0;
    ++(isPair ? report.pairPrograms : report.singlePrograms);
    bool isTop =
        static_cast<int64_t>(report.programs.size()) < problem.options.topK;
    bool isBestSingle = !isPair && !report.bestSingle;
    if (!isTop && !isBestSingle)
      continue;
    ReportedProgram program = reportProgram(problem, family, report.shape);
    program.rating = ranked.score;
    if (isBestSingle)
      report.bestSingle = program;
    if (isTop)
      report.programs.push_back(std::move(program));
  }
}

void ftuner::sortByScore(std::vector<RankedFamily> &ranking) {
  llvm::stable_sort(ranking, [](const RankedFamily &a, const RankedFamily &b) {
    return a.score > b.score;
  });
}

llvm::Expected<std::vector<ShapeReport>>
ftuner::reportShapes(ProgramRanker &ranker, llvm::ArrayRef<Shape> shapes) {
  ranker.prepare(RangeSamples(ranker.problem.workload).shapes);
  std::vector<ShapeReport> reports;
  for (const Shape &shape : shapes) {
    auto ranking = ranker.rank(shape);
    if (!ranking)
      return ranking.takeError();
    ShapeReport &report = reports.emplace_back();
    report.shape = shape;
    report.candidates = ranker.table.set.candidates.size();
    reportRanking(ranker, *ranking, report);
    ranker.describe(report);
  }
  return reports;
}
