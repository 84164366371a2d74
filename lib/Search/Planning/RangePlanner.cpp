//===- RangePlanner.cpp - From ranked shapes to a plan --------------------===//
#include "FTuner/Search/Planning/RangePlanner.h"
#include "FTuner/Schedule/Alignment.h"
#include "FTuner/Search/Problem/SearchTuning.h"
#include "FTuner/Search/Ranking/ProgramMeasurements.h"
#include "FTuner/Search/Ranking/Reordering.h"
#include "FamilySelection.h"
#include "ShapeAssignment.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

using namespace ftuner;

namespace {
class RangePlanner {
public:
  explicit RangePlanner(ProgramRanker &ranker)
      : ranker(ranker), problem(ranker.problem), workload(problem.workload),
        mainAxis(workload.mainAxis()), samples(workload) {}

  llvm::Expected<Plan> run();

private:
  const KernelFamily &family(unsigned index) const {
    return ranker.table.families[index];
  }
  llvm::Error rankSamples();
  /// Keeps the best programs of a shape in the plan.
  void keepBest(const RankedShape &sample);
  llvm::Error chooseForRange(const KernelFamily &unaligned);
  /// Returns the bounds of the losses of shapes for `chooseFamilies`.
  std::vector<double> lossBounds(size_t numShapes) const;
  /// Returns whether the range is closed, and a family may be chosen for shapes
  /// beyond it.
  bool hasGeneral() const {
    const SizeRange &range = workload.axes[mainAxis].range;
    return !range.isFixed() && !range.isOpen() &&
           problem.options.maxKernels > 1;
  }
  /// Returns a shape far beyond a closed range.
  Shape generalShape() const;
  /// Returns the unaligned general family.
  llvm::Expected<KernelFamily> chooseUnalignedGeneral() const;
  /// Returns whether operands of the shape are aligned for the widest accesses
  /// of the candidates.
  bool isAligned(llvm::ArrayRef<int64_t> shape) const;
  /// Returns the families of the best programs of samples that break the
  /// alignment, without alignment requirements.
  std::vector<KernelFamily> unalignedFamilies() const;
  /// Returns the measured time of a family's program for a sample; 0 if it was
  /// not measured.
  double measuredTime(const KernelFamily &family,
                      const RankedShape &sample) const;
  /// Fills in predicted and measured times of the plan for the samples.
  void predictSamples();
  void reportSamples();
  void reportPlan();

  ProgramRanker &ranker;
  const SearchProblem &problem;
  const Workload &workload;
  unsigned mainAxis;
  RangeSamples samples;
  /// The samples with their best programs.
  std::vector<RankedShape> ranked;
  /// True if some samples break the alignment, and some do not.
  bool isMixed = false;
  /// Weighted mean over the samples of the share of the best proposed rating
  /// that the chosen families lose; if ratings are predicted times, the mean
  /// regret.
  double scoreLoss = 0;
  Plan plan;
};
} // namespace

/// Drops programs that are not worth proposing.
static void keepProposals(std::vector<RankedFamily> &programs) {
  double best = programs.front().score;
  double minScore = best - tuning::proposedLoss * std::abs(best);
  size_t count = std::min(programs.size(), tuning::minProposals);
  while (count < std::min(programs.size(), tuning::maxProposals) &&
         programs[count].score >= minScore)
    ++count;
  programs.resize(count);
}

llvm::Error RangePlanner::rankSamples() {
  ranker.prepare(samples.shapes);
  if (ProgramMeasurements *measurements = ranker.measurements())
    measurements->expectShapes(samples.shapes.size() + hasGeneral());
  for (const Shape &shape : samples.shapes) {
    llvm::Expected<RankedShape> sample = ranker.rankMeasured(shape);
    if (!sample)
      return sample.takeError();
    if (problem.options.topK > 1)
      keepBest(*sample);
    keepProposals(sample->programs);
    ranked.push_back(std::move(*sample));
  }
  return llvm::Error::success();
}

Shape RangePlanner::generalShape() const {
  Shape shape;
  for (const Axis &axis : workload.axes)
    shape.push_back(largestSize(axis));
  shape[mainAxis] = std::max(tuning::generalExtent, 4 * shape[mainAxis]);
  return shape;
}

llvm::Expected<KernelFamily> RangePlanner::chooseUnalignedGeneral() const {
  // Shapes that always take this family, since their sizes break the alignment.
  // If no sample breaks the alignment, all samples count, since the addresses
  // of their operands may break it.
  std::vector<size_t> served;
  for (auto [index, shape] : llvm::enumerate(samples.shapes))
    if (!isAligned(shape))
      served.push_back(index);
  if (served.empty())
    for (size_t i = 0; i < ranked.size(); ++i)
      served.push_back(i);
  // Parts of the best programs of some of these shapes, rated over all of them.
  std::vector<size_t> chosen;
  size_t stride = ceilDiv(served.size(), tuning::maxUnalignedShapes);
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
    if (problem.isRejected(single) || !isFeasible(problem, single))
      return;
    KernelResources resources = single.path().resources(workload, single);
    double total = 0;
    for (size_t i : chosen)
      total +=
          samples.weights[i] *
          ranker.rateMeasured(single, resources, ranked[i].shape, ranked[i]);
    if (best && total <= bestRating)
      return;
    best = single;
    bestRating = total;
  };
  for (size_t proposer : chosen)
    for (const RankedFamily &program : ranked[proposer].programs) {
      KernelFamily single = family(program.family);
      single.tiles.erase(single.tiles.begin(), single.tiles.end() - 1);
      single.balancedSms = 0;
      // The family serves any size, so it must not need a buffer that grows
      // with the size.
      single.reduceSplit = 1;
      llvm::for_each(single.path().unalignedVariants(single), visit);
    }
  if (best)
    return std::move(*best);
  // No part is feasible without vectors, so take any feasible family.
  llvm::Expected<CandidateSet> set =
      enumerateCandidates(problem, /*alignment=*/1);
  if (!set)
    return set.takeError();
  for (unsigned i = 0; i < set->candidates.size(); ++i)
    visit(set->candidates[i].family);
  if (best)
    return std::move(*best);
  return llvm::createStringError(
      "every uKernel without alignment of workload '" + workload.name +
      "' was rejected");
}

bool RangePlanner::isAligned(llvm::ArrayRef<int64_t> shape) const {
  return alignmentOf(workload, shape) >= ranker.set.alignment;
}

std::vector<KernelFamily> RangePlanner::unalignedFamilies() const {
  std::vector<KernelFamily> result;
  std::set<std::string> seen;
  auto propose = [&](const KernelFamily &scalar) {
    if (seen.insert(scalar.str()).second && !problem.isRejected(scalar) &&
        isFeasible(problem, scalar))
      result.push_back(scalar);
  };
  for (const RankedShape &sample : ranked) {
    if (isAligned(sample.shape))
      continue;
    for (const RankedFamily &program :
         llvm::ArrayRef(sample.programs).take_front(tuning::unalignedProposals))
      llvm::for_each(family(program.family)
                         .path()
                         .unalignedVariants(family(program.family)),
                     propose);
  }
  return result;
}

/// Sampled shapes have a bound, and a shape beyond the range does not. Without
/// predicted times there are no bounds, since shares of scores mean nothing.
std::vector<double> RangePlanner::lossBounds(size_t numShapes) const {
  if (!problem.costModel.predictsTime())
    return {};
  std::vector<double> bounds(numShapes,
                             std::numeric_limits<double>::infinity());
  std::fill_n(bounds.begin(), samples.weights.size(), tuning::maxLoss);
  return bounds;
}

llvm::Error RangePlanner::chooseForRange(const KernelFamily &unaligned) {
  std::vector<KernelFamily> proposed;
  llvm::DenseSet<unsigned> seen;
  auto propose = [&](unsigned index) {
    if (seen.insert(index).second)
      proposed.push_back(family(index));
  };
  for (const RankedShape &sample : ranked)
    for (const RankedFamily &program : sample.programs)
      propose(program.family);
  // Columns and their weights.
  llvm::SmallVector<const RankedShape *> columns;
  for (const RankedShape &sample : ranked)
    columns.push_back(&sample);
  std::vector<double> weights = samples.weights;
  RankedShape general;
  bool isClosed = hasGeneral();
  if (isClosed) {
    llvm::Expected<RankedShape> answer = ranker.rankMeasured(generalShape());
    if (!answer)
      return answer.takeError();
    general = std::move(*answer);
    columns.push_back(&general);
    double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    weights.push_back(tuning::generalWeight * total);
    propose(general.programs.front().family);
  }

  // Families that need alignment leave unaligned shapes to the unaligned
  // general family.
  size_t numAligned = proposed.size();
  std::vector<unsigned> chosen;
  if (isMixed) {
    llvm::append_range(proposed, unalignedFamilies());
    chosen.push_back(proposed.size());
    proposed.push_back(unaligned);
  }
  std::vector<bool> areAligned;
  for (const RankedShape *column : columns)
    areAligned.push_back(isAligned(column->shape));
  ScoreMatrix scores(proposed.size(), columns.size());
  // Rows are visited from the last one, which is the unaligned general
  // family's.
  for (size_t row = proposed.size(); row-- > 0;) {
    const KernelFamily &family = proposed[row];
    KernelResources needs = family.path().resources(workload, family);
    bool takesAll = !isMixed || family.takesAnyAlignment();
    for (auto [column, sample] : llvm::enumerate(columns)) {
      bool isServed = takesAll || areAligned[column];
      scores.at(row, column) =
          isServed ? ranker.rateMeasured(family, needs, sample->shape, *sample)
                   : scores.at(proposed.size() - 1, column);
    }
  }

  // One of the kernels is the unaligned general family's.
  chooseFamilies(scores, weights, problem.options.maxKernels - 1,
                 problem.options.minGain, lossBounds(columns.size()), chosen);
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
    // The unaligned general family joins the plan after the others.
    chosen.erase(chosen.begin());
    llvm::stable_sort(chosen, [&](unsigned a, unsigned b) {
      return (a < numAligned) > (b < numAligned);
    });
  }
  if (isClosed && !chosen.empty()) {
    // Families without slices are preferred: the buffer of slices grows with
    // the size.
    auto isSuited = [&](unsigned row) {
      return row < numAligned && proposed[row].reduceSplit == 1;
    };
    unsigned row = bestRow(columns.size() - 1);
    if (!isSuited(row)) {
      auto other = llvm::find_if(chosen, isSuited);
      row = other == chosen.end() ? chosen.front() : *other;
    }
    plan.generalFamily = llvm::find(chosen, row) - chosen.begin();
  }
  for (unsigned row : chosen)
    plan.families.push_back(proposed[row]);
  return llvm::Error::success();
}

void RangePlanner::reportSamples() {
  auto add = [&](llvm::StringRef name, double value) {
    plan.statistics.push_back({name.str(), value});
  };
  const CandidateSet &set = ranker.set;
  add("candidates_by_rules", set.numByRules);
  add("candidates_whole_warps", set.numWholeWarps);
  add("candidates_emittable", set.numEmittable);
  add("candidates_added", set.numAdded);
  if (set.numSplit > 0)
    add("candidates_split", set.numSplit);
  add("candidates", set.candidates.size());
  add("shapes", ranked.size());
  ranker.report(ranked, plan);
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
  if (const ProgramMeasurements *measurements = ranker.measurements())
    measurements->report(plan);
  const CandidateSet &set = ranker.set;
  if (set.alignment > guaranteedAlignment(workload))
    plan.remarks.push_back("sizes may break the alignment of vector accesses: "
                           "such calls take families without");
}

/// Rounds to six significant digits: more than predictions can tell, and short
/// in the text of a plan.
static double rounded(double value) {
  if (value == 0 || !std::isfinite(value))
    return value;
  double unit = std::pow(10, 5 - std::floor(std::log10(std::abs(value))));
  return std::round(value * unit) / unit;
}

double RangePlanner::measuredTime(const KernelFamily &family,
                                  const RankedShape &sample) const {
  const ProgramMeasurements *measurements = ranker.measurements();
  return measurements ? measurements->timeOf(family, sample).value_or(0) : 0;
}

void RangePlanner::keepBest(const RankedShape &sample) {
  const Shape &shape = sample.shape;
  ShapeRanking kept{shape, {}};
  std::vector<RankedFamily> programs = distinctPrograms(ranker.table, sample);
  for (const RankedFamily &rated :
       llvm::ArrayRef(programs).take_front(problem.options.topK)) {
    const KernelFamily &program = family(rated.family);
    kept.programs.push_back({program, partitionShape(program, shape),
                             rated.score,
                             rounded(-problem.predict(program, shape).score),
                             rounded(measuredTime(program, sample))});
  }
  plan.rankings.push_back(std::move(kept));
}

void RangePlanner::predictSamples() {
  auto numShown = static_cast<size_t>(shownPrograms(problem.options));
  for (const RankedShape &sample : ranked) {
    const Shape &shape = sample.shape;
    auto microseconds = [&](const KernelFamily &family) {
      return -problem.predict(family, shape).score;
    };
    ShapePrediction prediction;
    prediction.shape = shape;
    prediction.family = plan.familyFor(shape, alignmentOf(workload, shape));
    prediction.microseconds = microseconds(plan.families[prediction.family]);
    // Finds the fastest and the second program among the best ranked ones and
    // the plan's own.
    double best = prediction.microseconds;
    double next = std::numeric_limits<double>::infinity();
    for (auto [index, program] :
         llvm::enumerate(distinctPrograms(ranker.table, sample))) {
      const KernelFamily &candidate = family(program.family);
      // A slow model only predicts programs that it saw already, and programs
      // that explanations show.
      if (sample.reordered && index >= numShown &&
          !sample.reordered->isKnown(
              {&candidate, partitionShape(candidate, shape)}))
        continue;
      double time = microseconds(candidate);
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
    prediction.measuredMicroseconds =
        measuredTime(plan.families[prediction.family], sample);
    for (double *figure :
         {&prediction.microseconds, &prediction.regret, &prediction.confidence,
          &prediction.measuredMicroseconds})
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
  llvm::Expected<KernelFamily> unaligned = chooseUnalignedGeneral();
  if (!unaligned)
    return unaligned.takeError();
  if (problem.options.maxKernels > 1)
    if (llvm::Error error = chooseForRange(*unaligned))
      return error;
  size_t numChosen = plan.families.size();
  plan.unalignedGeneralFamily = numChosen;
  plan.families.push_back(std::move(*unaligned));
  ShapeAssignment assignment(ranker, samples, ranked, isMixed, plan);
  assignment.run(std::max<size_t>(numChosen, 1));
  assignment.dropIdleParts();
  removeUnusedFamilies(plan);
  predictSamples();
  reportPlan();
  return std::move(plan);
}

llvm::Expected<Plan> ftuner::planRange(ProgramRanker &ranker) {
  return RangePlanner(ranker).run();
}
