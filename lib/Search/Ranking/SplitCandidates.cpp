//===- SplitCandidates.cpp - Candidates with split-K slices ---------------===//
//
// Slices give idle SMs work if a product, or a reduction of rows, has few
// blocks and a long reduce axis. They cost one or more further kernels and the
// traffic of their sums, both of which the cost model prices. So they are tried
// for shapes whose blocks without slices fill less than about one wave, and
// whose kernel takes clearly longer than the second kernel would.
//
// Slices within a block (`CodegenModel::slicedVariants`) cost no second kernel.
// They give few blocks more threads, which copy more at once. They are tried if
// not every SM has a block, and if a path that has such blocks is the fastest
// one without slices.
//
//===----------------------------------------------------------------------===//
#include "SplitCandidates.h"
#include "FTuner/Schedule/Grid.h"
#include "FTuner/Search/Problem/SearchTuning.h"
#include "FTuner/Workload/RowReduction.h"
#include "FTuner/Workload/Sampling.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <deque>
#include <map>
#include <tuple>
#include <vector>

using namespace ftuner;

/// Split-K factors. From one factor to the next, slices get shorter by a
/// quarter to a half.
static constexpr int64_t kFactors[] = {2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32};
/// Split-K factors of rows, whose slices have whole slots and segments.
static constexpr int64_t kRowFactors[] = {2,  4,   8,   16,  32,
                                          64, 128, 256, 512, 1024};
/// Minimum time of a kernel as a multiple of the cost of a second kernel.
/// FTuner's own took 1.3 µs for 16 rows and 3.5 for 512 on an H200, by the
/// price 3 and more; a slower kernel loses little by a wrong price
/// (benchmarks/results/h200-2026-11-26-2).
static constexpr double kMinTime = 3;
/// Like kMinTime, for rows, where slices cost only the later launches; their
/// number is part of the score of a choice.
static constexpr double kMinRowsTime = 1;

/// Maximum time without slices within blocks, as a multiple of the fastest
/// candidate's: such slices hardly double the speed.
static constexpr double kMaxTimeOfSliced = 2;

namespace {
/// A candidate with slices, for one shape.
struct SplitChoice {
  double score;
  unsigned candidate;
  /// Split-K factor of the candidate; 1 for slices within its blocks.
  int64_t split;
  /// The candidate with slices within its blocks.
  const KernelFamily *sliced;
};

/// Finds candidates with slices for many shapes. Scores are computed for all
/// shapes of one family before the next family, whose costs are then at hand.
class SplitFinder {
public:
  SplitFinder(const SearchProblem &problem, const CandidateSet &set,
              llvm::ArrayRef<Shape> shapes)
      : problem(problem), set(set),
        constants(problem.options.cost.calibration.constants), shapes(shapes) {}

  /// Notes the best choices for each shape, if slices save time.
  void run();
  /// Families with slices, by candidate, split-K factor, and schedule with the
  /// step along the reduce axis.
  using Key = std::tuple<unsigned, int64_t, std::vector<int64_t>>;
  std::map<Key, KernelFamily> chosen;

private:
  /// A shape, and its fastest candidate, for which slices are tried.
  struct Question {
    const Shape *shape;
    const KernelFamily *fastest;
    /// Score of the fastest candidate.
    double best;
    /// The shape's choices.
    std::vector<SplitChoice> *choices;
  };

  bool isWorthLooking(const KernelFamily &best, double score) const;
  /// Returns whether the family has fewer blocks than `waves` for each SM.
  bool hasFewBlocks(const KernelFamily &family, const Shape &shape,
                    int64_t waves) const {
    return blocksOf(family, shape) < waves * problem.device.smCount;
  }
  /// Returns the scores of a family for shapes.
  llvm::ArrayRef<double> scoreFor(const KernelFamily &family,
                                  llvm::ArrayRef<const Shape *> scored);
  /// Adds choices of a candidate with slices of several blocks.
  void addSplit(unsigned index, llvm::ArrayRef<Question> questions);
  /// Adds choices of a candidate with slices within its blocks, for shapes
  /// whose fastest candidate is of its path.
  void addSliced(unsigned index, llvm::ArrayRef<Question> questions);
  /// Adds the best choices of a shape to `chosen`.
  void take(std::vector<SplitChoice> &choices);
  KernelFamily familyOf(const SplitChoice &choice) const;
  int64_t blocksOf(const KernelFamily &family, const Shape &shape) const {
    NumberArithmetic math;
    return launchOf(math, gridOf(family), llvm::ArrayRef<int64_t>(shape))
        .blocks;
  }

  const SearchProblem &problem;
  const CandidateSet &set;
  const LatencyConstants &constants;
  llvm::ArrayRef<Shape> shapes;
  /// Candidates with slices within their blocks that choices refer to.
  std::deque<KernelFamily> variants;
  // Arguments and results of the evaluator.
  std::vector<Program> programs;
  std::vector<llvm::ArrayRef<int64_t>> programShapes;
  std::vector<double> scores;
};
} // namespace

bool SplitFinder::isWorthLooking(const KernelFamily &best, double score) const {
  double microseconds = -score - constants.launch;
  double minTime = best.path().sharesOutSlices() ? kMinRowsTime : kMinTime;
  return microseconds > minTime * constants.secondKernel;
}

llvm::ArrayRef<double>
SplitFinder::scoreFor(const KernelFamily &family,
                      llvm::ArrayRef<const Shape *> scored) {
  programs.clear();
  programShapes.clear();
  for (const Shape *shape : scored) {
    programs.push_back({&family, partitionShape(family, *shape)});
    programShapes.push_back(*shape);
  }
  scores.resize(scored.size());
  problem.rankingEvaluator().scoreEach(programs, programShapes, scores);
  return scores;
}

void SplitFinder::run() {
  auto all = llvm::to_vector(
      llvm::map_range(shapes, [](const Shape &shape) { return &shape; }));
  // Scores are negated times.
  std::vector<double> best(shapes.size());
  std::vector<const KernelFamily *> fastest(shapes.size());
  for (const Candidate &candidate : set.candidates) {
    if (problem.isRejected(candidate.family))
      continue;
    for (auto [index, score] :
         llvm::enumerate(scoreFor(candidate.family, all))) {
      if (fastest[index] && score <= best[index])
        continue;
      best[index] = score;
      fastest[index] = &candidate.family;
    }
  }
  std::vector<std::vector<SplitChoice>> choices(shapes.size());
  std::vector<Question> splits, slices;
  for (auto [index, shape] : llvm::enumerate(shapes)) {
    const KernelFamily *family = fastest[index];
    if (!family || !hasFewBlocks(*family, shape, tuning::maxSliceWaves))
      continue;
    Question question = {&shape, family, best[index], &choices[index]};
    if (problem.options.splitK && isWorthLooking(*family, best[index]))
      splits.push_back(question);
    if (problem.options.slicedK && hasFewBlocks(*family, shape, 1))
      slices.push_back(question);
  }
  for (unsigned index = 0; index < set.candidates.size(); ++index)
    addSplit(index, splits);
  for (unsigned index = 0; index < set.candidates.size(); ++index)
    addSliced(index, slices);
  llvm::for_each(choices, [&](auto &ofShape) { take(ofShape); });
}

KernelFamily SplitFinder::familyOf(const SplitChoice &choice) const {
  if (choice.sliced)
    return *choice.sliced;
  KernelFamily family = set.candidates[choice.candidate].family;
  family.reduceSplit = choice.split;
  return family;
}

void SplitFinder::take(std::vector<SplitChoice> &choices) {
  llvm::stable_sort(choices, [](const SplitChoice &a, const SplitChoice &b) {
    return a.score > b.score;
  });
  size_t taken = 0;
  for (const SplitChoice &choice : choices) {
    KernelFamily family = familyOf(choice);
    if (problem.isRejected(family) || !isFeasible(problem, family))
      continue;
    std::vector<int64_t> fields(family.schedule.fields().begin(),
                                family.schedule.fields().end());
    fields.push_back(family.tiles.front()[gridOf(family).reduceAxis()]);
    chosen.insert({Key(choice.candidate, family.reduceSplit, fields), family});
    if (++taken == tuning::slicesPerShape)
      break;
  }
}

void SplitFinder::addSplit(unsigned index, llvm::ArrayRef<Question> questions) {
  KernelFamily family = set.candidates[index].family;
  bool ofRows = family.path().sharesOutSlices();
  if (!ofRows && !problem.workload.isContraction())
    return;
  unsigned axis = gridOf(family).reduceAxis();
  // Maximum split-K factor of each shape.
  std::vector<int64_t> maxSplits;
  for (const Question &question : questions) {
    const Shape &shape = *question.shape;
    int64_t steps = ceilDiv(shape[axis], family.tiles.front()[axis]);
    maxSplits.push_back(
        std::min(steps / tuning::minSliceSteps, tuning::maxSliceWaves *
                                                    problem.device.smCount /
                                                    blocksOf(family, shape)));
  }
  for (int64_t split :
       ofRows ? llvm::ArrayRef(kRowFactors) : llvm::ArrayRef(kFactors)) {
    std::vector<const Question *> asked;
    llvm::SmallVector<const Shape *> scored;
    for (auto [question, maxSplit] : llvm::zip_equal(questions, maxSplits))
      if (split <= maxSplit) {
        asked.push_back(&question);
        scored.push_back(question.shape);
      }
    if (asked.empty())
      break;
    family.reduceSplit = split;
    // Slices of rows must follow further rules.
    if (ofRows && !isFeasible(problem, family))
      continue;
    for (auto [question, score] :
         llvm::zip_equal(asked, scoreFor(family, scored)))
      if (score > question->best * (1 - tuning::minSliceGain))
        question->choices->push_back({score, index, split, nullptr});
  }
}

void SplitFinder::addSliced(unsigned index,
                            llvm::ArrayRef<Question> questions) {
  const KernelFamily &family = set.candidates[index].family;
  std::vector<const Question *> asked;
  llvm::SmallVector<const Shape *> scored;
  for (const Question &question : questions)
    if (&question.fastest->path() == &family.path() &&
        hasFewBlocks(family, *question.shape, 1)) {
      asked.push_back(&question);
      scored.push_back(question.shape);
    }
  if (asked.empty())
    return;
  // Shapes at which the candidate is not far from the fastest one.
  std::vector<const Question *> suited;
  llvm::SmallVector<const Shape *> suitedShapes;
  for (auto [question, score] :
       llvm::zip_equal(asked, scoreFor(family, scored)))
    if (score >= kMaxTimeOfSliced * question->best) {
      suited.push_back(question);
      suitedShapes.push_back(question->shape);
    }
  if (suited.empty())
    return;
  for (KernelFamily &variant : family.path().slicedVariants(family)) {
    if (!isFeasible(problem, variant))
      continue;
    const KernelFamily *kept = nullptr;
    for (auto [question, score] :
         llvm::zip_equal(suited, scoreFor(variant, suitedShapes))) {
      if (score <= question->best * (1 - tuning::minSliceGain))
        continue;
      if (!kept)
        kept = &variants.emplace_back(variant);
      question->choices->push_back({score, index, 1, kept});
    }
  }
}

void ftuner::addSplitCandidates(const SearchProblem &problem,
                                CandidateSet &set) {
  const SearchOptions &options = problem.options;
  if ((!options.splitK && !options.slicedK) ||
      !problem.costModel.predictsTime() || options.pool == ProgramPool::Exact ||
      (!problem.workload.isContraction() && !problem.workload.asRowReduction()))
    return;
  std::vector<Shape> shapes;
  unsigned mainAxis = problem.workload.mainAxis();
  for (const ShapeCell &cell : shapeCells(problem.workload, mainAxis))
    // Sizes have a constant ratio, since an extent counts in units of a tile.
    for (const SizeSample &sample :
         sampleSizes(problem.workload.axes[mainAxis], tuning::maxSliceShapes))
      shapes.push_back(shapeAt(problem.workload, cell, mainAxis, sample.size));
  SplitFinder finder(problem, set, shapes);
  finder.run();
  for (auto &[key, family] : finder.chosen) {
    Candidate candidate = set.candidates[std::get<0>(key)];
    candidate.family = family;
    candidate.ukernel = candidate.family.ukernel(0);
    set.candidates.push_back(std::move(candidate));
    ++set.numSplit;
  }
}
